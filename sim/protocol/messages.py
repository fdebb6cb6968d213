"""Events and commands of the checkpoint coordinator and of the tasks, for their barriers and snapshots.

Rules for all machines: an event is a past participle and has its time `now` [ns]; a command is an imperative.  The host
executes the commands of one tuple in order.  A machine ignores a timer that fires late, twice or without need, so hosts
need not cancel timers.

Gates are numbered by the inputs of a task.  The data plane counts barriers per gate, and reports only the first and the
last barrier of a checkpoint on each gate.  On a gate with one channel both are one report.
"""

from __future__ import annotations

from enum import Enum
from typing import Literal

from sim.protocol.machine import value_class
from sim.protocol.options import BarrierOptions, FailureReason, StopMode

# ---------------------------------------------------------------------------------------------- shared types


class RequestKind(Enum):
    """Why a checkpoint is requested."""

    PERIODIC = "periodic"  # by the timer; obeys min-pause and max-concurrent
    MANUAL = "manual"  # by a user, or the final checkpoint; obeys max-concurrent only
    # always aligned; first in the queue; obeys neither if unaligned checkpoints are off ("forced")
    SAVEPOINT = "savepoint"


@value_class
class Savepoint:
    """The options of a savepoint."""

    format: Literal["canonical", "native"] = "canonical"
    stop: StopMode | None = None  # stop-with-savepoint: how the data of the job ends; None: the job continues


@value_class
class Plan:
    """The tasks of a checkpoint, by task number (DefaultCheckpointPlan)."""

    trigger: frozenset[int]  # sources, or running tasks without running predecessors
    wait_for: frozenset[int]  # must acknowledge; are notified of completion and abort
    finished: frozenset[int] = frozenset()  # finished before the checkpoint: need not acknowledge


@value_class
class SnapshotTimes:
    """The times that a task measures in one checkpoint [ns] (CheckpointMetrics; + marks times that Flink does not report)."""

    first_barrier_ns: int  # + time at which the first barrier, or the trigger call, was processed
    alignment_ns: int  # first -> last barrier; 0 for triggered tasks
    pre_barrier_ns: int  # + prepareSnapshotPreBarrier
    sync_ns: int
    async_ns: int  # end of sync -> all parts written, waits included


class Phase(Enum):
    """The phases of a snapshot in a task, in order (SubtaskCheckpointCoordinatorImpl#checkpointState)."""

    __hash__ = object.__hash__  # faster: the hash of Enum is a Python function

    PRE_BARRIER = "pre-barrier"  # task thread; operators may still emit records
    FORWARD_BARRIER = "forward-barrier"  # task thread; to every output
    SYNC = "sync"  # task thread; state does not change
    ASYNC = "async"  # the asynchronous thread of the task
    ACKNOWLEDGE = "acknowledge"  # a message to the coordinator


class Work(Enum):
    """Work of a phase.  The runtime determines its cost."""

    # prepareSnapshotPreBarrier of the operators; with FLINK-37375 in the async phase
    OPERATOR_FLUSH = "operator-flush"
    OPERATOR_SYNC = "operator-sync"  # snapshotState of the operators
    STATE_SYNC = "state-sync"  # the state backend's synchronous part
    KEYED_STATE = "keyed-state"  # upload of keyed state
    OPERATOR_STATE = "operator-state"  # upload of operator state, after keyed state in the same thread
    OPERATOR_ASYNC = "operator-async"  # asynchronous work of the operators


# ---------------------------------------------------------------------------------------------- coordinator: events


@value_class
class SchedulerStarted:
    """The job is running: periodic checkpoints start after `first_delay_ns` (see coordinator.first_trigger_delay)."""

    now: int
    first_delay_ns: int


@value_class
class TasksRestored:
    """Failed tasks are restored while the scheduler runs: pending checkpoints are aborted (SchedulerBase#restoreState)."""

    now: int


@value_class
class SchedulerStopped:
    """The job fails over or ends: pending checkpoints are aborted, queued requests are refused."""

    now: int
    reason: FailureReason = FailureReason.CHECKPOINT_COORDINATOR_SUSPEND


@value_class
class LeaderLost:
    """The JobManager is lost, with all that it had in memory.  Completed checkpoints are kept."""

    now: int


@value_class
class LeaderElected:
    """Another JobManager takes over.  It reads the completed checkpoints and the next id; its counters start at 0."""

    now: int


@value_class
class BacklogReported:
    """The enumerator of a source reports whether it processes a backlog (SplitEnumeratorContext#setIsProcessingBacklog)."""

    now: int
    source: int  # number of the vertex
    behind: bool


@value_class
class ConfigurationUpdated:
    """The user changes interval and timeout of checkpoints (FLIP-571)."""

    now: int
    interval_ns: int | None = None  # None: unchanged
    timeout_ns: int | None = None  # None: unchanged


