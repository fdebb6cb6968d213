"""A task from its barriers to its acknowledgement: the order of C.4 in Flink's SubtaskCheckpointCoordinatorImpl."""

import pytest

from sim.model.checkpoint import Barriers
from sim.protocol.barrier_modes import ASYNC_OPERATE, strategy
from sim.protocol.machine import InvalidTransition
from sim.protocol.messages import (
    AbortNotified,
    Acknowledge,
    ArmOutputTimer,
    AsyncFailed,
    BarrierArrived,
    CancellationArrived,
    CancelSnapshot,
    CaptureInput,
    ChannelStateWritten,
    ConvertOutput,
    DeclineCheckpoint,
    FinishCapture,
    FinishChannelState,
    ForwardBarrier,
    ForwardCancellation,
    GateClosed,
    OutputBarriersLeft,
    OutputTimedOut,
    Phase,
    PhaseFinished,
    ReleaseTask,
    ResumeInputs,
    RunAsync,
    RunPreBarrier,
    RunSync,
    SnapshotTimes,
    StartChannelState,
    TriggerReceived,
    Work,
)
from sim.protocol.options import AlignmentType, BarrierOptions, FailureReason
from sim.protocol.task_checkpointing import MAX_ABORTED, TaskCheckpointing
from tests.protocol.machines import Running

ALIGNED = BarrierOptions(100)
UNALIGNED = BarrierOptions(100, AlignmentType.UNALIGNED)
TIMEOUT = BarrierOptions(100, AlignmentType.ALIGNED, aligned_timeout_ns=1000)  # deadline 1100

FLUSH = (Work.OPERATOR_FLUSH,)
SYNC_WORK = (Work.OPERATOR_SYNC, Work.STATE_SYNC)
ASYNC_WORK = (Work.KEYED_STATE, Work.OPERATOR_STATE, Work.OPERATOR_ASYNC)


def task(kind="aligned", gates=1, phases=None, *, reaches_output=True):
    timeout = 1000 if kind == "aligned-timeout" else 0
    return Running(TaskCheckpointing.configured(strategy(Barriers(kind, timeout, reaches_output)), gates, phases))


def barrier(now, options=ALIGNED, checkpoint=1, gate=0):
    return BarrierArrived(now, gate, checkpoint, options, first=True, last=True)


def done(now, phase, checkpoint=1):
    return PhaseFinished(now, checkpoint, phase)


def to_async(machine, now=200, checkpoint=1):
    """The synchronous phases take no time from here."""
    commands = ()
    for phase in (Phase.PRE_BARRIER, Phase.FORWARD_BARRIER, Phase.SYNC):
        commands = (*commands, *machine.on(done(now, phase, checkpoint)))
    return commands


def test_the_phases_of_an_aligned_snapshot():
    """Pre-barrier work, barrier, sync; only then the inputs are resumed; then the asynchronous part, then the acknowledgement."""
    machine = task()

    assert (RunPreBarrier(1, FLUSH),) == machine.on(barrier(110))
    assert (ForwardBarrier(1, ALIGNED),) == machine.on(done(120, Phase.PRE_BARRIER))
    assert (RunSync(1, SYNC_WORK),) == machine.on(done(123, Phase.FORWARD_BARRIER))
    assert (ReleaseTask(1), ResumeInputs(1), RunAsync(1, ASYNC_WORK)) == machine.on(done(128, Phase.SYNC))
    assert (Acknowledge(1, SnapshotTimes(110, 0, 10, 5, 72)),) == machine.on(done(200, Phase.ASYNC))
    assert machine.state.snapshots == ()


def test_invariant_25_the_parts_of_an_aligned_snapshot_add_up():
    """start delay + alignment + pre-barrier + forwarding + sync + async = acknowledgement - trigger."""
    machine = task(gates=2)
    machine.on(barrier(110, gate=0))
    machine.on(barrier(140, gate=1))
    machine.on(done(150, Phase.PRE_BARRIER))
    machine.on(done(157, Phase.FORWARD_BARRIER))
    machine.on(done(168, Phase.SYNC))
    (acknowledge,) = machine.on(done(200, Phase.ASYNC))
    assert SnapshotTimes(110, 30, 10, 11, 32) == acknowledge.times
    assert (150 - 110) + (157 - 150) + 11 + 32 == 200 - 110, "with forwarding, which Flink does not report"


