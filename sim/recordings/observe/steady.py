"""The window in which a run is judged by its rates, and the growth of counters within it; for recorded and simulated runs alike.

The first quarter is left out: queues fill and a JVM warms up.  The rest is cut to whole checkpoints, from trigger to trigger.
A job that stands still for seconds in every checkpoint has a meaningful rate only over whole ones.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

SETTLED_AFTER = 0.25
"""Share of a run that is left out."""

Numbers = npt.NDArray[np.float64]


def steady(begin_ms: float, end_ms: float, triggers_ms: Iterable[float]) -> tuple[float, float]:
    """(from, to) of the window; the uncut window if the cut would leave less than half of it."""
    settled_ms = begin_ms + SETTLED_AFTER * (end_ms - begin_ms)
    inside = [time for time in triggers_ms if settled_ms <= time <= end_ms]
    if inside and max(inside) - min(inside) >= (end_ms - settled_ms) / 2:
        return min(inside), max(inside)
    return settled_ms, end_ms


def growth(times_ms: Numbers, counted: Numbers, window: tuple[float, float]) -> float | None:
    """Growth of a counter per ms, linear between its samples.  None: fewer than two samples in the window."""
    begin, end = max(window[0], float(times_ms[0])) if len(times_ms) else 0.0, min(window[1], float(times_ms[-1])) if len(times_ms) else 0.0
    if np.count_nonzero((times_ms >= begin) & (times_ms <= end)) < 2 or end <= begin:
        return None
    there, here = np.interp([end, begin], times_ms, counted)
    return float(there - here) / (end - begin)
