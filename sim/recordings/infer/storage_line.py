"""A line through asynchronous phases: the bytes of one stream, and how long the phase took.

Theil and Sen's line: the median of the slopes between all pairs, which single slow checkpoints do not bend.  It begins at the latency of a
file, and its slope is the time per byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

FEWEST = 8
"""Fewer phases are no line."""
MOST = 600
"""More phases are thinned out: time and memory grow with their square."""
SPREAD = 1.5
"""Ratio of the most to the least bytes: closer ones show only a sum."""


class AsyncPhase(NamedTuple):
    """The asynchronous phase of one subtask in one checkpoint."""

    stream_bytes: float
    took_ms: float


class FittedLine(NamedTuple):
    """A line through asynchronous phases.  `is_told`: whether the slope is larger than 0 with 95 % confidence."""

    latency_ms: float
    bytes_per_ms: float
    slowest: float  # bytes per ms
    fastest: float  # infinite: the time may not depend on the bytes
    is_told: bool


def stream_bytes(written: int, table: int, threads: int) -> float:
    """Bytes that one of so many streams carries, if a file has at most `table` bytes: files go side by side."""
    return max(min(written, table), written / threads)


def line_through(phases: Sequence[AsyncPhase]) -> FittedLine | None:
    """The line through phases.  None: there are too few, or all write alike."""
    if len(phases) < FEWEST:
        return None
    chosen = sorted(phases)[:: -(-len(phases) // MOST)]
    sizes, took = np.array(chosen, dtype=float).T
    if sizes[-1] < SPREAD * sizes[0]:
        return None
    from scipy.stats import theilslopes  # 0.4 s of processor time, which other commands need not spend

    with np.errstate(invalid="ignore"):  # too many phases take equally long: the bounds are not numbers
        fitted = theilslopes(took, sizes)
    slope, low, high = float(fitted.slope), float(fitted.low_slope), float(fitted.high_slope)
    if slope <= 0:
        return FittedLine(float(np.median(took)), float("inf"), 1 / high if high > 0 else float("inf"), float("inf"), is_told=False)
    latency = float(np.median(took - slope * sizes))
    if latency < 0:  # then all of the time goes into the bytes
        latency, slope = 0.0, float(np.median(took / sizes))
    return FittedLine(latency, 1 / slope, 1 / high, 1 / low if low > 0 else float("inf"), is_told=low > 0)
