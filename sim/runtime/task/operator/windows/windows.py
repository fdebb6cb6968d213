"""Windows of either time as a part of their operator: their records are state, and rows that are buffered leave before a barrier."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from sim.model.job import Window
from sim.runtime.contents import TaskSnapshot
from sim.runtime.task.operator.windows.content import HeldRecords
from sim.runtime.task.part import TaskPart, WaitingBytes
from sim.runtime.task.slot import Slot


class Timer(NamedTuple):
    """A timer of a window operator."""

    records: int  # served when its window ended: it lets these go
    at_ns: int  # when it is due


class _Kept(NamedTuple):
    """What a snapshot keeps of windows beside their records."""

    timers: tuple[Timer, ...] = ()
    slices: tuple[int, ...] = ()  # of sliding windows: records that had left at each of the last ends

    def dealt(self, parts: Sequence[TaskSnapshot], own: int, tasks: int) -> _Kept:
        """The equal part of subtask `own` of so many; `parts`: of all former subtasks.  Timers of processing time are not dealt out."""
        ends = [(_of(part).slices, part.position.served - part.position.late) for part in parts]
        longest = max(len(slices) for slices, _ in ends)
        padded = [(*[(slices or (left,))[0]] * (longest - len(slices)), *slices) for slices, left in ends]
        totals = [sum(column) for column in zip(*padded, strict=True)]
        return _Kept((), tuple(total // tasks + (own < total % tasks) for total in totals))


def _of(snapshot: TaskSnapshot) -> _Kept:
    kept: _Kept = snapshot.kept.get("windows", _Kept())  # a task that had finished before the checkpoint keeps nothing
    return kept


class OperatorWindows(TaskPart):
    """The windows of one task.  A subclass defines when they end."""

    def __init__(self, slot: Slot, window: Window) -> None:
        self.slot = slot
        self.window = window
        self.content = HeldRecords(slot, window)

    @abstractmethod
    def timers(self) -> tuple[Timer, ...]:
        """The timers of a snapshot taken now."""

    def restored(self, snapshot: TaskSnapshot) -> None:
        """Timers of the future are armed with the windows that go on."""
        kept = _of(snapshot)
        self.content.restored(kept.slices)
        self.go_on(kept.timers)

    def go_on(self, timers: tuple[Timer, ...]) -> None:
        """These timers were state.  Watermarks are not: where they end windows there are no timers."""

    def before_barrier(self, checkpoint: int) -> int:
        """Rows that are buffered are merged into state (WindowBuffer#flush)."""
        return self.content.flush_ns()

    def leaves(self) -> bool:
        """A first stage holds nothing behind a barrier."""
        return self.window.early and self.content.leave()

    def cut(self, checkpoint: int, snapshot: TaskSnapshot) -> None:
        """Operators that have finished have no timers: what their windows held is lost, and no restore brings it back (FLIP-147)."""
        snapshot.kept["windows"] = _Kept(() if snapshot.finished else self.timers(), tuple(self.content.slices.ends))

    def waiting(self) -> WaitingBytes:
        return WaitingBytes(windows=self.content.records() * self.window.record_bytes)
