"""The event time of a task that reads: the least watermark of its input goes on, behind what it ends.

Flink: StatusWatermarkValve, MailboxWatermarkProcessor.  A watermark goes on when everything it ends is fired.
Only watermarks that end a window of the job are sent, each as a marker.
"""

from __future__ import annotations

from sim.plane.seam.interface import Marker
from sim.protocol.event_time import Valve
from sim.runtime.markers import ACTIVE, IDLE, LAST_WATERMARK, WATERMARKS
from sim.runtime.task.operator.windows.event_time_windows import EventTimeWindows
from sim.runtime.task.part import PartsPort, Stage, TaskFeature, TaskPart
from sim.runtime.task.slot import Slot


class EventTime(TaskPart):
    """The event time of a task with inputs.  `windows`: those that it ends."""

    def __init__(self, slot: Slot, windows: EventTimeWindows | None) -> None:
        self.slot = slot
        self.windows = windows
        if windows is not None:
            windows.clock = self
        self.valve = Valve(slot.channels)
        self._open = set(slot.channels)  # channels whose data goes on
        self._sent_ns = 0
        self._said_idle = False

    @property
    def idle(self) -> bool:
        """Whether all inputs are idle.  No watermark passes then, not even the last one of a source (RecordWriterOutput#emitWatermark)."""
        return self.valve.idle

    def watermark_arrived(self, channel: int, number: int) -> None:
        """A watermark was processed on a channel, or a status of it."""
        self.slot.checks.watermark_arrived(self.slot.task, channel, number)
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

    def channel_ended(self, channel: int) -> None:
        """The data of a channel has ended: the channel holds no watermark back."""
        self._open.discard(channel)
        if not self.valve.is_idle(channel):
            self.watermark_arrived(channel, LAST_WATERMARK)

    def _go_on(self, *, risen: bool) -> None:
        """Windows end before the watermark leaves; the end of the last channel fires what is left when the operator finishes."""
        if not (risen and self._open and self.windows is not None and self.windows.fire(self.valve.time_ns)):
            self.forward()

    def outputs_written(self, *, at_end: bool) -> None:
        """All that the watermark ends is written."""
        self.forward()

    def forward(self) -> None:
        """The watermark goes on, and the status behind it."""
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
        self.slot.checks.watermark_sent(self.slot.task, number)
        self.slot.context.plane.forward(self.slot.task, Marker(number, series=WATERMARKS))


def attach(slot: Slot, operator: PartsPort) -> EventTime | None:
    if not slot.context.scenario.job.event_time_windows or slot.vertex.source is not None:
        return None
    return EventTime(slot, operator.of(EventTimeWindows))


FEATURE = TaskFeature(attach, Stage.EVENT_TIME)
