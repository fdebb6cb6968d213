"""The watermarks of a source: its mail looks every interval how far the records have come, and sends what ends a window.

Flink: ProgressiveTimestampsAndWatermarks.  A record's timestamp is when it is due; without a rate it is the time of its emission.
"""

from __future__ import annotations

from sim.model.job import Source
from sim.model.randomness.streams import draw, stream
from sim.plane.seam.interface import Marker
from sim.protocol.event_time import last_end, next_end
from sim.runtime.markers import WATERMARKS
from sim.runtime.task.slot import Slot
from sim.runtime.task.windows.event_time import EventTimeWindows

__all__ = ["WatermarkGenerator"]


class WatermarkGenerator:
    """`source`: what the scenario says of it; `windows`: those chained to it."""

    def __init__(self, slot: Slot, source: Source, windows: EventTimeWindows | None) -> None:
        context = slot.context
        self.slot = slot
        self.watermark = source.watermark
        self.chained = windows
        self.windows = context.scenario.job.event_time_windows
        self.source = context.spec.vertices[context.layout.vertex[slot.task]].source
        self._sent_ns = 0
        vertex, subtask = context.names[slot.task]
        first = draw(stream(context.scenario.run.seed, "watermark", vertex, subtask), 0)
        self._phase_ns = 1 + (first * self.watermark.interval_ns >> 32)

    def begin(self) -> None:
        """The task runs."""
        self._look_at(self.slot.now)

    def _look_at(self, time_ns: int) -> None:
        """The first look from then on, in steps of the interval; looks that can find nothing are left out."""
        interval_ns = self.watermark.interval_ns
        at_ns = time_ns + (self._phase_ns - time_ns) % interval_ns
        self.slot.context.env.call_in(max(1, at_ns - self.slot.now), lambda: self.slot.thread.post(self._look))

    def _look(self) -> None:
        """On the task thread."""
        if self.slot.thread.mails_only:
            return  # its data ends here
        reached_ns = self._event_time() - self.watermark.lateness_ns
        end_ns = max(last_end(window.step_ns, window.phase_ns, reached_ns) for window in self.windows)
        if end_ns > self._sent_ns:
            self._sent_ns = end_ns
            if self.chained is None or not self.chained.fire(end_ns):
                self.forward()
        ahead_ns = min(next_end(window.step_ns, window.phase_ns, reached_ns) for window in self.windows)
        self._look_at(max(self.slot.now + 1, ahead_ns + self.watermark.lateness_ns))

    def forward(self) -> None:
        """All that it ends in its own chain is written: the watermark leaves."""
        self.slot.context.plane.forward(self.slot.task, Marker(self._sent_ns, series=WATERMARKS))

    def _event_time(self) -> int:
        """How far the records emitted have come; 0: there is none."""
        served = self.slot.context.plane.position(self.slot.task).served
        if self.source is None or served == 0:
            return 0
        return self.source.due(served - 1) if self.source.segments else self.slot.now
