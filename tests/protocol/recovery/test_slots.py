"""Slots of lost task managers: when their heartbeats are missed, what fails meanwhile, and what the adaptive scheduler waits for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.model.faults import Restart
from sim.protocol.recovery import Deployment, Heartbeats, LostSlots, Slots, compute_rescale_ns, compute_start

# Slots of lost task managers: deployments that fail, and those that wait.


NOTHING: frozenset[int] = frozenset()
LOST = Slots(check_ns=5).lose(7, LostSlots(missed_ns=100, released_ns=200, replaced_ns=0))


def test_a_deployment_into_slots_that_are_not_missed_yet_fails():
    assert Deployment(frozenset({7}), 99) == LOST.deployment({6, 7}, 99)
    assert Deployment(NOTHING, 99) == LOST.deployment({6, 8}, 99), "it concerns none of these"


def test_others_are_given_when_the_resource_manager_misses_it_too():
    assert Deployment(NOTHING, 200) == LOST.deployment({6, 7}, 100)
    assert Deployment(NOTHING, 255) == LOST.deployment({7}, 250), "asked for, and looked for"


def test_others_are_given_when_there_are_some():
    later = LOST.lose(8, LostSlots(10, 10, 400))

    assert Deployment(NOTHING, 400) == later.deployment({7, 8}, 150)
    assert Deployment(frozenset({7}), 50) == later.deployment({7, 8}, 50), "one that is not missed yet suffices"


def test_what_is_deployed_again_is_lost_no_more():
    assert Deployment(NOTHING, 20) == LOST.deployed({6, 7}).deployment({7}, 20)
    assert LOST is LOST.deployed({6})


def test_another_jobmanager_knows_those_that_live():
    """It deploys nothing into slots that none reports, and waits only until there are others."""
    assert Deployment(NOTHING, 65) == LOST.for_new_leader(60).deployment({7}, 60)
    assert Deployment(NOTHING, 300) == Slots().lose(7, LostSlots(100, 200, 300)).for_new_leader(60).deployment({7}, 60)


def test_a_silent_machine_refuses_nothing():
    """A deployment to it is given up after the ask timeout, or when the machine is missed."""
    silent = Slots().lose(7, LostSlots(missed_ns=100, released_ns=100, replaced_ns=0, refusal_ns=30))

    assert Deployment(frozenset({7}), 70) == silent.deployment({7}, 40)
    assert Deployment(frozenset({7}), 100) == silent.deployment({7}, 90)


def test_a_request_for_slots_that_come_too_late_fails():
    """In a standalone cluster at the first look behind the start-up period and the loss, elsewhere after the timeout."""
    late = LostSlots(missed_ns=0, released_ns=100, replaced_ns=400)
    standalone, asked = (Slots(5, 200, started).lose(7, late) for started in (0, None))
    fails = [slots.deployment({7}, now) for slots, now in ((standalone, 50), (standalone, 300), (asked, 150))]

    assert [outcome.at_ns for outcome in fails] == [105, 305, 350]
    assert all(outcome.is_lost and outcome.unreachable == {7} for outcome in fails)
    assert Deployment(NOTHING, 400) == asked.deployment({7}, 250)
    assert Deployment(NOTHING, 400) == standalone.for_new_leader(250).deployment({7}, 260)


def test_a_resource_manager_that_misses_them_first_tells_the_jobmaster():
    """No deployment fails any more from then on."""
    slots = Slots(check_ns=5).lose(7, LostSlots(missed_ns=100, released_ns=60, replaced_ns=0))

    assert frozenset({7}) == slots.deployment({7}, 59).unreachable
    assert Deployment(NOTHING, 65) == slots.deployment({7}, 60)


# Heartbeats: when a lost task manager is missed.


@pytest.mark.parametrize(
    ("lost", "missed"),
    [
        (1, 13),  # heartbeats of 3 and 13 are refused
        (3, 13),  # the process is gone in that very moment
        (4, 23),
        (13, 23),
    ],
)
def test_heartbeats_that_are_refused_in_a_row_count(lost, missed):
    """The default: two of them, 10 s apart."""
    assert missed == Heartbeats(10, 50, 2, 3).missed_ns(lost, silent=False)


@pytest.mark.parametrize(("lost", "missed"), [(3, 43), (4, 53), (12, 53), (13, 53)])
def test_silence_counts_from_the_last_heartbeat_that_was_answered(lost, missed):
    assert missed == Heartbeats(10, 50, 2, 3).missed_ns(lost, silent=True)
    assert missed == Heartbeats(10, 50, None, 3).missed_ns(lost, silent=False), "refusals do not count"
    assert missed == Heartbeats(10, 50, 9, 3).missed_ns(lost, silent=False), "the timeout comes first"


@given(st.integers(0, 10**6), st.integers(1, 1000), st.integers(0, 2000), st.integers(1, 4), st.booleans())
def test_the_phase_is_a_range(lost, interval, phase, failures, silent):
    """Whenever heartbeats are sent, an interval lies between the earliest and the latest time."""
    beats = Heartbeats(interval, 5 * interval, failures, phase)
    waited = beats.missed_ns(lost, silent=silent) - lost

    first = 4 * interval if silent else (failures - 1) * interval
    assert first <= waited <= first + interval


# The adaptive scheduler's waits: for slots after a failure, and for the rescale when they are back.


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
