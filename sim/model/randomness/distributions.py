"""The distributions that services, sizes and latencies may have: one record each.

How a scenario writes them, its JSON Schema and the tables that are drawn from read the record.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import NormalDist

from sim.model.catalogs.catalog import Catalog
from sim.model.job import Distribution

PartialMean = Callable[[float], float]
"""u -> E[X; X below its u-quantile] / mean."""


@dataclass(frozen=True, slots=True)
class DistributionKind:
    """A kind of distribution with a mean."""

    name: str  # as a scenario writes it
    sentence: str
    partial_mean: Callable[[Distribution], PartialMean]
    of_sum: Callable[[Distribution], PartialMean] | None = None  # of several terms; None: it is computed by folding
    most_cv: int = 0  # of standard deviation / mean, which is written beside the mean; 0: the kind decides about it
    of_sizes: bool = True  # sizes may have it, too


def _exponential(_: Distribution) -> PartialMean:
    return lambda u: u + (1 - u) * math.log1p(-u)


def _shifted_exponential(law: Distribution) -> PartialMean:
    return lambda u: u + law.cv * (1 - u) * math.log1p(-u)


def _uniform(_: Distribution) -> PartialMean:
    return lambda u: u * u  # on [0, 2 mean]


def _lognormal(law: Distribution) -> PartialMean:
    sigma = math.sqrt(math.log1p(law.cv**2))
    normal = NormalDist()
    return lambda u: 0.0 if u == 0 else normal.cdf(normal.inv_cdf(u) - sigma)


def _erlang(law: Distribution) -> PartialMean:
    """k stages with k = round(1 / cv^2), counted as Poisson arrivals: E[X; X < q] = mean * F(k + 1, q) = mean * (F(k, q) - P(k; q))."""
    if law.cv < _LEAST_ERLANG_CV:
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


_LEAST_ERLANG_CV = 0.02
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


def _erlang_sum(law: Distribution) -> PartialMean:
    """A sum of exponential or Erlang laws is an Erlang law."""
    return _erlang(replace(law, terms=1, cv=(1.0 if law.kind == "exponential" else law.cv) / math.sqrt(law.terms)))


def _shifted_exponential_sum(law: Distribution) -> PartialMean:
    varying = _erlang(replace(law, terms=1, cv=1 / math.sqrt(law.terms)))
    return lambda u: (1 - law.cv) * u + law.cv * varying(u)


DISTRIBUTIONS: Catalog[DistributionKind] = Catalog(
    DistributionKind("exponential", "Mean.", _exponential, _erlang_sum),
    DistributionKind("uniform", "Mean; from 0 to twice the mean.", _uniform),
    DistributionKind("lognormal", "A long tail.", _lognormal, most_cv=100),
    DistributionKind("erlang", "cv in (0, 1]: 1 / cv^2 stages.", _erlang, _erlang_sum, most_cv=1),
    DistributionKind(
        "shifted-exponential", "cv in (0, 1]: 1 - cv of the mean is constant, the rest exponential.", _shifted_exponential,
        _shifted_exponential_sum, most_cv=1, of_sizes=False,
    ),
)  # fmt: skip
"""A constant is none of them: it is written alone."""
