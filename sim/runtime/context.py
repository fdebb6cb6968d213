"""The objects that all hosts of a job instance share.

* `TaskSnapshot` and `Contents`: what each checkpoint contains
* `BarriersInTransit`: the options of the barriers in the data plane
* the marker series of the data plane
* `CommittedOutput`: output that external systems can read
* `JobManagerPort`: the JobManager as tasks see it; `Checks`: the events that invariants observe
* `Outcome`: how the job instance ends
* `Context`: scenario, clock, data plane, storage, journal, statistics, and all of these
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np
import simpy

from sim.model.job import Vertex
from sim.model.randomness import Part, drawn_ns
from sim.model.scenario import Scenario
from sim.model.storage import SnapshotType
from sim.plane.interface import (
    ANY_NUMBER,
    FIRST_UNGROUPED_SERIES,
    Layout,
    PlaneSpec,
    Position,
    SourceSpec,
    Trait,
    bytes_in_flight,
    channels_in,
    channels_out,
)
from sim.protocol.commit import Committable
from sim.protocol.options import AlignmentType, BarrierOptions, FailureReason
from sim.protocol.task_finishing import Finishing
from sim.results.journal import EventType, Journal
from sim.results.tables import CheckpointStats, CommitStats
from sim.runtime.clock import TwoPlaneEnvironment
from sim.runtime.host_loop import Speed
from sim.storage.filesystem import CheckpointStorage
from sim.storage.ledger import FileId, Name
from sim.storage.state_backends import Ages
from sim.storage.state_files import FrozenState, Handle

if TYPE_CHECKING:
    from sim.plane.kernel import KernelPlane


# ---- The contents of checkpoints: one `TaskSnapshot` per task and checkpoint.
#
# A task snapshot has the position of the task in its channels, its state, and its uncommitted transactions.  A task that
# does not take part in a checkpoint contributes its snapshot of an earlier one.  Tasks are restored from these snapshots,
# and invariants check the consistency of cuts with them.  They exist while a checkpoint is pending or retained.

_WHOLE = Fraction(1)

Kind = Literal["keyed", "windows", "operator", "union"]


class Stamp(NamedTuple):
    """The subtask and the checkpoint that state belongs to."""

    instance: int  # number of the job instance
    checkpoint: int
    vertex: str
    subtask: int

    def __str__(self) -> str:
        return f"{self.vertex}[{self.subtask}] at checkpoint {self.checkpoint}{f' of job {self.instance}' if self.instance else ''}"


class RestoredState(NamedTuple):
    """State that a restored task has received."""

    kind: Kind
    stamp: Stamp | None
    share: Fraction  # share of its key groups or list elements that the task receives
    size_bytes: int  # size of all its files, before the share is taken
    # (vertex, subtask, checkpoint) of the local copy that was read; None if it was read from storage
    copied_from: tuple[str | int, ...] | None = None


class KeptSnapshot(NamedTuple):
    """A checkpoint or savepoint that is retained, so that it may be restored."""

    what: str  # its name in messages
    files: int  # number of files that it refers to
    missing: tuple[str, ...]  # paths of missing files


@dataclass(slots=True)
class StateSnapshot:
    """The state that one subtask stores for one checkpoint.  The lists of handles grow while its files are written."""

    checkpoint: int
    type: SnapshotType
    keyed: FrozenState
    operator_bytes: int
    window_bytes: int = 0  # of the records held in windows
    union_bytes: int = 0  # of union list state
    # files of keyed state written so far; when it is complete, reused files come first
    handles: list[Handle] = field(default_factory=list)
    operator: list[Handle] = field(default_factory=list)
    windows: list[Handle] = field(default_factory=list)
    union: list[Handle] = field(default_factory=list)
    logged: list[Handle] = field(default_factory=list)  # changelog files that this snapshot had to wait for
    local: FileId | None = None  # local copy on the disk of its TaskManager
    stamp: Stamp | None = None  # identifies the state, for the invariants that check restores
    ages: Ages = ()  # of keys that expire

    @property
    def is_savepoint(self) -> bool:
        return self.type in ("canonical", "native")

    @property
    def merge(self) -> int | None:
        """The checkpoint whose physical files the snapshot may share (file merging); None for a savepoint."""
        return None if self.is_savepoint else self.checkpoint

    @property
    def full_bytes(self) -> int:
        return self.keyed.full_bytes + self.window_bytes + self.operator_bytes + self.union_bytes

    @property
    def written_bytes(self) -> int:
        return self.keyed.written_bytes + self.window_bytes + self.operator_bytes + self.union_bytes

    @property
    def all_handles(self) -> list[Handle]:
        return [*self.handles, *self.windows, *self.operator, *self.union]


class Uncommitted(NamedTuple):
    """The uncommitted transactions of a committer in a checkpoint."""

    checkpoint: int
    committables: tuple[Committable, ...]
    # channel state: committables overtaken by the barrier; the list grows until all barriers have arrived
    in_flight: Sequence[Committable] = ()

    @property
    def all(self) -> tuple[Committable, ...]:
        return (*self.committables, *self.in_flight)

    def renumbered(self, before: Sequence[tuple[str, int]], after: Sequence[tuple[str, int]]) -> Uncommitted:
        """Return the same transactions for a job with other task numbers.

        `before` and `after` have (vertex, subtask index) of each task.
        """
        if list(before) == list(after):
            return self
        number = {name: task for task, name in enumerate(after)}
        committables, behind = (
            tuple(replace(row, writer=number[before[row.writer]]) for row in rows)
            for rows in (self.committables, self.in_flight)
        )
        return self._replace(committables=committables, in_flight=behind)


@dataclass(slots=True)
class TaskSnapshot:
    """The snapshot of one task in a checkpoint.

    Each field is written by the component that owns its kind of content.  Other components only pass it on.
    """

    checkpoint: int  # the checkpoint that the task took the snapshot for
    # when it forwarded the barrier; `captured` and `overtaken` are 0 until the channel state is complete
    position: Position
    state_bytes: int = 0  # state that a restore downloads, without in-flight data
    committables: Uncommitted | None = None
    finished: bool = False  # its operators have finished
    # transactional sinks: records read but not written, by input channel
    held_back: tuple[int, ...] = ()
    # state of task features, by feature; its method `redistribute` splits it when the vertex is rescaled
    kept: dict[str, Any] = field(default_factory=dict)
    # state snapshots, and the share of each that this task restores (1 unless the vertex was rescaled)
    parts: tuple[tuple[StateSnapshot, Fraction], ...] = ()
    # channel state that a restore reads, if rescaling makes it differ from what the task keeps
    read_bytes: int | None = None
    channel_file: FileId | None = None  # file with the channel state, which other tasks may share
    inlined_bytes: int = 0  # part of the channel state that was sent with the acknowledgement; reading it takes no time

    @property
    def written(self) -> tuple[int, ...]:
        """Number of records that a transactional sink has written, by input channel."""
        read = tuple(self.position.records_read.tolist())
        return tuple(records - kept for records, kept in zip(read, self.held_back or (0,) * len(read), strict=True))

    @property
    def handles(self) -> list[Handle]:
        """The files of the snapshot."""
        state = [handle for snapshot, _ in self.parts for handle in snapshot.all_handles]
        shared = [] if self.channel_file is None else [Handle("channel-state", 0, "exclusive", self.channel_file)]
        return state + shared

    @property
    def files(self) -> list[FileId]:
        """The files of the snapshot that are in storage, by their ids."""
        return [FileId(handle.file) for handle in self.handles if handle.file is not None]

    @property
    def holds_state(self) -> bool:
        """Whether there are files other than that of the channel state."""
        return any(snapshot.all_handles for snapshot, _ in self.parts)

    @property
    def in_flight_bytes(self) -> int:
        """Bytes of channel state (input and output) that a restore reads."""
        if self.read_bytes is not None:
            return self.read_bytes
        return bytes_in_flight(self.position)


@dataclass(slots=True)
class Contents:
    """The snapshots of all tasks, by checkpoint."""

    plane: KernelPlane
    checkpoints: dict[int, dict[int, TaskSnapshot]] = field(default_factory=dict)  # id -> task -> its snapshot
    # called with (checkpoint, task, snapshot) at each cut
    on_cut: Callable[[int, int, TaskSnapshot], None] = lambda *_: None
    # called with (checkpoint, task, state snapshot) when state is durable
    on_stored: Callable[[int, int, StateSnapshot], None] = lambda *_: None

    def cut(
        self,
        checkpoint: int,
        task: int,
        fill: Callable[[TaskSnapshot], None] = lambda _: None,
        *,
        finished: bool = False,
    ) -> TaskSnapshot:
        """Create the snapshot of a task that has just forwarded its barrier, and return it.  `fill` adds the content of its operators."""
        part = TaskSnapshot(checkpoint, self.plane.bare_position(task), finished=finished)
        fill(part)
        self.add_part(checkpoint, task, part)
        return part

    def add_part(self, checkpoint: int, task: int, part: TaskSnapshot) -> None:
        """Add the snapshot that a task has just taken."""
        self.checkpoints.setdefault(checkpoint, {})[task] = part
        self.on_cut(checkpoint, task, part)

    def writable_part(self, checkpoint: int, task: int) -> TaskSnapshot | None:
        """Return the snapshot of a task to which its later content is added, or None as `of` does."""
        return self.of(checkpoint, task)

    def keep(self, checkpoint: int, task: int, before: int) -> TaskSnapshot:
        """Reuse the task's snapshot of the checkpoint `before`, because the task does not take part in this one.  Return it."""
        part = self.checkpoints.setdefault(checkpoint, {})[task] = self.checkpoints[before][task]
        return part

    def of(self, checkpoint: int, task: int) -> TaskSnapshot | None:
        """Return the snapshot of a task, or None if the checkpoint was discarded or the task has not taken its snapshot yet."""
        return self.checkpoints.get(checkpoint, {}).get(task)

    def inline_bytes(self, checkpoint: int) -> int:
        """Return the bytes of state that acknowledgements contain instead of files (ByteStreamStateHandle)."""
        parts = self.checkpoints.get(checkpoint, {}).values()
        in_handles = sum(handle.size_bytes for part in parts for handle in part.handles if handle.file is None)
        return in_handles + sum(part.inlined_bytes for part in parts)

    def take_over(
        self,
        checkpoint: int,
        task: int,
        part: TaskSnapshot,
        before: Sequence[tuple[str, int]],
        after: Sequence[tuple[str, int]],
    ) -> None:
        """Add a snapshot that the job is restored from.

        `before` and `after` have (vertex, subtask index) of each task in the job that took it and in this one.
        """
        committables = None if part.committables is None else part.committables.renumbered(before, after)
        self.checkpoints.setdefault(checkpoint, {})[task] = replace(part, committables=committables)

    def in_flight_final(self, checkpoint: int, task: int, *, captured: bool, overtaken: bool) -> None:
        """Record the channel state of a task, which is complete.  `captured`: it has input.  `overtaken`: it has output."""
        if (captured or overtaken) and (part := self.writable_part(checkpoint, task)) is not None:
            position = self.plane.position(task)
            part.position = part.position._replace(
                captured=position.captured if captured else part.position.captured,
                overtaken=position.overtaken if overtaken else part.position.overtaken,
            )

    def in_flight_stored(self, checkpoint: int, tasks: Iterable[int], file: FileId) -> None:
        """Record that the channel state of a group of tasks is durable in `file`."""
        for task in tasks:
            if (part := self.writable_part(checkpoint, task)) is not None:
                part.channel_file = file

    def in_flight_inlined(self, checkpoint: int, tasks: Iterable[int]) -> None:
        """Record that the channel state of these tasks is too small for a file and is sent with their acknowledgements."""
        for task in tasks:
            if (part := self.writable_part(checkpoint, task)) is not None:
                part.inlined_bytes = part.in_flight_bytes

    def stored(self, checkpoint: int, task: int, state_bytes: int, files: StateSnapshot) -> None:
        """Record that the state of a task is durable."""
        if (part := self.writable_part(checkpoint, task)) is not None:
            part.state_bytes, part.parts = state_bytes, ((files, _WHOLE),)
            self.on_stored(checkpoint, task, files)

    def union_of(self, checkpoint: int, tasks: Iterable[int]) -> tuple[StateSnapshot, ...]:
        """Return the state snapshots of these tasks that contain union list state, each once: after rescaling, tasks may share one."""
        parts = self.checkpoints.get(checkpoint, {})
        states = {id(state): state for task in tasks if task in parts for state, _ in parts[task].parts if state.union}
        return tuple(states.values())

    def completed(self, checkpoint: int, needed: Collection[int]) -> None:
        """Discard all checkpoints older than a completed one, including cuts made after an abort.

        `needed` are exceptions: retained checkpoints, and savepoints in progress.
        """
        for number in [number for number in self.checkpoints if number < checkpoint and number not in needed]:
            del self.checkpoints[number]

    def forget(self, checkpoint: int) -> None:
        """Discard the snapshots of a checkpoint that was aborted or subsumed."""
        self.checkpoints.pop(checkpoint, None)


