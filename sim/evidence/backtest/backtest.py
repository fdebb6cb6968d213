"""From a recorded job to its backtest: the order of the steps, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from sim.evidence.backtest.causes import evidence_of, with_causes
from sim.evidence.backtest.chance import other_settings
from sim.evidence.backtest.compared import agreements, row_per_quantity, tail_of
from sim.evidence.backtest.runs import BUDGET_S, Watch, runs_within
from sim.evidence.predicted import predicted
from sim.evidence.truth import scenario_of
from sim.model.backtest import LONGEST, Backtest
from sim.recordings import observed

if TYPE_CHECKING:
    from sim.plane import Engine
    from sim.recordings import RecordedJob


class NoHistoryError(Exception):
    """There is no history to compare a simulation with."""


def backtest(
    job: RecordedJob, *, chains: Mapping[str, str] | None = None, unbalanced: Sequence[str] = (), budget_s: float = BUDGET_S,
    engine: Engine = "compiled", watch: Watch = lambda _: None,
) -> Backtest:  # fmt: skip
    """`chains`: the operators of each vertex; `unbalanced`: flows that do not add up.  TooLargeError, NoHistoryError: there is none."""
    history = observed(job)
    durations = history[(history["quantity"] == "end_to_end_duration") & ~history["first"]]["value"]
    if durations.empty:
        raise NoHistoryError("no completed checkpoint is known, but for the first")
    scenario = scenario_of(job)
    results = runs_within(scenario, job, budget_s=budget_s, engine=engine, watch=watch)
    rows = agreements(history, pd.concat([predicted(result) for result in results], ignore_index=True))
    explained = with_causes(rows, evidence_of(history, scenario, chains or {}, unbalanced))
    longest = sorted(durations.tolist(), reverse=True)[:LONGEST]
    compared, length_ns = tuple(row_per_quantity(explained)), results[0].scenario.run.duration_ns
    duration = next((row for row in rows if row.quantity == "end-to-end"), None)
    others = other_settings(durations.tolist(), duration)
    return Backtest(compared, tuple(longest), tail_of(rows), len(results), length_ns, others)
