"""Windows of event time: the least watermark of the input ends them, behind the records in front of it.

Flink: InternalTimerServiceImpl#tryAdvanceWatermark, MailboxWatermarkProcessor.  A watermark goes on when everything it ends is fired.
Only watermarks that end a window of the job are sent, each as a marker.  A window takes what each channel brought before its watermark.
Records of the next window that came before it leave as well: at most those of one interval of watermarks.
"""

from __future__ import annotations

from sim.model.job import Window
from sim.plane.seam.interface import Marker
from sim.protocol.event_time import Valve, WindowContents
from sim.runtime.contents import Timer
from sim.runtime.markers import ACTIVE, IDLE, LAST_WATERMARK, WATERMARKS
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
        self._open = set(_inputs(slot))  # channels whose data goes on
        self._sent_ns = 0
        self._said_idle = False

    @property
    def idle(self) -> bool:
        """All inputs are: no watermark passes, the last one of a source that ends neither (RecordWriterOutput#emitWatermark)."""
        return self.valve.idle

    def arrived(self, channel: int, number: int) -> None:
        """A watermark was processed on a channel, or a status of it."""
        if number == IDLE:
            if self.windows is not None:
                self.windows.fall_idle(channel, self.valve.time_ns)
            self._go_on(risen=self.valve.fall_idle(channel))
        elif number == ACTIVE:
            if self.windows is not None:
                self.windows.contents.wake(channel)
            self.valve.wake(channel)
            self._go_on(risen=False)
        else:
            if self.windows is not None:
                self.windows.note(channel, number)
            self._go_on(risen=self.valve.advance(channel, number))

    def ended(self, channel: int) -> None:
        """Its data is over: it holds no watermark back."""
        self._open.discard(channel)
        if not self.valve.is_idle(channel):
            self.arrived(channel, LAST_WATERMARK)

    def _go_on(self, *, risen: bool) -> None:
        """Windows end before the watermark leaves; the end of the last channel fires what is left when the operator finishes."""
        if not (risen and self._open and self.windows is not None and self.windows.fire(self.valve.time_ns)):
            self.forward()

    def forward(self) -> None:
        """All that it ends is written: the watermark goes on, and the status behind it."""
        if self._said_idle and not self.valve.idle:
            self._send(ACTIVE)
            self._said_idle = False
        if self.valve.time_ns > self._sent_ns and self._open:
            self._sent_ns = self.valve.time_ns
            self._send(self._sent_ns)
        if self.valve.idle and not self._said_idle:
            self._send(IDLE)
            self._said_idle = True

    def _send(self, number: int) -> None:
        self.slot.context.plane.forward(self.slot.task, Marker(number, series=WATERMARKS))


def _inputs(slot: Slot) -> list[int]:
    """The channels of its position, in order."""
    layout = slot.context.layout
    return [channel for gate in layout.task_gates[slot.task] for channel in layout.gates[gate][2]]