def initial_task_snapshot(layout: Layout, task: int) -> TaskSnapshot:
    """Return the empty snapshot of a task, from which it starts without a checkpoint."""
    into, out = (
        np.zeros(len(channels), np.int64) for channels in (channels_in(layout, task), channels_out(layout, task))
    )
    return TaskSnapshot(0, Position(0, into, into, into, out, out, out))


# ---- The options of barriers: a marker in the data plane has only a number, so the options are stored here.
#
# Options may differ between edges (some are forced to be aligned) and between writers (after the aligned checkpoint
# timeout a writer sends unaligned barriers).

_MAX_CHECKPOINTS_REMEMBERED = 1000
"""Number of checkpoints remembered.  As many may expire while one barrier waits behind data."""


class BarriersInTransit:
    """The options of all barriers in channels, by checkpoint."""

    def __init__(self) -> None:
        self._sent: dict[int, dict[tuple[int, int], BarrierOptions]] = {}

    def send(self, checkpoint: int, writer: int, edge: int, options: BarrierOptions) -> None:
        """Store the options with which a task sends its barriers on an edge."""
        if checkpoint not in self._sent:
            self._sent[checkpoint] = {}
            for old in [number for number in self._sent if number <= checkpoint - _MAX_CHECKPOINTS_REMEMBERED]:
                del self._sent[old]
        self._sent[checkpoint][writer, edge] = options

    def options(self, checkpoint: int, writer: int, edge: int) -> BarrierOptions:
        """Return the options of a barrier.

        If the end of data replaces it, return those of another barrier on the edge, preferably an aligned one.
        """
        row = self._sent[checkpoint]
        if (writer, edge) in row:
            return row[writer, edge]
        return min((options for (_, e), options in row.items() if e == edge), key=lambda options: options.unaligned)

    def was_sent(self, checkpoint: int, writer: int, edge: int) -> bool:
        """Return whether the task has sent its barriers on the edge."""
        return (writer, edge) in self._sent[checkpoint]

    def announced_options(self, checkpoint: int, edge: int) -> BarrierOptions:
        """Return the options of any barrier on the edge that can time out.  All of them have the same deadline."""
        return next(row for (_, e), row in self._sent[checkpoint].items() if e == edge and row.timeoutable)


