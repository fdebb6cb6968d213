"""The bounds of an advice: work of all runs, and time on the clock.  At a bound the answer is given from what has run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sim.foreign import Readable

if TYPE_CHECKING:
    import pandas as pd

    from sim.model.scenario import Scenario

GRID, LEVERS, CERTAINTY, RACE, ALL = 0.5, 0.6, 0.65, 0.85, 1.0
"""Shares of the budget.  The grid of intervals leaves room for levers, both for more runs of the best settings, and these for long runs.

The race leaves the rest: for the smallest change that would fit where nothing does, and for what is not known.
"""
OVER_BUDGET = "more work than the budget leaves (--budget)"
OUT_OF_TIME = "time was up"

Affords = Callable[["Sequence[Scenario]", "Sequence[Scenario]", float], bool]
"""(undisturbed runs, runs with a failure, share) -> whether that share of the budget covers these and all earlier runs."""
Lack = Callable[[], str]
"""Why the last runs were not covered."""


class BudgetUsedError(Exception):
    """The bounds do not cover these runs."""


class TimeUpError(BudgetUsedError):
    """Time was up while runs went on.  `rows`: of those that had ended."""

    def __init__(self, rows: pd.DataFrame) -> None:
        super().__init__(OUT_OF_TIME)
        self.rows = rows


class NothingRanError(Readable, RuntimeError):
    """Time was up before a single setting had run; says what to do."""


def any_amount(steady: Sequence[Scenario], failing: Sequence[Scenario], share: float) -> bool:
    """Unlimited bounds: they cover all runs."""
    del steady, failing, share
    return True


def over_budget() -> str:
    """The reason of a budget alone."""
    return OVER_BUDGET
