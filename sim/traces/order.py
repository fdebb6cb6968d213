"""Rows whose times go back, chosen so that a single wrong row does not cost those after it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

BACK, AHEAD = "time goes back", "time is ahead of the rows after it"


def out_of_order(times: Sequence[float], after: float, *, strictly: bool) -> dict[int, str]:
    """Position -> reason for rows to leave out, so that the most rows possible increase (strictly, or not) from `after` on.

    The longest increasing subsequence, by patience sorting: O(n log n).
    """
    place = bisect_left if strictly else bisect_right
    ends, positions, before = list[float](), list[int](), list[int]()  # of the best subsequence of each length; predecessor of each row
    for i, time in enumerate(times):
        if time < after or (strictly and time == after):
            before.append(-2)  # part of no subsequence
            continue
        at = place(ends, time)
        before.append(positions[at - 1] if at else -1)
        if at == len(ends):
            ends.append(time)
            positions.append(i)
        elif time < ends[at]:  # of equal times the first
            ends[at], positions[at] = time, i
    kept = set[int]()
    i = positions[-1] if positions else -1
    while i >= 0:
        kept.add(i)
        i = before[i]
    reasons, latest = dict[int, str](), after
    for i, time in enumerate(times):
        if i in kept:
            latest = time
        else:
            reasons[i] = BACK if time < latest or (strictly and time == latest) else AHEAD
    return reasons
