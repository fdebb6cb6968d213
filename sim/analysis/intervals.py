"""Confidence intervals of means over independent replications; the bootstrap.

Sources: Law, Simulation Modeling and Analysis, chapter 9; Efron 1979.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray


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
