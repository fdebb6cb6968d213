"""What a runner of trials says of its bounds, from numbers that a clock and a store give it."""

from types import SimpleNamespace

import pytest

from sim.advice.candidates import Skipped
from sim.advice.trials import TrialRunner


@pytest.fixture
def runner(tmp_path):
    """``runner(budget_s=100)``: at work since a clock said 0; `now_s` sets what it says."""

    def made(**bounds):
        clock = SimpleNamespace(now_s=0.0)
        found = TrialRunner(tmp_path / "out", clock=lambda: clock.now_s, **bounds)
        found.set_clock = lambda now_s: setattr(clock, "now_s", now_s)
        return found

    return made


def test_nothing_that_runs_is_nothing_spent(runner):
    """Without rows nothing is known of what runs take, so all are afforded; with no time left none is."""
    found = runner(budget_s=1.0, within_s=60.0)

    assert (found.spent_s(), found._rate()) == (0.0, 0.0)
    assert found.affords([], 0.0)


def test_only_those_that_ran_are_named_as_few():
    """One of two protocols ran: it is named; one of three that ran is the only one."""
    names = tuple(("15 s", protocol) for protocol in ("aligned", "unaligned", "aligned-timeout 1 s"))

    assert Skipped("why", names).sentence(names[:2]) == "every 15 s (aligned and unaligned ran): why"
    assert Skipped("why", names).sentence(names[:1]) == "every 15 s (only aligned ran): why"
    assert Skipped("why", what="more runs").sentence(names) == "more runs: why"
