"""From a recorded job to its backtest: the order of the steps, and nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from sim.evidence.backtest.causes import evidence_of, with_causes
from sim.evidence.backtest.chance import other_settings
from sim.evidence.backtest.compared import agreements, row_per_quantity, tail_of
from sim.evidence.backtest.runs import BUDGET_S, Watch, runs_within
from sim.evidence.predicted import predicted
from sim.evidence.truth import scenario_of
from sim.foreign import one_line
from sim.model.backtest import LONGEST, Backtest, SeenFailures
from sim.recordings import observed
from sim.units import MS

if TYPE_CHECKING:
    from sim.plane import Engine
    from sim.recordings import RecordedJob
    from sim.recordings.source.recorded_job import RecordedCheckpoint


class NoHistoryError(Exception):
    """There is no history to compare a simulation with."""


def backtest(
    job: RecordedJob, *, chains: Mapping[str, str] | None = None, unbalanced: Sequence[str] = (), budget_s: float = BUDGET_S,
    engine: Engine = "compiled", watch: Watch = lambda _: None,
) -> Backtest:  # fmt: skip
    """`chains`: the operators of each vertex; `unbalanced`: flows that do not add up.  TooLargeError, NoHistoryError: there is none."""
    history = observed(job)
    durations = history[(history["quantity"] == "end_to_end_duration") & ~history["first"]]["value"]
    failed = [point for point in job.checkpoints.list if point.status == "FAILED" and not point.is_savepoint]
    if durations.empty and not failed:
        but = ", but for the first" if (history["quantity"] == "end_to_end_duration").any() else ""
        raise NoHistoryError(f"no completed checkpoint is known{but}")
    scenario = scenario_of(job)
    results = runs_within(scenario, job, budget_s=budget_s, engine=engine, watch=watch)
    in_runs = pd.concat([predicted(result) for result in results], ignore_index=True)
    rows = agreements(history, in_runs)
    explained = with_causes(rows, evidence_of(history, scenario, chains or {}, unbalanced))
    longest = sorted(durations.tolist(), reverse=True)[:LONGEST]
    compared, length_ns = tuple(row_per_quantity(explained)), results[0].scenario.run.duration_ns
    duration = next((row for row in rows if row.quantity == "end-to-end"), None)
    others = None if durations.empty else other_settings(durations.tolist(), duration)
    failures = _failures(job, failed, history, in_runs) if failed or job.failures else None
    return Backtest(compared, tuple(longest), tail_of(rows), len(results), length_ns, others, failures)


def _failures(job: RecordedJob, failed: Sequence[RecordedCheckpoint], history: pd.DataFrame, in_runs: pd.DataFrame) -> SeenFailures:
    seen, simulated = (table.groupby("quantity")["value"].sum() for table in (history, in_runs))
    reasons = Counter(one_line(point.failure_message, 80) for point in failed if point.failure_message)
    return SeenFailures(
        int(seen.get("completed", 0)), len(failed), reasons.most_common(1)[0][0] if reasons else "",
        int(simulated.get("completed", 0)), int(simulated.get("failed", 0)), job.failures, round(job.ran_ms) * MS,
    )  # fmt: skip