# ---- The meaning of markers: the series used in the data plane, and the traits of barriers.

CANCELLATIONS = 1
"""The marker series of cancellation markers; a marker's number is its checkpoint."""
END_OF_DATA = FIRST_UNGROUPED_SERIES
"""The marker series of ends of data: no record follows on the channel."""
END_OF_PARTITION = FIRST_UNGROUPED_SERIES + 1
"""The marker series of ends of partitions: nothing follows on the channel."""
WATERMARKS = FIRST_UNGROUPED_SERIES + 2
"""The marker series of watermarks and of their status; a marker's number is its event time [ns], or IDLE, or ACTIVE."""
LAST_WATERMARK = ANY_NUMBER
"""Watermark.MAX_WATERMARK: no record follows it."""
IDLE = ANY_NUMBER - 1
ACTIVE = ANY_NUMBER - 2

_TRAITS = {
    AlignmentType.AT_LEAST_ONCE: Trait.NONE,
    AlignmentType.ALIGNED: Trait.BLOCKING,
    AlignmentType.UNALIGNED: Trait.PRIORITY,
    AlignmentType.FORCED_ALIGNED: Trait.BLOCKING,
}
_TIMEOUTABLE_TRAITS = Trait.BLOCKING | Trait.ANNOUNCED


def traits(options: BarrierOptions) -> Trait:
    """Return the traits of the marker of a barrier with these options."""
    return _TIMEOUTABLE_TRAITS if options.timeoutable else _TRAITS[options.alignment]


