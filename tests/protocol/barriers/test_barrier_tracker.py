"""At least once, after Flink's CheckpointBarrierTrackerTest."""

import pytest

from sim.protocol.barrier_handler import MAX_TRACKED, BarrierTracker
from sim.protocol.machine import InvalidTransition
from sim.protocol.messages import (
    AlignmentTimedOut,
    BarrierArrived,
    CancellationArrived,
    DeclineCheckpoint,
    ForwardCancellation,
    GateClosed,
    InputEnded,
    SettleBarriers,
    StartSnapshot,
    TriggerReceived,
)
from sim.protocol.options import AlignmentType, BarrierOptions, FailureReason
from tests.protocol.machines import feed as feed_machine

OPTIONS = BarrierOptions(100, AlignmentType.AT_LEAST_ONCE)
CANCELLED = FailureReason.CHECKPOINT_DECLINED_ON_CANCELLATION_BARRIER


def feed(gates, *events):
    machine, commands = feed_machine(BarrierTracker.for_gates(gates), *events)
    return machine, tuple(commands)


def both(now, gate, checkpoint=1):
    return BarrierArrived(now, gate, checkpoint, OPTIONS, first=True, last=True)


def test_checkpoints_overlap():
    """A second checkpoint may begin before the first is complete.  Only the newest one's clock is kept: the first reports zeros."""
    tracker, commands = feed(2, both(110, 0), both(120, 0, 2), both(130, 1), both(135, 1, 2))

    assert (StartSnapshot(1, OPTIONS, 130, 0), StartSnapshot(2, OPTIONS, 120, 15)) == commands
    assert tracker.tracked == ()


def test_only_so_many_are_tracked():
    tracker, _ = feed(2, *(both(110 + n, 0, n) for n in range(1, MAX_TRACKED + 2)))

    assert len(tracker.tracked) == MAX_TRACKED
    assert tracker.tracked[0].checkpoint == 2
    assert (tracker, ()) == tracker.on(both(999, 1, 1))  # forgotten


def test_fifty_are_tracked_as_in_flink():
    """MAX_CHECKPOINTS_TO_TRACK"""
    assert MAX_TRACKED == 50


def test_a_call_that_comes_at_once_has_no_delay():
    assert (StartSnapshot(1, OPTIONS, 100, 0),) == feed(0, TriggerReceived(100, 1, OPTIONS))[1]


def test_a_cancellation_aborts_this_and_older_ones():
    tracker, commands = feed(2, both(110, 0), both(120, 0, 2), both(125, 0, 3), CancellationArrived(130, 1, 2))

    assert (
        SettleBarriers(2),
        DeclineCheckpoint(1, CANCELLED),
        ForwardCancellation(1),
        DeclineCheckpoint(2, CANCELLED),
        ForwardCancellation(2),
    ) == commands
    assert [pending.checkpoint for pending in tracker.tracked] == [3]


def test_a_cancellation_of_something_new_is_passed_on_once():
    tracker, commands = feed(2, CancellationArrived(130, 1, 2), CancellationArrived(131, 0, 2))

    assert (SettleBarriers(2), DeclineCheckpoint(2, CANCELLED), ForwardCancellation(2)) == commands
    assert (tracker, ()) == tracker.on(both(140, 0, 2))


def test_a_closed_gate_completes_the_newest():
    tracker, commands = feed(2, both(110, 0), both(120, 0, 2), GateClosed(130, 1))

    assert (SettleBarriers(2), StartSnapshot(2, OPTIONS, 120, 10)) == commands
    assert tracker.tracked == ()

    _, commands = tracker.on(both(140, 0, 3))

    assert (StartSnapshot(3, OPTIONS, 140, 0),) == commands


def test_an_end_aborts_everything_tracked_where_checkpoints_do_not_outlive_it():
    """Without FLIP-147."""
    tracker, commands = feed(2, both(110, 0), both(120, 0, 2), InputEnded(130, 1))
    why = FailureReason.CHECKPOINT_DECLINED_INPUT_END_OF_STREAM

    declines = [command for command in commands if isinstance(command, DeclineCheckpoint)]

    assert [DeclineCheckpoint(1, why), DeclineCheckpoint(2, why)] == declines
    assert (tracker.tracked, tracker.latest) == ((), 2)


def test_a_source_snapshots_when_called():
    tracker, commands = feed(0, TriggerReceived(103, 1, OPTIONS))

    assert (StartSnapshot(1, OPTIONS, 103, 0),) == commands
    assert (tracker, ()) == tracker.on(TriggerReceived(104, 1, OPTIONS))


@pytest.mark.parametrize(
    "events",
    [
        (both(110, 0), both(111, 0)),
        (BarrierArrived(110, 0, 1, OPTIONS, first=True, last=True, priority=True),),
        (AlignmentTimedOut(110, 1),),
        (GateClosed(110, 0), GateClosed(110, 0)),
    ],
)
def test_what_cannot_happen_raises(events):
    with pytest.raises(InvalidTransition, match="BarrierTracker"):
        feed(2, *events)
