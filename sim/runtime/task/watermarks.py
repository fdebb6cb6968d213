"""Generates the watermarks of source tasks."""

from __future__ import annotations

from sim.model.job import Source
from sim.model.randomness import draw, stream
from sim.plane.interface import Marker
from sim.protocol.event_time import Idleness, last_end, next_end
from sim.runtime.context import ACTIVE, IDLE, WATERMARKS
from sim.runtime.task.parts import Stage, TaskFeature, TaskPart, TaskParts
from sim.runtime.task.slot import Slot
from sim.runtime.task.windows import EventTimeWindows

# ---- The watermarks of a source: a periodic mail reads the event time of the records, and sends a watermark if it ends a window.
#
# Flink: ProgressiveTimestampsAndWatermarks.  The timestamp of a record is the time at which it is due; if the source has
# no rate, it is the time of emission.  Checks that cannot end a window are skipped, unless the source may become idle:
# then it checks every interval, and sends its status (WatermarksWithIdleness, WatermarkToDataOutput).


class WatermarkGenerator(TaskPart):
    """The watermark generator of a source task.  `windows` are the event-time windows chained to the source, or None."""

    def __init__(self, slot: Slot, source: Source, windows: EventTimeWindows | None) -> None:
        context = slot.context
        self.slot = slot
        self.watermark = source.watermark
        self.chained = windows
        if windows is not None:
            windows.watermark_status = self
        job = context.scenario.job
        # markers do not include the lateness that all sources have in common: windows wait for it (`EventTimeWindow`)
        self._behind_ns = self.watermark.lateness_ns - job.lateness_ns
        self._ends = {  # (interval, phase) of the window ends of the job
            (window.step_ns, (window.phase_ns + wait_ns) % window.step_ns)
            for window in job.event_time_windows.values()
            for wait_ns in (0, window.hold_ns)
        }
        self.log = context.log(slot.task)
        self.idle = False
        self._ended = False
        self._watermark_ns: int = 0  # the latest watermark, sent or not
        self._sent_ns = 0  # the latest watermark sent
        self._seen = (0, 0)  # (records, time) of the last check that found new records
        self._idleness: Idleness | None = None
        vertex, subtask = context.names[slot.task]
        first = draw(stream(context.scenario.run.seed, "watermark", vertex, subtask), 0)
        self._phase_ns = 1 + (first * self.watermark.interval_ns >> 32)

    def begin(self) -> None:
        """Handle the start of the task."""
        self._seen = (self._served(), 0)
        if self.watermark.idle_timeout_ns is not None:
            self._idleness = Idleness(self.watermark.idle_timeout_ns, self._served())
        self._look_at(self.slot.now)

    def _look_at(self, time_ns: int) -> None:
        """Schedule the next check: the first multiple of the watermark interval, shifted by a phase, at or after `time_ns`."""
        interval_ns = self.watermark.interval_ns
        at_ns = time_ns + (self._phase_ns - time_ns) % interval_ns
        self.slot.context.env.call_in(max(1, at_ns - self.slot.now), lambda: self.slot.thread.post(self._look))

    def _look(self) -> None:
        """Check, on the task thread: send a watermark or a status if due, and schedule the next check."""
        if self._ended or self.slot.thread.mails_only:
            return  # the data of the source has ended
        reached_ns = self._event_time() - self._behind_ns
        if self._idleness is None or self._is_active(self._idleness, reached_ns):
            self._advance(reached_ns)
        if self._idleness is not None:
            self._look_at(self.slot.now + 1)
            return
        ahead_ns = min(next_end(*end, reached_ns) for end in self._ends)
        self._look_at(max(self.slot.now + 1, ahead_ns + self._behind_ns))

    def _is_active(self, idleness: Idleness, reached_ns: int) -> bool:
        """Return whether the source is active, and send its status if that has changed.

        An idle source becomes active with its next watermark, not with its next record.
        """
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
        """Return how long the source was back-pressured so far [ns]."""
        times = self.slot.context.plane.tasks("soft_ns", "hard_ns")[self.slot.task]
        return int(times["soft_ns"]) + int(times["hard_ns"])

    def _advance(self, reached_ns: int) -> None:
        """Advance the watermark, and send it if it ends a window, after the outputs of the windows chained to the source."""
        self._watermark_ns = max(self._watermark_ns, reached_ns)
        end_ns = max(last_end(*end, reached_ns) for end in self._ends)
        if end_ns > self._sent_ns:
            self._sent_ns = end_ns
            if self.chained is None or not self.chained.fire(end_ns):
                self.forward()

    def end_input(self) -> None:
        """Stop the generator: the source sends no further watermark (SourceOperator#finish)."""
        self._ended = True

    def outputs_written(self, *, at_end: bool) -> None:
        """Send the watermark after the outputs of chained windows, unless the data of the source had ended."""
        if not at_end:
            self.forward()

    def forward(self) -> None:
        """Send the latest watermark that ends a window."""
        self._send(self._sent_ns)

    def _send(self, number: int) -> None:
        """Send a watermark [ns], or the status IDLE or ACTIVE, to all downstream tasks."""
        self.slot.checks.watermark_sent(self.slot.task, number)
        self.slot.context.plane.forward(self.slot.task, Marker(number, series=WATERMARKS))

    def _event_time(self) -> int:
        """Return the event time of the latest record [ns], or 0 if there is no record.

        If the source has no rate, it is the time of the check that finds the record.
        """
        served = self._served()
        if self.log is None or served == 0:
            return 0
        if self.log.segments:
            return self.log.due(served - 1)
        if served != self._seen[0]:
            self._seen = (served, self.slot.now)
        return self._seen[1]

    def _served(self) -> int:
        """Return the records emitted since the job started."""
        return self.slot.context.plane.position(self.slot.task).served


def attach(slot: Slot, operator: TaskParts) -> WatermarkGenerator | None:
    """Return the generator of a source task, or None if it is no source or no window of the job is in event time."""
    source = slot.vertex.source
    if source is None or not slot.context.scenario.job.event_time_windows:
        return None
    return WatermarkGenerator(slot, source, operator.of(EventTimeWindows))


FEATURE = TaskFeature(attach, Stage.WATERMARKS)
