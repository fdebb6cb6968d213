"""Records of sliding windows stay in state until their last window has ended, also behind a restore.  Law 123.

Flink: SliceAssigners (SQL keeps a record once), WindowOperator (a copy for each window).
"""

from __future__ import annotations

from collections.abc import Sequence

from sim.checkers.violation import number_of

KEPT_FOR_ALL = "a record stays in state until the last window it belongs to has ended"


def kept(open_records: int, ends: Sequence[int], windows: int, *, copies: bool) -> int:
    """Records that must be in state, by copy.

    `open_records`: those that have left at no end yet; `ends`: how many had left at each end, oldest first;
    `windows`: how many a record belongs to.
    """
    total = open_records * (windows if copies else 1)
    for ended in range(1, min(windows - 1, len(ends)) + 1):
        begin = ends[-ended - 1] if ended < len(ends) else 0
        total += (ends[-ended] - begin) * (windows - ended if copies else 1)
    return total


def dealt(ends: Sequence[Sequence[int]], left: Sequence[int], tasks: int) -> list[tuple[int, ...]]:
    """The ends of each of so many tasks of a vertex that is rescaled: all have equal parts.

    `ends`: those of each former task; `left`: records that had left it, which stand for ends that it has not heard of.
    """
    longest = max(map(len, ends), default=0)
    at_ends = [(*[own[0] if own else gone] * (longest - len(own)), *own) for own, gone in zip(ends, left, strict=True)]
    totals = [sum(column) for column in zip(*at_ends, strict=True)]
    return [tuple(total // tasks + (task < total % tasks) for total in totals) for task in range(tasks)]


def too_few(held_bytes: int, records: int, record_bytes: int) -> str | None:
    """What is wrong with so many bytes for so many records, by copy."""
    if held_bytes >= records * record_bytes:
        return None
    return f"it has {number_of(held_bytes, 'byte')} for {number_of(records, 'record')} whose last window has not ended, {record_bytes} each"
