"""Watermarks: their generation at sources."""

from __future__ import annotations

from sim.model.job import Source
from sim.model.randomness import draw, stream
from sim.plane.interface import Marker
from sim.protocol.event_time import Idleness, last_end, next_end
from sim.runtime.context import ACTIVE, IDLE, WATERMARKS
from sim.runtime.task.parts import Stage, TaskFeature, TaskPart, TaskParts
from sim.runtime.task.slot import Slot
from sim.runtime.task.windows import EventTimeWindows

# ---- The watermarks of a source: once per interval its mail reads the event time of the records, and sends a watermark that
# ends a window.
#
# Flink:  ProgressiveTimestampsAndWatermarks.  A record's timestamp is when it is due; without a rate it is the time of
# its emission.  A source that may be idle looks every interval, and says so when it is (WatermarksWithIdleness,
# WatermarkToDataOutput).


class WatermarkGenerator(TaskPart):
    """The watermark generator of a source task.  `source`: its options; `windows`: those chained to it."""

    def __init__(self, slot: Slot, source: Source, windows: EventTimeWindows | None) -> None:
        context = slot.context
        self.slot = slot
        self.watermark = source.watermark
        self.chained = windows
        if windows is not None:
            windows.clock = self
        job = context.scenario.job
        # windows wait for what all sources have in common
        self._behind_ns = self.watermark.lateness_ns - job.lateness_ns
        self._ends = {
            (window.step_ns, (window.phase_ns + wait_ns) % window.step_ns)
            for window in job.event_time_windows.values()
            for wait_ns in (0, window.hold_ns)
        }
        self.log = context.log(slot.task)
        self.idle = False
        self._ended = False
        self._watermark_ns: int = 0  # the last one, sent or not
        self._sent_ns = 0
        self._seen = (0, 0)  # records at the last look that found new ones, and its time
        self._idleness: Idleness | None = None
        vertex, subtask = context.names[slot.task]
        first = draw(stream(context.scenario.run.seed, "watermark", vertex, subtask), 0)
        self._phase_ns = 1 + (first * self.watermark.interval_ns >> 32)

    def begin(self) -> None:
        """The task runs."""
        self._seen = (self._served(), 0)
        if self.watermark.idle_timeout_ns is not None:
            self._idleness = Idleness(self.watermark.idle_timeout_ns, self._served())
        self._look_at(self.slot.now)

    def _look_at(self, time_ns: int) -> None:
        """The first look from then on, in steps of the interval; looks that can find nothing are left out."""
        interval_ns = self.watermark.interval_ns
        at_ns = time_ns + (self._phase_ns - time_ns) % interval_ns
        self.slot.context.env.call_in(max(1, at_ns - self.slot.now), lambda: self.slot.thread.post(self._look))

    def _look(self) -> None:
        """On the task thread."""
        if self._ended or self.slot.thread.mails_only:
            return  # its data ends here
        reached_ns = self._event_time() - self._behind_ns
        if self._idleness is None or self._is_active(self._idleness, reached_ns):
            self._advance(reached_ns)
        if self._idleness is not None:
            self._look_at(self.slot.now + 1)
            return
        ahead_ns = min(next_end(*end, reached_ns) for end in self._ends)
        self._look_at(max(self.slot.now + 1, ahead_ns + self._behind_ns))

    def _is_active(self, idleness: Idleness, reached_ns: int) -> bool:
        """An idle source is active with its next watermark, not with its next record."""
        if idleness.check(self._served(), self.slot.now - self._stood_still_ns()):
            if not self.idle:
                self.idle = True
                self._send(IDLE)
            return False
        if self.idle and reached_ns > self._watermark_ns:
            self.idle = False
            self._send(ACTIVE)
        return not self.idle

    def _stood_still_ns(self) -> int:
        """How long the source could not read [ns]."""
        times = self.slot.context.plane.tasks("soft_ns", "hard_ns")[self.slot.task]
        return int(times["soft_ns"]) + int(times["hard_ns"])

    def _advance(self, reached_ns: int) -> None:
        """A watermark that ends a window leaves, behind what it ends in its own chain."""
        self._watermark_ns = max(self._watermark_ns, reached_ns)
        end_ns = max(last_end(*end, reached_ns) for end in self._ends)
        if end_ns > self._sent_ns:
            self._sent_ns = end_ns
            if self.chained is None or not self.chained.fire(end_ns):
                self.forward()

    def end_input(self) -> None:
        """No watermark follows (SourceOperator#finish)."""
        self._ended = True

    def outputs_written(self, *, at_end: bool) -> None:
        """All that the watermark ends in its own chain is written.  None is behind what left when the data had ended."""
        if not at_end:
            self.forward()

    def forward(self) -> None:
        """The watermark leaves."""
        self._send(self._sent_ns)

    def _send(self, number: int) -> None:
        self.slot.checks.watermark_sent(self.slot.task, number)
        self.slot.context.plane.forward(self.slot.task, Marker(number, series=WATERMARKS))

    def _event_time(self) -> int:
        """How far the records emitted have come; 0: there is none.  Without a rate they come as far as the look that finds them."""
        served = self._served()
        if self.log is None or served == 0:
            return 0
        if self.log.segments:
            return self.log.due(served - 1)
        if served != self._seen[0]:
            self._seen = (served, self.slot.now)
        return self._seen[1]

    def _served(self) -> int:
        return self.slot.context.plane.position(self.slot.task).served


def attach(slot: Slot, operator: TaskParts) -> WatermarkGenerator | None:
    source = slot.vertex.source
    if source is None or not slot.context.scenario.job.event_time_windows:
        return None
    return WatermarkGenerator(slot, source, operator.of(EventTimeWindows))


FEATURE = TaskFeature(attach, Stage.WATERMARKS)
