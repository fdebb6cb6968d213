"""When a job with an end comes to it, what that takes beyond its last record, and whether checkpoints end before the job does."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from sim.analysis.strategies.rates import Tables

_SILENT = 3
"""So many intervals without a trigger: checkpoints have ended."""
_ROUNDED = 0.5
"""Rates are rounded: less than a record is none."""


@dataclass(frozen=True, slots=True)
class Finish:
    """The end of jobs that finish; means over the runs of a strategy."""

    at_s: float
    idle_s: float  # after the last second in which a record was served
    checkpoints: float  # completed that were triggered in that time
    final: int | None  # id of the checkpoint that holds the end of all tasks, in the first run; None: none does
    of: str  # which run or job counts it: `` of job 1``; empty: there is only one
    final_ms: float  # from its trigger until it is complete
    committed: float  # records


def finish(runs: Sequence[Tables], ends_s: Sequence[float], committed: float) -> Finish:
    """`runs`: of jobs that finished; `ends_s`: when."""
    late = [_after_last_record(run, end_s) for run, end_s in zip(runs, ends_s, strict=True)]
    holding = _holding_the_end(runs[0])
    final = None if holding.empty else holding.iloc[-1]
    return Finish(
        at_s=sum(ends_s) / len(runs),
        idle_s=sum(idle_s for idle_s, _ in late) / len(runs),
        checkpoints=sum(len(rows) for _, rows in late) / len(runs),
        final=None if final is None else int(final["id"]),
        of="" if final is None else _of_run(final, several=len(runs) > 1),
        final_ms=math.nan if final is None else float(final["end_to_end_duration"] + final["x_finalization"]),
        committed=committed,
    )


def _holding_the_end(run: Tables) -> pd.DataFrame:
    """Completed checkpoints that hold the end of all tasks, at most one: the latest of the tasks' final checkpoints."""
    tasks, rows = (_of_last_job(run[name]) for name in ("tasks", "checkpoints"))
    found: pd.DataFrame = rows[(rows["status"] == "COMPLETED") & (rows["id"] == tasks["x_finalCheckpoint"].max())]
    return found


def _of_last_job(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of the last job of a chain."""
    last: pd.DataFrame = table[table["x_job"] == table["x_job"].max()] if "x_job" in table.columns else table
    return last


def _of_run(row: pd.Series[Any], *, several: bool) -> str:
    """The words behind the id of a checkpoint of the first run."""
    return (f" of job {int(row['x_job'])}" if "x_job" in row.index else "") + (" of replication 0" if several else "")


def _after_last_record(run: Tables, end_s: float) -> tuple[float, pd.DataFrame]:
    """(seconds without a record at the end, completed checkpoints that were triggered then)."""
    series, rows = run["series"], run["checkpoints"]
    served = series.loc[series["numRecordsInPerSecond"] > 0, "time"]
    last_s = min(end_s, float(served.max())) if len(served) else 0.0
    late = rows[(rows["status"] == "COMPLETED") & (rows["trigger_timestamp"] >= 1e3 * last_s)]
    if _served_after_samples(run):
        return 0.0, late.tail(1)  # a last second that is not whole has no sample, so the time of its records is not known
    return end_s - last_s, late


def _served_after_samples(run: Tables) -> bool:
    """Whether tasks of the last job served more records than samples saw: a sample is taken once a second."""
    tasks, series = _of_last_job(run["tasks"]), _of_last_job(run["series"])
    return bool(tasks["numRecordsIn"].sum() > series["numRecordsInPerSecond"].sum() + _ROUNDED)


def last_trigger_s(runs: Sequence[Tables], ends_s: Sequence[float], interval_s: float) -> float:
    """When the last checkpoint was triggered if none follows for three intervals, in any run; NaN: they go on, or one is under way."""
    found = -math.inf
    for run, end_s in zip(runs, ends_s, strict=True):
        rows, restarts = run["checkpoints"], run["recoveries"]
        last_s = float(rows["trigger_timestamp"].max()) / 1e3 if len(rows) else 0.0
        down = len(restarts) and float(restarts["running"].iloc[-1]) < 0
        begun_s = float(restarts["running"].max()) / 1e3 if len(restarts) else 0.0
        if down or (rows["status"] == "IN_PROGRESS").any() or end_s - max(last_s, begun_s) <= _SILENT * interval_s:
            return math.nan
        found = max(found, last_s)
    return found