def test_operators_flush_in_the_asynchronous_phase():
    """FLINK-37375 is one row moved."""
    machine = task(phases=ASYNC_OPERATE)

    assert (RunPreBarrier(1, ()),) == machine.on(barrier(110))
    assert RunAsync(1, (*ASYNC_WORK, Work.OPERATOR_FLUSH)) == to_async(machine)[-1]


# ------------------------------------------------------------------------------------------ channel state


def test_the_channel_state_alone_is_not_enough():
    machine = task("unaligned")
    machine.on(barrier(110, UNALIGNED))

    assert FinishChannelState(1) in to_async(machine)
    assert machine.on(ChannelStateWritten(210, 1)) == ()
    assert isinstance(machine.on(done(220, Phase.ASYNC))[0], Acknowledge)


def test_a_gate_may_close_during_the_synchronous_part():
    """The input is complete then; the output is not before the barrier is written."""
    machine = task("unaligned", gates=2)
    machine.on(barrier(110, UNALIGNED))

    assert (FinishCapture(1), ResumeInputs(1)) == machine.on(GateClosed(115, 1))
    assert FinishChannelState(1) in to_async(machine)


def test_a_timeoutable_snapshot_waits_until_its_barriers_have_left():
    machine = task("aligned-timeout", gates=0)

    # no input to time out
    assert (StartChannelState(1), RunPreBarrier(1, FLUSH)) == machine.on(TriggerReceived(105, 1, TIMEOUT))

    machine.on(done(110, Phase.PRE_BARRIER))

    assert (ArmOutputTimer(1, 1100), RunSync(1, SYNC_WORK)) == machine.on(done(110, Phase.FORWARD_BARRIER))

    machine.on(done(111, Phase.SYNC))

    assert machine.on(done(120, Phase.ASYNC)) == ()
    assert (FinishChannelState(1),) == machine.on(OutputBarriersLeft(400, 1))

    (acknowledge,) = machine.on(ChannelStateWritten(400, 1))

    assert acknowledge.times.async_ns == 289
    assert machine.on(OutputTimedOut(1100, 1)) == ()


def test_before_flink_27251_a_snapshot_does_not_wait_for_its_barriers():
    """No timer for the outputs: the source acknowledges and the barrier stays where it is."""
    machine = task("aligned-timeout", gates=0, reaches_output=False)
    machine.on(TriggerReceived(105, 1, TIMEOUT))
    commands = to_async(machine)

    assert not any(isinstance(command, ArmOutputTimer) for command in commands)
    assert FinishChannelState(1) in commands
    assert machine.on(ChannelStateWritten(205, 1)) == ()
    assert isinstance(machine.on(done(220, Phase.ASYNC))[0], Acknowledge)
    assert machine.on(OutputBarriersLeft(9000, 1)) == ()


def test_barriers_still_there_at_the_deadline_are_converted():
    machine = task("aligned-timeout", gates=0)
    machine.on(TriggerReceived(105, 1, TIMEOUT))
    to_async(machine)
    machine.on(done(300, Phase.ASYNC))

    assert (ConvertOutput(1), FinishChannelState(1)) == machine.on(OutputTimedOut(1100, 1))
    assert machine.on(OutputBarriersLeft(1105, 1)) == ()
    assert isinstance(machine.on(ChannelStateWritten(1120, 1))[0], Acknowledge)


@pytest.mark.parametrize("meant", [UNALIGNED, TIMEOUT])
def test_a_forced_aligned_barrier_goes_on_as_it_was_meant(meant):
    machine = task("unaligned")

    assert StartChannelState(1) in machine.on(barrier(110, meant.with_unaligned_unsupported()))
    assert (ForwardBarrier(1, meant),) == machine.on(done(120, Phase.PRE_BARRIER))


def test_invariant_09_an_aligned_savepoint_has_no_channel_state():
    """Also in a job with unaligned checkpoints."""
    machine = task("unaligned", gates=2)
    savepoint = BarrierOptions(100, savepoint=True)
    commands = (*machine.on(barrier(110, savepoint)), *machine.on(barrier(120, savepoint, gate=1)), *to_async(machine))

    assert not any(isinstance(command, CaptureInput | StartChannelState | FinishChannelState) for command in commands)
    assert isinstance(machine.on(done(220, Phase.ASYNC))[0], Acknowledge)


