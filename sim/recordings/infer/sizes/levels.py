"""A history of sizes that rises along a line and then stays: as many keys leave as come, or all of them have come.

The break is where a line before it and a constant behind it leave the least squares.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, linear_regression

_FEWEST = 5
"""Fewer sizes are neither a line nor a level."""
_STEADY = 0.1
"""A rise behind the break that has a larger share of the slope before it is no level."""
_BETTER = 0.5
"""A break that leaves a larger share of the squares of one line through all sizes tells nothing."""
_MEETS = 0.1
"""The line comes so near to the level at the break, as a share of the level."""


@dataclass(frozen=True, slots=True)
class Level:
    """The level at which sizes have stopped to rise."""

    first: int  # the first size at the level
    size_bytes: float
    per_second: float  # bytes, before


@dataclass(frozen=True, slots=True)
class _Line:
    """A line through sizes, by least squares."""

    slope: float
    begin: float
    squares: float

    def at(self, second: float) -> float:
        return self.begin + self.slope * second


def level_of(seconds: Sequence[float], sizes: Sequence[float]) -> Level | None:
    """The level of sizes.  None: they do not rise, or go on rising as far as they are known."""
    straight = _line(seconds, sizes)
    best, least = None, _BETTER * straight.squares
    for first in range(_FEWEST, len(sizes) - _FEWEST + 1):
        rise, rest = _line(seconds[:first], sizes[:first]), _line(seconds[first:], sizes[first:])
        size_bytes = fmean(sizes[first:])
        squares = rise.squares + math.fsum((size - size_bytes) ** 2 for size in sizes[first:])
        meets = abs(rise.at(seconds[first]) - size_bytes) <= max(_MEETS * size_bytes, rise.slope * (seconds[first] - seconds[first - 1]))
        if squares < least and rise.slope > 0 and abs(rest.slope) <= _STEADY * rise.slope and meets:
            best, least = Level(first, size_bytes, rise.slope), squares
    return best


def _line(seconds: Sequence[float], sizes: Sequence[float]) -> _Line:
    if len(set(seconds)) < 2:
        return _Line(0.0, fmean(sizes), 0.0)
    slope, begin = linear_regression(seconds, sizes)
    return _Line(slope, begin, math.fsum((size - begin - slope * second) ** 2 for second, size in zip(seconds, sizes, strict=True)))
