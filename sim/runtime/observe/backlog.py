"""What a log holds that its source has not emitted yet: records due, from the same segments the plane reads (rule W1)."""

from __future__ import annotations

from sim.plane.seam.interface import SourceSpec
from sim.plane.seam.spec import START


def due_records(source: SourceSpec, now: int) -> int:
    """Records of one subtask due at `now` [ns]; an unlimited source has none waiting: 0."""
    i = source.segments.last_until(START, now)
    if i < 0:
        return 0
    segment = source.segments[i]
    due = segment.first + ((now - segment.start_ns + 1) * segment.num - 1) // segment.den_ns + 1
    if i + 1 < len(source.segments):
        due = min(due, source.segments[i + 1].first)
    return due if source.total < 0 else min(due, source.total)
