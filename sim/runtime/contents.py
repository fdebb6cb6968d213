"""What each checkpoint holds, task by task: where it stood in its streams, and whatever else belongs to its snapshot.

A restore starts tasks from here, and the checkers judge cuts by it.  Kept while a checkpoint is pending or retained.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from sim.plane.seam.interface import Position

if TYPE_CHECKING:
    from sim.plane.seam.interface import DataPlane
    from sim.plane.seam.layout import Layout
    from sim.runtime.task.state_snapshot import StateSnapshot

__all__ = ["Contents", "Held", "beginning"]


@dataclass(slots=True)
class Held:
    """One task's part of a checkpoint.

    Whoever owns a kind of content says what stands in its field; everybody else passes it on.
    """

    position: Position  # at its cut; captured and overtaken are 0 until the channel state is final
    state_bytes: int = 0  # everything a restore downloads, in-flight data apart
    committables: Any = None
    finished: bool = False  # its operators have finished
    held_back: tuple[int, ...] = ()  # of a transactional writer: the records it has read and not written, by input channel
    parts: tuple[tuple[StateSnapshot, Fraction], ...] = ()  # its state, and the share of each part that comes here (all, unless rescaled)
    read_bytes: int | None = None  # in-flight data a restore reads, if that is more than it keeps (rescaled)
    inlined_bytes: int = 0  # of the in-flight data: what came with the acknowledgement, and takes no time to read

    @property
    def written(self) -> tuple[int, ...]:
        """Of a transactional writer: the records it has written, by input channel."""
        read = tuple(self.position.records_out.tolist())
        return tuple(records - kept for records, kept in zip(read, self.held_back or (0,) * len(read), strict=True))

    @property
    def in_flight_bytes(self) -> int:
        """What was captured, on the receiver's side and in sender queues: a restore reads it again."""
        if self.read_bytes is not None:
            return self.read_bytes
        return int(self.position.captured.sum() + self.position.overtaken.sum())


@dataclass(slots=True)
class Contents:
    plane: DataPlane
    checkpoints: dict[int, dict[int, Held]] = field(default_factory=dict)  # id -> task -> its part
    on_cut: Callable[[int, int, Held], None] = lambda *_: None  # told of each: checkpoint, task, its part

    def cut(
        self, checkpoint: int, task: int, committables: Any = None, *, finished: bool = False, held_back: tuple[int, ...] = ()
    ) -> Held:
        """The task stands at its cut now: its barrier has just been forwarded."""
        here = self.plane.position(task)
        nothing = here._replace(captured=np.zeros_like(here.captured), overtaken=np.zeros_like(here.overtaken))
        held = Held(nothing, committables=committables, finished=finished, held_back=held_back)
        self.checkpoints.setdefault(checkpoint, {})[task] = held
        self.on_cut(checkpoint, task, held)
        return held

    def of(self, checkpoint: int, task: int) -> Held | None:
        """None: that checkpoint is gone, or the task has no part in it (yet)."""
        return self.checkpoints.get(checkpoint, {}).get(task)

    def in_flight_final(self, checkpoint: int, task: int, *, captured: bool, overtaken: bool) -> None:
        """The channel state is complete; which sides of it hold anything."""
        if (captured or overtaken) and (held := self.of(checkpoint, task)) is not None:
            here = self.plane.position(task)
            held.position = held.position._replace(
                captured=here.captured if captured else held.position.captured,
                overtaken=here.overtaken if overtaken else held.position.overtaken,
            )

    def in_flight_inlined(self, checkpoint: int, tasks: Iterable[int]) -> None:
        """There is so little channel state that no file was needed: acknowledgements carry it."""
        for task in tasks:
            if (held := self.of(checkpoint, task)) is not None:
                held.inlined_bytes = held.in_flight_bytes

    def stored(self, checkpoint: int, task: int, state_bytes: int, files: StateSnapshot) -> None:
        """Its state is durable."""
        if (held := self.of(checkpoint, task)) is not None:
            held.state_bytes, held.parts = state_bytes, ((files, Fraction(1)),)

    def completed(self, checkpoint: int, needed: Collection[int]) -> None:
        """What older checkpoints left behind goes, late cuts of aborted ones too; `needed` are retained or still under way (savepoints)."""
        for number in [number for number in self.checkpoints if number < checkpoint and number not in needed]:
            del self.checkpoints[number]

    def forget(self, checkpoint: int) -> None:
        """Aborted or subsumed."""
        self.checkpoints.pop(checkpoint, None)


def beginning(layout: Layout, task: int) -> Position:
    """Where a task stands in a job that starts."""
    inputs = sum(len(layout.gates[gate][2]) for gate in layout.task_gates[task])
    outputs = sum(len(layout.partitions[partition][2]) for partition in layout.task_partitions[task])
    into, out = np.zeros(inputs, dtype=np.int64), np.zeros(outputs, dtype=np.int64)
    return Position(0, into, into, into, out, out, out)
