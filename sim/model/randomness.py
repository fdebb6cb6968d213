"""Randomness as a function of a seed: streams, distributions, quantile tables, draws from residuals."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, pairwise
from statistics import NormalDist
from typing import Literal, NamedTuple

import numpy as np

from sim.model.catalogs import Catalog
from sim.model.frozen import frozen
from sim.model.job import Distribution

# ---- Randomness as a function: `draw(stream, k)` is the k-th number of a stream, for any caller and in any order.
#
# There is no generator state, so all strategies and engines have the same workload, and a restored task repeats its draws.
# Every product stays below 2**63, so that compiled (wrapping) and interpreted (unbounded) integers agree.

MASK32 = 0xFFFFFFFF


class Stream(NamedTuple):
    """The key of a stream: draw k uses the index `k * stride + offset` (mod 2**32)."""

    stride: int  # odd, below 2**31
    offset: int  # below 2**32


def stream(seed: int, *names: str | int) -> Stream:
    """Return the stream of a component, e.g. ``stream(seed, "service", "map", 3)``.  It does not depend on other components."""
    key = hashlib.blake2b(repr((int(seed), *names)).encode(), digest_size=8).digest()
    return Stream(int.from_bytes(key[:4], "little") & 0x7FFFFFFF | 1, int.from_bytes(key[4:], "little"))


def mix32(x: int) -> int:
    """Hash a 32-bit integer by a bijection (two multiply-xorshift rounds)."""
    x = ((x >> 16) ^ x) * 0x45D9F3B & MASK32
    x = ((x >> 16) ^ x) * 0x45D9F3B & MASK32
    return (x >> 16) ^ x


def draw(key: Stream, k: int) -> int:
    """Return the k-th uniform 32-bit integer of a stream (k >= 0; repeats after 2**32)."""
    return mix32(((k & MASK32) * key.stride + key.offset) & MASK32)


def draws(key: Stream, count: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the first `count` numbers of a stream."""
    x = (np.arange(count, dtype=np.int64) * key.stride + key.offset) & MASK32
    for _ in range(2):
        x = ((x >> 16) ^ x) * 0x45D9F3B & MASK32
    return (x >> 16) ^ x


def chance(share: Fraction, key: Stream, k: int) -> bool:
    """Return whether the k-th event of this probability happens."""
    return draw(key, k) * share.denominator < share.numerator << 32


# ---- Slowdown of threads by contention for cores.
#
# All runnable threads get the same share of the cores, at most one core each (processor sharing, as in an operating
# system).  The number N of runnable threads is random: each thread is busy for its share of the time.  The cores do the
# work of min(N, cores) threads, so all take E[N] / E[min(N, cores)] times as long as on idle cores.


def slowdown(busy: Sequence[float], cores: int) -> float:
    """Return the factor by which work takes longer than on idle cores; `busy` has the runnable share of each thread."""
    shares = [min(max(share, 0.0), 1.0) for share in busy]
    load = sum(shares)
    if len(shares) <= cores or load <= 0:
        return 1.0
    chances = np.zeros(len(shares) + 1)  # of 0, 1, 2, ... threads at once
    chances[0] = 1.0
    for share in shares:
        chances[1:] = chances[1:] * (1 - share) + chances[:-1] * share
        chances[0] *= 1 - share
    done = float(chances @ np.minimum(np.arange(len(chances)), cores))
    return load / done


# ---- Distributions of service times, sizes and latencies: one record each.
#
# How a scenario writes them, its JSON Schema and the tables that are drawn from read the record.

PartialMean = Callable[[float], float]
"""u -> E[X; X below its u-quantile] / mean."""


@frozen
class DistributionKind:
    """A kind of distribution with a mean."""

    name: str  # as a scenario writes it
    sentence: str
    partial_mean: Callable[[Distribution], PartialMean]
    max_cv: int = 0  # maximum of the key `cv`; 0: the kind has no such key
    of_sizes: bool = True  # sizes may have it, too


def _exponential(_: Distribution) -> PartialMean:
    return lambda u: u + (1 - u) * math.log1p(-u)


def _shifted_exponential(distribution: Distribution) -> PartialMean:
    return lambda u: u + distribution.cv * (1 - u) * math.log1p(-u)


def _uniform(_: Distribution) -> PartialMean:
    return lambda u: u * u  # on [0, 2 mean]


def _lognormal(distribution: Distribution) -> PartialMean:
    sigma = math.sqrt(math.log1p(distribution.cv**2))
    normal = NormalDist()
    return lambda u: 0.0 if u == 0 else normal.cdf(normal.inv_cdf(u) - sigma)


