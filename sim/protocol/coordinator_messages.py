"""Events and commands of checkpoints, for coordinator and tasks.  Other machines define their own beside them.

Two speakers: the coordinator (one per job) and the task (one per subtask; `task.TaskCheckpointing` joins the barrier
handler and the snapshots).  An event is a past participle and carries `now` [ns]; a command is an imperative.  Commands
of one tuple are carried out in its order.  A timer that fires late, twice or after its reason is gone is ignored by the
machine that armed it, so timers need not be taken back.
"""

from __future__ import annotations

from enum import Enum
from typing import Literal

from sim.protocol.machine import value_class
from sim.protocol.options import BarrierOptions, Ending, FailureReason

# ---------------------------------------------------------------------------------------------- shared nouns


class RequestKind(Enum):
    """Why a checkpoint is requested."""

    PERIODIC = "periodic"  # the timer: obeys min-pause and max-concurrent
    MANUAL = "manual"  # a user, or the final checkpoint: obeys max-concurrent only
    # always aligned; first in the queue; forced (obeys neither) iff unaligned checkpoints are off
    SAVEPOINT = "savepoint"


@value_class
class Savepoint:
    """The options of a savepoint."""

    format: Literal["canonical", "native"] = "canonical"
    stop: Ending | None = None  # the job stops with it (a synchronous savepoint): how its data ends


@value_class
class Plan:
    """The tasks that take part in a checkpoint, by number (DefaultCheckpointPlan): those that must acknowledge, and those called first."""

    trigger: frozenset[int]  # sources, or running tasks without running predecessors
    wait_for: frozenset[int]  # must acknowledge; also hear of completion and abortion
    finished: frozenset[int] = frozenset()  # they count as acknowledged
    kept: frozenset[int] = frozenset()  # so do these: their part of the latest completed checkpoint stands for them


@value_class
class SnapshotTimes:
    """The times that a task measures for its part of one checkpoint [ns] (CheckpointMetrics; phases beyond Flink's marked +)."""

    first_barrier_ns: int  # + when the first barrier (or the trigger call) was processed
    start_delay_ns: int  # t0 -> first barrier, never negative
    alignment_ns: int  # first -> last barrier; 0 for triggered tasks
    pre_barrier_ns: int  # + prepareSnapshotPreBarrier
    forward_ns: int  # + writing the barrier to all outputs
    sync_ns: int
    async_ns: int  # end of sync -> all parts written, waits included
    unaligned: bool  # the snapshot was taken at its first barrier


class Phase(Enum):
    """The steps of one snapshot inside a task (SubtaskCheckpointCoordinatorImpl#checkpointState)."""

    __hash__ = object.__hash__  # faster: the hash of Enum is a Python function

    PRE_BARRIER = "pre-barrier"  # task thread; records may still leave downstream
    FORWARD_BARRIER = "forward-barrier"  # task thread; to every output
    SYNC = "sync"  # task thread; state frozen
    RESUME_INPUTS = "resume-inputs"  # no time; the task thread goes back to records
    ASYNC = "async"  # the task's one asynchronous thread
    ACKNOWLEDGE = "acknowledge"  # a message to the coordinator


class Work(Enum):
    """A piece of work of a phase.  The runtime knows what each piece costs."""

    # prepareSnapshotPreBarrier of the operators; FLINK-37375: in the async phase, till then locally
    OPERATOR_FLUSH = "operator-flush"
    OPERATOR_SYNC = "operator-sync"  # snapshotState of the operators
    STATE_SYNC = "state-sync"  # the state backend's synchronous part
    KEYED_STATE = "keyed-state"  # upload; then
    OPERATOR_STATE = "operator-state"  # the next file, in the same thread
    OPERATOR_ASYNC = "operator-async"  # asynchronous work of the operators


# ---------------------------------------------------------------------------------------------- coordinator: events


@value_class
class SchedulerStarted:
    """The job runs: periodic checkpoints may begin, the first one `first_delay_ns` from now (see timer.first_trigger_delay)."""

    now: int
    first_delay_ns: int


@value_class
class SchedulerStopped:
    """The job fails over or ends: everything pending and queued is aborted."""

    now: int
    reason: FailureReason = FailureReason.CHECKPOINT_COORDINATOR_SUSPEND


@value_class
class LeaderLost:
    """The JobManager is lost with its memory, and answers no message.  Completed checkpoints are kept."""

    now: int


