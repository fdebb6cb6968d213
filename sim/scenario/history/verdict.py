"""The verdict of a backtest as a sentence, for all verbs that run a file with one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sim.model.backtest import Backtest, ComparedQuantity
    from sim.quantities.observed import Level


def verdict(backtest: Backtest) -> str:
    """``the simulation is off from the history of 24 checkpoints that was imported: end-to-end p90 -54 %``."""
    if missed := missed_failures(backtest):
        return missed
    history = f"the history of {backtest.checkpoints} checkpoints that was imported"
    if not backtest.off:
        return f"the simulation agrees with {history} as repetitions of one job do"
    changes = ", ".join(agreement_text(row, level) for row in backtest.off for level in row.off)
    return f"the simulation is off from {history}: {changes}"


def missed_failures(backtest: Backtest | None) -> str:
    """``the simulation does not reproduce the failures of this job: ...``.  Empty: it does, or there were few."""
    if backtest is None or (own := backtest.failures) is None or not own.are_missed:
        return ""
    reason = f" ({own.reason})" if own.reason else ""
    restarts = f", and the job failed {'once' if own.job_failures == 1 else f'{own.job_failures} times'}" if own.job_failures else ""
    seen, predicted = own.failed + own.completed, own.predicted_failed + own.predicted_completed
    return (
        f"the simulation does not reproduce the failures of this job: {own.failed} of {seen} checkpoints of its history "
        f"failed{reason}{restarts}; in the simulation {own.predicted_failed} of {predicted} failed. "
        "What it says of durations and recovery holds only once the cause of these failures is removed"
    )


def agreement_text(row: ComparedQuantity, level: Level) -> str:
    """``end-to-end p90 -54 %``: predicted against observed."""
    change = row.change(level)
    return f"{row.quantity} {level} {'not seen' if change is None else f'{100 * change:+.0f} %'}"
