"""Watermarks of sources kept in step: what the coordinator of a group announces, and when a subtask stops reading (FLIP-182, FLINK-37399).

Flink: SourceCoordinator#announceCombinedWatermark, SourceOperator#checkWatermarkAlignment, WatermarkSampler.  A subtask reads one split,
so that pausing it and pausing its splits (FLIP-217) are the same.
"""

from __future__ import annotations

from collections import deque

NO_LIMIT = 1 << 62
"""Above every watermark."""


class Group:
    """The watermarks that the subtasks of one group have reported.  A subtask that has never reported is neither waited for nor limited."""

    def __init__(self) -> None:
        self.reported: dict[int, int] = {}

    def report(self, task: int, watermark_ns: int) -> None:
        """An idle subtask, and one whose data has ended, report NO_LIMIT."""
        self.reported[task] = watermark_ns

    def limit(self, drift_ns: int) -> int:
        """How far watermarks may come."""
        return min(NO_LIMIT, min(self.reported.values(), default=NO_LIMIT) + drift_ns)


class AlignedReading:
    """The decision of one subtask whether to read.

    A limit judges the watermark that was latest `delay` samples ago; 0: the latest one.
    """

    def __init__(self, delay: int) -> None:
        self.limit_ns = NO_LIMIT  # no part of a snapshot: a restored source reads on before the first announcement
        self._samples: deque[int] = deque(maxlen=delay)

    def sample(self, watermark_ns: int) -> None:
        """Take a sample of the watermark, once per interval."""
        self._samples.append(watermark_ns)

    def waits(self, watermark_ns: int) -> bool:
        """Whether the watermark is beyond the limit."""
        if self._samples.maxlen == 0:
            return watermark_ns > self.limit_ns
        return len(self._samples) == self._samples.maxlen and self._samples[0] > self.limit_ns
