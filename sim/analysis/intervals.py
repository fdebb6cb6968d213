"""Confidence intervals of means over independent replications (Law, Simulation Modeling and Analysis, chapter 9)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["half_width"]


def half_width(values: Sequence[float], confidence: float = 0.95) -> float:
    """Half the width of the confidence interval of the mean (Student's t); infinite for fewer than two values."""
    from scipy.stats import t

    count = len(values)
    return float(t.ppf((1 + confidence) / 2, count - 1) * np.std(values, ddof=1) / np.sqrt(count)) if count > 1 else np.inf