# ---- Output that external systems can read: committed transactions, and files with their final names.
#
# It survives the job: the next instance continues from it, possibly with other task and channel numbers.

_Transaction = tuple[str, int, int, int]
"""(vertex, subtask index of the writer, epoch, time of opening [ns]).  A transaction that is opened again after a failure is a new one."""


class CommittedOutput:
    """The transactions that external systems have committed, and the files that they can read."""

    def __init__(self, storage: CheckpointStorage, names: Sequence[tuple[str, int]]) -> None:
        self.storage = storage
        self.names = names  # (vertex, subtask index) of each task
        self.files: dict[Hashable, FileId] = {}  # final name -> file
        self.covered: dict[int, list[int]] = {}  # writing task -> records committed, by input channel
        self.covered_before: dict[int, list[int]] = {}  # by earlier instances of the job
        self._committed: set[_Transaction] = set()
        self._expired: set[_Transaction] = set()
        self._newest_commit: dict[str, int] = {}  # vertex that writes -> newest checkpoint of a commit
        self.counted_from = 0  # epochs up to this checkpoint refer to channels that no longer exist

    def stored(self, name: Name, file: FileId) -> None:
        """Record that a file is durable under its final name."""
        self.files[name] = file

    def missing(self, names: Iterable[Hashable]) -> int:
        """Return how many of these files do not exist."""
        return sum(name not in self.files or not self.storage.files.exists(self.files[name]) for name in names)

    def has(self, committable: Committable) -> bool:
        """Return whether the transaction is committed.  A second commit has no effect."""
        return self._transaction(committable) in self._committed

    def settled(self, committable: Committable) -> bool:
        """Return whether the transaction is committed or known to be lost."""
        return self._transaction(committable) in self._committed | self._expired

    def discard_uncommitted(self, expired: Iterable[Committable]) -> None:
        """Record that transactions have timed out and their records are lost."""
        self._expired.update(self._transaction(committable) for committable in expired)

    def newest_commit(self, vertex: str) -> int:
        """Return the newest checkpoint for which output of this vertex was committed, or 0 if there is none."""
        return self._newest_commit.get(vertex, 0)

    def commit(self, fresh: Iterable[Committable], checkpoint: int) -> None:
        """Commit transactions that are not committed yet, for a completed checkpoint."""
        for committable in fresh:
            vertex, _ = self.names[committable.writer]
            self._newest_commit[vertex] = max(checkpoint, self.newest_commit(vertex))
            self._committed.add(self._transaction(committable))
            if committable.epoch > self.counted_from:
                self.covered[committable.writer] = [end for _, end in committable.inputs]

    def continue_from(self, before: CommittedOutput, checkpoint: int, written_counts: Mapping[int, list[int]]) -> None:
        """Continue from the output of another job, whose checkpoint this job is restored from.

        `written_counts` has the number of records that each writer had written in the checkpoint, by input channel.  If task
        numbers have changed, these records count as committed.
        """
        self.files |= before.files
        self._committed |= before._committed
        self._expired |= before._expired
        self._newest_commit |= before._newest_commit
        renumbered = list(self.names) != list(before.names)
        self.counted_from = checkpoint if renumbered else before.counted_from
        self.covered_before = dict(written_counts) if renumbered else dict(before.covered)
        self.covered |= self.covered_before

    def _transaction(self, committable: Committable) -> _Transaction:
        return (*self.names[committable.writer], committable.epoch, committable.opened_ns)


