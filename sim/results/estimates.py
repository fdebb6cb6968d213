"""Statistics: confidence intervals, paired differences, optimal-interval formulas, and quantiles of censored durations."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from math import exp
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from sim.model.frozen import frozen
from sim.results.formats import MISSING

# ---- Samples that are too small.

MIN_INTERVALS = 3
"""Minimum number of intervals in a run for which its checkpoints are compared with those of a shorter interval.

The first checkpoint is triggered right after the start, when queues are still empty: in the median of fewer it counts too much.
"""


def count_intervals(completed: Any, measured_ms: Any, interval_ms: float) -> Any:
    """Return the number of intervals in the measured part of a run, or of completed checkpoints if they are more: numbers or arrays."""
    return np.fmax(measured_ms / interval_ms, completed)


def longer_run(needed: int, begin_ms: float, gap_ms: float) -> str:
    """Return the change of run.duration with which a run has `needed` checkpoints.

    `begin_ms`: trigger of the first one that counts, or end of the warm-up.  `gap_ms`: time from one to the next, which the
    last one also has to complete.
    """
    seconds = math.ceil((begin_ms + needed * gap_ms) / 1e3)
    return (
        f"--set run.duration='{seconds} s'" if seconds <= 300 else f"--set run.duration='{math.ceil(seconds / 60)} min'"
    )


# ---- Confidence intervals of means over independent replications (Law, Simulation Modeling and Analysis, chapter 9).


def half_width(values: Sequence[float] | NDArray[np.float64], confidence: float = 0.95) -> float:
    """Return half the width of the confidence interval of the mean (Student's t); inf for fewer than two values."""
    count = len(values)
    return float(critical(count, confidence) * np.std(values, ddof=1) / np.sqrt(count)) if count > 1 else np.inf


def critical(counts: npt.ArrayLike, confidence: float) -> NDArray[np.float64]:
    """Return the two-sided critical values of Student's t for these numbers of values; NaN for fewer than two."""
    from scipy.stats import t

    values: NDArray[np.float64] = t.ppf((1 + confidence) / 2, np.asarray(counts) - 1)
    return values


# ---- The change of a mean over pairs of runs with the same random numbers (Law, Simulation Modeling and Analysis, chapter 11).


@frozen
class PairedChange:
    """The change of a mean, with its confidence interval."""

    value: float
    half_width: float  # half width of the 95 % confidence interval; infinite for a single pair

    @property
    def is_sure(self) -> bool:
        """Return True if the confidence interval excludes zero.

        The change of a single pair is exact for its seed, so it counts as sure.
        """
        return self.value != 0 and (abs(self.value) > self.half_width or math.isinf(self.half_width))

    def text(self, text: Callable[[float], str]) -> str:
        """Return ``+3.1 s ± 400 ms``, with a sign unless the amount is rounded to 0.  `text`: formats an amount of this quantity."""
        if not math.isfinite(self.value):
            return MISSING
        amount, spread = (
            text(abs(value)).lstrip("+±") if math.isfinite(value) else "" for value in (self.value, self.half_width)
        )
        sign = ("+" if self.value > 0 else "-") if any("1" <= digit <= "9" for digit in amount) else ""
        return f"{sign}{amount}" + (f" ± {spread}" if spread and self.half_width else "")


def paired_change(before: NDArray[np.float64], after: NDArray[np.float64]) -> PairedChange:
    """Return the mean difference of pairs; NaN if some pair lacks a finite value."""
    with np.errstate(invalid="ignore"):  # inf - inf, if neither duration has ended
        differences = after - before
    if not len(differences) or not np.isfinite(differences).all():
        return PairedChange(math.nan, math.nan)
    return PairedChange(float(differences.mean()), half_width(differences))


# ---- The optimal time between checkpoints by a formula, for comparison with the simulated optimum. Unlike the simulation, it
# ignores queues and the dependence of recovery on the load.


def renewal(cost: float, mtbf: float) -> float:
    """Return the interval T, including the checkpoint, that maximizes (T - C) / (exp(T / M) - 1), in the unit of the arguments.

    `cost` (C): processing time that a checkpoint costs.  `mtbf` (M): mean time between random failures.  This is the work per
    time that is not lost, if times between failures are exponentially distributed.
    """
    from scipy.special import lambertw

    rate = 1 / mtbf
    return float((rate * cost + 1 + lambertw(-exp(-rate * cost - 1)).real) / rate)


# ---- Quantiles of durations, some of which have not ended: a value, and whether it is only a lower bound.
#
# A duration that the end of the run or a timeout cut off is censored, not missing (Kaplan and Meier 1958): it is at least as
# long as observed.

Durations = npt.NDArray[np.floating[Any]]


class Duration(NamedTuple):
    """A quantile of durations, or a lower bound of it."""

    value: float  # NaN if there are no durations
    is_bound: bool  # the true quantile may be longer than `value`


def median_of_few(ended: Durations, unfinished: Durations) -> Duration:
    """Return the median duration of rare events such as failures, all of which count.

    Unfinished durations count with their length so far.  The median is a lower bound if it would be larger if they never
    ended.
    """
    return _lower_quantile(ended, unfinished, 0.5)


def quantile(ended: Durations, unfinished: Durations, share: float, weights: Durations | None = None) -> Duration:
    """Return a quantile of the durations of frequent events, of which the end of a run always cuts off the last ones.

    An unfinished duration counts only if it is already longer than this quantile of the others.

    `share`: the quantile, 0 to 1.  `weights`: of the durations in `ended`, with a mean of 1.  With weights, the quantile is
    one of the durations, and an unfinished duration has weight 1.
    """
    longer = unfinished[unfinished > _weighted_quantile(ended, share, weights)] if len(ended) else unfinished
    return _lower_quantile(ended, longer, share, weights)


def quantiles(
    ended: Durations, unfinished: Durations, *shares: float, weights: Durations | None = None
) -> list[Duration]:
    """Return the quantiles for ascending shares.  If one is a lower bound, all larger ones are, too."""
    computed: list[Duration] = []
    for share in shares:
        following = quantile(ended, unfinished, share, weights)
        is_bound = bool(computed) and computed[-1].is_bound
        computed.append(Duration(max(computed[-1].value, following.value), is_bound=True) if is_bound else following)
    return computed


def _lower_quantile(
    ended: Durations, unfinished: Durations, share: float, weights: Durations | None = None
) -> Duration:
    """Return the quantile as if all unfinished durations ended now.  It is a bound if it would be larger if they never ended."""
    least = np.concatenate([ended, unfinished])
    if not len(least):
        return Duration(np.nan, is_bound=False)
    if weights is not None:
        weights = np.concatenate([weights, np.ones(len(unfinished))])
    most = np.concatenate([ended, np.full(len(unfinished), 10 * least.max() + 1)])
    value = _weighted_quantile(least, share, weights)
    return Duration(value, is_bound=_weighted_quantile(most, share, weights) > value)


def _weighted_quantile(values: Durations, share: float, weights: Durations | None) -> float:
    if weights is None:
        return float(np.quantile(values, share))
    return float(np.quantile(values, share, weights=weights, method="inverted_cdf"))


# ---- Two durations count as equal if repetitions of a real run may differ by as much: 10 % or 100 ms.

NOISE_SHARE, NOISE_MS = 0.10, 100.0
"""Relative and absolute threshold.  The absolute one is needed because scheduling noise dominates below about 150 ms."""


def is_noise(slow_ms: float, fast_ms: float) -> bool:
    """Return True if repetitions of a real run may differ by as much as these two durations, the longer one first."""
    return slow_ms - fast_ms < max(NOISE_MS, NOISE_SHARE * slow_ms)
