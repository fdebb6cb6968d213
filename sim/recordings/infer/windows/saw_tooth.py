"""Sizes that rise and fall to their floor at equal distances: state that a window lets go at its end.

Within a period sizes may rise along any curve: new keys come along a line, known ones no more.
So the curve is the best one that never falls.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

EXPLAINED = 0.9
"""Share of the variance of the sizes: a curve that leaves more of it is not theirs."""
FEWEST = 6
"""Fewer sizes lie on any such curve."""

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SawTooth:
    """A saw tooth: the size falls at one moment between `high_ms` and `low_ms`, and whole periods away.

    Then it rises from `floor` by `per_second`.
    """

    period_ms: float
    high_ms: float
    low_ms: float
    floor: float
    per_second: float
    explained: float

    def falls_ms(self, slack_ms: float = 0) -> float:
        """A whole multiple of the period by the clock, if it lies there or nearly so: windows end there.  Else the middle."""
        at_ms = -(-(self.high_ms - slack_ms) // self.period_ms) * self.period_ms
        return at_ms if at_ms <= self.low_ms + slack_ms else (self.high_ms + self.low_ms) / 2


def fitted(points: Sequence[tuple[float, float]], periods_ms: Iterable[float]) -> SawTooth | None:
    """The best curve through (time [ms], size) with one of the periods; None: there is none that explains them."""
    if len(points) < FEWEST or len({size for _, size in points}) < FEWEST:
        return None
    times, sizes = (np.array(column, dtype=float) for column in zip(*points, strict=True))
    best = max((_with_period(times, sizes, period) for period in periods_ms), key=lambda found: found[0], default=None)
    if best is None or best[0] < EXPLAINED:
        return None
    explained, period_ms, high_ms, low_ms = best
    tooth = SawTooth(period_ms, high_ms, low_ms, 0.0, 0.0, explained)
    floor, slope = _line((times - tooth.falls_ms()) % period_ms, sizes)
    return SawTooth(period_ms, high_ms, low_ms, floor, slope * 1000, explained) if slope > 0 else None


def _with_period(times: Numbers, sizes: Numbers, period_ms: float) -> tuple[float, float, float, float]:
    """(share of the variance explained, period, last time before a fall, first time behind it)."""
    from scipy.optimize import isotonic_regression

    phases = times % period_ms
    order = np.argsort(phases, kind="stable")
    ordered, total = sizes[order], float(((sizes - sizes.mean()) ** 2).sum())
    best = 0.0, 0
    for first in range(len(order)):
        turned = np.roll(ordered, -first)
        left = float(((turned - isotonic_regression(turned).x) ** 2).sum())
        best = max(best, (1 - left / total, -first))
    explained, first = best[0], -best[1]
    high, low = float(phases[order[first - 1]]), float(phases[order[first]])
    begin = float(times[0]) // period_ms * period_ms
    return explained, period_ms, begin + high, begin + low + (period_ms if low <= high else 0.0)


def _line(since: Numbers, sizes: Numbers) -> tuple[float, float]:
    """(floor, slope) by least squares; a floor below nothing is none."""
    away = since - since.mean()
    slope = float(away @ (sizes - sizes.mean())) / max(float(away @ away), 1e-9)
    floor = float(sizes.mean()) - slope * float(since.mean())
    return (floor, slope) if floor >= 0 else (0.0, float(since @ sizes) / max(float(since @ since), 1e-9))
