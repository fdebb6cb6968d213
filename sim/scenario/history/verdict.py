"""The verdict of a backtest as a sentence, for all verbs that run a file with one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sim.model.backtest import Backtest, ComparedQuantity
    from sim.quantities.observed import Level


def verdict(backtest: Backtest) -> str:
    """``the simulation is off from the history of 24 checkpoints that was imported: end-to-end p90 -54 %``."""
    history = f"the history of {backtest.checkpoints} checkpoints that was imported"
    if not backtest.off:
        return f"the simulation agrees with {history} as repetitions of one job do"
    changes = ", ".join(agreement_text(row, level) for row in backtest.off for level in row.off)
    return f"the simulation is off from {history}: {changes}"


def agreement_text(row: ComparedQuantity, level: Level) -> str:
    """``end-to-end p90 -54 %``: predicted against observed."""
    change = row.change(level)
    return f"{row.quantity} {level} {'not seen' if change is None else f'{100 * change:+.0f} %'}"
