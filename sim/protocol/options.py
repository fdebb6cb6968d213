"""Options of a barrier, edges on which barriers stay aligned, and the reasons why checkpoints fail."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from sim.model.job import Job, Vertex
from sim.model.sinks import SINKS
from sim.model.storage import SnapshotType
from sim.protocol.machine import replace, value_class

# ---- Why a checkpoint fails, and which failures count (CheckpointFailureReason, CheckpointFailureManager).


class FailureReason(Enum):
    """CheckpointFailureReason with Flink's names, and its texts up to the first sentence.

    If `counts`, it counts against tolerable-failed-checkpoints, as in Flink 1.15 and later
    (CheckpointFailureManager#checkFailureReason; older releases ignored FINALIZE_CHECKPOINT_FAILURE).
    """

    def __init__(self, text: str, counts: bool = False) -> None:
        self.text = text
        self.counts = counts

    # before a checkpoint has an id
    TOO_MANY_CHECKPOINT_REQUESTS = "The maximum number of queued checkpoint requests exceeded"
    MINIMUM_TIME_BETWEEN_CHECKPOINTS = "The minimum time between checkpoints is still pending."
    NOT_ALL_REQUIRED_TASKS_RUNNING = "Not all required tasks are currently running."
    NO_JOB_MANAGER = "JobManager unreachable."  # not in Flink, whose client cannot connect
    IO_EXCEPTION = "An Exception occurred while triggering the checkpoint. IO-problem detected.", True
    # a pending checkpoint
    CHECKPOINT_EXPIRED = "Checkpoint expired before completing.", True
    CHECKPOINT_SUBSUMED = "Checkpoint has been subsumed."
    TRIGGER_CHECKPOINT_FAILURE = "Trigger checkpoint failure."
    CHECKPOINT_DECLINED = "Checkpoint was declined.", True
    CHECKPOINT_DECLINED_TASK_CLOSING = "Checkpoint was declined (task is closing)"
    CHECKPOINT_DECLINED_SUBSUMED = "Checkpoint was canceled because a barrier from newer checkpoint was received."
    CHECKPOINT_DECLINED_ON_CANCELLATION_BARRIER = "Task received cancellation from one of its inputs"
    CHECKPOINT_DECLINED_INPUT_END_OF_STREAM = "Checkpoint was declined because one input stream is finished"
    CHECKPOINT_ASYNC_EXCEPTION = "Asynchronous task checkpoint failed.", True
    FINALIZE_CHECKPOINT_FAILURE = "Failure to finalize checkpoint.", True
    CHECKPOINT_COORDINATOR_SHUTDOWN = "CheckpointCoordinator shutdown."
    CHECKPOINT_COORDINATOR_SUSPEND = "Checkpoint Coordinator is suspending."
    JOB_FAILOVER_REGION = "FailoverRegion is restarting."


# ---- The options inside a barrier (CheckpointOptions, CheckpointOptions.AlignmentType).
#
# Each barrier carries its options, and they may differ per edge: `forced_aligned_edges` lists the edges that rewrite them.


class StopMode(Enum):
    """Whether operators call finish() before the final snapshot (StopMode)."""

    DRAIN = "drain"
    NO_DRAIN = "no-drain"
    # before FLIP-147: finish() runs after the savepoint, so no snapshot holds the records that it emits
    FINISH_AFTER_SAVEPOINT = "savepoint-then-finish"


class AlignmentType(Enum):
    """How a task reacts to a barrier (CheckpointOptions.AlignmentType)."""

    __hash__ = object.__hash__  # members are singletons; the hash of Enum is a slow Python function

    AT_LEAST_ONCE = "at-least-once"  # the task counts barriers and blocks no channel
    ALIGNED = "aligned"  # the task waits for the other barriers; with a timeout, until the deadline at most
    UNALIGNED = "unaligned"  # the task snapshots at the first barrier
    FORCED_ALIGNED = "forced-aligned"  # aligned on this edge; the task forwards the original type


@value_class
class BarrierOptions:
    """The options that one barrier carries."""

    trigger_ns: int  # t0 of the checkpoint
    alignment: AlignmentType = AlignmentType.ALIGNED
    aligned_timeout_ns: int | None = None  # from t0; None: no timeout; only (forced) aligned barriers have one
    savepoint: bool = False
    stop: StopMode | None = None  # of stop-with-savepoint: applied by sources before the snapshot
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

    def has_priority(self, now_ns: int, *, senders_convert: bool) -> bool:
        """Return whether a barrier processed at `now_ns` is a priority barrier.

        `senders_convert`: senders convert timeoutable barriers in their output queues at the deadline (since FLINK-27251).
        """
        return self.unaligned or (senders_convert and self.timeoutable and now_ns >= self.deadline_ns)

    @property
    def needs_channel_state(self) -> bool:
        """Whether the snapshot may contain in-flight data (CheckpointOptions.needsChannelState)."""
        return self.unaligned or self.timeoutable

    def as_unaligned(self) -> BarrierOptions:
        """Return the options of the barrier after its timeout, without a deadline (CheckpointOptions.toUnaligned)."""
        return replace(self, alignment=AlignmentType.UNALIGNED, aligned_timeout_ns=None)

    def with_unaligned_unsupported(self) -> BarrierOptions:
        """Return the options on an edge that does not support unaligned checkpoints (withUnalignedUnsupported)."""
        return replace(self, alignment=AlignmentType.FORCED_ALIGNED) if self.needs_channel_state else self

    def with_unaligned_supported(self) -> BarrierOptions:
        """Return the options for the outputs of a task that got a forced aligned barrier (withUnalignedSupported)."""
        if self.alignment is not AlignmentType.FORCED_ALIGNED:
            return self
        original = AlignmentType.UNALIGNED if self.aligned_timeout_ns is None else AlignmentType.ALIGNED
        return replace(self, alignment=original)


# ---- Edges that do not support unaligned checkpoints: their barriers are forced to align.
#
# Pointwise edges (their channels cannot be redistributed after rescaling) and broadcasts do not support them
# (StreamPartitioner#isSupportsUnalignedCheckpoint).  Since Flink 2.0, neither do edges to a sink's committer (FLINK-36287).
# One such edge disables all input edges of its vertex (StreamGraphGenerator).  Without the fix of FLINK-37870, a global
# committer behind an exchange disables all edges of the job.


VERSIONS_AFFECTED_BY_FLINK_37870 = ("1.19.2", "1.20.1", "2.0.0")
"""Versions of Flink with FLINK-37870: a Sink V2 that commits disables all edges of its job."""


def forced_aligned_edges(
    job: Job, extra_edges: Iterable[tuple[str, str]] = (), version: str = ""
) -> frozenset[tuple[str, str]]:
    """Return (upstream, downstream) of every forced aligned edge.

    `extra_edges`: edges to force in addition.  `version`: of Flink, if known.  Raises ValueError if an edge is unknown.
    """
    named = frozenset(extra_edges)
    edges = frozenset((inlet.upstream, vertex.name) for vertex in job.vertices for inlet in vertex.inputs)
    if named - edges:
        raise ValueError(f"no such edges: {sorted(named - edges)}")
    commits = [vertex.commit for vertex in job.vertices if vertex.commit is not None]
    # a connector whose commits are not simulated has a committer in Flink, too
    left_out = [SINKS[vertex.connector].commit for vertex in job.vertices if vertex.leaves_out_commit]
    exchanges = [commit.exchange for commit in (*left_out, *commits) if commit is not None]
    has_defect = version in VERSIONS_AFFECTED_BY_FLINK_37870 and any(exchange != "as-job" for exchange in exchanges)
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
