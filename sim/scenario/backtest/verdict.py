"""The verdict of a backtest as a sentence, for whatever runs a file that has one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sim.model.backtest import Backtest, Compared, Level, OtherSettings

__all__ = ["agreement_text", "other_settings_text", "verdict"]


def verdict(backtest: Backtest) -> str:
    """``the simulation is off from the history of 24 checkpoints that was imported: end-to-end p90 -54 %``."""
    history = f"the history of {backtest.checkpoints} checkpoints that was imported"
    others = f"; {text}" if (text := other_settings_text(backtest.other_settings)) else ""
    if not backtest.off:
        return f"the simulation agrees with {history} as repetitions of one job do{others}"
    changes = ", ".join(agreement_text(row, level) for row in backtest.off for level in row.off)
    return f"the simulation is off from {history}: {changes}{others}"


def other_settings_text(factors: OtherSettings | None) -> str:
    """``checkpoints of other settings: p50 within a factor of 1.5, p90 unknown``; empty: the file is older than that."""
    if factors is None:
        return ""
    p50, p90 = (f"within a factor of {factor:.2g}" if math.isfinite(factor) else "unknown" for factor in (factors.p50, factors.p90))
    return f"checkpoints of other settings: p50 {p50}, p90 {p90}"


def agreement_text(row: Compared, level: Level) -> str:
    """``end-to-end p90 -54 %``: predicted against observed."""
    observed, predicted = row.observed.at(level), row.predicted.at(level)
    if not row.predicted.count or not observed:
        return f"{row.quantity} {level} not seen"
    return f"{row.quantity} {level} {100 * (predicted - observed) / observed:+.0f} %"