@value_class
class PeriodicTimerFired:
    """The timer of ArmPeriodicTimer has fired."""

    now: int


@value_class
class CheckpointRequested:
    """A checkpoint is requested by a user or another component, not by the timer."""

    now: int
    kind: RequestKind
    savepoint: Savepoint | None = None  # options, if `kind` is SAVEPOINT


@value_class
class TriggerReady:
    """Answer to PrepareTrigger.  Without a `plan` the trigger is refused because of `failure`."""

    now: int
    plan: Plan | None
    failure: FailureReason = FailureReason.NOT_ALL_REQUIRED_TASKS_RUNNING


@value_class
class Acknowledged:
    """The coordinator processes the acknowledgement of a task."""

    now: int
    task: int
    checkpoint: int


@value_class
class Declined:
    """The coordinator processes the decline of a task."""

    now: int
    task: int
    checkpoint: int
    reason: FailureReason


@value_class
class CheckpointTimedOut:
    """The timer of ArmCheckpointTimeout has fired."""

    now: int
    checkpoint: int


@value_class
class MetadataWritten:
    """Answer to WriteMetadata: `_metadata` is durable, or writing it failed."""

    now: int
    checkpoint: int
    failed: bool = False
    reason: FailureReason = FailureReason.FINALIZE_CHECKPOINT_FAILURE  # if `failed`


@value_class
class StateDiscarded:
    """Answer to DiscardState: the files are deleted."""

    now: int
    checkpoint: int


CoordinatorEvent = (
    SchedulerStarted
    | SchedulerStopped
    | TasksRestored
    | LeaderLost
    | LeaderElected
    | BacklogReported
    | ConfigurationUpdated
    | PeriodicTimerFired
    | CheckpointRequested
    | TriggerReady
    | Acknowledged
    | Declined
    | CheckpointTimedOut
    | MetadataWritten
    | StateDiscarded
)

# ---------------------------------------------------------------------------------------------- coordinator: commands


@value_class
class ArmPeriodicTimer:
    """Send PeriodicTimerFired at `at_ns`.  Replaces the timer armed before."""

    at_ns: int


@value_class
class CancelPeriodicTimer:
    """Cancel the periodic timer."""


@value_class
class PrepareTrigger:
    """Compute the plan and create the directory; answer TriggerReady."""

    kind: RequestKind


@value_class
class TriggerTasks:
    """Send the trigger call to these tasks; each gets TriggerReceived when its thread executes the call."""

    checkpoint: int
    tasks: frozenset[int]
    options: BarrierOptions


@value_class
class ArmCheckpointTimeout:
    """Send CheckpointTimedOut at `at_ns`."""

    checkpoint: int
    at_ns: int


@value_class
class WriteMetadata:
    """Write `_metadata` after the last acknowledgement; answer MetadataWritten."""

    checkpoint: int


@value_class
class NotifyComplete:
    """Notify these tasks, and the committers, that a checkpoint is complete."""

    checkpoint: int
    tasks: frozenset[int]


@value_class
class NotifyAborted:
    """Notify these tasks that a checkpoint is aborted; each gets AbortNotified."""

    checkpoint: int
    tasks: frozenset[int]
    latest_completed: int  # 0: no checkpoint has completed


@value_class
class DiscardState:
    """Delete the files of a subsumed or aborted checkpoint; answer StateDiscarded.  Too many deletions in progress block triggers."""

    checkpoint: int


@value_class
class FailJob:
    """Fail the job: more failures than tolerated, or (`stopping`) its stop-with-savepoint failed."""

    reason: FailureReason
    task: int | None = None  # the task that declined, if any
    stopping: bool = False


@value_class
class RecordRefused:
    """For the journal: a request was refused before it got a checkpoint id.  Flink counts it in counts.failed."""

    kind: RequestKind
    reason: FailureReason


@value_class
class RecordTriggered:
    """For the journal: a checkpoint got its id."""

    checkpoint: int
    trigger_ns: int
    plan: Plan
    savepoint: Savepoint | None = None


@value_class
class RecordCompleted:
    """For the journal: end_to_end_duration = latest_ack_ns - trigger_ns, without writing the metadata."""

    checkpoint: int
    latest_ack_ns: int
    completed_ns: int  # the metadata is durable


@value_class
class RecordFailed:
    """For the journal: end_to_end_duration = failed_ns - trigger_ns."""

    checkpoint: int
    reason: FailureReason
    failed_ns: int


CoordinatorCommand = (
    ArmPeriodicTimer
    | CancelPeriodicTimer
    | PrepareTrigger
    | TriggerTasks
    | ArmCheckpointTimeout
    | WriteMetadata
    | NotifyComplete
    | NotifyAborted
    | DiscardState
    | FailJob
    | RecordRefused
    | RecordTriggered
    | RecordCompleted
    | RecordFailed
)


# ---------------------------------------------------------------------------------------------- barriers of a task: events


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
