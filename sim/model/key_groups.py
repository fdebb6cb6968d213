"""How many key groups there are, and which belong to which subtask, before and after rescaling (KeyGroupRangeAssignment)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

Excess = Literal["one-key", "key-groups"]
"""What a subtask reads beyond the least of them: one key of its own, or spread evenly over its key groups."""


def default_max_parallelism(parallelism: int) -> int:
    """Key groups when none are given (computeDefaultMaxParallelism)."""
    return min(max(1 << (parallelism + parallelism // 2 - 1).bit_length(), 128), 32768)


def key_groups(index: int, parallelism: int, groups: int) -> range:
    """The key groups of one subtask."""
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


def dealt(shares: Sequence[Fraction], parallelism: int, groups: int, excess: Excess = "one-key") -> tuple[Fraction, ...]:
    """Shares of the records by subtask, counted at a parallelism of `len(shares)` -> those at another one.  They add up to 1.

    Weights live on key groups.  All groups have the same part of what every subtask reads at least.  The rest of a subtask's records is
    one hot key in the middle group of its own, or spread over its groups.
    """
    total, counted = sum(shares), len(shares)
    if counted == parallelism:
        return tuple(share / total for share in shares)
    ranges = [key_groups(i, counted, groups) for i in range(counted)]
    per_group = [share / total / len(own) for share, own in zip(shares, ranges, strict=True)]
    common = min(per_group) if excess == "one-key" else None
    by_reader = [Fraction(0)] * parallelism
    for i, own in enumerate(ranges):
        even = per_group[i] if common is None else common
        for reader in range(own[0] * parallelism // groups, own[-1] * parallelism // groups + 1):
            theirs = key_groups(reader, parallelism, groups)
            by_reader[reader] += even * (min(own.stop, theirs.stop) - max(own.start, theirs.start))
        by_reader[own[len(own) // 2] * parallelism // groups] += (per_group[i] - even) * len(own)
    return tuple(by_reader)
