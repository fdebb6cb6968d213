"""The content of each checkpoint: a part per task, and each part says for which checkpoint the task took it.

A part is the position of the task in its streams and what else its snapshot holds.  It is that of an earlier checkpoint if the task took
no part in this one.  A restore starts tasks from here, and the checkers judge cuts by it.  Kept while a checkpoint is pending or retained.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from sim.checkers.state import Stamp
from sim.model.stored import SnapshotType
from sim.plane.seam.interface import DataPlane, Position
from sim.plane.seam.layout import Layout
from sim.plane.seam.positions import bytes_in_flight, channels_in, channels_out
from sim.protocol.commit.committables import Committable
from sim.state.expiry import Ages
from sim.state.files import FrozenState, Handle
from sim.storage.ledger import FileId

_ALL = Fraction(1)


@dataclass(slots=True)
class StateSnapshot:
    """The state that one subtask stores for one checkpoint.  It is complete when both parts are written."""

    type: SnapshotType
    keyed: FrozenState
    operator_bytes: int
    window_bytes: int = 0  # of the records held in windows
    union_bytes: int = 0  # of union list state
    handles: list[Handle] = field(default_factory=list)  # of keyed state, written so far; in the end files reused come first
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
    in_flight: Sequence[Committable] = ()  # behind its barrier at the cut: channel state; grows until all barriers are there

    @property
    def all(self) -> tuple[Committable, ...]:
        return (*self.committables, *self.in_flight)

    def renumbered(self, before: Sequence[tuple[str, int]], after: Sequence[tuple[str, int]]) -> Uncommitted:
        """The same for a job whose tasks (vertex, index) have other numbers."""
        if list(before) == list(after):
            return self
        number = {name: task for task, name in enumerate(after)}
        committables, behind = (
            tuple(replace(row, writer=number[before[row.writer]]) for row in rows) for rows in (self.committables, self.in_flight)
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
    held_back: tuple[int, ...] = ()  # of a transactional writer: the records it has read and not written, by input channel
    kept: dict[str, Any] = field(default_factory=dict)  # by the names of features; `dealt` says what tasks of another parallelism get
    parts: tuple[tuple[StateSnapshot, Fraction], ...] = ()  # its state, and the share of each part that comes here (all, unless rescaled)
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
    on_stored: Callable[[int, int, StateSnapshot], None] = lambda *_: None  # told of durable state: checkpoint, task, its files

    def cut(
        self, checkpoint: int, task: int, fill: Callable[[TaskSnapshot], None] = lambda _: None, *, finished: bool = False
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
        self, checkpoint: int, task: int, part: TaskSnapshot, before: Sequence[tuple[str, int]], after: Sequence[tuple[str, int]]
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
            part.state_bytes, part.parts = state_bytes, ((files, _ALL),)
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


def beginning(layout: Layout, task: int) -> TaskSnapshot:
    """What a task of a job that starts begins with."""
    into, out = (np.zeros(len(channels), np.int64) for channels in (channels_in(layout, task), channels_out(layout, task)))
    return TaskSnapshot(0, Position(0, into, into, into, out, out, out))
