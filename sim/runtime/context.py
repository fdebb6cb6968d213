"""What hosts share: contents of snapshots, counters, barriers under way, markers, committed output."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from sim.invariants.state import Stamp
from sim.model.job import Vertex
from sim.model.randomness import Part, drawn_ns
from sim.model.scenario import Scenario
from sim.model.storage import SnapshotType
from sim.plane.interface import (
    ANY_NUMBER,
    SINGLES,
    DataPlane,
    Position,
    Trait,
    bytes_in_flight,
    channels_in,
    channels_out,
)
from sim.plane.spec import Layout, PlaneSpec, SourceSpec
from sim.protocol.commit import Committable
from sim.protocol.options import BarrierOptions
from sim.results.journal import Happening, Journal
from sim.results.tables import CheckpointStats, CommitStats
from sim.runtime.clock import TwoPlaneEnvironment
from sim.storage.changelog import Ages
from sim.storage.filesystem import CheckpointStorage
from sim.storage.ledger import FileId, Name
from sim.storage.state_files import FrozenState, Handle

# ---- The content of each checkpoint: a part per task, and each part says for which checkpoint the task took it.
#
# A part is the position of the task in its streams and what else its snapshot holds.  It is that of an earlier
# checkpoint if the task took no part in this one.  A restore starts tasks from here, and the checkers judge cuts by it.
# Kept while a checkpoint is pending or retained.

_WHOLE = Fraction(1)


@dataclass(slots=True)
class StateSnapshot:
    """The state that one subtask stores for one checkpoint.  It is complete when both parts are written."""

    type: SnapshotType
    keyed: FrozenState
    operator_bytes: int
    window_bytes: int = 0  # of the records held in windows
    union_bytes: int = 0  # of union list state
    # of keyed state, written so far; in the end files reused come first
    handles: list[Handle] = field(default_factory=list)
    operator: list[Handle] = field(default_factory=list)
    windows: list[Handle] = field(default_factory=list)
    union: list[Handle] = field(default_factory=list)
    logged: list[Handle] = field(default_factory=list)  # of the changelog, which this snapshot waited for
    local: FileId | None = None  # the copy on the disk of its task manager
    stamp: Stamp | None = None  # whose state it is, for those who check restores
    ages: Ages = ()  # of keys that expire

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
    """The transactions of a committer that a checkpoint holds."""

    checkpoint: int
    committables: tuple[Committable, ...]
    # behind its barrier at the cut: channel state; grows until all barriers are there
    in_flight: Sequence[Committable] = ()

    @property
    def all(self) -> tuple[Committable, ...]:
        return (*self.committables, *self.in_flight)

    def renumbered(self, before: Sequence[tuple[str, int]], after: Sequence[tuple[str, int]]) -> Uncommitted:
        """The same for a job whose tasks (vertex, index) have other numbers."""
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
    """One task's part of a checkpoint.  The owner of a kind of content writes its field; other components pass it on."""

    checkpoint: int  # the one that the task took it for
    position: Position  # at its cut; captured and overtaken are 0 until the channel state is final
    state_bytes: int = 0  # everything a restore downloads, in-flight data apart
    committables: Uncommitted | None = None
    finished: bool = False  # its operators have finished
    # of a transactional writer: the records it has read and not written, by input channel
    held_back: tuple[int, ...] = ()
    # by the names of features; `dealt` says what tasks of another parallelism get
    kept: dict[str, Any] = field(default_factory=dict)
    # its state, and the share of each part that comes here (all, unless rescaled)
    parts: tuple[tuple[StateSnapshot, Fraction], ...] = ()
    read_bytes: int | None = None  # in-flight data a restore reads, if that is more than it keeps (rescaled)
    channel_file: FileId | None = None  # of the in-flight data, which other tasks may share
    inlined_bytes: int = 0  # of the in-flight data: what came with the acknowledgement, and takes no time to read

    @property
    def written(self) -> tuple[int, ...]:
        """The records a transactional writer has written, by input channel."""
        read = tuple(self.position.records_out.tolist())
        return tuple(records - kept for records, kept in zip(read, self.held_back or (0,) * len(read), strict=True))

    @property
    def handles(self) -> list[Handle]:
        """The files that hold it."""
        state = [handle for snapshot, _ in self.parts for handle in snapshot.all_handles]
        shared = [] if self.channel_file is None else [Handle("channel-state", 0, "exclusive", self.channel_file)]
        return state + shared

    @property
    def holds_state(self) -> bool:
        """Whether there are files beside those of in-flight data."""
        return any(snapshot.all_handles for snapshot, _ in self.parts)

    @property
    def in_flight_bytes(self) -> int:
        """What was captured, on the receiver's side and in sender queues: a restore reads it again."""
        if self.read_bytes is not None:
            return self.read_bytes
        return bytes_in_flight(self.position)


