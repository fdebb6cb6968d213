"""Keys that expire: a key lives for its time to live after its last write, through snapshots, restores and rescales.  Law 87.

Ages are cohorts: the keys that were last written between two times, evenly spread, and their bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from sim.checkers.violation import number_of, seconds

AGED = "a key expires its time to live after its last write: neither sooner nor later, restored or not"

Cohort = tuple[int, int, int]
"""First and last time of the last writes [ns], and bytes."""

_STEPS = 300
"""Times at which a bit of a cohort is rounded off, between two looks."""


def younger(cohorts: Sequence[Cohort], horizon_ns: int) -> int:
    """Bytes last written after that time."""
    total = 0
    for begin_ns, end_ns, size_bytes in cohorts:
        if horizon_ns <= begin_ns:
            total += size_bytes
        elif horizon_ns < end_ns:
            total += size_bytes * (end_ns - horizon_ns) // (end_ns - begin_ns)
    return total


def _expired(cohort: Cohort, horizon_ns: int) -> int:
    """Bytes last written up to that time, whole ones."""
    begin_ns, end_ns, size_bytes = cohort
    if horizon_ns <= begin_ns:
        return 0
    return size_bytes if horizon_ns >= end_ns else size_bytes * (horizon_ns - begin_ns) // (end_ns - begin_ns)


def _bytes_of_a_ns(cohort: Cohort) -> int:
    """Whole bytes expire, and a nanosecond is rounded off with them: so many bytes, one at least."""
    begin_ns, end_ns, size_bytes = cohort
    return max(1, -(-size_bytes // max(1, end_ns - begin_ns)))


def dealt(parts: Sequence[tuple[Sequence[Cohort], Fraction]]) -> tuple[Cohort, ...]:
    """The ages that a subtask gets with shares of several others."""
    return tuple(sorted((begin, end, int(size_bytes * share)) for ages, share in parts for begin, end, size_bytes in ages))


def misaged(
    before: Sequence[Cohort], before_ns: int, after: Sequence[Cohort], now_ns: int, ttl_ns: int, added_bytes: int, rewritten_bytes: int
) -> str | None:
    """What is wrong with the ages now, compared with those of an earlier time; None: nothing.

    `added_bytes`, `rewritten_bytes`: at most so much was written since.
    """
    horizon_ns = now_ns - ttl_ns
    oldest_ns = min((cohort[0] for cohort in after if _expired(cohort, horizon_ns) > _bytes_of_a_ns(cohort)), default=now_ns)
    if oldest_ns < horizon_ns:
        return f"keys are there that were last written {seconds(now_ns - oldest_ns)} ago, and live for {seconds(ttl_ns)}"
    ageing = [cohort for cohort in before if cohort[0] < horizon_ns and before_ns - ttl_ns < cohort[1]]
    slack = (_STEPS + len(before) + len(after)) * max(map(_bytes_of_a_ns, ageing), default=1)
    survived, live = younger(before, horizon_ns), sum(size_bytes for _, _, size_bytes in after)
    since = (
        f"at {seconds(before_ns)} there were {number_of(sum(size for _, _, size in before), 'byte')}, of which {survived} have not expired"
    )
    if live < survived - slack:
        return f"keys have expired too early: {number_of(live, 'byte')} are left; {since}"
    written = added_bytes + 2 * rewritten_bytes + slack  # an entry that is rewritten may be larger than the others: where there are few
    young = sum(size_bytes for begin, _, size_bytes in after if begin >= before_ns)
    if young > written:
        return f"keys are young again: {number_of(young, 'byte')} count as written since {seconds(before_ns)}, at most {written} were"
    newest = before[-1][2] if before else 0  # what comes soon after it is taken together with it
    if live > survived + newest + written:
        return f"keys that must have expired are there: {number_of(live, 'byte')}, at most {written} written since; {since}"
    return None
