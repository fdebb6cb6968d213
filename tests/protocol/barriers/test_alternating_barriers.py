"""The alternating handler (unaligned, aligned with timeout), after Flink's AlternatingCheckpointsTest and UnalignedCheckpointsTest."""

import pytest

from sim.protocol.barrier_handler import BarrierHandler
from sim.protocol.barrier_states import (
    AlternatingCollectingBarriers,
    AlternatingCollectingBarriersUnaligned,
    AlternatingWaitingForFirstBarrier,
    AlternatingWaitingForFirstBarrierUnaligned,
)
from sim.protocol.machine import InvalidTransition
from sim.protocol.options import AlignmentType, BarrierOptions, FailureReason
from sim.protocol.task_messages import (
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
    TriggerReceived,
)

UNALIGNED = BarrierOptions(100, AlignmentType.UNALIGNED)
TIMEOUT = BarrierOptions(100, AlignmentType.ALIGNED, aligned_timeout_ns=50)  # deadline 150
AFTER_TIMEOUT = TIMEOUT.as_unaligned()
FORCED = UNALIGNED.on_forced_edge()

AW, AC = AlternatingWaitingForFirstBarrier(), AlternatingCollectingBarriers()
UW, UC = AlternatingWaitingForFirstBarrierUnaligned(), AlternatingCollectingBarriersUnaligned()


def feed(gates, *events):
    handler, commands = BarrierHandler.waiting(AlternatingWaitingForFirstBarrier(), gates), ()
    for event in events:
        handler, new = handler.on(event)
        commands = (*commands, *new)
    return handler, commands


def barrier(now, gate, options, checkpoint=1, *, first=True, last=True, priority=False):
    return BarrierArrived(now, gate, checkpoint, options, first, last, priority)


def announced(now, gate, checkpoint=1):
    return BarrierAnnounced(now, gate, checkpoint, TIMEOUT)


# ------------------------------------------------------------------------------------------ unaligned from the start


def test_the_first_unaligned_barrier_starts_the_snapshot():
    handler, commands = feed(2, barrier(110, 0, UNALIGNED, last=False))

    assert handler.state == UC
    assert (CaptureInput(1), StartSnapshot(1, UNALIGNED, 110, 10, None)) == commands


def test_gates_cannot_all_close_after_a_barrier_was_announced():
    """The barrier announced comes before the end of its gate."""
    handler, _ = feed(1, announced(110, 0), AlignmentTimedOut(150, 1))

    with pytest.raises(InvalidTransition, match="every gate closed and no barrier came"):
        handler.on(GateClosed(160, 0))


def test_the_last_unaligned_barrier_ends_the_capture():
    """The alignment of an unaligned checkpoint is the time it stays open."""
    handler, commands = feed(
        2, barrier(110, 0, UNALIGNED, last=False), barrier(115, 1, UNALIGNED), barrier(140, 0, UNALIGNED, first=False)
    )

    assert handler.state == AW
    assert (FinishCapture(1), InputsComplete(140, 1, 30), ResumeInputs(1)) == commands[2:]


def test_a_single_unaligned_channel_is_complete_at_once():
    """Nothing is missing, but what the barrier overtook is still captured."""
    handler, commands = feed(1, barrier(110, 0, UNALIGNED))

    assert handler.state == AW
    assert (CaptureInput(1), StartSnapshot(1, UNALIGNED, 110, 10, 0, resumes=True)) == commands


def test_law_11_timeout_zero_runs_as_unaligned():
    """A deadline that is the trigger itself has always passed."""
    at_once = BarrierOptions(100, AlignmentType.ALIGNED, aligned_timeout_ns=0)
    handler, commands = feed(2, barrier(110, 0, at_once, last=False))

    assert handler.state == UC
    assert StartSnapshot(1, UNALIGNED, 110, 10, None) == commands[-1]


def test_law_11_an_infinite_timeout_runs_as_aligned():
    never = BarrierOptions(100)
    _, commands = feed(2, barrier(110, 0, never), barrier(10**15, 1, never))

    assert (StartSnapshot(1, never, 110, 10, 10**15 - 110, resumes=True),) == commands


def test_a_forced_aligned_edge_aligns():
    handler, commands = feed(2, barrier(110, 0, FORCED), barrier(130, 1, FORCED))

    assert handler.state == AW
    assert (StartSnapshot(1, FORCED, 110, 10, 20, resumes=True),) == commands


# ------------------------------------------------------------------------------------------ aligned with a timeout


def test_the_timer_is_armed_at_the_first_announcement():
    handler, commands = feed(2, announced(110, 0), announced(120, 1))

    assert handler.state == AW
    assert (ArmAlignmentTimer(1, 150),) == commands


def test_a_deadline_that_has_passed_arms_the_timer_for_now():
    _, commands = feed(2, announced(180, 0))

    assert (ArmAlignmentTimer(1, 180),) == commands


def test_alignment_within_the_timeout_is_aligned():
    handler, commands = feed(2, barrier(110, 0, TIMEOUT), barrier(130, 1, TIMEOUT))

    assert handler.state == AW
    assert (
        ArmAlignmentTimer(1, 150),
        StartSnapshot(1, TIMEOUT, 110, 10, 20, resumes=True),
    ) == commands


def test_timeout_after_announcements_waits_for_the_first_barrier():
    """Announced barriers are let overtake; the snapshot begins with the first of them, though it is an aligned one."""
    handler, commands = feed(2, announced(110, 0), AlignmentTimedOut(150, 1))

    assert handler.state == UW
    assert PrioritiseInput(1) == commands[-1]

    handler, commands = handler.on(barrier(151, 0, TIMEOUT, last=False))

    assert handler.state == UC
    assert (CaptureInput(1), StartSnapshot(1, AFTER_TIMEOUT, 151, 51, None)) == commands