@dataclass(slots=True)
class Contents:
    """The parts of all tasks, by checkpoint."""

    plane: DataPlane
    checkpoints: dict[int, dict[int, TaskSnapshot]] = field(default_factory=dict)  # id -> task -> its part
    on_cut: Callable[[int, int, TaskSnapshot], None] = lambda *_: None  # told of each: checkpoint, task, its part
    # told of durable state: checkpoint, task, its files
    on_stored: Callable[[int, int, StateSnapshot], None] = lambda *_: None

    def cut(
        self,
        checkpoint: int,
        task: int,
        fill: Callable[[TaskSnapshot], None] = lambda _: None,
        *,
        finished: bool = False,
    ) -> TaskSnapshot:
        """The task stands at its cut now: its barrier has just been forwarded.  `fill`: adds what its operator keeps."""
        part = TaskSnapshot(checkpoint, self.plane.bare_position(task), finished=finished)
        fill(part)
        self.checkpoints.setdefault(checkpoint, {})[task] = part
        self.on_cut(checkpoint, task, part)
        return part

    def keep(self, checkpoint: int, task: int, before: int) -> TaskSnapshot:
        """The task takes no part in a checkpoint: the part that it has in one before stands for it."""
        part = self.checkpoints.setdefault(checkpoint, {})[task] = self.checkpoints[before][task]
        return part

    def of(self, checkpoint: int, task: int) -> TaskSnapshot | None:
        """The part of a task.  None: the checkpoint is gone, or the task has no part in it yet."""
        return self.checkpoints.get(checkpoint, {}).get(task)

    def take_over(
        self,
        checkpoint: int,
        task: int,
        part: TaskSnapshot,
        before: Sequence[tuple[str, int]],
        after: Sequence[tuple[str, int]],
    ) -> None:
        """The job begins with this part of a checkpoint; `before`, `after`: what the tasks were and are called."""
        committables = None if part.committables is None else part.committables.renumbered(before, after)
        self.checkpoints.setdefault(checkpoint, {})[task] = replace(part, committables=committables)

    def in_flight_final(self, checkpoint: int, task: int, *, captured: bool, overtaken: bool) -> None:
        """The channel state is complete; which sides of it hold anything."""
        if (captured or overtaken) and (part := self.of(checkpoint, task)) is not None:
            here = self.plane.position(task)
            part.position = part.position._replace(
                captured=here.captured if captured else part.position.captured,
                overtaken=here.overtaken if overtaken else part.position.overtaken,
            )

    def in_flight_stored(self, checkpoint: int, tasks: Iterable[int], file: FileId) -> None:
        """The channel state of a group of tasks is durable."""
        for task in tasks:
            if (part := self.of(checkpoint, task)) is not None:
                part.channel_file = file

    def in_flight_inlined(self, checkpoint: int, tasks: Iterable[int]) -> None:
        """Acknowledgements carry the channel state of these tasks: there is too little of it for a file."""
        for task in tasks:
            if (part := self.of(checkpoint, task)) is not None:
                part.inlined_bytes = part.in_flight_bytes

    def stored(self, checkpoint: int, task: int, state_bytes: int, files: StateSnapshot) -> None:
        """The state of a task is durable."""
        if (part := self.of(checkpoint, task)) is not None:
            part.state_bytes, part.parts = state_bytes, ((files, _WHOLE),)
            self.on_stored(checkpoint, task, files)

    def union_of(self, checkpoint: int, tasks: Iterable[int]) -> tuple[StateSnapshot, ...]:
        """The snapshots of these tasks that hold union list state, each once: after a rescale several tasks have parts of one."""
        parts = self.checkpoints.get(checkpoint, {})
        found = {id(state): state for task in tasks if task in parts for state, _ in parts[task].parts if state.union}
        return tuple(found.values())

    def completed(self, checkpoint: int, needed: Collection[int]) -> None:
        """What older checkpoints left behind goes, late cuts of aborted ones too; `needed` are retained or still under way (savepoints)."""
        for number in [number for number in self.checkpoints if number < checkpoint and number not in needed]:
            del self.checkpoints[number]

    def forget(self, checkpoint: int) -> None:
        """Aborted or subsumed."""
        self.checkpoints.pop(checkpoint, None)


