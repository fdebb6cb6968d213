"""A history of sizes that rises ever more slowly: records meet keys of a bounded set, and ever fewer of them are new.

Where all keys are equally likely, what is left of them falls exponentially with the records.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import linear_regression

_FEWEST = 8
"""Fewer sizes do not tell a curve from a line."""
_BETTER = 0.2
"""A curve that leaves a larger share of a line's squares is none."""
_COME = 0.6
"""Unless so much of the limit is there, the curve does not tell where it ends."""
_RATES = 60
"""So many are tried."""


@dataclass(frozen=True, slots=True)
class Filling:
    """A curve of sizes: ``limit - left * exp(-rate * (t - begun))``."""

    limit_bytes: float
    left_bytes: float
    rate: float  # per second
    begun_s: float

    @property
    def per_second(self) -> float:
        """Bytes, where no key has come yet."""
        return self.limit_bytes * self.rate

    def at(self, second: float) -> float:
        """The size at a time."""
        return self.limit_bytes - self.left_bytes * math.exp(-self.rate * (second - self.begun_s))


def filling_of(seconds: Sequence[float], sizes: Sequence[float]) -> Filling | None:
    """The curve through sizes.  None: a line fits as well, or the curve does not show its limit."""
    span = seconds[-1] - seconds[0] if len(seconds) >= _FEWEST else 0.0
    if span <= 0:
        return None
    slope, begin = linear_regression(seconds, sizes)
    least = _BETTER * math.fsum((size - begin - slope * second) ** 2 for second, size in zip(seconds, sizes, strict=True))
    best = None
    for step in range(_RATES):
        rate = 0.5 / span * 20 ** (step / (_RATES - 1))
        falling = [math.exp(-rate * (second - seconds[0])) for second in seconds]
        fitted, limit = linear_regression(falling, sizes)
        squares = math.fsum((size - limit - fitted * left) ** 2 for left, size in zip(falling, sizes, strict=True))
        if squares < least and fitted < 0 and 0 < limit <= max(sizes) / _COME:
            best, least = Filling(limit, -fitted, rate, seconds[0]), squares
    return best
