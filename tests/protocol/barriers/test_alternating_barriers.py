"""The alternating handler (unaligned, aligned with timeout), after Flink's AlternatingCheckpointsTest and UnalignedCheckpointsTest."""

import pytest

from sim.protocol.barrier_handler import (
    AlternatingCollectingBarriers,
    AlternatingCollectingBarriersUnaligned,
    AlternatingWaitingForFirstBarrier,
    AlternatingWaitingForFirstBarrierUnaligned,
    BarrierHandler,
)
from sim.protocol.machine import InvalidTransition
from sim.protocol.messages import (
    AlignmentTimedOut,
    ArmAlignmentTimer,
    BarrierAnnounced,
    BarrierArrived,
    CancellationArrived,
    CancelSnapshot,
    CaptureInput,
    DeclineCheckpoint,
    FinishCapture,
    ForwardCancellation,
    GateClosed,
    InputsComplete,
    PrioritiseInput,
    ResumeInputs,
    SettleBarriers,
    StartSnapshot,
)
from sim.protocol.options import AlignmentType, BarrierOptions, FailureReason
from tests.protocol.machines import feed as feed_machine

UNALIGNED = BarrierOptions(100, AlignmentType.UNALIGNED)
TIMEOUT = BarrierOptions(100, AlignmentType.ALIGNED, aligned_timeout_ns=50)  # deadline 150
AFTER_TIMEOUT = TIMEOUT.as_unaligned()

AW, AC = AlternatingWaitingForFirstBarrier(), AlternatingCollectingBarriers()
UW, UC = AlternatingWaitingForFirstBarrierUnaligned(), AlternatingCollectingBarriersUnaligned()


def feed(gates, *events):
    machine, commands = feed_machine(BarrierHandler.for_gates(gates), *events)
    return machine, tuple(commands)


def barrier(now, gate, options, checkpoint=1, *, first=True, last=True):
    return BarrierArrived(now, gate, checkpoint, options, first, last, False)


def announced(now, gate, checkpoint=1):
    return BarrierAnnounced(now, gate, checkpoint, TIMEOUT)


# ------------------------------------------------------------------------------------------ unaligned from the start


def test_the_first_unaligned_barrier_starts_the_snapshot():
    handler, commands = feed(2, barrier(110, 0, UNALIGNED, last=False))

    assert handler.state == UC
    assert (CaptureInput(1), StartSnapshot(1, UNALIGNED, 110, None)) == commands


def test_gates_cannot_all_close_after_a_barrier_was_announced():
    """The barrier announced comes before the end of its gate."""
    handler, _ = feed(1, announced(110, 0), AlignmentTimedOut(150, 1))

    with pytest.raises(InvalidTransition, match="all gates closed before any barrier arrived"):
        handler.on(GateClosed(160, 0))


def test_the_last_unaligned_barrier_ends_the_capture():
    """The alignment of an unaligned checkpoint is the time it stays open."""
    handler, commands = feed(
        2, barrier(110, 0, UNALIGNED, last=False), barrier(115, 1, UNALIGNED), barrier(140, 0, UNALIGNED, first=False)
    )

    assert handler.state == AW
    assert (FinishCapture(1), InputsComplete(140, 1, 30), ResumeInputs(1)) == commands[2:]


def test_invariant_11_timeout_zero_runs_as_unaligned():
    """A deadline that is the trigger itself has always passed."""
    at_once = BarrierOptions(100, AlignmentType.ALIGNED, aligned_timeout_ns=0)
    handler, commands = feed(2, barrier(110, 0, at_once, last=False))

    assert handler.state == UC
    assert StartSnapshot(1, UNALIGNED, 110, None) == commands[-1]


def test_invariant_11_an_infinite_timeout_runs_as_aligned():
    never = BarrierOptions(100)
    _, commands = feed(2, barrier(110, 0, never), barrier(10**15, 1, never))

    assert (StartSnapshot(1, never, 110, 10**15 - 110, resumes=True),) == commands


# ------------------------------------------------------------------------------------------ aligned with a timeout


def test_the_timer_is_armed_at_the_first_announcement():
    handler, commands = feed(2, announced(110, 0), announced(120, 1))

    assert handler.state == AW
    assert (ArmAlignmentTimer(1, 150),) == commands