def initial_task_snapshot(layout: Layout, task: int) -> TaskSnapshot:
    """What a task of a job that starts begins with."""
    into, out = (
        np.zeros(len(channels), np.int64) for channels in (channels_in(layout, task), channels_out(layout, task))
    )
    return TaskSnapshot(0, Position(0, into, into, into, out, out, out))


# ---- Totals of tasks over all their attempts: a restored task's `served` goes back, what it has done does not.


class Counters:
    """Totals of all tasks over their attempts."""

    def __init__(self, plane: DataPlane, tasks: int) -> None:
        self.plane = plane
        self.before = np.zeros(tasks, dtype=np.int64)
        """Served by earlier attempts, beyond where the present one began.  Another array after each restart."""

    def restart(self, positions: Mapping[int, int]) -> None:
        """These tasks will stand at these ordinals again; call it while they stand where they failed."""
        served, self.before = self.plane.served(), self.before.copy()
        for task, position in positions.items():
            self.before[task] += int(served[task]) - position

    def rows(self, *columns: str) -> np.ndarray:
        """The plane's rows of tasks, of these columns (`served` among them) or all.

        `served` is over all attempts: records served again count again.
        """
        rows = self.plane.tasks(*columns)
        rows["served"] += self.before
        return rows


# ---- The options a barrier carries: markers are numbers in the plane, this remembers what each was sent with.
#
# Options may differ per edge (forced aligned ones) and per writer (one that timed out sends unaligned barriers).

_MAX_CHECKPOINTS_REMEMBERED = 1000
"""Checkpoints remembered: as many as may expire while one barrier waits behind data."""


class BarriersInTransit:
    """The options of all barriers that are on their way, by checkpoint."""

    def __init__(self) -> None:
        self._sent: dict[int, dict[tuple[int, int], BarrierOptions]] = {}

    def send(self, checkpoint: int, writer: int, edge: int, options: BarrierOptions) -> None:
        if checkpoint not in self._sent:
            self._sent[checkpoint] = {}
            for old in [number for number in self._sent if number <= checkpoint - _MAX_CHECKPOINTS_REMEMBERED]:
                del self._sent[old]
        self._sent[checkpoint][writer, edge] = options

    def options(self, checkpoint: int, writer: int, edge: int) -> BarrierOptions:
        """The options of a barrier.  Where the end of the data stands for it: those of another barrier on the edge, aligned if possible."""
        row = self._sent[checkpoint]
        if (writer, edge) in row:
            return row[writer, edge]
        return min((options for (_, e), options in row.items() if e == edge), key=lambda options: options.unaligned)

    def was_sent(self, checkpoint: int, writer: int, edge: int) -> bool:
        return (writer, edge) in self._sent[checkpoint]

    def announced_options(self, checkpoint: int, edge: int) -> BarrierOptions:
        """The options of any barrier on this edge that can time out: the announcement carries the deadline, and all barriers share it."""
        return next(row for (_, e), row in self._sent[checkpoint].items() if e == edge and row.timeoutable)


# ---- What markers mean: the series of the plane, and the traits a barrier's marker has.

CANCELLATIONS = 1
"""The marker series of cancellation markers; a marker's number is its checkpoint."""
END_OF_DATA = SINGLES
"""The marker series of ends of data: no record follows on the channel."""
END_OF_PARTITION = SINGLES + 1
"""The marker series of ends of partitions: nothing follows on the channel."""
WATERMARKS = SINGLES + 2
"""The marker series of watermarks and of their status; a marker's number is its event time [ns], or IDLE, or ACTIVE."""
LAST_WATERMARK = ANY_NUMBER
"""Watermark.MAX_WATERMARK: no record follows it."""
IDLE = ANY_NUMBER - 1
ACTIVE = ANY_NUMBER - 2

_JOINED = {
    (priority, blocking, announced): Trait(
        Trait.PRIORITY * priority | Trait.BLOCKING * blocking | Trait.ANNOUNCED * announced
    )
    for priority in (False, True)
    for blocking in (False, True)
    for announced in (False, True)
}
"""Joined beforehand: a checkpoint asks for them once per task and edge."""


def traits(options: BarrierOptions) -> Trait:
    """How the marker of a barrier with these options moves."""
    how = options.traits
    return _JOINED[how.priority, how.blocking, how.announced]


# ---- Output as external systems see it: committed transactions, and files that are readable under their final names.
#
# It outlives the job: the next instance goes on where this one ended, perhaps with other numbers for its tasks and
# channels.

_Transaction = tuple[str, int, int, int]
"""Vertex and index of its writer, its epoch, when it was opened: begun again after a failure it is another one."""


