"""Bootstrap: observations resampled with replacement, to measure the effect of chance on a result (Efron 1979)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def resamples(count: int, *, times: int = 1000, seed: int) -> npt.NDArray[np.int64]:
    """A row per sample: the indices of its `count` observations.  The same seed gives the same samples."""
    return np.random.default_rng(seed).integers(count, size=(times, count))
