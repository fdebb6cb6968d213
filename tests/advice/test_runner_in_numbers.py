"""What a runner of trials says of its bounds, from numbers that a clock and a store give it."""

import math
from types import SimpleNamespace

import pytest

from sim.advice.candidates import Skipped, chances
from sim.advice.trials import TrialRunner
from sim.jobs.evidence.what_ifs import chance, within


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


def test_chances_are_those_of_recorded_changes_of_the_same_kinds():
    """A limit of 1 s leaves a factor of two for 500 ms; today's setting, and one without a duration, have none."""
    kinds = ("barriers",)
    search = SimpleNamespace(
        limits=SimpleNamespace(checkpoint_ms=1000.0),
        bench=SimpleNamespace(backtest=object()),
        kinds_of=lambda _: kinds,
        current_name=("30 s", "aligned"),
    )
    setting = SimpleNamespace(name=("30 s", "unaligned"), checkpoint_ms=500.0)
    found = chances(search, setting)

    assert (chance(kinds, 2.0), 500 * within(kinds)) == (found.kept, pytest.approx(found.likely_ms))
    assert chances(search, SimpleNamespace(name=("30 s", "aligned"), checkpoint_ms=500.0)) is None
    assert [chances(search, SimpleNamespace(name=("1 s", "x"), checkpoint_ms=ms)) for ms in (0.0, math.inf)] == [
        None,
        None,
    ]
    search.current_name = None
    assert chances(search, setting) is not None
    search.limits.checkpoint_ms = None
    assert chances(search, setting) is None


def test_only_those_that_ran_are_named_as_few():
    """One of two protocols ran: it is named; one of three that ran is the only one."""
    names = tuple(("15 s", protocol) for protocol in ("aligned", "unaligned", "aligned-timeout 1 s"))

    assert Skipped("why", names).sentence(names[:2]) == "every 15 s (aligned and unaligned ran): why"
    assert Skipped("why", names).sentence(names[:1]) == "every 15 s (only aligned ran): why"
    assert Skipped("why", what="more runs").sentence(names) == "more runs: why"