class CommittedOutput:
    """The transactions that external systems have committed, and the files that they can read."""

    def __init__(self, storage: CheckpointStorage, names: Sequence[tuple[str, int]]) -> None:
        self.storage = storage
        self.names = names  # (vertex, subtask index) of each task
        self.files: dict[Hashable, FileId] = {}  # final name -> file
        self.covered: dict[int, list[int]] = {}  # writer -> records committed, by input channel
        self.covered_before: dict[int, list[int]] = {}  # by earlier instances of the job
        self._committed: set[_Transaction] = set()
        self._expired: set[_Transaction] = set()
        self._newest_commit: dict[str, int] = {}  # by vertex of the writers: the newest checkpoint that a commit bears
        self.counted_from = 0  # epochs up to this checkpoint count the records of channels that are no more

    def stored(self, name: Name, file: FileId) -> None:
        """A file is durable under its final name."""
        self.files[name] = file

    def missing(self, names: Iterable[Hashable]) -> int:
        """How many of these files cannot be read in full."""
        return sum(name not in self.files or not self.storage.files.exists(self.files[name]) for name in names)

    def has(self, committable: Committable) -> bool:
        """Whether the transaction is visible.  A second commit of it has no effect."""
        return self._transaction(committable) in self._committed

    def settled(self, committable: Committable) -> bool:
        """Whether the transaction is visible, or known to be lost."""
        return self._transaction(committable) in self._committed | self._expired

    def throw_away(self, expired: Iterable[Committable]) -> None:
        self._expired.update(self._transaction(committable) for committable in expired)

    def newest_commit(self, vertex: str) -> int:
        """The newest checkpoint that a commit of what this vertex writes bears; 0: there is none."""
        return self._newest_commit.get(vertex, 0)

    def commit(self, fresh: Iterable[Committable], checkpoint: int) -> None:
        for committable in fresh:
            vertex, _ = self.names[committable.writer]
            self._newest_commit[vertex] = max(checkpoint, self.newest_commit(vertex))
            self._committed.add(self._transaction(committable))
            if committable.epoch > self.counted_from:
                self.covered[committable.writer] = [end for _, end in committable.inputs]

    def continue_from(self, before: CommittedOutput, checkpoint: int, stands_at: Mapping[int, list[int]]) -> None:
        """A job begins with a checkpoint of another one; `stands_at`: what each writer had written in it, in records of its input channels.

        With other numbers of tasks or channels, what lies before the beginning counts as committed.
        """
        self.files |= before.files
        self._committed |= before._committed
        self._expired |= before._expired
        self._newest_commit |= before._newest_commit
        renumbered = list(self.names) != list(before.names)
        self.counted_from = checkpoint if renumbered else before.counted_from
        self.covered_before = dict(stands_at) if renumbered else dict(before.covered)
        self.covered |= self.covered_before

    def _transaction(self, committable: Committable) -> _Transaction:
        return (*self.names[committable.writer], committable.epoch, committable.opened_ns)


# ---- The context that all hosts of a job instance share: scenario, clock, data plane, storage, journal and statistics.
#
# Nothing here is replaced while the instance runs.


@dataclass(frozen=True, slots=True, eq=False)
class Origin:
    """The snapshot that a job instance starts from."""

    instance: int  # number of the instance that starts
    at_ns: int
    checkpoint: int
    served: np.ndarray  # records served by each task at the end of the previous instance


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """Scenario, clock, data plane, storage, journal and statistics of one job instance."""

    scenario: Scenario
    spec: PlaneSpec
    layout: Layout
    plane: DataPlane
    env: TwoPlaneEnvironment
    storage: CheckpointStorage
    hosts: Sequence[int]  # task manager of each task
    names: Sequence[tuple[str, int]]  # vertex and subtask index of each task
    forced: frozenset[int] = frozenset()  # edges whose barriers are forced to be aligned
    origin: Origin | None = None  # None: the first instance of the job
    journal: Journal = field(default_factory=Journal)
    stats: dict[int, CheckpointStats] = field(default_factory=dict)  # by checkpoint
    commits: list[CommitStats] = field(default_factory=list)
    # sink -> time until which its commits fail; None: only the next one fails
    failing_commits: dict[str, int | None] = field(default_factory=dict)

    def note(
        self, happening: Happening, checkpoint: int = -1, task: int = -1, number: int = 0, detail: str = ""
    ) -> None:
        """Add a journal row at the current time."""
        self.journal.note(self.env.now, happening, checkpoint, task, number, detail)

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
