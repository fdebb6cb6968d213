"""Recordings -> the constants of their environment: robust medians, how sure they are, and what no recording tells.

Each recording has one vote per constant, the median of what it shows, however often it shows it; the constant is the median of the
votes.  The interval holds 95 % of the medians of votes drawn again with replacement (bootstrap, Efron 1979).  Nothing is simulated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sim.analysis.resampling import resamples
from sim.calibration.estimators import CONSTANTS
from sim.model.scenario import Overheads
from sim.recordings.source.lab.recording import Recording

__all__ = ["AT_LEAST", "Estimate", "Votes", "calibrated", "estimates", "rounded_ms", "votes"]

AT_LEAST = 2
"""So many recordings must tell a constant: one says nothing of how sure it is."""
_TAIL_PERCENT = 2.5  # on each side of the interval

Votes = Mapping[str, float]
"""What one recording says of each constant it tells [ms]."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """One constant."""

    value_ms: float  # to the precision of `rounded_ms`
    recordings: int  # that tell it
    low_ms: float | None = None  # the interval; None: kept
    high_ms: float | None = None
    kept: bool = False  # too few recordings tell it: the default stays


def votes(recording: Recording) -> dict[str, float]:
    """What a recording says of each constant [ms]; those it does not tell are missing."""
    medians = {name: float(np.median(samples)) for name, constant in CONSTANTS.items() if (samples := constant.samples_ms(recording))}
    included = {name: constant.includes for name, constant in CONSTANTS.items() if constant.includes}
    alone = {name: medians[name] - medians[other] for name, other in included.items() if name in medians and other in medians}
    return {name: value for name, value in medians.items() if name not in included} | alone


def estimates(votes_of_recordings: Sequence[Votes], *, at_least: int = AT_LEAST, default: Overheads | None = None) -> dict[str, Estimate]:
    """Every constant, from the votes of all recordings."""
    default = default or Overheads()
    found = {}
    for name in CONSTANTS:
        values = np.sort([vote[name] for vote in votes_of_recordings if name in vote])
        if len(values) >= max(at_least, 1):
            low, high = _interval(values)
            found[name] = Estimate(rounded_ms(float(np.median(values))), len(values), rounded_ms(low), rounded_ms(high))
        else:
            found[name] = Estimate(getattr(default, f"{name}_ns") / 10**6, len(values), kept=True)
    return found


def calibrated(found: Mapping[str, Estimate], default: Overheads | None = None) -> Overheads:
    """The constants as a run takes them; what was not told stays as it was."""
    constants = {f"{name}_ns": round(estimate.value_ms * 10**6) for name, estimate in found.items() if not estimate.kept}
    return replace(default or Overheads(), **constants)


def rounded_ms(value_ms: float) -> float:
    """To what can be told apart: half a millisecond below 20 ms, 1 ms below 100 ms, 10 ms below 1 s, 100 ms above; nothing is negative."""
    step = next((step for limit, step in ((20, 0.5), (100, 1), (1000, 10)) if value_ms < limit), 100)
    return max(0.0, round(value_ms / step) * step)


def _interval(values: np.ndarray) -> tuple[float, float]:
    medians = np.median(values[resamples(len(values), seed=0)], axis=1)
    low, high = np.percentile(medians, [_TAIL_PERCENT, 100 - _TAIL_PERCENT])
    return float(low), float(high)
