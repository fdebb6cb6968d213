"""A source that keeps in step with others: it reports its watermark, and stops reading while it is too far ahead.

Flink: SourceOperator#emitLatestWatermark, #checkWatermarkAlignment.  A source that waits is idle to its thread: mails and barriers pass.
"""

from __future__ import annotations

from collections.abc import Callable

from sim.model.job import Alignment
from sim.protocol.alignment import NO_LIMIT, AlignedReading
from sim.runtime.task.slot import Slot


class AlignedSource:
    """A source subtask that is aligned with others.

    `watermark`: the latest one, 0 if there is none; `idle`: whether the source is marked idle.
    """

    def __init__(self, slot: Slot, alignment: Alignment, watermark: Callable[[], int], idle: Callable[[], bool]) -> None:
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

    def limited(self, limit_ns: int) -> None:
        """A limit is announced.  On the task thread."""
        if not self.slot.thread.mails_only:
            self.slot.checks.limited(self.slot.task, limit_ns)
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