def _erlang(distribution: Distribution) -> PartialMean:
    """k stages with k = round(1 / cv^2), counted as Poisson arrivals: E[X; X < q] = mean * F(k + 1, q) = mean * (F(k, q) - P(k; q))."""
    if distribution.cv < _MIN_ERLANG_CV:
        return _lognormal(distribution)
    # scipy.special.gammaincinv would be shorter, but its last digits may change between versions.
    # Entries of the tables would move by one, and with them every result that is named by its content.
    k = max(1, round(1 / distribution.cv**2))
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


_MIN_ERLANG_CV = 0.02
"""With thousands of stages the distribution is the lognormal one to a fraction of a per cent."""


def _poisson(i: int, x: float) -> float:
    """Return the Poisson probability of i arrivals with mean x."""
    return math.exp(i * math.log(x) - x - math.lgamma(i + 1))


def _poisson_tail(k: int, x: float) -> float:
    """Return the Poisson probability of k arrivals or more.

    The smaller side is summed, from its largest term on, because exp(-x) alone would underflow.
    """
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


DISTRIBUTIONS: Catalog[DistributionKind] = Catalog(
    DistributionKind("exponential", "Mean.", _exponential),
    DistributionKind("uniform", "Mean; from 0 to twice the mean.", _uniform),
    DistributionKind("lognormal", "A long tail.", _lognormal, max_cv=100),
    DistributionKind("erlang", "cv in (0, 1]: 1 / cv^2 stages.", _erlang, max_cv=1),
    DistributionKind(
        "shifted-exponential",
        "cv in (0, 1]: 1 - cv of the mean is constant, the rest exponential.",
        _shifted_exponential,
        max_cv=1,
        of_sizes=False,
    ),
)
"""A constant is none of them: it is written alone."""


# ---- Distributions as integer quantile tables: entry i is the mean of the i-th of n equally likely slices.
#
# Slice means (not midpoints) keep the mean of the distribution, tail included.  The tables are what `draw` indexes.

SLICES = 4096


@lru_cache(maxsize=256)
def quantile_table(distribution: Distribution) -> tuple[int, ...]:
    """Return a distribution as `SLICES` integers in ascending order, in the unit of its mean; one entry if it is constant."""
    if distribution.kind == "constant" or distribution.mean == 0:
        return (distribution.mean,)
    partial_mean = DISTRIBUTIONS[distribution.kind].partial_mean(distribution)
    edges = [partial_mean(i / SLICES) for i in range(SLICES)] + [1.0]
    return tuple(round(distribution.mean * SLICES * (b - a)) for a, b in pairwise(edges))


def size_table(distribution: Distribution) -> tuple[int, ...]:
    """Return the table of record sizes; each is at least 1 byte."""
    return tuple(max(1, size) for size in quantile_table(distribution))


def share_table(shares: Sequence[Fraction]) -> tuple[int, ...]:
    """Return a table in which index i has its share of the entries; the cumulative sum is rounded, so shares add up."""
    total = sum(shares)
    edges = [0] + [round(SLICES * part / total) for part in accumulate(shares)]
    return tuple(i for i in range(len(shares)) for _ in range(edges[i + 1] - edges[i]))


# ---- Residuals: the time that real checkpoints took beyond the model, for example pauses of a process or storage jitter.
#
# A simulated checkpoint draws one checkpoint of the history for all its subtasks, so that the correlation between
# subtasks is preserved.

Part = Literal["scheduling", "sync", "async", "acknowledgement"]
PARTS: tuple[Part, ...] = ("scheduling", "sync", "async", "acknowledgement")


@frozen
class Residual:
    """The residuals of a vertex in one phase: for each subtask a duration [ns] per checkpoint of the history."""

    vertex: str
    part: Part
    subtasks: tuple[tuple[int, ...], ...]


@frozen
class Residuals:
    """The residuals of all vertices."""

    checkpoints: int = 0  # of the history; 0: nothing is drawn
    of: tuple[Residual, ...] = ()


# ---- Draws of residuals: by checkpoint id, the same for all subtasks and phases.
#
# Sampling is without replacement until all checkpoints are drawn, so that a run of as many checkpoints as the history
# includes the longest one.


def drawn_ns(residuals: Residuals, part: Part, vertex: str, subtask: int, checkpoint: int, seed: int) -> int:
    """Return the residual of a simulated checkpoint.  Additional subtasks reuse those of the history in turn."""
    own = next(
        (residual.subtasks for residual in residuals.of if residual.part == part and residual.vertex == vertex), ()
    )
    if not own:
        return 0
    cycle, place = divmod(checkpoint, residuals.checkpoints)
    return own[subtask % len(own)][_order(seed, cycle, residuals.checkpoints)[place]]


@lru_cache(maxsize=8)
def _order(seed: int, cycle: int, checkpoints: int) -> tuple[int, ...]:
    """Return the checkpoints of the history in the order in which one cycle draws them."""
    key = stream(seed, "residuals", cycle)
    return tuple(sorted(range(checkpoints), key=lambda row: (draw(key, row), row)))
