"""Options that a barrier carries, edges that force alignment, and the reasons why checkpoints fail."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from enum import Enum

from sim.model.job import Job, Vertex
from sim.model.sinks import SINKS
from sim.model.storage import SnapshotType
from sim.protocol.machine import value_class

# ---- Why a checkpoint fails, and which failures count (CheckpointFailureReason, CheckpointFailureManager).

COUNTS = True


class FailureReason(Enum):
    """CheckpointFailureReason with Flink's names and texts.  If `counts`, it counts against tolerable-failed-checkpoints."""

    def __init__(self, text: str, counts: bool = False) -> None:
        self.text = text
        self.counts = counts

    # before a checkpoint has an id
    TOO_MANY_CHECKPOINT_REQUESTS = "The maximum number of queued checkpoint requests exceeded"
    MINIMUM_TIME_BETWEEN_CHECKPOINTS = "The minimum time between checkpoints is still pending."
    NOT_ALL_REQUIRED_TASKS_RUNNING = "Not all required tasks are currently running."
    NO_JOB_MANAGER = "There is no JobManager: the client gets an error."  # not in Flink, whose client cannot connect
    IO_EXCEPTION = "An Exception occurred while triggering the checkpoint. IO-problem detected.", COUNTS
    # a pending checkpoint
    CHECKPOINT_EXPIRED = "Checkpoint expired before completing.", COUNTS
    CHECKPOINT_SUBSUMED = "Checkpoint has been subsumed."
    TRIGGER_CHECKPOINT_FAILURE = "Trigger checkpoint failure."
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


# ---- The options inside a barrier (CheckpointOptions, CheckpointOptions.AlignmentType).
#
# Each barrier carries its options, and they may differ per edge: `forced_aligned_edges` lists the edges that rewrite them.


class Ending(Enum):
    """How the data of a task ends (StopMode): with finish() of its operators or without it."""

    DRAIN = "drain"
    NO_DRAIN = "no-drain"
    # before FLIP-147: finish() runs after the savepoint, so no snapshot holds the records that it emits
    AFTERWARDS = "savepoint-then-finish"


class AlignmentType(Enum):
    """How a task reacts to a barrier (CheckpointOptions.AlignmentType)."""

    __hash__ = object.__hash__  # members are singletons; the hash of Enum is a slow Python function

    AT_LEAST_ONCE = "at-least-once"  # the task counts barriers and blocks no channel
    ALIGNED = "aligned"  # the task waits for the other barriers; with a timeout, until the deadline at most
    UNALIGNED = "unaligned"  # the task snapshots at the first barrier
    FORCED_ALIGNED = "forced-aligned"  # aligned on this edge only; the outputs get the original alignment type


@value_class
class Traits:
    """Properties of a barrier's marker in the data plane."""

    priority: bool  # overtakes data
    blocking: bool  # nothing follows it before the reader resumes
    announced: bool  # the reader is notified of its arrival, the writer of its departure


_TRAITS = {
    AlignmentType.AT_LEAST_ONCE: Traits(priority=False, blocking=False, announced=False),
    AlignmentType.ALIGNED: Traits(priority=False, blocking=True, announced=False),
    AlignmentType.UNALIGNED: Traits(priority=True, blocking=False, announced=False),
    AlignmentType.FORCED_ALIGNED: Traits(priority=False, blocking=True, announced=False),
}
_TIMEOUTABLE_TRAITS = Traits(priority=False, blocking=True, announced=True)


