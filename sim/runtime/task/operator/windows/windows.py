"""Windows of either time as a part of their operator: their records are state, and rows that are buffered leave before a barrier."""

from __future__ import annotations

from abc import abstractmethod

from sim.model.job import Window
from sim.runtime.contents import TaskSnapshot, Timer
from sim.runtime.task.operator.part import TaskPart, WaitingBytes
from sim.runtime.task.operator.windows.content import HeldRecords
from sim.runtime.task.slot import Slot


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
        self.content.restored(snapshot.slices)

    def before_barrier(self, checkpoint: int) -> int:
        """Rows that are buffered are merged into state (WindowBuffer#flush)."""
        return self.content.flush_ns()

    def leaves(self) -> bool:
        """A first stage holds nothing behind a barrier."""
        return self.window.early and self.content.leave()

    def cut(self, checkpoint: int, snapshot: TaskSnapshot) -> None:
        snapshot.timers, snapshot.slices = self.timers(), tuple(self.content.slices.ends)

    def waiting(self) -> WaitingBytes:
        return WaitingBytes(windows=self.content.records() * self.window.record_bytes)
