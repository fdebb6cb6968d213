"""Events and commands of one task, for its barriers and its snapshots (`coordinator_messages` has the rules for both).

Gates are numbered by the task's inputs.  The data plane counts barriers per gate, and reports only the first and the
last barrier of a checkpoint on each gate.  On a gate with one channel both are one report.
"""

from __future__ import annotations

from sim.protocol.coordinator_messages import Phase, SnapshotTimes, Work
from sim.protocol.machine import value_class
from sim.protocol.options import BarrierOptions, FailureReason

# ---------------------------------------------------------------------------------------------- barriers: events


@value_class
class BarrierArrived:
    """The task thread processed the first and / or last barrier of this checkpoint on a gate.

    `options` are those that the barrier carries on this edge.  `priority` means that it was sent unaligned, or converted
    in the output queue of the upstream task; a barrier that only PrioritiseInput has moved forward is still aligned.
    """

    now: int
    gate: int
    checkpoint: int
    options: BarrierOptions
    first: bool
    last: bool
    priority: bool = False


@value_class
class BarrierAnnounced:
    """A timeoutable barrier is queued at this gate (reported once per gate and checkpoint)."""

    now: int
    gate: int
    checkpoint: int
    options: BarrierOptions


@value_class
class CancellationArrived:
    """The task thread processed a cancellation marker, the first of its checkpoint on this gate."""

    now: int
    gate: int
    checkpoint: int


@value_class
class GateClosed:
    """All channels of this gate have ended: it counts as arrived for the pending checkpoint, and later ones ignore it."""

    now: int
    gate: int


@value_class
class InputEnded:
    """A channel of this gate has ended in a job without checkpoints after tasks finish: the pending checkpoint cannot complete."""

    now: int
    gate: int


@value_class
class AlignmentTimedOut:
    """The timer of ArmAlignmentTimer, executed by the task thread."""

    now: int
    checkpoint: int


@value_class
class TriggerReceived:
    """The task thread executes the coordinator's trigger call, for a source or a task whose inputs have all finished."""

    now: int
    checkpoint: int
    options: BarrierOptions


# ---------------------------------------------------------------------------------------------- snapshots: events


@value_class
class PhaseFinished:
    """RunPreBarrier, ForwardBarrier, RunSync or RunAsync has finished."""

    now: int
    checkpoint: int
    phase: Phase


@value_class
class OutputBarriersLeft:
    """The last timeoutable barrier of this checkpoint has left the task's output queues."""

    now: int
    checkpoint: int


@value_class
class OutputTimedOut:
    """The timer of ArmOutputTimer, executed by the task thread."""

    now: int
    checkpoint: int


@value_class
class ChannelStateWritten:
    """Answer to FinishChannelState: the in-flight data of this snapshot is durable.  Immediate if there is none."""

    now: int
    checkpoint: int


@value_class
class AsyncFailed:
    """RunAsync or writing the channel state failed.  The task continues."""

    now: int
    checkpoint: int
    reason: FailureReason = FailureReason.CHECKPOINT_ASYNC_EXCEPTION


@value_class
class AbortNotified:
    """The task thread handles NotifyAborted, a mail that waits while a snapshot holds the thread."""

    now: int
    checkpoint: int


BarrierEvent = (
    BarrierArrived
    | BarrierAnnounced
    | CancellationArrived
    | GateClosed
    | InputEnded
    | AlignmentTimedOut
    | TriggerReceived
)
SnapshotEvent = PhaseFinished | OutputBarriersLeft | OutputTimedOut | ChannelStateWritten | AsyncFailed | AbortNotified
TaskEvent = BarrierEvent | SnapshotEvent

# ---------------------------------------------------------------------------------------------- barriers: commands


@value_class
class StartSnapshot:
    """Start a snapshot.  From the barrier handler to TaskCheckpointing; the runtime does not see it."""

    checkpoint: int
    options: BarrierOptions  # unaligned if the timeout has passed
    first_barrier_ns: int
    alignment_ns: int | None  # None: barriers are missing, InputsComplete follows
    resumes: bool = False  # inputs are blocked until the sync phase ends

    @property
    def barriers_missing(self) -> bool:
        return self.alignment_ns is None


