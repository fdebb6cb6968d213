"""Events and commands of one task: its barriers first, then its snapshots.  See vocabulary.py for the rules of both.

Gates are positions among the task's inputs.  The data plane counts barriers per gate and tells of the first and the
last of a number only; a gate with one channel tells both at once.
"""

from __future__ import annotations

from sim.protocol.coordinator_messages import Phase, SnapshotTimes, Work
from sim.protocol.machine import value_class
from sim.protocol.options import BarrierOptions, FailureReason

# ---------------------------------------------------------------------------------------------- barriers: events


@value_class
class BarrierArrived:
    """The task thread processed the first and / or last barrier of this checkpoint on a gate.

    `options` are those the edge's barriers were sent with; `priority`: this one was sent (or converted at its sender) as an
    unaligned barrier.  Moved forward by PrioritiseInput alone it stays an aligned one.
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
    """A timeoutable barrier lies in a receive queue of this gate (told once per gate and checkpoint)."""

    now: int
    gate: int
    checkpoint: int
    options: BarrierOptions


@value_class
class CancellationArrived:
    """The task thread processed a cancellation marker (first of its checkpoint on this gate)."""

    now: int
    gate: int
    checkpoint: int


@value_class
class GateClosed:
    """No channel of this gate will ever deliver again: it counts as arrived for what is pending, and is not waited for later."""

    now: int
    gate: int


@value_class
class InputEnded:
    """A channel of this gate has ended where checkpoints do not outlive finished tasks: what is pending cannot complete."""

    now: int
    gate: int


@value_class
class AlignmentTimedOut:
    """The wake-up of ArmAlignmentTimer, executed by the task thread."""

    now: int
    checkpoint: int


@value_class
class TriggerReceived:
    """The task thread executes the coordinator's trigger call.  Sources get one, and tasks whose inputs have all finished."""

    now: int
    checkpoint: int
    options: BarrierOptions


# ---------------------------------------------------------------------------------------------- snapshots: events


@value_class
class PhaseFinished:
    """RunPreBarrier, ForwardBarrier, RunSync or RunAsync is done."""

    now: int
    checkpoint: int
    phase: Phase


@value_class
class OutputBarriersLeft:
    """The last watched barrier of this checkpoint has left the task's output queues."""

    now: int
    checkpoint: int


@value_class
class OutputTimedOut:
    """The wake-up of ArmOutputTimer, executed by the task thread."""

    now: int
    checkpoint: int


@value_class
class ChannelStateWritten:
    """Answer to FinishChannelState: the in-flight data of this snapshot is durable (at once if there is none)."""

    now: int
    checkpoint: int


@value_class
class AsyncFailed:
    """RunAsync or the channel state failed; the task goes on."""

    now: int
    checkpoint: int
    reason: FailureReason = FailureReason.CHECKPOINT_ASYNC_EXCEPTION


@value_class
class AbortNotified:
    """The task thread hears NotifyAborted (a mail; while it works for a snapshot it is heard afterwards)."""

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
    """From the barrier handler to the snapshots; TaskCheckpointing answers it itself, the runtime never sees it."""

    checkpoint: int
    options: BarrierOptions  # already unaligned if the timeout passed
    first_barrier_ns: int
    start_delay_ns: int
    alignment_ns: int | None  # None: barriers are missing, InputsComplete follows
    resumes: bool = False  # inputs wait to be resumed after the sync phase

    @property
    def barriers_missing(self) -> bool:
        return self.alignment_ns is None


@value_class
class InputsComplete:
    """From the barrier handler to the snapshots: the missing barriers are here; the runtime never sees it."""

    now: int
    checkpoint: int
    alignment_ns: int


@value_class
class CaptureInput:
    """From now on keep the data before this checkpoint's barrier on every input channel (checkpointStarted)."""

    checkpoint: int


@value_class
class FinishCapture:
    """All barriers are here: the captured input is final (checkpointStopped)."""

    checkpoint: int


@value_class
class ResumeInputs:
    """Unblock every channel a barrier up to this checkpoint holds back."""

    checkpoint: int


@value_class
class SettleBarriers:
    """Barriers up to this checkpoint are obsolete: count and report none, resume at once."""

    checkpoint: int


@value_class
class PrioritiseInput:
    """Let this checkpoint's barriers overtake in the receive queues, those yet to come too (convertToPriorityEvent)."""

    checkpoint: int


@value_class
class ArmAlignmentTimer:
    """Send AlignmentTimedOut at `at_ns` (a mail: between records)."""

    checkpoint: int
    at_ns: int


@value_class
class DeclineCheckpoint:
    """Tell the coordinator that this task has no part of it: it gets Declined."""

    checkpoint: int
    reason: FailureReason


@value_class
class ForwardCancellation:
    """Write a cancellation marker to every output: ordinary, not blocking."""

    checkpoint: int


# ---------------------------------------------------------------------------------------------- snapshots: commands


@value_class
class RunPreBarrier:
    """Hold the task thread until ReleaseTask; do this work (perhaps none); PhaseFinished(PRE_BARRIER)."""

    checkpoint: int
    work: tuple[Work, ...]


@value_class
class ForwardBarrier:
    """Write the barrier to every output (forced edges: `options.on_forced_edge()`); PhaseFinished(FORWARD_BARRIER).

    Output data that priority barriers overtake belongs to the snapshot.  Of a timeoutable barrier the departure is
    watched: where nothing is (no output, or forced edges only) OutputBarriersLeft follows at once.
    """

    checkpoint: int
    options: BarrierOptions


@value_class
class ArmOutputTimer:
    """Send OutputTimedOut at `at_ns` (a mail: between records)."""

    checkpoint: int
    at_ns: int


@value_class
class ConvertOutput:
    """Barriers still in the output queues become priority barriers; what they overtake belongs to the snapshot."""

    checkpoint: int


@value_class
class RunSync:
    """Do this work on the task thread; PhaseFinished(SYNC)."""

    checkpoint: int
    work: tuple[Work, ...]


@value_class
class ReleaseTask:
    """The task thread goes back to records."""

    checkpoint: int


@value_class
class StartChannelState:
    """Register with the channel-state file of the task's group (ChannelStateWriter#start)."""

    checkpoint: int


@value_class
class FinishChannelState:
    """Input and output parts are complete, their volume is final; ChannelStateWritten when the group's file is closed."""

    checkpoint: int


@value_class
class RunAsync:
    """Do this work in the task's one asynchronous thread, first come first served; PhaseFinished(ASYNC).

    The thread stays with this snapshot until Acknowledge or CancelSnapshot: it waits for the channel state at its end.
    """

    checkpoint: int
    work: tuple[Work, ...]


@value_class
class Acknowledge:
    """The task's part is durable: the coordinator gets Acknowledged."""

    checkpoint: int
    times: SnapshotTimes


@value_class
class CancelSnapshot:
    """Drop the snapshot: release its captured buffers, stop its asynchronous work and its channel state."""

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
