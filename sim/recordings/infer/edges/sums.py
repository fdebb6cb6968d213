"""Amounts of which only sums are counted: what follows for each of them, exactly or as bounds, and values that fulfil every sum."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

TOLERANCE = 0.05
"""Windows of two vertices begin and end at different moments: counters that differ by less agree."""
HALVINGS = 60  # of the level at which open amounts fill a sum


@dataclass(frozen=True, slots=True)
class AmountRange:
    """A range in which an amount lies."""

    least: float = 0.0
    most: float = math.inf

    @property
    def is_exact(self) -> bool:
        return self.least == self.most

    def nearest(self, value: float) -> float:
        """The value of the range that is nearest to a given one."""
        return min(max(value, self.least), self.most)


@dataclass(frozen=True, slots=True)
class Sum:
    """A known total of amounts, each with its factor."""

    factors: Mapping[int, float]
    total: float
    is_least: bool = False  # the total or more

    def without(self, rows: Sequence[AmountRange], i: int) -> AmountRange:
        """The range that the others leave of the total for amount `i`, without its factor."""
        others = [(factor, rows[j]) for j, factor in self.factors.items() if j != i]
        least, most = (math.fsum(factor * end for factor, end in ends) for ends in _ends(others))
        left = max(self.total - most, 0.0) / self.factors[i] if most < math.inf else 0.0
        return AmountRange(left, math.inf if self.is_least else max(self.total - least, 0.0) / self.factors[i])


def narrowed(rows: Sequence[AmountRange], sums: Sequence[Sum]) -> list[AmountRange]:
    """The ranges that are left when all sums hold, by interval propagation.  What is exact stays, even where a sum contradicts it."""
    found = list(rows)
    for _ in range(len(found) + 1):
        before = list(found)
        for equation in sorted(sums, key=lambda equation: len(equation.factors)):
            for i in equation.factors:
                if not found[i].is_exact:
                    found[i] = _both(found[i], equation.without(found, i))
        if found == before:
            break
    return found


def alike(rows: Sequence[AmountRange], sums: Sequence[Sum]) -> list[float]:
    """A value for each amount, so that all sums hold: what a sum leaves open is as even as the ranges allow."""
    found = narrowed(rows, sums)
    for equation in sums:
        free = [i for i in equation.factors if not found[i].is_exact]
        if free and not equation.is_least:
            rest = max(equation.total - math.fsum(factor * found[i].least for i, factor in equation.factors.items() if i not in free), 0.0)
            level = _level([(equation.factors[i], found[i]) for i in free], rest)
            for i in free:
                found[i] = AmountRange(value := found[i].nearest(level), value)
            found = narrowed(found, sums)
    return [row.least if row.is_exact or row.most == math.inf else (row.least + row.most) / 2 for row in found]


def _both(before: AmountRange, left: AmountRange) -> AmountRange:
    """The values in both ranges; one value where both ends differ by less than the error of the counters."""
    if left.is_exact:
        return left
    least, most = max(before.least, left.least), min(before.most, left.most)
    if most < math.inf and most - least <= TOLERANCE * most:
        return AmountRange(middle := (least + most) / 2, middle)
    return AmountRange(least, most)


def _level(parts: Sequence[tuple[float, AmountRange]], rest: float) -> float:
    """The height at which these parts hold the rest."""
    low, high = 0.0, max(rest / factor for factor, _ in parts)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        filled = math.fsum(factor * part.nearest(middle) for factor, part in parts)
        low, high = (middle, high) if filled < rest else (low, middle)
    return high


def _ends(parts: Sequence[tuple[float, AmountRange]]) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    return [(factor, part.least) for factor, part in parts], [(factor, part.most) for factor, part in parts]
