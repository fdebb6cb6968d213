"""Windows of event time: a watermark ends them, behind the records in front of it.

Flink: InternalTimerServiceImpl#tryAdvanceWatermark.  A window takes what each channel brought before its watermark.
Records of the next window that came before it leave as well: at most those of one interval of watermarks.
"""

from __future__ import annotations

from typing import Protocol

from sim.model.job import Window
from sim.protocol.event_time import WindowContents
from sim.runtime.task.operator.windows.windows import OperatorWindows, Timer
from sim.runtime.task.part import PartsPort, Stage, TaskFeature
from sim.runtime.task.slot import Slot


class EventClock(Protocol):
    """The event time, as windows read it."""

    @property
    def idle(self) -> bool:
        """No watermark passes."""


class EventTimeWindows(OperatorWindows):
    """Windows that watermarks end.  They hold records by channel."""

    def __init__(self, slot: Slot, window: Window) -> None:
        super().__init__(slot, window)
        self.channels = slot.channels
        self.clock: EventClock | None = None  # what tells them the time
        self.contents = WindowContents(window.step_ns, window.phase_ns, self.channels, window.hold_ns)

    @property
    def owes_outputs(self) -> bool:
        return not self.drops

    @property
    def drops(self) -> bool:
        """While a stream is idle the last watermark does not pass either (RecordWriterOutput#emitWatermark)."""
        return self.clock is not None and self.clock.idle

    def timers(self) -> tuple[Timer, ...]:
        """There are no timers: records wait for the next watermark, and watermarks are not part of a snapshot."""
        return ()

    def note(self, channel: int, time_ns: int) -> None:
        """A watermark arrives."""
        self.contents.note(channel, time_ns, self._read()[channel])

    def fall_idle(self, channel: int, time_ns: int) -> None:
        """A channel is idle at this event time: its records wait for no watermark of it."""
        self.contents.fall_idle(channel, time_ns, self._read()[channel])

    def fire(self, time_ns: int) -> bool:
        """Let the records of windows go that have ended; True: there are some, and the plane reports when they are written."""
        later = self.contents.fire(time_ns, self._read())
        position = self.slot.context.plane.position(self.slot.task)
        if later is None:
            return False
        until = position.served - later
        self.content.end(until)
        if position.late <= later:
            return False

        def flushed() -> None:
            self.slot.checks.records_left(self.slot.task, until)
            self.slot.thread.let_go(until)
            self.slot.context.plane.report_written(self.slot.task)

        self.content.work(self.content.flush_ns(), flushed)
        return True

    def end_input(self) -> None:
        """The last watermark ends all windows."""
        if not self.drops:
            self.slot.thread.let_go(self.slot.context.plane.position(self.slot.task).served)

    def _read(self) -> dict[int, int]:
        """Records of each channel."""
        return dict(zip(self.channels, self.slot.context.plane.position(self.slot.task).records_out.tolist(), strict=True))


def attach(slot: Slot, _: PartsPort) -> EventTimeWindows | None:
    window = slot.vertex.window
    return EventTimeWindows(slot, window) if window is not None and window.time == "event" else None


FEATURE = TaskFeature(attach, Stage.WINDOWS)
