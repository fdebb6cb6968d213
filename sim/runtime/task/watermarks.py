"""Watermarks: their generation at sources, and alignment."""

from __future__ import annotations

from collections.abc import Callable

from sim.model.job import Alignment, Source
from sim.model.randomness import draw, stream
from sim.plane.interface import Marker
from sim.protocol.event_time import NO_LIMIT, AlignedReading, Idleness, last_end, next_end
from sim.runtime.context import ACTIVE, IDLE, WATERMARKS
from sim.runtime.task.parts import PartsPort, Stage, TaskFeature, TaskPart
from sim.runtime.task.slot import Slot
from sim.runtime.task.windows import EventTimeWindows

# ---- A source that keeps in step with others: it reports its watermark, and stops reading while it is too far ahead.
#
# Flink:  SourceOperator#emitLatestWatermark, #checkWatermarkAlignment.  A source that waits is idle to its thread:
# mails and barriers pass.


class AlignedSource:
    """A source subtask that is aligned with others.

    `watermark`: the latest one, 0 if there is none; `idle`: whether the source is marked idle.
    """

    def __init__(
        self, slot: Slot, alignment: Alignment, watermark: Callable[[], int], idle: Callable[[], bool]
    ) -> None:
        self.slot = slot
        self.alignment = alignment
        self.watermark = watermark
        self.idle = idle
        self.reading = AlignedReading(alignment.buffer)
        self._ended = False
        self._since_ns: int | None = None  # it waits
        self._waited_ns = 0

    @property
    def waited_ns(self) -> int:
        """How long it has waited, up to now: its clock of idleness stands still meanwhile."""
        return self._waited_ns + (0 if self._since_ns is None else self.slot.now - self._since_ns)

    def begin(self) -> None:
        """The first report comes after an interval."""
        self.slot.context.env.call_in(self.alignment.every_ns, lambda: self.slot.thread.post(self._report))

    def on_watermark_limit(self, limit_ns: int) -> None:
        """A limit is announced.  On the task thread."""
        if not self.slot.thread.mails_only:
            self.slot.checks.on_watermark_limit(self.slot.task, limit_ns)
            self.reading.limit_ns = limit_ns
            self.check()

    def end(self) -> None:
        """The data of the source has ended: no other source waits for it."""
        self._ended = True
        self.slot.job.report_watermark(self.slot.task, NO_LIMIT)

    def _report(self) -> None:
        if self._ended or self.slot.thread.mails_only:
            return  # its data ends here
        watermark_ns = self.watermark()
        if watermark_ns > 0:
            self.slot.checks.watermark_sampled(self.slot.task, watermark_ns)
            self.reading.sample(watermark_ns)
            self.slot.job.report_watermark(self.slot.task, NO_LIMIT if self.idle() else watermark_ns)
            self.check()
        self.begin()

    def check(self) -> None:
        """Whether it reads: at each watermark of its own, sample and limit."""
        waits = self.reading.waits(self.watermark())
        if waits == (self._since_ns is not None):
            return
        self._waited_ns = self.waited_ns
        self._since_ns = self.slot.now if waits else None
        self.slot.context.plane.pause(self.slot.task, on=waits)


# The watermarks of a source: once per interval its mail reads the event time of the records, and sends a watermark that
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
        self.windows = context.scenario.job.event_time_windows
        self.log = context.spec.vertices[context.layout.vertex[slot.task]].log(context.layout.subtask[slot.task])
        self.idle = False
        self._ended = False
        self._watermark_ns: int = 0  # the last one, sent or not
        self._sent_ns = 0
        self._seen = (0, 0)  # records at the last look that found new ones, and its time
        self.aligned: AlignedSource | None = None
        if self.watermark.alignment is not None:
            self.aligned = AlignedSource(slot, self.watermark.alignment, lambda: self._watermark_ns, lambda: self.idle)
        self._idleness: Idleness | None = None
        vertex, subtask = context.names[slot.task]
        first = draw(stream(context.scenario.run.seed, "watermark", vertex, subtask), 0)
        self._phase_ns = 1 + (first * self.watermark.interval_ns >> 32)

    def begin(self) -> None:
        """The task runs."""
        self._seen = (self._served(), 0)
        if self.watermark.idle_timeout_ns is not None:
            self._idleness = Idleness(self.watermark.idle_timeout_ns, self._served())
        if self.aligned is not None:
            self.aligned.begin()
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
        reached_ns = self._event_time() - self.watermark.lateness_ns
        if self._idleness is None or self._is_active(self._idleness, reached_ns):
            self._advance(reached_ns)
        if self._idleness is not None or self.aligned is not None:
            self._look_at(self.slot.now + 1)
            return
        ahead_ns = min(next_end(window.step_ns, window.phase_ns, reached_ns) for window in self.windows)
        self._look_at(max(self.slot.now + 1, ahead_ns + self.watermark.lateness_ns))

    def _is_active(self, idleness: Idleness, reached_ns: int) -> bool:
        """An idle source is active with its next watermark, not with its next record."""
        if idleness.look(self._served(), self.slot.now - self._stood_still_ns()):
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
        return int(times["soft_ns"]) + int(times["hard_ns"]) + (0 if self.aligned is None else self.aligned.waited_ns)

    def _advance(self, reached_ns: int) -> None:
        """A watermark that ends a window leaves, behind what it ends in its own chain."""
        self._watermark_ns = max(self._watermark_ns, reached_ns)
        if self.aligned is not None:
            self.aligned.check()
        end_ns = max((last_end(window.step_ns, window.phase_ns, reached_ns) for window in self.windows), default=0)
        if end_ns > self._sent_ns:
            self._sent_ns = end_ns
            if self.chained is None or not self.chained.fire(end_ns):
                self.forward()

    def on_watermark_limit(self, watermark_ns: int) -> None:
        """How far the watermark of this source may come."""
        if self.aligned is not None:
            self.aligned.on_watermark_limit(watermark_ns)

    def end_input(self) -> None:
        """No watermark follows (SourceOperator#finish), and no other source waits for this one."""
        self._ended = True
        if self.aligned is not None:
            self.aligned.end()

    def outputs_written(self, *, at_end: bool) -> None:
        """All that the watermark ends in its own chain is written.  None is behind what left when the data had ended."""
        if not at_end:
            self.forward()

    def forward(self) -> None:
        """The watermark leaves."""
        self._send(self._sent_ns)

    def _send(self, number: int) -> None:
        if self.windows:
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


def attach(slot: Slot, operator: PartsPort) -> WatermarkGenerator | None:
    source = slot.vertex.source
    if source is None or not (slot.context.scenario.job.event_time_windows or source.watermark.alignment is not None):
        return None
    return WatermarkGenerator(slot, source, operator.of(EventTimeWindows))


FEATURE = TaskFeature(attach, Stage.WATERMARKS)
