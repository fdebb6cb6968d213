"""What an advised setting costs and gains against today's: differences run by run, under the same random numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sim.advice.judgement import MEASURED, Trials
from sim.analysis.intervals import half_width
from sim.analysis.number_texts import NONE, bytes_text, ms_text, per_second_text

TAIL = "checkpoint p99"
"""As it is called where there are enough checkpoints."""

_QUANTITIES: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("per_second", "throughput", per_second_text),
    ("checkpoint_p50_ms", "checkpoint p50", ms_text),
    ("checkpoint_ms", TAIL, ms_text),
    ("recovery_ms", "recovery", ms_text),
    ("written_per_hour", "written per hour", bytes_text),
    ("visible_ms", "output visible p99", ms_text),
    ("storage_cost", "object store, per month", "{:.2f}".format),
)


@dataclass(frozen=True, slots=True)
class Difference:
    """The change of one quantity.  `half_width` belongs to its 95 % confidence interval; a single run makes it infinite."""

    quantity: str
    today: float
    advised: float
    change: float
    half_width: float
    text: Callable[[float], str]

    def row(self) -> list[str]:
        return [self.quantity, self.text(self.today), self.text(self.advised), self._difference()]

    def _difference(self) -> str:
        if not math.isfinite(self.change):
            return NONE
        sign = "+" if self.change > 0 else "-" if self.change < 0 else ""
        spread = f" ± {self.text(self.half_width)}" if math.isfinite(self.half_width) else ""
        return f"{sign}{self.text(abs(self.change))}{spread}"


def differences(trials: Trials, today: tuple[str, str], advised: tuple[str, str]) -> list[Difference]:
    """A difference per quantity, over the worlds that both settings ran in.  A quantity that no run has is left out."""
    found = []
    for column, quantity, text in _QUANTITIES:
        at = MEASURED.index(column)
        pairs = [
            (now[at], then[at])
            for world, values in trials[today].items()
            for now, then in zip(values, trials[advised].get(world, values[:0]), strict=False)
        ]
        before, after = (np.array(side, dtype=float) for side in zip(*pairs, strict=True)) if pairs else (np.array([]), np.array([]))
        if not pairs or (np.isnan(before).all() and np.isnan(after).all()):
            continue
        with np.errstate(invalid="ignore"):
            apart = after - before
        known = apart[np.isfinite(apart)]
        change = float(known.mean()) if len(known) == len(apart) else math.nan
        found.append(Difference(quantity, float(before.mean()), float(after.mean()), change, half_width(known.tolist()), text))
    return found
