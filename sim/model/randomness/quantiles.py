"""Distributions as integer quantile tables: entry i is the mean of the i-th of n equally likely slices.

Slice means (not midpoints) keep the mean of the distribution, tail included.  The tables are what `draw` indexes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, pairwise

import numpy as np

from sim.model.job import Distribution
from sim.model.randomness.distributions import DISTRIBUTIONS

SLICES = 4096


@lru_cache(maxsize=256)
def quantile_table(law: Distribution, slices: int = SLICES) -> tuple[int, ...]:
    """The law as `slices` integers in ascending order (one entry if it is constant); unit of the law's mean."""
    if law.kind == "constant" or law.mean == 0:
        return (law.mean,)
    kind = DISTRIBUTIONS[law.kind]
    if law.terms == 1:
        partial_mean = kind.partial_mean(law)
    else:
        partial_mean = kind.of_sum(law) if kind.of_sum else folded(kind.partial_mean(replace(law, terms=1)), law.terms)
    edges = [partial_mean(i / slices) for i in range(slices)] + [1.0]
    return tuple(round(law.mean * slices * (b - a)) for a, b in pairwise(edges))


def size_table(law: Distribution) -> tuple[int, ...]:
    """Bytes of a record: every record has at least one, since an empty record cannot be seen to pass."""
    return tuple(max(1, size) for size in quantile_table(law))


def share_table(shares: Sequence[Fraction], slices: int = SLICES) -> tuple[int, ...]:
    """Index i fills its share of the table (rounded on the cumulative sum, so the shares add up)."""
    total = sum(shares)
    edges = [0] + [round(slices * part / total) for part in accumulate(shares)]
    return tuple(i for i in range(len(shares)) for _ in range(edges[i + 1] - edges[i]))


_SLICES = 4096
"""Equally likely values that stand for the law of one term: as many as a table of it has."""
_POINTS = 1 << 17
"""The grid of the sum is so fine.  A step is less than a thousandth of the mean, and rounding to points keeps the mean."""


def folded(partial_mean: Callable[[float], float], terms: int) -> Callable[[float], float]:
    """u -> E[S; S below its u-quantile] / mean, of the sum S of so many; `partial_mean`: the same of one of them."""
    edges = np.array([partial_mean(i / _SLICES) for i in range(_SLICES)] + [1.0])
    values = np.diff(edges) * _SLICES / terms  # of one term; the mean of the sum is 1
    step = float(values.max()) * terms / (_POINTS - terms - 1)
    places = values / step
    below = places.astype(np.int64)
    above = places - below  # the share of a value that goes to the point above it: the mean stays
    weights = np.bincount(below, 1 - above, _POINTS) + np.bincount(below + 1, above, _POINTS)
    chances = np.maximum(np.fft.irfft(np.fft.rfft(weights / _SLICES) ** terms, _POINTS), 0.0)
    sums = np.arange(_POINTS) * step
    mass, part = np.cumsum(chances / chances.sum()), np.cumsum(chances * sums)
    mass, part = mass / mass[-1], part / part[-1]

    def partial(u: float) -> float:
        at = int(np.searchsorted(mass, u, side="right"))
        if at == 0:
            return float(u * part[0] / mass[0]) if mass[0] else 0.0
        if at >= _POINTS:
            return 1.0
        return float(part[at - 1] + (u - mass[at - 1]) * sums[at])

    return partial