# ---- How a job instance ends.


class Outcome:
    """How a job instance ends: finished, failed without a further restart, or rescaled by its scheduler.

    `status` is RUNNING, FINISHED, or FAILED with a reason.  Each event is triggered at most once.
    """

    def __init__(self, env: simpy.Environment) -> None:
        self.status = "RUNNING"
        self.failed, self.finished, self.rescaled = env.event(), env.event(), env.event()
        self.caught_up = env.event()  # after a failure
        # TaskManagers that the job is rescaled without, by their numbers in the scenario
        self.missing: frozenset[int] = frozenset()

    def fail(self, reason: str) -> None:
        """End the job as failed.  It is not restarted."""
        self.status = f"FAILED: {reason}"
        _trigger_once(self.failed)

    def finish(self) -> None:
        """End the job as finished, once all tasks have finished."""
        self.status = "FINISHED"
        _trigger_once(self.finished)

    def catch_up(self) -> None:
        """Report that the job has caught up after a failure: all tasks run, and its backlog is back to its usual level."""
        _trigger_once(self.caught_up)

    def rescale(self, missing: frozenset[int]) -> None:
        """End this instance.  The job is restored as another one without the `missing` TaskManagers (their numbers in the scenario)."""
        if not self.rescaled.triggered:
            self.missing = missing
            self.rescaled.succeed()


