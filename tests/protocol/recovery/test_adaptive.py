"""The adaptive scheduler's waits: for slots after a failure, and for the rescale when they are back."""

import pytest

from sim.model.faults import Restart
from sim.protocol.recovery import compute_rescale_ns, compute_start

SECOND = 10**9
ADAPTIVE = Restart(scheduler="adaptive")


def seconds(*times):
    return [time * SECOND for time in times]


@pytest.mark.parametrize(
    ("returns", "expected"),
    [
        ((), (100, True)),
        ((104,), (104, True)),
        ((110,), (110, True)),
        ((111,), (110, False)),
        ((104, 400), (110, False)),
    ],
)
def test_it_starts_with_all_slots_or_when_the_others_are_stable(returns, expected):
    """Ten seconds after it began to wait, whatever has come meanwhile."""
    start = compute_start(100 * SECOND, seconds(*returns), ADAPTIVE)

    assert (expected[0] * SECOND, expected[1]) == start


def test_in_reactive_mode_it_starts_at_once():
    assert compute_start(100 * SECOND, seconds(101), Restart(scheduler="adaptive", reactive=True)) == (
        100 * SECOND,
        False,
    )


@pytest.mark.parametrize(
    ("returns", "expected"),
    [((5,), 30), ((45,), 45), ((5, 20), 30), ((40, 70), 70), ((40, 400), 100), ((5, 400), 90)],
)
def test_it_is_rescaled_after_a_cooldown_when_all_are_back_or_some_are_stable(returns, expected):
    """Cooldown 30 s, then up to 60 s for the others."""
    assert expected * SECOND == compute_rescale_ns(0, seconds(*returns), ADAPTIVE)


def test_a_failure_restarts_the_whole_job():
    assert ADAPTIVE.restarts_all
    assert not Restart().restarts_all
    assert Restart(failover="full").restarts_all