@value_class
class BarrierOptions:
    """The options that one barrier carries."""

    trigger_ns: int  # t0 of the checkpoint
    alignment: AlignmentType = AlignmentType.ALIGNED
    aligned_timeout_ns: int | None = None  # from t0; None: no timeout; only (forced) aligned barriers have one
    savepoint: bool = False
    stop: Ending | None = None  # stop-with-savepoint: sources end their data this way before they take the snapshot
    type: SnapshotType | None = None  # None: "checkpoint", or "canonical" for a savepoint

    @property
    def snapshot_type(self) -> SnapshotType:
        """The kind of snapshot that the state backends must write."""
        return self.type or ("canonical" if self.savepoint else "checkpoint")

    @property
    def unaligned(self) -> bool:
        return self.alignment is AlignmentType.UNALIGNED

    @property
    def timeoutable(self) -> bool:
        """Whether the barrier becomes unaligned at its deadline; a forced aligned one never does (CheckpointOptions.isTimeoutable)."""
        return self.alignment is AlignmentType.ALIGNED and self.aligned_timeout_ns is not None

    @property
    def deadline_ns(self) -> int:
        """When a timeoutable barrier becomes unaligned [ns]: the same time in all tasks (FLINK-23041)."""
        if self.aligned_timeout_ns is None:
            raise ValueError("only a barrier with a timeout has a deadline")
        return self.trigger_ns + self.aligned_timeout_ns

    def has_priority(self, now: int, *, converted: bool) -> bool:
        """Return whether a barrier processed at `now` [ns] is a priority barrier.

        `converted`: senders convert timeoutable barriers in their output queues at the deadline (since FLINK-27251).
        """
        return self.unaligned or (converted and self.timeoutable and now >= self.deadline_ns)

    @property
    def traits(self) -> Traits:
        """The properties of the barrier's marker in the data plane."""
        return _TIMEOUTABLE_TRAITS if self.timeoutable else _TRAITS[self.alignment]

    @property
    def needs_channel_state(self) -> bool:
        """Whether the snapshot may contain in-flight data (CheckpointOptions.needsChannelState)."""
        return self.unaligned or self.timeoutable

    def as_unaligned(self) -> BarrierOptions:
        """Return the options of the barrier after its timeout, without a deadline (CheckpointOptions.toUnaligned)."""
        return replace(self, alignment=AlignmentType.UNALIGNED, aligned_timeout_ns=None)

    def on_forced_edge(self) -> BarrierOptions:
        """Return the options on an edge that does not support unaligned checkpoints (withUnalignedUnsupported)."""
        return replace(self, alignment=AlignmentType.FORCED_ALIGNED) if self.needs_channel_state else self

    def restored(self) -> BarrierOptions:
        """Return the options for the outputs of a task that got a forced aligned barrier (withUnalignedSupported)."""
        if self.alignment is not AlignmentType.FORCED_ALIGNED:
            return self
        original = AlignmentType.UNALIGNED if self.aligned_timeout_ns is None else AlignmentType.ALIGNED
        return replace(self, alignment=original)


# ---- Edges that do not support unaligned checkpoints: their barriers are forced to align.
#
# Pointwise edges (their channels cannot be redistributed after rescaling) and broadcasts do not support them
# (StreamPartitioner#isSupportsUnalignedCheckpoint), nor, since Flink 2.0, edges to a sink's committer (FLINK-36287).
# One such edge disables all input edges of its vertex (StreamGraphGenerator).  Without the fix of FLINK-37870, a global
# committer behind an exchange disables all edges of the job.


ALIGN_JOBS_WITH_A_SINK = ("1.19.2", "1.20.1", "2.0.0")
"""Versions of Flink with FLINK-37870: a Sink V2 that commits disables all edges of its job."""


def forced_aligned_edges(
    job: Job, also: Iterable[tuple[str, str]] = (), version: str = ""
) -> frozenset[tuple[str, str]]:
    """Return (upstream, downstream) of every forced aligned edge.

    `also`: edges to force in addition.  `version`: of Flink, if known.  Raises ValueError if an edge is unknown.
    """
    named = frozenset(also)
    edges = frozenset((inlet.upstream, vertex.name) for vertex in job.vertices for inlet in vertex.inputs)
    if named - edges:
        raise ValueError(f"no such edges: {sorted(named - edges)}")
    commits = [vertex.commit for vertex in job.vertices if vertex.commit is not None]
    # a connector whose commits are not simulated has a committer all the same
    exchanges = [SINKS[vertex.connector].exchange for vertex in job.vertices if vertex.leaves_out_commit]
    exchanges += [commit.exchange for commit in commits]
    has_defect = version in ALIGN_JOBS_WITH_A_SINK and any(exchange != "as-job" for exchange in exchanges)
    if has_defect or any(commit.committer == "global" and commit.exchange == "aligns-job" for commit in commits):
        return edges
    forced = {
        vertex.name
        for vertex in job.vertices
        for inlet in vertex.inputs
        if not inlet.shipping.overtaken
        or (inlet.upstream, vertex.name) in named
        or _is_committer_without_unaligned(job, vertex)
    }
    return frozenset(edge for edge in edges if edge[1] in forced)


def _is_committer_without_unaligned(job: Job, vertex: Vertex) -> bool:
    """Return whether the vertex is a committer that barriers must not reach before its committables (FLINK-36287)."""
    if not vertex.committer_of:
        return False
    commit = job.vertex(vertex.committer_of).commit
    return commit is None or commit.exchange != "as-job"