def _trigger_once(event: simpy.Event) -> None:
    """Trigger an event unless it was triggered before."""
    if not event.triggered:
        event.succeed()


# ---- The context of a job instance.  Its fields are not replaced while the instance runs.


@dataclass(frozen=True, slots=True, eq=False)
class Origin:
    """The snapshot that a job instance starts from."""

    instance: int  # number of the instance that starts
    at_ns: int
    checkpoint: int
    served: np.ndarray  # records served by each task at the end of the previous instance


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """What exists once per job instance and what all of its components use."""

    scenario: Scenario
    spec: PlaneSpec
    layout: Layout
    plane: KernelPlane
    env: TwoPlaneEnvironment
    storage: CheckpointStorage
    hosts: Sequence[int]  # task manager of each task
    names: Sequence[tuple[str, int]]  # vertex and subtask index of each task
    contents: Contents
    output: CommittedOutput
    outcome: Outcome
    speed: Speed
    forced: frozenset[int] = frozenset()  # edges whose barriers are forced to be aligned
    origin: Origin | None = None  # None: the first instance of the job
    journal: Journal = field(default_factory=Journal)
    transit: BarriersInTransit = field(default_factory=BarriersInTransit)
    stats: dict[int, CheckpointStats] = field(default_factory=dict)  # by checkpoint
    commits: list[CommitStats] = field(default_factory=list)
    # sink -> time until which its commits fail; None: only the next one fails
    failing_commits: dict[str, int | None] = field(default_factory=dict)

    def note(
        self, event_type: EventType, checkpoint: int = -1, task: int = -1, number: int = 0, detail: str = ""
    ) -> None:
        """Add a journal row at the current time."""
        self.journal.note(self.env.now, event_type, checkpoint, task, number, detail)

    @property
    def instance(self) -> int:
        """Number of the job instance; 0: the first one."""
        return 0 if self.origin is None else self.origin.instance

    @property
    def begun_from(self) -> int:
        """Checkpoint that the instance starts from; 0: none."""
        return 0 if self.origin is None else self.origin.checkpoint

    @property
    def tasks(self) -> range:
        """The numbers of all tasks."""
        return range(len(self.layout.vertex))

    def vertex(self, task: int) -> Vertex:
        """Return the vertex of a task."""
        return self.scenario.job.vertices[self.layout.vertex[task]]

    def log(self, task: int) -> SourceSpec | None:
        """Return the log that a source task reads, None for other tasks."""
        return self.spec.vertices[self.layout.vertex[task]].log(self.layout.subtask[task])

    def gate_edge(self, task: int, gate: int) -> int:
        """Return the edge of a task's gate."""
        return self.layout.gates[self.layout.task_gates[task][gate]][1]

    def outputs(self, task: int) -> list[tuple[int, bool]]:
        """Return (edge, whether barriers are forced to be aligned) of each output of a task."""
        edges = [self.layout.partitions[p][1] for p in self.layout.task_partitions[task]]
        return [(edge, edge in self.forced) for edge in edges]

    def residual_ns(self, part: Part, task: int, checkpoint: int) -> int:
        """Return the residual time of this part of a checkpoint, which the model does not explain [ns]."""
        if not self.scenario.residuals.of:
            return 0
        return drawn_ns(self.scenario.residuals, part, *self.names[task], checkpoint, self.scenario.run.seed)

    @property
    def periodic(self) -> bool:
        """Whether periodic checkpoints are on."""
        return self.scenario.checkpoint.interval_ns is not None


# ---- The interfaces of hosts to those that they do not import: the JobManager as tasks see it, and the observers of a run.


