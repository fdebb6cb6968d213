"""Windows of event time: the least watermark of the input ends them, behind the records in front of it.

Flink: InternalTimerServiceImpl#tryAdvanceWatermark, MailboxWatermarkProcessor.  A watermark goes on when everything it ends is fired.
Only watermarks that end a window of the job are sent, each as a marker.  A window takes what each channel brought before its watermark.
Records of the next window that came before it leave as well: at most those of one interval of watermarks.
"""

from __future__ import annotations

from sim.model.job import Window
from sim.plane.seam.interface import ANY_NUMBER, Marker
from sim.protocol.event_time import Valve, WindowContents
from sim.runtime.contents import Timer
from sim.runtime.markers import WATERMARKS
from sim.runtime.task.slot import Slot
from sim.runtime.task.windows.content import HeldRecords

__all__ = ["EventTime", "EventTimeWindows"]


class EventTimeWindows:
    """What the windows of a task hold, by channel."""

    def __init__(self, slot: Slot, window: Window) -> None:
        self.slot = slot
        self.window = window
        self.content = HeldRecords(slot, window)
        self.channels = _inputs(slot)
        self.contents = WindowContents(window.step_ns, window.phase_ns, self.channels, window.hold_ns)

    def begin(self) -> None:
        """No window ends before a watermark comes."""

    def restored(self, timers: tuple[Timer, ...]) -> None:
        """Watermarks are no state: what is held waits for the next one."""

    def cut(self) -> tuple[Timer, ...]:
        """No timers: watermarks are no state."""
        return ()

    def note(self, channel: int, time_ns: int) -> None:
        """A watermark arrives."""
        self.contents.note(channel, time_ns, self._read()[channel])

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
            self.slot.thread.let_go(until)
            self.slot.context.plane.report_written(self.slot.task)

        self.content.work(self.content.flush_ns(), flushed)
        return True

    def end_input(self) -> None:
        """The last watermark ends all windows."""
        self.slot.thread.let_go(self.slot.context.plane.position(self.slot.task).served)

    def _read(self) -> dict[int, int]:
        """Records of each channel."""
        return dict(zip(self.channels, self.slot.context.plane.position(self.slot.task).records_out.tolist(), strict=True))


class EventTime:
    """The event time of a task that reads; `windows`: those it ends there."""

    def __init__(self, slot: Slot, windows: EventTimeWindows | None) -> None:
        self.slot = slot
        self.windows = windows
        self.valve = Valve(_inputs(slot))

    def arrived(self, channel: int, time_ns: int) -> None:
        """A watermark was processed on a channel."""
        if self.windows is not None:
            self.windows.note(channel, time_ns)
        if not self.valve.advance(channel, time_ns) or self.valve.time_ns == ANY_NUMBER:
            return  # the end of the last channel fires what is left when the operator finishes
        if self.windows is None or not self.windows.fire(self.valve.time_ns):
            self.forward()

    def ended(self, channel: int) -> None:
        """Its data is over: it holds nobody back."""
        self.arrived(channel, ANY_NUMBER)

    def forward(self) -> None:
        """All that it ends is written: the watermark goes on."""
        if self.valve.time_ns < ANY_NUMBER:
            self.slot.context.plane.forward(self.slot.task, Marker(self.valve.time_ns, series=WATERMARKS))


def _inputs(slot: Slot) -> list[int]:
    """The channels of its position, in order."""
    layout = slot.context.layout
    return [channel for gate in layout.task_gates[slot.task] for channel in layout.gates[gate][2]]
