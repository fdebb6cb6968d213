"""Options of barriers and coordinator, and why a checkpoint is declined or aborted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from enum import Enum

from sim.model.job import Job, Vertex
from sim.model.storage import SnapshotType
from sim.protocol.machine import value_class

# ---- Why a checkpoint fails, and which of these failures count (CheckpointFailureReason, CheckpointFailureManager).

COUNTS = True


class FailureReason(Enum):
    """Flink's names and texts; a reason that `counts` does so against tolerable-failed-checkpoints."""

    def __init__(self, text: str, counts: bool = False) -> None:
        self.text = text
        self.counts = counts

    # before a checkpoint has an id
    TOO_MANY_CHECKPOINT_REQUESTS = "The maximum number of queued checkpoint requests exceeded"
    MINIMUM_TIME_BETWEEN_CHECKPOINTS = "The minimum time between checkpoints is still pending."
    NOT_ALL_REQUIRED_TASKS_RUNNING = "Not all required tasks are currently running."
    NO_JOB_MANAGER = "There is no JobManager: the client gets an error."  # ours: Flink's client cannot connect
    IO_EXCEPTION = "An Exception occurred while triggering the checkpoint. IO-problem detected.", COUNTS
    # a pending checkpoint
    CHECKPOINT_EXPIRED = "Checkpoint expired before completing.", COUNTS
    CHECKPOINT_SUBSUMED = "Checkpoint has been subsumed."
    CHECKPOINT_DECLINED = "Checkpoint was declined.", COUNTS
    CHECKPOINT_DECLINED_TASK_CLOSING = "Checkpoint was declined (task is closing)"
    CHECKPOINT_DECLINED_SUBSUMED = "Checkpoint was canceled because a barrier from newer checkpoint was received."
    CHECKPOINT_DECLINED_ON_CANCELLATION_BARRIER = "Task received cancellation from one of its inputs"
    CHECKPOINT_DECLINED_INPUT_END_OF_STREAM = "Checkpoint was declined because one input stream is finished"
    CHECKPOINT_ASYNC_EXCEPTION = "Asynchronous task checkpoint failed.", COUNTS
    FINALIZE_CHECKPOINT_FAILURE = "Failure to finalize checkpoint.", COUNTS
    CHECKPOINT_COORDINATOR_SHUTDOWN = "CheckpointCoordinator shutdown."
    CHECKPOINT_COORDINATOR_SUSPEND = "Checkpoint Coordinator is suspending."
    JOB_FAILOVER_REGION = "FailoverRegion is restarting."


# ---- How one barrier travels: the options inside it.  They travel *in* the barrier and may differ per edge.
#
# Source: Flink's CheckpointOptions and its AlignmentType; which edge rewrites them is `forced.py`.


class Ending(Enum):
    """The way in which the data of a task ends (StopMode): with finish() of its operators, or without."""

    DRAIN = "drain"
    NO_DRAIN = "no-drain"
    # as before FLIP-147: finish() follows the savepoint, and nothing holds what it emits
    AFTERWARDS = "savepoint-then-finish"


class AlignmentType(Enum):
    """The reaction of a reader to a barrier (CheckpointOptions.AlignmentType)."""

    __hash__ = object.__hash__  # members are themselves and nothing else; the hash of Enum is a function in Python

    AT_LEAST_ONCE = "at-least-once"  # counts it, never blocks
    ALIGNED = "aligned"  # waits for the others; with a timeout until the deadline at most
    UNALIGNED = "unaligned"  # snapshots at the first one
    FORCED_ALIGNED = "forced-aligned"  # waits on this edge only; the reader goes on as the checkpoint was meant


@value_class
class Traits:
    """The traits of a barrier's marker in the data plane."""

    priority: bool  # overtakes data
    blocking: bool  # nothing follows it before the reader resumes
    announced: bool  # reader is told of its arrival, writer of its departure


_TRAITS = {
    AlignmentType.AT_LEAST_ONCE: Traits(priority=False, blocking=False, announced=False),
    AlignmentType.ALIGNED: Traits(priority=False, blocking=True, announced=False),
    AlignmentType.UNALIGNED: Traits(priority=True, blocking=False, announced=False),
    AlignmentType.FORCED_ALIGNED: Traits(priority=False, blocking=True, announced=False),
}
_ANNOUNCED = Traits(priority=False, blocking=True, announced=True)  # aligned, with a deadline


