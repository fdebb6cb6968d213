"""Unknown inputs, growing state and what changes the advice, number by number."""

import math
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import pytest

from sim.advice.answer import _lines_on_today
from sim.advice.candidates import excess
from sim.advice.horizon import GrowingState, Horizon
from sim.advice.judgement import Limits
from sim.advice.texts import percentage, value_text
from tests.advice.test_judged_tables import setting

S = 10**9


def test_keys_that_expire_leave_one_after_the_other():
    """1 MB of all ages up to 100 s: after 25 s three quarters are left, and 20 kB/s have come."""
    state = GrowingState("sink", 1_000_000, 20_000.0, ttl_s=100.0)

    assert [state.after(seconds) for seconds in (0, 25, 100, 300)] == [
        1_000_000,
        750_000 + 500_000,
        2_000_000,
        2_000_000,
    ]
    assert replace(state, ttl_s=math.inf).after(300) == 1_000_000 + 20_000 * 300


def test_expired_entries_lie_there_until_the_cleanup_meets_them():
    """2 MB live for 100 s: 20 kB/s expire; a cleanup of 30 kB/s is ahead by 40 kB/s, and leaves 20 kB/s x 2 MB / 40 kB/s."""
    state = GrowingState("sink", 2_000_000, 20_000.0, ttl_s=100.0, checked_per_second=30_000.0)

    assert state.after(1000) == 2_000_000 + 1_000_000
    assert state.after(30) == 2_000_000 + 20_000 * 30  # no more than have expired by then
    assert replace(state, checked_per_second=10_000.0).after(1000) == 2_000_000 + 20_000 * 1000  # it never catches up
    assert replace(state, checked_per_second=math.inf).after(1000) == 2_000_000


def test_state_is_written_as_it_is_in_the_job():
    """300 bytes a record are entries of 1 kB rewritten by three of ten records, 2500 are entries of as many bytes by each."""
    state = GrowingState("my.sink", 10**6, 1000.0, written_per_record=Fraction(300))

    assert {key.rpartition(".")[2]: value for key, value in state.change(60).items()} == {
        "size": "1060000 B",
        "growth": "0 B",
        "ttl": "0 s",
        "update": "30 %",
        "value": "1000 B",
    }
    assert {'job."my.sink".state.size'} < set(state.change(60))
    large = replace(state, written_per_record=Fraction(5001, 2)).change(0)
    assert tuple(large[f'job."my.sink".state.{name}'] for name in ("value", "update")) == ("2501 B", "99.98 %")
    assert Horizon(60 * S, (state,)).change() == state.change(60.0)
    assert Horizon(60 * S, (state,)).change(0.0) == state.change(0.0)


def test_only_state_that_changes_is_spoken_of():
    """Today's checkpoints stand beside it: all other values are of the job at the horizon."""
    grows, stays = GrowingState("a", 10**6, 1e6), GrowingState("b", 10**6, 0.0)
    row = SimpleNamespace(observed=SimpleNamespace(p50=2500.0, largest=4300.0))
    backtest = SimpleNamespace(of=lambda _: row)
    bench = SimpleNamespace(horizon=Horizon(60 * S, (grows, stays)), backtest=backtest)
    search = SimpleNamespace(bench=bench, loses_today=False, current_candidate=object())

    assert [line.text for line in _lines_on_today(search)] == [
        "a 1 MB -> 61 MB in 60 s: all values are of the job then",
        "p50 2.5 s, longest 4.3 s (history)",
    ]


VALUES = {
    "checkpoint_ms": 500.0,
    "checkpoint_p90_ms": 400.0,
    "loss": 0.02,
    "visible_ms": math.nan,
    "recovery_ms": 30_000.0,
    "completed": 2.0,
}


@pytest.mark.parametrize(
    ("limits", "values", "factor"),
    [
        (Limits(checkpoint_ms=200.0), {}, 2.0),
        (Limits(checkpoint_ms=200.0, recovery_ms=10_000.0), {}, 3.0),
        (Limits(loss=0.01), {}, 2.0),
        (Limits(loss=0.0), {}, 0.0),
        (Limits(visible_ms=5.0), {}, 0.0),
        (Limits(), {}, 0.0),
        (Limits(loss=0.04), {}, 0.5),
        (Limits(checkpoint_ms=200.0), {"completed": 0.0}, math.inf),
    ],
)
def test_a_setting_is_as_far_from_the_limits_as_from_the_worst(limits, values, factor):
    """The limit on checkpoints is compared by nine in ten."""
    assert factor == pytest.approx(excess(setting(("30 s", "aligned"), **VALUES | values), limits))


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0.995, 2, "100 %"),
        (0.994, 2, "99 %"),
        (0.0999, 2, "10 %"),
        (-0.5, 2, "-50 %"),
        (0.12345, 3, "12.3 %"),
        (9.996, 3, "1000 %"),
        (math.inf, 2, "-"),
        (15.67, 2, "1567 %"),
    ],
)
def test_shares_have_their_digits(value, digits, text):
    assert text == percentage(value, digits)


def test_a_gain_of_throughput_is_no_loss():
    assert (value_text("loss", -0.02), value_text("loss", 0.02), value_text("recovery_ms", 5000.0)) == (
        "0 %",
        "2 %",
        "5 s",
    )
