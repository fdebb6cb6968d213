"""What the history of a job says of a run's results, as plain data: JSON of commands and files of results carry it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sim.analysis.json_ready import json_ready
from sim.evidence.what_ifs.factors import sentences
from sim.scenario.history.residuals import tail_sentence
from sim.scenario.history.verdict import verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sim.model.backtest import Backtest
    from sim.model.scenario import Scenario


def history_sentences(backtest: Backtest | None, scenarios: Sequence[Scenario]) -> list[str]:
    """What the history says of these runs: the verdict of its backtest, how far what-ifs may be off, what tails are drawn from."""
    lines = [] if backtest is None else [verdict(backtest), *sentences(backtest, scenarios)]
    return [*lines, *filter(None, dict.fromkeys(tail_sentence(scenario.residuals) for scenario in scenarios))]


def history_of(backtest: Backtest | None, scenarios: Sequence[Scenario]) -> dict[str, Any] | None:
    """The history of an imported file.  None: the file was not imported."""
    residuals = scenarios[0].residuals
    lines = history_sentences(backtest, scenarios)
    if not lines:
        return None
    off = [
        {
            "quantity": row.quantity, "vertex": row.vertex or None, "quantile": level, "cause": row.cause,
            "observed": json_ready(row.observed.at(level)), "predicted": json_ready(row.predicted.at(level)),
        }
        for row in (() if backtest is None else backtest.off) for level in row.off
    ]  # fmt: skip
    counted = None if backtest is None else backtest.checkpoints
    return {"sentences": lines, "checkpoints": counted, "off": off, "tail_from_checkpoints": residuals.checkpoints or None}
