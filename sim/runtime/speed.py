"""How fast tasks work: everything that slows one down at the moment, multiplied."""

from __future__ import annotations

from fractions import Fraction

from sim.plane.seam.interface import DataPlane

_MOST = 1 << 20
"""The largest value of either number of a factor (`DataPlane.scale`)."""


class Speed:
    """The factors by which tasks are slowed down, by task and cause."""

    def __init__(self, plane: DataPlane) -> None:
        self.plane = plane
        self._factors: dict[int, dict[str, Fraction]] = {}

    def slow(self, task: int, cause: str, factor: Fraction) -> None:
        """From the next record on service takes `factor` times as long, for this cause; 1: no longer."""
        factors = self._factors.setdefault(task, {})
        factors[cause] = factor
        product = Fraction(1)
        for cause_factor in factors.values():
            product *= cause_factor
        product = product.limit_denominator(max(1, min(1 << 10, int(_MOST / product)))) if product < _MOST else Fraction(_MOST)
        self.plane.scale(task, product.numerator, product.denominator)