class JobManagerPort(Protocol):
    """The JobManager as tasks see it.  Messages to it take time."""

    @property
    def rule(self) -> Finishing:
        """The rules by which the tasks and the job end."""

    def message(self, delay_ns: int, arrive: Callable[[], None]) -> None:
        """Deliver a message of a task after a delay, unless its JobManager is lost by then."""

    def acknowledge(self, task: int, checkpoint: int, handles: Iterable[Handle]) -> None:
        """Acknowledge a checkpoint.  `handles`: files of the task's part."""

    def decline(self, task: int, checkpoint: int, reason: FailureReason) -> None: ...

    def abandon(self, handles: Iterable[Handle]) -> None:
        """Delete the files written so far for a snapshot that was cancelled."""

    def fail_task(self, task: int, reason: str) -> None:
        """Fail a task with an exception."""

    def task_runs(self, task: int) -> None:
        """Report that a restored task runs: it has its state and its recovered input."""

    def finished_in(self, task: int, checkpoint: int) -> None:
        """Report that a task takes its snapshot after its operators have finished."""

    def data_ended(self, task: int) -> None: ...

    def task_finished(self, task: int) -> None: ...


class Checks:
    """The events that hosts report to invariants.  This class ignores them, for runs without invariants."""

    def cut(self, checkpoint: int, task: int, part: TaskSnapshot) -> None:
        """Observe that a task has reached its cut."""

    def part_reused(self, checkpoint: int, task: int, before: int) -> None:
        """Observe that a task reuses its part of the earlier checkpoint `before`."""

    def state_taken(self, checkpoint: int, task: int, snapshot: StateSnapshot) -> None:
        """Observe that the state of a task is frozen."""

    def completed(self, checkpoint: int, retained: Sequence[int]) -> None:
        """Observe that a checkpoint is complete and may be restored from now on."""

    def barrier_waits(self, checkpoint: int, task: int) -> None:
        """Observe that a task has forwarded a timeoutable barrier to its output queues."""

    def barrier_left(self, checkpoint: int, task: int) -> None:
        """Observe that a timeoutable barrier has left all output queues of the task."""

    def barrier_converted(self, checkpoint: int, task: int) -> None:
        """Observe that a timeoutable barrier was converted to an unaligned one."""

    def deadline_announced(self, checkpoint: int, task: int) -> None:
        """Observe that the task thread handles the timeout at which queued barriers are converted."""

    def restarting(self, restart: int) -> None:
        """Observe that the tasks of a restart are cancelled."""

    def cancelled(self, restart: int) -> None:
        """Observe that all tasks of a restart have stopped."""

    def restarted(self, checkpoint: int, tasks: Iterable[int]) -> None:
        """Observe that these tasks have just been started at their positions."""

    def restored(
        self, checkpoint: int, task: int, restored_parts: Sequence[RestoredState], restored_record_count: int
    ) -> None:
        """Observe that a task has got its state, which includes `restored_record_count` records, and is about to run."""

    def materialising(self, task: int, number: int) -> None:
        """Observe that the backend that a changelog backend wraps is frozen for a materialisation."""

    def watermark_arrived(self, task: int, channel: int, number: int) -> None:
        """Observe that a task processes a watermark or a watermark status of a channel."""

    def watermark_sent(self, task: int, number: int) -> None:
        """Observe that a task sends a watermark or a watermark status."""

    def records_left(self, task: int, until: int) -> None:
        """Observe that a watermark releases the records up to `until` from their windows."""

    def window_ended(self, task: int) -> None:
        """Observe that a processing-time window ends."""

    def timer_fired(self, task: int, due_ns: int, records: int) -> None:
        """Observe that a processing-time timer releases records."""

    def data_ended(self, task: int, ending: str) -> None:
        """Observe that a task forwards EndOfData.  `ending`: drain, no-drain or savepoint-then-finish."""

    def input_ended(self, task: int) -> None:
        """Observe that the input of a task has ended, and its operators finish."""

    def timers_quiet(self, task: int) -> None:
        """Observe that the data of a task has ended: no timer fires any more."""

    def materialised(self, task: int, number: int, handles: Sequence[Handle]) -> None:
        """Observe that the files of a materialisation are durable."""