# ------------------------------------------------------------------------------------------ giving up


def test_an_abort_cancels_the_asynchronous_part():
    machine = task()
    machine.on(barrier(110))
    to_async(machine)

    assert (CancelSnapshot(1),) == machine.on(AbortNotified(210, 1))
    assert machine.on(done(220, Phase.ASYNC)) == ()


def test_an_abort_during_the_synchronous_part_is_heard_afterwards():
    machine = task()
    machine.on(barrier(110))

    assert machine.on(AbortNotified(115, 1)) == ()
    assert (ReleaseTask(1), ResumeInputs(1), CancelSnapshot(1)) == to_async(machine)[-3:]
    assert machine.state.snapshots == (), "it is forgotten"


def test_a_barrier_of_an_aborted_checkpoint_becomes_a_cancellation():
    machine = task()

    assert machine.on(AbortNotified(105, 1)) == ()
    assert (ForwardCancellation(1), ResumeInputs(1)) == machine.on(barrier(110))
    assert machine.state.snapshots == ()


def test_a_late_abort_is_forgotten():
    machine = task()
    machine.on(barrier(110))
    to_async(machine)
    machine.on(done(210, Phase.ASYNC))
    machine.on(AbortNotified(220, 1))

    assert frozenset() == machine.state.aborted


def test_the_memory_of_aborts_is_bounded():
    """What is older than the memory counts as aborted."""
    machine = task()
    for checkpoint in range(1, MAX_ABORTED + 3):
        machine.on(AbortNotified(105, checkpoint))

    assert len(machine.state.aborted) == MAX_ABORTED
    assert ForwardCancellation(1) in machine.on(barrier(110))


def test_a_cancelled_checkpoint_is_never_begun():
    """Its call may come after its cancellation."""
    machine = task()
    machine.on(CancellationArrived(105, 0, 2))

    assert machine.on(TriggerReceived(110, 2, ALIGNED)) == ()
    assert machine.state.last_checkpoint == 2


def test_a_subsumed_unaligned_snapshot_is_dropped():
    machine = task("unaligned", gates=2)
    machine.on(barrier(110, UNALIGNED))
    to_async(machine)
    commands = machine.on(barrier(300, UNALIGNED, 2, gate=1))

    assert CancelSnapshot(1) in commands
    assert DeclineCheckpoint(1, FailureReason.CHECKPOINT_DECLINED_SUBSUMED) in commands
    assert [snapshot.checkpoint for snapshot in machine.state.snapshots] == [2]


def test_a_failed_asynchronous_part_declines():
    machine = task()
    machine.on(barrier(110))
    to_async(machine)

    assert (DeclineCheckpoint(1, FailureReason.CHECKPOINT_ASYNC_EXCEPTION), CancelSnapshot(1)) == machine.on(
        AsyncFailed(220, 1)
    )
    assert machine.state.snapshots == ()


def test_snapshots_overlap_in_their_asynchronous_parts():
    machine = task()
    machine.on(barrier(110))
    to_async(machine)
    machine.on(barrier(300, checkpoint=2))
    to_async(machine, 310, 2)

    assert machine.on(done(320, Phase.ASYNC, 2))[0].checkpoint == 2
    assert machine.on(done(330, Phase.ASYNC, 1))[0].checkpoint == 1


@pytest.mark.parametrize(
    "events",
    [
        (done(110, Phase.PRE_BARRIER),),  # of no snapshot
        (barrier(110), done(120, Phase.SYNC)),  # out of order
        (barrier(110), barrier(115, checkpoint=2)),  # the thread is at work
        (barrier(110), AsyncFailed(115, 1)),
        (barrier(110), ChannelStateWritten(115, 1)),
        (barrier(110), OutputBarriersLeft(115, 1)),
    ],
)
def test_what_cannot_happen_raises(events):
    machine = task()
    for event in events[:-1]:
        machine.on(event)

    with pytest.raises(InvalidTransition):
        machine.on(events[-1])


def test_the_asynchronous_part_finishes_once():
    machine = task("unaligned")
    machine.on(barrier(110, UNALIGNED))
    to_async(machine)
    machine.on(done(210, Phase.ASYNC))

    with pytest.raises(InvalidTransition, match="finished already"):
        machine.on(done(211, Phase.ASYNC))
