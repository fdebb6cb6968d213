"""What the history of a job says of a run's results, as plain data: JSON of commands and files of results carry it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from sim.scenario.backtest.verdict import verdict
from sim.scenario.residuals.sentence import tail_sentence

if TYPE_CHECKING:
    from sim.model.backtest import Backtest
    from sim.model.residuals import Residuals

__all__ = ["history_of", "history_sentences"]


def history_sentences(backtest: Backtest | None, residuals: Residuals) -> list[str]:
    return [sentence for sentence in ("" if backtest is None else verdict(backtest), tail_sentence(residuals)) if sentence]


def history_of(backtest: Backtest | None, residuals: Residuals) -> dict[str, Any] | None:
    """None: the file was not imported."""
    sentences = history_sentences(backtest, residuals)
    if not sentences:
        return None
    off = [
        {
            "quantity": row.quantity, "vertex": row.vertex or None, "quantile": level, "cause": row.cause,
            "observed": _finite(row.observed.at(level)), "predicted": _finite(row.predicted.at(level)),
        }
        for row in (() if backtest is None else backtest.off) for level in row.off
    ]  # fmt: skip
    counted = None if backtest is None else backtest.checkpoints
    return {"sentences": sentences, "checkpoints": counted, "off": off, "tail_from_checkpoints": residuals.checkpoints or None}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
