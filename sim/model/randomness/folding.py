"""The law of a sum of independent values of one law, on a fine grid."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

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