@value_class
class BarrierOptions:
    """The options that one barrier carries."""

    trigger_ns: int  # t0 of the checkpoint
    alignment: AlignmentType = AlignmentType.ALIGNED
    aligned_timeout_ns: int | None = None  # counted from t0; None: never; only (forced) aligned barriers have one
    savepoint: bool = False
    stop: Ending | None = None  # of a savepoint: sources end their data this way and take part only then
    type: SnapshotType | None = None  # None: a checkpoint is an ordinary one, a savepoint canonical

    @property
    def snapshot_type(self) -> SnapshotType:
        """What the state backends are asked for."""
        return self.type or ("canonical" if self.savepoint else "checkpoint")

    @property
    def unaligned(self) -> bool:
        return self.alignment is AlignmentType.UNALIGNED

    @property
    def timeoutable(self) -> bool:
        """Aligned until the deadline (a forced aligned barrier never is: CheckpointOptions.isTimeoutable)."""
        return self.alignment is AlignmentType.ALIGNED and self.aligned_timeout_ns is not None

    @property
    def deadline_ns(self) -> int:
        """When a timeoutable barrier turns unaligned [ns]: one clock for all tasks (FLINK-23041)."""
        if self.aligned_timeout_ns is None:
            raise ValueError("only a barrier with a timeout has a deadline")
        return self.trigger_ns + self.aligned_timeout_ns

    def has_priority(self, now: int, *, converted: bool) -> bool:
        """Whether a barrier processed at `now` [ns] is a priority barrier.

        `converted`: its sender converts it in its output queue at the deadline (since FLINK-27251), never before it.
        """
        return self.unaligned or (converted and self.timeoutable and now >= self.deadline_ns)

    @property
    def traits(self) -> Traits:
        return _ANNOUNCED if self.timeoutable else _TRAITS[self.alignment]

    @property
    def needs_channel_state(self) -> bool:
        """Whether in-flight data may belong to the snapshot (CheckpointOptions.needsChannelState)."""
        return self.unaligned or self.timeoutable

    def as_unaligned(self) -> BarrierOptions:
        """The options after the timeout, without a deadline (CheckpointOptions.toUnaligned)."""
        return replace(self, alignment=AlignmentType.UNALIGNED, aligned_timeout_ns=None)

    def on_forced_edge(self) -> BarrierOptions:
        """What an edge without support for unaligned checkpoints carries (withUnalignedUnsupported)."""
        return replace(self, alignment=AlignmentType.FORCED_ALIGNED) if self.needs_channel_state else self

    def restored(self) -> BarrierOptions:
        """What a task reached by a forced aligned barrier writes to its own outputs (withUnalignedSupported)."""
        if self.alignment is not AlignmentType.FORCED_ALIGNED:
            return self
        meant = AlignmentType.UNALIGNED if self.aligned_timeout_ns is None else AlignmentType.ALIGNED
        return replace(self, alignment=meant)


# ---- Which edges cannot carry unaligned barriers: their barriers are forced to align there.
#
# An edge lacks support if it is pointwise (its channels cannot be redistributed after rescaling) or a broadcast
# (StreamPartitioner#isSupportsUnalignedCheckpoint).  Since Flink 2.0 one that leads to a sink's committer lacks it, too
# (FLINK-36287).  One such input edge disables all input edges of its vertex (StreamGraphGenerator).  Where FLINK-37870
# is not fixed, a committer behind an exchange disables all edges of the job.


def forced_aligned_edges(job: Job, also: Iterable[tuple[str, str]] = ()) -> frozenset[tuple[str, str]]:
    """(upstream, downstream) of every forced edge; `also` names further ones (e.g. from a sink's writer on, FLINK-36287)."""
    named = frozenset(also)
    unknown = named - {(i.upstream, v.name) for v in job.vertices for i in v.inputs}
    if unknown:
        raise ValueError(f"no such edges: {sorted(unknown)}")
    exchanges = {
        vertex.commit.exchange
        for vertex in job.vertices
        if vertex.commit is not None and vertex.commit.committer == "global"
    }
    if "aligns-job" in exchanges:
        return frozenset((inlet.upstream, vertex.name) for vertex in job.vertices for inlet in vertex.inputs)
    forced = {
        vertex.name
        for vertex in job.vertices
        for inlet in vertex.inputs
        if not inlet.shipping.overtaken or (inlet.upstream, vertex.name) in named or _is_sealed(job, vertex)
    }
    return frozenset(
        (inlet.upstream, vertex.name) for vertex in job.vertices if vertex.name in forced for inlet in vertex.inputs
    )


def _is_sealed(job: Job, vertex: Vertex) -> bool:
    """Whether it is a committer that barriers reach in order only."""
    if not vertex.committer_of:
        return False
    commit = job.vertex(vertex.committer_of).commit
    return commit is None or commit.exchange != "as-job"