def test_a_late_barrier_times_out_without_the_timer():
    """The clock is looked at with every barrier, strictly: at the deadline itself the barrier is still in time."""
    in_time, _ = feed(3, barrier(110, 0, TIMEOUT), barrier(150, 1, TIMEOUT))
    late, commands = feed(3, barrier(110, 0, TIMEOUT), barrier(151, 1, TIMEOUT))

    assert in_time.state == AC
    assert late.state == UC
    assert (PrioritiseInput(1), CaptureInput(1), StartSnapshot(1, AFTER_TIMEOUT, 110, None)) == commands[1:]


def test_a_late_first_barrier_goes_unaligned():
    handler, commands = feed(2, barrier(151, 0, TIMEOUT))

    assert handler.state == UC
    assert (PrioritiseInput(1), CaptureInput(1), StartSnapshot(1, AFTER_TIMEOUT, 151, None)) == commands[1:]


def test_a_complete_alignment_is_aligned_however_late():
    """Completeness is looked at before the clock (AbstractAlternatingAlignedBarrierHandlerState#barrierReceived)."""
    _, commands = feed(1, barrier(500, 0, TIMEOUT))

    assert StartSnapshot(1, TIMEOUT, 500, 0, resumes=True) == commands[-1]


def test_the_timer_of_an_older_checkpoint_is_ignored():
    newer = BarrierOptions(140, AlignmentType.ALIGNED, aligned_timeout_ns=50)
    handler, _ = feed(2, barrier(110, 0, TIMEOUT), barrier(145, 1, newer, 2))

    assert (handler, ()) == handler.on(AlignmentTimedOut(150, 1))


def test_announcements_after_the_timeout_need_nothing_more():
    """PrioritiseInput holds for barriers yet to come."""
    handler, _ = feed(2, barrier(110, 0, TIMEOUT), AlignmentTimedOut(150, 1))

    assert (handler, ()) == handler.on(announced(152, 1))


# ------------------------------------------------------------------------------------------ giving up


def test_an_announcement_of_a_newer_checkpoint_subsumes():
    handler, commands = feed(2, barrier(110, 0, TIMEOUT), announced(140, 1, 2))

    assert handler.state == AW
    assert (
        ResumeInputs(1),
        SettleBarriers(1),
        DeclineCheckpoint(1, FailureReason.CHECKPOINT_DECLINED_SUBSUMED),
        ForwardCancellation(1),
        ArmAlignmentTimer(2, 150),
    ) == commands[1:]


def test_a_cancellation_drops_a_running_unaligned_snapshot():
    handler, commands = feed(2, barrier(110, 0, UNALIGNED), CancellationArrived(120, 1, 1))

    assert handler.state == AW
    assert (
        FinishCapture(1),
        CancelSnapshot(1),
        ResumeInputs(1),
        SettleBarriers(1),
        DeclineCheckpoint(1, FailureReason.CHECKPOINT_DECLINED_ON_CANCELLATION_BARRIER),
        ForwardCancellation(1),
    ) == commands[2:]


def test_a_cancellation_of_what_is_only_announced_waits_for_a_barrier():
    """Flink looks at the aligned channels: an announcement is none of them."""
    handler, commands = feed(2, announced(110, 0), CancellationArrived(120, 1, 1))

    assert (ArmAlignmentTimer(1, 150),) == commands
    assert handler.pending.checkpoint == 1


@pytest.mark.parametrize("state", [AW, UW])
def test_gates_close_while_only_announced(state):
    """The closed gate counts; the announced barrier completes."""
    timer = (AlignmentTimedOut(150, 1),) if state == UW else ()
    handler, _ = feed(2, announced(110, 0), *timer, GateClosed(155, 1))

    assert state == handler.state

    handler, commands = handler.on(barrier(160, 0, TIMEOUT))

    assert handler.state == AW
    # since the gate closed
    assert next(command for command in commands if isinstance(command, StartSnapshot)).alignment_ns == 5


def test_every_gate_closed_without_a_barrier_cannot_happen():
    with pytest.raises(InvalidTransition, match="all gates closed"):
        feed(1, announced(110, 0), GateClosed(120, 0))
