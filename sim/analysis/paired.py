"""The change of a mean over pairs of runs that met the same random numbers (Law, Simulation Modeling and Analysis, chapter 11)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sim.analysis.intervals import half_width
from sim.analysis.number_texts import NONE


@dataclass(frozen=True, slots=True)
class PairedChange:
    """The change of a mean.  `half_width`: of its 95 % confidence interval; infinite for a single pair, 0 where all pairs agree."""

    value: float
    half_width: float

    @property
    def is_sure(self) -> bool:
        """Whether the interval leaves out zero; a single pair has none, and its difference is exact for its seed."""
        return self.value != 0 and (abs(self.value) > self.half_width or math.isinf(self.half_width))

    def text(self, text: Callable[[float], str]) -> str:
        """``+3.1 s ± 400 ms``, the sign always shown.  `text`: of an amount of this quantity."""
        if not math.isfinite(self.value):
            return NONE
        sign = "+" if self.value > 0 else "-" if self.value < 0 else ""
        amount, spread = (text(abs(value)).lstrip("+±") if math.isfinite(value) else "" for value in (self.value, self.half_width))
        return f"{sign}{amount}" + (f" ± {spread}" if spread and self.half_width else "")  # a relative change has a sign of its own


def paired_change(before: NDArray[np.float64], after: NDArray[np.float64]) -> PairedChange:
    """The mean of the differences of pairs.  A pair without a value on a side makes it unknown."""
    with np.errstate(invalid="ignore"):  # both never ended
        apart = after - before
    if not len(apart) or not np.isfinite(apart).all():
        return PairedChange(math.nan, math.nan)
    return PairedChange(float(apart.mean()), half_width(apart))
