"""Distributions as integer quantile tables: entry i is the mean of the i-th of n equally likely slices.

Slice means (not midpoints) keep the mean of the distribution, tail included.  The tables are what `draw` indexes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, pairwise
from statistics import NormalDist

import numpy as np

from sim.model.job import Distribution

SLICES = 4096


@lru_cache(maxsize=256)
def quantile_table(law: Distribution, slices: int = SLICES) -> tuple[int, ...]:
    """The law as `slices` integers in ascending order (one entry if it is constant); unit of the law's mean."""
    if law.kind == "constant" or law.mean == 0:
        return (law.mean,)
    partial_mean = _PARTIAL_MEANS[law.kind](law) if law.terms == 1 else _of_sum(law)  # u -> E[X; X below its u-quantile] / mean
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


def _of_sum(law: Distribution) -> Callable[[float], float]:
    """Sums of exponential and Erlang laws are Erlang laws; others are folded."""
    term = replace(law, terms=1)
    if law.kind in ("exponential", "erlang"):
        cv = 1.0 if law.kind == "exponential" else law.cv
        return _erlang(replace(term, cv=cv / math.sqrt(law.terms)))
    if law.kind == "shifted-exponential":
        varying = _erlang(replace(term, cv=1 / math.sqrt(law.terms)))
        return lambda u: (1 - law.cv) * u + law.cv * varying(u)
    return folded(_PARTIAL_MEANS[law.kind](term), law.terms)


def _exponential(_: Distribution) -> Callable[[float], float]:
    return lambda u: u + (1 - u) * math.log1p(-u)


def _shifted_exponential(law: Distribution) -> Callable[[float], float]:
    return lambda u: u + law.cv * (1 - u) * math.log1p(-u)


def _uniform(_: Distribution) -> Callable[[float], float]:
    return lambda u: u * u  # on [0, 2 mean]


def _lognormal(law: Distribution) -> Callable[[float], float]:
    sigma = math.sqrt(math.log1p(law.cv**2))
    normal = NormalDist()
    return lambda u: 0.0 if u == 0 else normal.cdf(normal.inv_cdf(u) - sigma)


def _erlang(law: Distribution) -> Callable[[float], float]:
    """k stages with k = round(1 / cv^2), counted as Poisson arrivals: E[X; X < q] = mean * F(k + 1, q) = mean * (F(k, q) - P(k; q))."""
    if law.cv < _SMALLEST_ERLANG_CV:
        return _lognormal(law)
    # scipy.special.gammaincinv would be shorter, but its last digits may change between versions.
    # Entries of the tables would move by one, and with them every result that is named by its content.
    k = max(1, round(1 / law.cv**2))
    guess = NormalDist(k, math.sqrt(k))

    def partial(u: float) -> float:
        if u == 0:
            return 0.0
        low, high, x = 0.0, math.inf, max(guess.inv_cdf(u), k * u)
        for _ in range(100):  # Newton's steps, kept between the bounds found so far
            below = _poisson_tail(k, x)
            low, high = (x, high) if below < u else (low, x)
            density = _poisson(k - 1, x)
            step = x - (below - u) / density if density else math.inf
            x, before = (step if low < step < high else (low + min(high, 4 * k + 2 * low)) / 2), x
            if abs(x - before) <= 1e-14 * x:
                break
        return _poisson_tail(k, x) - _poisson(k, x)

    return partial


_SMALLEST_ERLANG_CV = 0.02
"""With thousands of stages the law is the lognormal one to a fraction of a per cent, and its sums take seconds."""


def _poisson(i: int, x: float) -> float:
    """Probability of i arrivals where x are expected."""
    return math.exp(i * math.log(x) - x - math.lgamma(i + 1))


def _poisson_tail(k: int, x: float) -> float:
    """Probability of k arrivals or more: the smaller side is summed, from its largest term on (exp(-x) alone would underflow)."""
    total = 0.0
    if x < k:
        i, term = k, _poisson(k, x)
        while term > total * 1e-17:
            i, total, term = i + 1, total + term, term * x / (i + 1)
        return total
    i, term = k - 1, _poisson(k - 1, x)
    while term > total * 1e-17:
        i, total, term = i - 1, total + term, term * i / x
    return 1 - total


_PARTIAL_MEANS: dict[str, Callable[[Distribution], Callable[[float], float]]] = {
    "exponential": _exponential,
    "shifted-exponential": _shifted_exponential,
    "uniform": _uniform,
    "lognormal": _lognormal,
    "erlang": _erlang,
}


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
