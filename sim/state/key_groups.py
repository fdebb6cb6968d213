"""Which key groups belong to which subtask, before and after rescaling (KeyGroupRangeAssignment)."""

from __future__ import annotations

from fractions import Fraction

__all__ = ["key_groups", "overlap"]


def key_groups(index: int, parallelism: int, groups: int) -> range:
    """Those of one subtask."""
    return range((index * groups + parallelism - 1) // parallelism, ((index + 1) * groups - 1) // parallelism + 1)


def overlap(index: int, parallelism: int, before: int, groups: int) -> dict[int, Fraction]:
    """Subtask of the `before` ones -> share of its key groups that go to this subtask; those without any are left out."""
    own = key_groups(index, parallelism, groups)
    shares = {}
    for old in range(before):
        theirs = key_groups(old, before, groups)
        common = min(own.stop, theirs.stop) - max(own.start, theirs.start)
        if common > 0:
            shares[old] = Fraction(common, len(theirs))
    return shares
