"""What an advised setting costs and gains against today's: differences run by run, under the same random numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sim.advice.judgement import MEASURED, Trials
from sim.analysis.number_texts import bytes_text, ms_text, per_second_text
from sim.analysis.paired import PairedChange, paired_change
from sim.quantities.prices import cost_text

if TYPE_CHECKING:
    from sim.advice.race import Race

TAIL = "checkpoint p99"
"""As it is called where there are enough checkpoints."""

_QUANTITIES: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("per_second", "throughput", per_second_text),
    ("checkpoint_p50_ms", "checkpoint p50", ms_text),
    ("checkpoint_ms", TAIL, ms_text),
    ("recovery_ms", "recovery", ms_text),
    ("written_per_hour", "written per hour", bytes_text),
    ("visible_ms", "output visible p99", ms_text),
    ("storage_cost", "object store, per month", cost_text),
)


@dataclass(frozen=True, slots=True)
class Difference:
    """The change of one quantity, and how its values are written."""

    quantity: str
    today: float
    advised: float
    change: PairedChange
    text: Callable[[float], str]

    def row(self) -> list[str]:
        return [self.quantity, self.text(self.today), self.text(self.advised), self.change.text(self.text)]

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        change = {"change": self.change.value, "half_width": self.change.half_width}
        return {"quantity": self.quantity, "today": self.today, "advised": self.advised, **change}


def against_today(race: Race) -> list[Difference]:
    """The differences of the advised setting; empty: nothing changes."""
    before, chosen = race.replaced, race.chosen
    return [] if before is None or chosen is None else differences(race.trials, before.name, chosen.name)


def differences(trials: Trials, today: tuple[str, str], advised: tuple[str, str]) -> list[Difference]:
    """A difference per quantity, over the worlds that both settings ran in.  A quantity that no run has is left out."""
    shared = [world for world in trials[today] if world in trials[advised]]
    pairs = [pair for world in shared for pair in zip(trials[today][world], trials[advised][world], strict=False)]
    found = []
    for column, quantity, text in _QUANTITIES if pairs else ():
        before, after = np.array(pairs, dtype=float)[:, :, MEASURED.index(column)].T
        if not (np.isnan(before).all() and np.isnan(after).all()):
            found.append(Difference(quantity, float(before.mean()), float(after.mean()), paired_change(before, after), text))
    return found
