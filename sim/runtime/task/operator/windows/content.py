"""The content of windows of either time: records in state, buffered rows, and output that leaves before a barrier.

Flink: SlicingWindowOperator, RecordsWindowBuffer, AbstractMapBundleOperator.
"""

from __future__ import annotations

from collections.abc import Callable

from sim.model.job import Window
from sim.protocol.event_time import Slices
from sim.runtime.task.slot import Slot


class HeldRecords:
    """The records that the windows of one task hold."""

    def __init__(self, slot: Slot, window: Window) -> None:
        self.slot = slot
        self.window = window
        self.slices = self._slices(())
        self._flushed = self.served()  # records whose rows are in state

    def restored(self, slices: tuple[int, ...]) -> None:
        """A snapshot is restored, with the ends of the slices that it held."""
        self.slices = self._slices(slices)
        self._flushed = self.served()

    def records(self) -> int:
        """Records in state now; one that is kept in several copies counts for each."""
        late = self.slot.context.plane.position(self.slot.task).late
        return self.slices.records(late) if self.window.overlapping > 1 else late

    def end(self, records: int) -> None:
        """A window has ended; `records` have left since the job began."""
        if self.window.overlapping > 1:
            self.slices.end(records)

    def flush_ns(self) -> int:
        """Merge the buffered rows into state.  Returns the time that this takes [ns]."""
        served = self.served()
        rows, self._flushed = served - self._flushed, served
        return rows * self.window.flush_ns

    def leave(self) -> bool:
        """Let all records leave now.  True: there are some, and the plane reports when they are written."""
        position = self.slot.context.plane.position(self.slot.task)
        if not position.late:
            return False
        self.slot.thread.let_go(position.served)
        self.slot.context.plane.report_written(self.slot.task)
        return True

    def work(self, ns: int, done: Callable[[], None]) -> None:
        """Keep the thread for so long, then go on.  Call at a safe point only."""
        if ns == 0:
            done()
            return

        def worked() -> None:
            if not self.slot.thread.stopped:
                done()
            self.slot.thread.vacate()

        self.slot.thread.occupy()
        self.slot.context.env.call_in(ns, worked)

    def served(self) -> int:
        """The records served since the job began."""
        return self.slot.context.plane.position(self.slot.task).served

    def _slices(self, ends: tuple[int, ...]) -> Slices:
        return Slices(self.window.overlapping, copies=self.window.api == "datastream", ends=ends)
