"""Recordings -> the constants of their environment: robust medians with intervals, and the constants that no recording tells.

Each recording has one vote per constant: the median of its samples, however many they are.  The constant is the median
of the votes.  The interval holds 95 % of the medians of resampled votes (bootstrap, Efron 1979).  Nothing is simulated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.lab.calibration.estimators import CONSTANTS
from benchmarks.lab.recording import Recording
from sim.model.scenario import Overheads

AT_LEAST = 2
"""Least number of recordings that tell a constant: a single one gives no confidence."""
_TAIL_PERCENT = 2.5  # on each side of the interval

Votes = Mapping[str, float]
"""Constant -> vote of a recording [ms]."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimate of a constant."""

    value_ms: float  # with the precision of `rounded_ms`
    recordings: int  # number of recordings that tell it
    low_ms: float | None = None  # the interval; None: the default is kept
    high_ms: float | None = None
    kept: bool = False  # True: too few recordings tell it, so the default stays


def votes(recording: Recording) -> dict[str, float]:
    """Constant -> vote of a recording [ms]; constants that it does not tell are missing."""
    medians = {
        name: float(np.median(samples))
        for name, constant in CONSTANTS.items()
        if (samples := constant.samples_ms(recording))
    }
    included = {name: constant.includes for name, constant in CONSTANTS.items() if constant.includes}
    alone = {
        name: medians[name] - medians[other] for name, other in included.items() if name in medians and other in medians
    }
    return {name: value for name, value in medians.items() if name not in included} | alone


def estimates(
    votes_of_recordings: Sequence[Votes], *, at_least: int = AT_LEAST, default: Overheads | None = None
) -> dict[str, Estimate]:
    """Constant -> estimate, from the votes of all recordings."""
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
    """The overheads of a run; constants without votes keep their default."""
    constants = {
        f"{name}_ns": round(estimate.value_ms * 10**6) for name, estimate in found.items() if not estimate.kept
    }
    return replace(default or Overheads(), **constants)


def rounded_ms(value_ms: float) -> float:
    """Rounded to distinguishable values: 0.5 ms below 20 ms, 1 ms below 100 ms, 10 ms below 1 s, 100 ms above.  At least 0."""
    step = next((step for limit, step in ((20, 0.5), (100, 1), (1000, 10)) if value_ms < limit), 100)
    return max(0.0, round(value_ms / step) * step)


def _interval(values: np.ndarray) -> tuple[float, float]:
    samples = np.random.default_rng(0).integers(len(values), size=(1000, len(values)))  # the bootstrap (Efron 1979)
    medians = np.median(values[samples], axis=1)
    low, high = np.percentile(medians, [_TAIL_PERCENT, 100 - _TAIL_PERCENT])
    return float(low), float(high)
