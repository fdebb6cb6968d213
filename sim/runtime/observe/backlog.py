"""What a log holds that its source has not emitted yet: records due, from the same segments the plane reads (rule W1)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sim.plane.seam.interface import RateSegment, Source

__all__ = ["due_records", "due_time_ns"]


def due_records(source: Source, now: int) -> int:
    """Records of one subtask due at `now` [ns]; an unlimited source has none waiting: 0."""
    if not source.segments or now < source.segments[0].start_ns:
        return 0
    i = _in_force(source.segments, now)
    segment = source.segments[i]
    due = segment.first + ((now - segment.start_ns + 1) * segment.num - 1) // segment.den_ns + 1
    if i + 1 < len(source.segments):
        due = min(due, source.segments[i + 1].first)
    return due if source.total < 0 else min(due, source.total)


def due_time_ns(source: Source, record: int) -> int:
    """When a record (an ordinal) is due [ns]; 0 of an unlimited source."""
    if not source.segments:
        return 0
    segment = source.segments[max(0, bisect_right(source.segments, record, key=lambda row: row.first) - 1)]
    return segment.start_ns + (record - segment.first) * segment.den_ns // segment.num


def _in_force(segments: Sequence[RateSegment], now: int) -> int:
    """The last segment that has begun."""
    return max(0, bisect_right(segments, now, key=lambda row: row.start_ns) - 1)