def test_timeout_while_collecting_snapshots_at_once():
    handler, commands = feed(2, barrier(110, 0, TIMEOUT), AlignmentTimedOut(150, 1))

    assert handler.state == UC
    assert (PrioritiseInput(1), CaptureInput(1), StartSnapshot(1, AFTER_TIMEOUT, 110, 10, None)) == commands[1:]


def test_the_last_barrier_after_the_timeout_resumes_what_was_blocked():
    handler, commands = feed(2, barrier(110, 0, TIMEOUT), AlignmentTimedOut(150, 1), barrier(155, 1, TIMEOUT))

    assert handler.state == AW
    assert (FinishCapture(1), InputsComplete(155, 1, 45), ResumeInputs(1)) == commands[-3:]


def test_a_late_barrier_times_out_without_the_timer():
    """The clock is looked at with every barrier, strictly: at the deadline itself the barrier is still in time."""
    in_time, _ = feed(3, barrier(110, 0, TIMEOUT), barrier(150, 1, TIMEOUT))
    late, commands = feed(3, barrier(110, 0, TIMEOUT), barrier(151, 1, TIMEOUT))

    assert in_time.state == AC
    assert late.state == UC
    assert (PrioritiseInput(1), CaptureInput(1), StartSnapshot(1, AFTER_TIMEOUT, 110, 10, None)) == commands[1:]


def test_a_late_first_barrier_goes_unaligned():
    handler, commands = feed(2, barrier(151, 0, TIMEOUT))

    assert handler.state == UC
    assert (PrioritiseInput(1), CaptureInput(1), StartSnapshot(1, AFTER_TIMEOUT, 151, 51, None)) == commands[1:]


def test_a_complete_alignment_is_aligned_however_late():
    """Completeness is looked at before the clock (AbstractAlternatingAlignedBarrierHandlerState#barrierReceived)."""
    _, commands = feed(1, barrier(500, 0, TIMEOUT))

    assert StartSnapshot(1, TIMEOUT, 500, 400, 0, resumes=True) == commands[-1]


def test_upstream_switches_to_unaligned():
    """An announcement came from one gate, then an unaligned barrier from another (testSwitchToUnalignedByUpstream)."""
    handler, commands = feed(2, announced(110, 0), barrier(120, 1, TIMEOUT, priority=True))

    assert handler.state == UC
    assert (PrioritiseInput(1), CaptureInput(1), StartSnapshot(1, AFTER_TIMEOUT, 120, 20, None)) == commands[1:]


def test_an_unaligned_barrier_ends_an_aligned_collection():
    """The last one may be it: the snapshot is complete but unaligned."""
    handler, commands = feed(2, barrier(110, 0, TIMEOUT), barrier(140, 1, TIMEOUT, priority=True))

    assert handler.state == AW
    assert CaptureInput(1) in commands
    assert FinishCapture(1) in commands


def test_aligned_again_after_a_timed_out_checkpoint():
    """testAlignedAfterTimedOut: the next checkpoint begins aligned, with its own deadline."""
    next_options = BarrierOptions(300, AlignmentType.ALIGNED, aligned_timeout_ns=50)
    handler, _ = feed(1, announced(110, 0), AlignmentTimedOut(150, 1), barrier(151, 0, TIMEOUT))
    handler, commands = handler.on(barrier(310, 0, next_options, 2))

    assert (ArmAlignmentTimer(2, 350), StartSnapshot(2, next_options, 310, 10, 0, resumes=True)) == commands


@pytest.mark.parametrize("late", [AlignmentTimedOut(150, 1), AlignmentTimedOut(400, 7)])
def test_a_timer_without_a_reason_is_ignored(late):
    handler, _ = feed(2, barrier(110, 0, TIMEOUT), barrier(130, 1, TIMEOUT))

    assert (handler, ()) == handler.on(late)


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


def test_an_unaligned_barrier_overtakes_an_aligned_savepoint():
    """testChannelResetOnNewBarrier: the savepoint is given up, the checkpoint captures."""
    savepoint = BarrierOptions(90, savepoint=True)
    handler, commands = feed(2, barrier(95, 0, savepoint), barrier(110, 1, UNALIGNED, 2))

    assert handler.state == UC
    assert (
        ResumeInputs(1),
        SettleBarriers(1),
        DeclineCheckpoint(1, FailureReason.CHECKPOINT_DECLINED_SUBSUMED),
        ForwardCancellation(1),
        CaptureInput(2),
        StartSnapshot(2, UNALIGNED, 110, 10, None),
    ) == commands


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


def test_a_closed_gate_completes():
    aligned, _ = feed(2, barrier(110, 0, TIMEOUT), GateClosed(120, 1))
    unaligned, commands = feed(2, barrier(110, 0, UNALIGNED), GateClosed(120, 1))

    assert aligned.state == AW
    assert unaligned.state == AW
    assert InputsComplete(120, 1, 10) in commands


def test_a_source_writes_unaligned_barriers_without_capturing():
    _, commands = feed(0, TriggerReceived(102, 1, UNALIGNED))

    assert (StartSnapshot(1, UNALIGNED, 102, 2, 0),) == commands


def test_a_call_after_announcements_begins_at_once():
    handler, commands = feed(2, announced(110, 0), AlignmentTimedOut(150, 1), TriggerReceived(160, 1, TIMEOUT))

    assert handler.state == AW
    assert StartSnapshot(1, TIMEOUT, 160, 60, 0) == commands[-1]


def test_every_gate_closed_without_a_barrier_cannot_happen():
    with pytest.raises(InvalidTransition, match="every gate closed"):
        feed(1, announced(110, 0), GateClosed(120, 0))
