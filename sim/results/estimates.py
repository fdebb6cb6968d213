"""Estimates with their uncertainty: intervals, paired differences, what theory expects."""

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

# ---- Confidence intervals of means over independent replications; the bootstrap.
#
# Sources: Law, Simulation Modeling and Analysis, chapter 9; Efron 1979.


def half_width(values: Sequence[float] | NDArray[np.float64], confidence: float = 0.95) -> float:
    """Half the width of the confidence interval of the mean (Student's t); infinite for fewer than two values."""
    count = len(values)
    return float(critical(count, confidence) * np.std(values, ddof=1) / np.sqrt(count)) if count > 1 else np.inf


def critical(count: int, confidence: float) -> float:
    """Student's t that |mean / standard error| of `count` values stays below with this confidence, if their true mean is 0."""
    from scipy.stats import t

    return float(t.ppf((1 + confidence) / 2, count - 1)) if count > 1 else np.inf


def resamples(count: int, *, times: int = 1000, seed: int) -> npt.NDArray[np.int64]:
    """A row per sample: the indices of its `count` observations.  The same seed gives the same samples."""
    return np.random.default_rng(seed).integers(count, size=(times, count))


# ---- The change of a mean over pairs of runs that met the same random numbers (Law, Simulation Modeling and Analysis, chapter 11).


@dataclass(frozen=True, slots=True)
class PairedChange:
    """The change of a mean.  `half_width`: of its 95 % confidence interval; infinite for a single pair, 0 where all pairs agree."""

    value: float
    half_width: float

    @property
    def is_sure(self) -> bool:
        """Whether the interval leaves out zero; a single pair has none, and its difference is exact for its seed."""
        return self.value != 0 and (abs(self.value) > self.half_width or math.isinf(self.half_width))

    def text(self, text: Callable[[float], str]) -> str:
        """``+3.1 s ± 400 ms``, the sign always shown.  `text`: of an amount of this quantity."""
        if not math.isfinite(self.value):
            return MISSING
        sign = "+" if self.value > 0 else "-" if self.value < 0 else ""
        amount, spread = (
            text(abs(value)).lstrip("+±") if math.isfinite(value) else "" for value in (self.value, self.half_width)
        )
        # a relative change has a sign of its own
        return f"{sign}{amount}" + (f" ± {spread}" if spread and self.half_width else "")


def paired_change(before: NDArray[np.float64], after: NDArray[np.float64]) -> PairedChange:
    """The mean of the differences of pairs.  A pair without a value on a side makes it unknown."""
    with np.errstate(invalid="ignore"):  # both never ended
        apart = after - before
    if not len(apart) or not np.isfinite(apart).all():
        return PairedChange(math.nan, math.nan)
    return PairedChange(float(apart.mean()), half_width(apart))


# ---- Closed formulas for the time between checkpoints, to compare with a simulated optimum.  All times share any unit.
#
# `cost`: processing time lost to a checkpoint; `mtbf`: mean time between random failures.  The formulas know neither queues nor recovery
# that depends on load; the simulation does.


def young(cost: float, mtbf: float) -> float:
    """First order: sqrt(2 C M) (Young, CACM 17, 1974)."""
    return sqrt(2 * cost * mtbf)


def daly(cost: float, mtbf: float) -> float:
    """Higher order in C / M, without the checkpoint itself (Daly, FGCS 22, 2006); for C >= 2 M the mean time between failures."""
    if cost >= 2 * mtbf:
        return mtbf
    x = cost / (2 * mtbf)
    return sqrt(2 * cost * mtbf) * (1 + sqrt(x) / 3 + x / 9) - cost


def renewal(cost: float, mtbf: float) -> float:
    """The interval, checkpoint included, that maximises (T - c) / (exp(T / M) - 1): work kept per time with exponential failures."""
    from scipy.special import lambertw

    rate = 1 / mtbf
    return float((rate * cost + 1 + lambertw(-exp(-rate * cost - 1)).real) / rate)


# ---- Quantiles of durations of which some did not end: a value, and whether it is only a bound ("more than").
#
# What the end of a run or a timeout cut off is censored, not missing (Kaplan and Meier 1958).  It lasted at least as
# long as was seen.

Durations = npt.NDArray[np.floating[Any]]


class Duration(NamedTuple):
    """A quantile of durations, or a bound of it.  NaN: nothing began."""

    value: float
    is_bound: bool  # it may be longer than the value


def median_of_few(ended: Durations, unfinished: Durations) -> Duration:
    """The median where every event counts: failures are few, and a late one is not like the others.

    It is as if all unfinished ones ended now.  It is a bound if it would be another one if they never ended.
    """
    return _least(ended, unfinished, 0.5)


def quantile(ended: Durations, unfinished: Durations, share: float) -> Duration:
    """The quantile where events follow each other all the time, so that the end of a run always cuts off the last ones.

    An unfinished one counts from the moment at which it has lasted longer than this quantile of the others: before, it
    says nothing.
    """
    late = unfinished[unfinished > np.quantile(ended, share)] if len(ended) else unfinished
    return _least(ended, late, share)


def quantiles(ended: Durations, unfinished: Durations, *shares: float) -> list[Duration]:
    """The quantiles of ascending shares: one that may still grow makes those above it grow."""
    found: list[Duration] = []
    for share in shares:
        own = quantile(ended, unfinished, share)
        is_bound = bool(found) and found[-1].is_bound
        found.append(Duration(max(found[-1].value, own.value), is_bound=True) if is_bound else own)
    return found


def _least(ended: Durations, unfinished: Durations, share: float) -> Duration:
    """The quantile if all unfinished ones ended now, and whether it would be another one if they took ten times the longest."""
    least = np.concatenate([ended, unfinished])
    if not len(least):
        return Duration(np.nan, is_bound=False)
    most = np.concatenate([ended, np.full(len(unfinished), 10 * least.max() + 1)])
    value = float(np.quantile(least, share))
    return Duration(value, is_bound=bool(np.quantile(most, share) > value))


# ---- What counts as equal: durations that differ by less than repetitions of a real run do, 10 % or 100 ms.
#
# Below about 150 ms scheduling noise prevails.

NOISE_SHARE, NOISE_MS = 0.10, 100.0


def is_noise(slow_ms: float, fast_ms: float) -> bool:
    """Whether repetitions of a real run differ by as much."""
    return slow_ms - fast_ms < max(NOISE_MS, NOISE_SHARE * slow_ms)
