"""How many key groups there are, and which belong to which subtask, before and after rescaling (KeyGroupRangeAssignment)."""

from __future__ import annotations

from fractions import Fraction

__all__ = ["default_max_parallelism", "key_groups", "overlap", "owners"]


def default_max_parallelism(parallelism: int) -> int:
    """Key groups when none are given (computeDefaultMaxParallelism)."""
    return min(max(1 << (parallelism + parallelism // 2 - 1).bit_length(), 128), 32768)


def key_groups(index: int, parallelism: int, groups: int) -> range:
    """Those of one subtask."""
    return range((index * groups + parallelism - 1) // parallelism, ((index + 1) * groups - 1) // parallelism + 1)


def owners(parallelism: int, groups: int) -> tuple[int, ...]:
    """The subtask of each key group (computeOperatorIndexForKeyGroup): whose keys are in it, and so whose records."""
    return tuple(group * parallelism // groups for group in range(groups))


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