@value_class
class InputsComplete:
    """The last missing barrier has arrived.  From the barrier handler to TaskCheckpointing; the runtime does not see it."""

    now: int
    checkpoint: int
    alignment_ns: int


@value_class
class CaptureInput:
    """Capture the data before this checkpoint's barrier on all input channels (checkpointStarted)."""

    checkpoint: int


@value_class
class FinishCapture:
    """Stop capturing: all barriers have arrived (checkpointStopped)."""

    checkpoint: int


@value_class
class ResumeInputs:
    """Resume all channels that a barrier of this or an older checkpoint blocks."""

    checkpoint: int


@value_class
class SettleBarriers:
    """Treat barriers up to this checkpoint as obsolete: do not count or report them, resume their channels at once."""

    checkpoint: int


@value_class
class PrioritiseInput:
    """Let this checkpoint's barriers overtake data in the receive queues, also barriers that arrive later (convertToPriorityEvent)."""

    checkpoint: int


@value_class
class ArmAlignmentTimer:
    """Send AlignmentTimedOut at `at_ns`, as a mail that is handled between records."""

    checkpoint: int
    at_ns: int


@value_class
class DeclineCheckpoint:
    """Decline the checkpoint: the coordinator gets Declined."""

    checkpoint: int
    reason: FailureReason


@value_class
class ForwardCancellation:
    """Write a cancellation marker to all outputs, without priority; it does not block channels."""

    checkpoint: int


# ---------------------------------------------------------------------------------------------- snapshots: commands


@value_class
class RunPreBarrier:
    """Hold the task thread until ReleaseTask and do this work, if any; answer PhaseFinished(PRE_BARRIER)."""

    checkpoint: int
    work: tuple[Work, ...]


@value_class
class ForwardBarrier:
    """Write the barrier to all outputs (forced edges: `options.with_unaligned_unsupported()`); answer PhaseFinished(FORWARD_BARRIER).

    Output data that priority barriers overtake belongs to the snapshot.  After a timeoutable barrier the host sends
    OutputBarriersLeft; at once if the task has no outputs, or forced edges only.
    """

    checkpoint: int
    options: BarrierOptions


@value_class
class ArmOutputTimer:
    """Send OutputTimedOut at `at_ns`, as a mail that is handled between records."""

    checkpoint: int
    at_ns: int


@value_class
class ConvertOutput:
    """Convert barriers in the output queues to priority barriers; the data that they overtake belongs to the snapshot."""

    checkpoint: int


@value_class
class RunSync:
    """Do this work on the task thread; answer PhaseFinished(SYNC)."""

    checkpoint: int
    work: tuple[Work, ...]


@value_class
class ReleaseTask:
    """Release the task thread, which processes records again."""

    checkpoint: int


@value_class
class StartChannelState:
    """Open the channel state in the file that the subtasks of a TaskManager share (ChannelStateWriter#start)."""

    checkpoint: int


@value_class
class FinishChannelState:
    """Close the channel state, whose size is final; answer ChannelStateWritten when the shared file is closed."""

    checkpoint: int


@value_class
class RunAsync:
    """Do this work in the asynchronous thread of the task, first in, first out; answer PhaseFinished(ASYNC).

    The thread waits for the channel state, and is free again after Acknowledge or CancelSnapshot.
    """

    checkpoint: int
    work: tuple[Work, ...]


@value_class
class Acknowledge:
    """Acknowledge: the task's part is durable, and the coordinator gets Acknowledged."""

    checkpoint: int
    times: SnapshotTimes


@value_class
class CancelSnapshot:
    """Cancel the snapshot: release its captured buffers, stop its asynchronous work and its channel state."""

    checkpoint: int


TaskCommand = (
    CaptureInput
    | FinishCapture
    | ResumeInputs
    | SettleBarriers
    | PrioritiseInput
    | ArmAlignmentTimer
    | DeclineCheckpoint
    | ForwardCancellation
    | RunPreBarrier
    | ForwardBarrier
    | ArmOutputTimer
    | ConvertOutput
    | RunSync
    | ReleaseTask
    | StartChannelState
    | FinishChannelState
    | RunAsync
    | Acknowledge
    | CancelSnapshot
)
InnerCommand = StartSnapshot | InputsComplete