@value_class
class LeaderElected:
    """Another JobManager takes over.  It knows the completed checkpoints and the next id, and counts anew."""

    now: int


@value_class
class BacklogReported:
    """The enumerator of a source says whether it reads a backlog (SplitEnumeratorContext#setIsProcessingBacklog)."""

    now: int
    source: int  # number of the vertex
    behind: bool


@value_class
class PeriodicTimerFired:
    """The wake-up of ArmPeriodicTimer."""

    now: int


@value_class
class CheckpointRequested:
    """A checkpoint is requested by a user or another component, not by the timer."""

    now: int
    kind: RequestKind
    savepoint: Savepoint | None = None  # iff it is one


@value_class
class TriggerReady:
    """Answer to PrepareTrigger after its overhead.  `plan` None: not all required tasks run, or `failure`."""

    now: int
    plan: Plan | None
    failure: FailureReason = FailureReason.NOT_ALL_REQUIRED_TASKS_RUNNING  # of a missing plan


@value_class
class Acknowledged:
    """A task's acknowledgement is processed by the coordinator."""

    now: int
    task: int
    checkpoint: int


@value_class
class Declined:
    """A task's decline is processed by the coordinator."""

    now: int
    task: int
    checkpoint: int
    reason: FailureReason


@value_class
class CheckpointTimedOut:
    """The wake-up of ArmCheckpointTimeout."""

    now: int
    checkpoint: int


@value_class
class MetadataWritten:
    """Answer to WriteMetadata: `_metadata` is durable, or it failed."""

    now: int
    checkpoint: int
    failed: bool = False
    reason: FailureReason = FailureReason.FINALIZE_CHECKPOINT_FAILURE  # of a failure


@value_class
class StateDiscarded:
    """Answer to DiscardState: the files are gone."""

    now: int
    checkpoint: int


CoordinatorEvent = (
    SchedulerStarted
    | SchedulerStopped
    | LeaderLost
    | LeaderElected
    | BacklogReported
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
    """Send PeriodicTimerFired at `at_ns` (replaces the one armed before)."""

    at_ns: int


@value_class
class CancelPeriodicTimer:
    """No periodic checkpoints until further notice."""


@value_class
class PrepareTrigger:
    """Plan, take an id, make the directory: answer TriggerReady.  t0 is taken already."""

    trigger_ns: int
    kind: RequestKind


@value_class
class TriggerTasks:
    """Call these tasks; each gets TriggerReceived when its thread executes the call."""

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
    """All have acknowledged: write `_metadata`, answer MetadataWritten."""

    checkpoint: int


@value_class
class NotifyComplete:
    """Tell these tasks (and the committers) that a checkpoint is complete."""

    checkpoint: int
    tasks: frozenset[int]


@value_class
class NotifyAborted:
    """Tell these tasks that a checkpoint is aborted: each gets AbortNotified."""

    checkpoint: int
    tasks: frozenset[int]
    latest_completed: int  # 0: none


@value_class
class DiscardState:
    """Delete what a subsumed or aborted checkpoint stored; answer StateDiscarded (unanswered ones stop the triggering)."""

    checkpoint: int


@value_class
class FailJob:
    """More counted failures than tolerated, or the savepoint failed the job was to stop with."""

    reason: FailureReason
    task: int | None = None  # the declining task, if it was one
    stopping: bool = False


@value_class
class RecordRefused:
    """For the journal: a request ended without a checkpoint id (counts.failed includes refused triggers)."""

    kind: RequestKind
    reason: FailureReason


@value_class
class RecordTriggered:
    """For the journal: a checkpoint got its id; `plan` says who takes part."""

    checkpoint: int
    trigger_ns: int
    kind: RequestKind
    plan: Plan
    savepoint: Savepoint | None = None


@value_class
class RecordCompleted:
    """For the journal: end_to_end_duration = latest_ack_ns - trigger_ns; the metadata is not in it."""

    checkpoint: int
    kind: RequestKind
    trigger_ns: int
    latest_ack_ns: int
    completed_ns: int  # metadata durable


@value_class
class RecordFailed:
    """For the journal: end_to_end_duration = failed_ns - trigger_ns."""

    checkpoint: int
    kind: RequestKind
    reason: FailureReason
    trigger_ns: int
    latest_ack_ns: int  # -1: none
    failed_ns: int
    acknowledged: frozenset[int]


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
