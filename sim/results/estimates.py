"""Statistics: confidence intervals, paired differences, optimal-interval formulas, and quantiles of censored durations."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, sqrt
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from sim.results.formats import MISSING

# ---- Confidence intervals of means over independent replications (Law, Simulation Modeling and Analysis, chapter 9).


def half_width(values: Sequence[float] | NDArray[np.float64], confidence: float = 0.95) -> float:
    """Return half the width of the confidence interval of the mean (Student's t); inf for fewer than two values."""
    count = len(values)
    return float(critical(count, confidence) * np.std(values, ddof=1) / np.sqrt(count)) if count > 1 else np.inf


def critical(count: int, confidence: float) -> float:
    """Return the two-sided critical value of Student's t for `count` values; inf for fewer than two."""
    from scipy.stats import t

    return float(t.ppf((1 + confidence) / 2, count - 1)) if count > 1 else np.inf


# ---- The change of a mean over pairs of runs with the same random numbers (Law, Simulation Modeling and Analysis, chapter 11).


@dataclass(frozen=True, slots=True)
class PairedChange:
    """The change of a mean.  `half_width`: of its 95 % confidence interval; inf for a single pair."""

    value: float
    half_width: float

    @property
    def is_sure(self) -> bool:
        """Return True if the interval excludes zero.  The change of a single pair is exact for its seed, and counts as sure."""
        return self.value != 0 and (abs(self.value) > self.half_width or math.isinf(self.half_width))

    def text(self, text: Callable[[float], str]) -> str:
        """Return ``+3.1 s ± 400 ms``, always with a sign.  `text`: formats an amount of this quantity."""
        if not math.isfinite(self.value):
            return MISSING
        sign = "+" if self.value > 0 else "-" if self.value < 0 else ""
        amount, spread = (
            text(abs(value)).lstrip("+±") if math.isfinite(value) else "" for value in (self.value, self.half_width)
        )
        return f"{sign}{amount}" + (f" ± {spread}" if spread and self.half_width else "")


def paired_change(before: NDArray[np.float64], after: NDArray[np.float64]) -> PairedChange:
    """Return the mean difference of pairs; NaN if some pair lacks a finite value."""
    with np.errstate(invalid="ignore"):  # inf - inf: neither has ended
        differences = after - before
    if not len(differences) or not np.isfinite(differences).all():
        return PairedChange(math.nan, math.nan)
    return PairedChange(float(differences.mean()), half_width(differences))


# ---- Formulas for the optimal time between checkpoints, to compare with the simulated optimum. All times have the same unit.
#
# `cost` (C): processing time lost to a checkpoint; `mtbf` (M): mean time between random failures. Unlike the simulation,
# the formulas ignore queues, and recovery that depends on load.


def young(cost: float, mtbf: float) -> float:
    """Return the first-order optimum sqrt(2 C M) (Young, CACM 17, 1974)."""
    return sqrt(2 * cost * mtbf)


def daly(cost: float, mtbf: float) -> float:
    """Return the higher-order optimum, without the checkpoint itself (Daly, FGCS 22, 2006); M if C >= 2 M."""
    if cost >= 2 * mtbf:
        return mtbf
    x = cost / (2 * mtbf)
    return sqrt(2 * cost * mtbf) * (1 + sqrt(x) / 3 + x / 9) - cost


def renewal(cost: float, mtbf: float) -> float:
    """Return the interval T, checkpoint included, that maximizes (T - C) / (exp(T / M) - 1).

    That is the work kept per time if failures are exponentially distributed.
    """
    from scipy.special import lambertw

    rate = 1 / mtbf
    return float((rate * cost + 1 + lambertw(-exp(-rate * cost - 1)).real) / rate)


# ---- Quantiles of durations of which some have not ended: a value, and whether it is only a lower bound.
#
# A duration that was cut off by the end of the run or a timeout is censored, not missing (Kaplan and Meier 1958): it was at
# least as long as observed.

Durations = npt.NDArray[np.floating[Any]]


class Duration(NamedTuple):
    """A quantile of durations, or a lower bound of it.  NaN: there are no durations."""

    value: float
    is_bound: bool  # the true quantile may be longer than `value`


def median_of_few(ended: Durations, unfinished: Durations) -> Duration:
    """Return the median of rare events such as failures, all of which count.

    Unfinished durations count with their length so far.  The median is a bound if it would differ if they never ended.
    """
    return _least(ended, unfinished, 0.5)


def quantile(ended: Durations, unfinished: Durations, share: float, weights: Durations | None = None) -> Duration:
    """Return the quantile of frequent events, of which the end of the run always cuts off the last ones.

    An unfinished duration counts only if it is already longer than this quantile of the others.  `weights`: of `ended`, mean 1;
    then the quantile is one of the durations, and an unfinished one has weight 1.
    """
    late = unfinished[unfinished > _weighted(ended, share, weights)] if len(ended) else unfinished
    return _least(ended, late, share, weights)


def quantiles(
    ended: Durations, unfinished: Durations, *shares: float, weights: Durations | None = None
) -> list[Duration]:
    """Return quantiles for ascending shares.  All quantiles above a lower bound are lower bounds too."""
    found: list[Duration] = []
    for share in shares:
        following = quantile(ended, unfinished, share, weights)
        is_bound = bool(found) and found[-1].is_bound
        found.append(Duration(max(found[-1].value, following.value), is_bound=True) if is_bound else following)
    return found


def _least(ended: Durations, unfinished: Durations, share: float, weights: Durations | None = None) -> Duration:
    """Return the quantile if all unfinished durations ended now; it is a bound if it would differ with longer ones."""
    least = np.concatenate([ended, unfinished])
    if not len(least):
        return Duration(np.nan, is_bound=False)
    if weights is not None:
        weights = np.concatenate([weights, np.ones(len(unfinished))])
    most = np.concatenate([ended, np.full(len(unfinished), 10 * least.max() + 1)])
    value = _weighted(least, share, weights)
    return Duration(value, is_bound=_weighted(most, share, weights) > value)


def _weighted(values: Durations, share: float, weights: Durations | None) -> float:
    if weights is None:
        return float(np.quantile(values, share))
    return float(np.quantile(values, share, weights=weights, method="inverted_cdf"))


# ---- Durations count as equal if they differ by less than repetitions of a real run do: 10 % or 100 ms.

NOISE_SHARE, NOISE_MS = 0.10, 100.0
"""Scheduling noise dominates below about 150 ms, so an absolute threshold is needed too."""


def is_noise(slow_ms: float, fast_ms: float) -> bool:
    """Return True if repetitions of a real run may differ by as much as these two durations."""
    return slow_ms - fast_ms < max(NOISE_MS, NOISE_SHARE * slow_ms)
