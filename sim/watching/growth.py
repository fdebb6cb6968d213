"""State that grows, and when checkpoints pass a limit by it.

The slope is that of Theil and Sen (the median of all slopes between two checkpoints), with its 95 % interval: single large checkpoints
do not turn it.  How much longer checkpoints take with larger state is simulated, as a ratio: it scales what is observed now.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, log

import numpy as np
from scipy.stats import theilslopes

from sim.watching.look import SeenCheckpoint

FEWEST = 12
"""Checkpoints that show a growth."""
MOST = 300
"""The latest checkpoints that are looked at."""
_LEAST = 0.03
"""State that grows by a smaller share over all of them stands still."""
_ANOTHER = 1.5
AHEAD_S = tuple(3600.0 * hours for hours in (0.25, 1, 4, 12, 24, 72, 168, 336, 720))
"""How far ahead is simulated: up to thirty days."""


@dataclass(frozen=True, slots=True)
class Growth:
    """The growth of one vertex's state."""

    vertex: str
    now_bytes: float
    per_second: float
    low: float  # bytes per second: 95 % interval
    high: float

    def after(self, seconds: float, per_second: float | None = None) -> float:
        return self.now_bytes + (self.per_second if per_second is None else per_second) * seconds


@dataclass(frozen=True, slots=True)
class Passing:
    """When p90 passes a limit [s from now]; infinite: not within `AHEAD_S`."""

    at_s: float
    earliest_s: float
    latest_s: float


def growths(points: Sequence[SeenCheckpoint]) -> list[Growth]:
    """The vertices whose state surely grows, the quickest first."""
    done = [point for point in points if point.status == "COMPLETED" and not point.is_savepoint and point.state][-MOST:]
    found = [_growth(name, done) for name in dict.fromkeys(name for point in done for name in point.state)]
    return sorted((row for row in found if row is not None), key=lambda row: -row.per_second)


def _growth(vertex: str, points: Sequence[SeenCheckpoint]) -> Growth | None:
    rows = [(point.trigger_ms / 1e3, float(point.state[vertex])) for point in points if vertex in point.state]
    if len(rows) < FEWEST or rows[-1][0] <= rows[0][0]:
        return None
    times, sizes = np.array(rows).T
    if len(np.unique(times)) < FEWEST:
        return None
    slope, intercept, low, high = theilslopes(sizes, times - times[0])
    passed_s = times[-1] - times[0]
    now = intercept + slope * passed_s
    if low <= 0 or slope * passed_s < _LEAST * now:
        return None
    return Growth(vertex, float(now), float(slope), float(low), float(high))


def passing(
    rows: Sequence[Growth], now_ms: float, limit_ms: float, simulated_p90_ms: Callable[[Mapping[str, float]], float]
) -> Passing | None:
    """`now_ms`: p90 of checkpoints now; `simulated_p90_ms`: bytes by vertex -> p90 in a simulation.

    None: no checkpoint completes in the simulation of the state as it is, which shows nothing of larger state.
    """
    if now_ms >= limit_ms:
        return Passing(0.0, 0.0, 0.0)
    base = simulated_p90_ms({row.vertex: row.now_bytes for row in rows})
    if not 0 < base < inf:
        return None

    def p90_ms(seconds: float) -> float:
        return now_ms * simulated_p90_ms({row.vertex: row.after(seconds) for row in rows}) / base

    at_s = _crossed(p90_ms, now_ms, limit_ms)
    high, low = (max(row.high / row.per_second for row in rows), min(row.low / row.per_second for row in rows))
    return Passing(at_s, at_s / high, at_s / low)


def _crossed(p90_ms: Callable[[float], float], now_ms: float, limit_ms: float) -> float:
    """Where the curve passes the limit: between two of `AHEAD_S`, straight in the logarithm of durations.  Larger state takes longer."""
    low, before = 0.0, now_ms
    high, after = AHEAD_S[-1], p90_ms(AHEAD_S[-1])
    if after < limit_ms:
        return inf
    while between := [seconds for seconds in AHEAD_S if low < seconds < high]:
        middle = between[len(between) // 2]
        value = p90_ms(middle)
        low, before, high, after = (low, before, middle, value) if value >= limit_ms else (middle, value, high, after)
    share = 0.5 if after == inf else log(limit_ms / before) / log(after / before)  # infinite: no checkpoint completes
    return low + (high - low) * share


def is_news(before_s: float, now_s: float) -> bool:
    """Whether a time ahead is another one than was said: by half, or beyond what is simulated."""
    if (before_s == inf) != (now_s == inf):
        return True
    return before_s != inf and not 1 / _ANOTHER < max(now_s, 60.0) / max(before_s, 60.0) < _ANOTHER
