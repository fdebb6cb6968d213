"""Summarize the end of bounded jobs: the time after the last record, the final checkpoint, and triggers that stop before the end."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from sim.model.frozen import frozen
from sim.results.rates import Tables
from sim.results.tables import is_periodic, job_of

_MAX_SILENT_INTERVALS = 3
"""Checkpoints count as stopped after this many intervals without a trigger."""
_ROUNDING_RECORDS = 0.5
"""Tolerance for rounding errors of rates [records]."""


@frozen
class Finish:
    """The end of the bounded job of a strategy.  Times and counts are means over its runs."""

    at_s: float  # end of the job
    idle_s: float  # time after the last second in which a record was served
    checkpoints: float  # number of completed checkpoints that were triggered in that time
    final: int | None  # id of the final checkpoint in the first run; None if it did not complete
    of: str  # the run or job that the id belongs to, e.g. `` of job 1``; "" if there is only one
    final_ms: float  # time from the trigger of the final checkpoint to its completion
    committed: float  # number of records


def finish(runs: Sequence[Tables], ends_s: Sequence[float], committed: float) -> Finish:
    """Summarize the end of finished jobs.

    `runs`: tables of the replications.  `ends_s`: end of each run.  `committed`: number of committed records.
    """
    after_last = [_after_last_record(run, end_s) for run, end_s in zip(runs, ends_s, strict=True)]
    final_rows = _final_checkpoint(runs[0])
    final = None if final_rows.empty else final_rows.iloc[-1]
    job = "" if final is None or "x_job" not in final_rows else f" of job {int(final['x_job'])}"
    return Finish(
        at_s=sum(ends_s) / len(runs),
        idle_s=sum(idle_s for idle_s, _ in after_last) / len(runs),
        checkpoints=sum(len(rows) for _, rows in after_last) / len(runs),
        final=None if final is None else int(final["id"]),
        of=job + (" of replication 0" if final is not None and len(runs) > 1 else ""),
        final_ms=math.nan if final is None else float(final["end_to_end_duration"] + final["x_finalization"]),
        committed=committed,
    )


def _final_checkpoint(run: Tables) -> pd.DataFrame:
    """Return the completed final checkpoint, which includes the end of data of all tasks, as a table with at most one row.

    If the first such checkpoint fails, tasks wait for the next periodic one (FLIP-147).
    """
    tasks, rows = (_rows_of_last_job(run[name]) for name in ("tasks", "checkpoints"))
    first = tasks["x_finalCheckpoint"].max()
    is_final = (rows["id"] == first) | (is_periodic(rows) & (rows["id"] > first) & (first > 0))
    final: pd.DataFrame = rows[(rows["status"] == "COMPLETED") & is_final].head(1)
    return final


def _rows_of_last_job(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the last job instance in a chain."""
    last: pd.DataFrame = table[job_of(table) == job_of(table).max()]
    return last


def _after_last_record(run: Tables, end_s: float) -> tuple[float, pd.DataFrame]:
    """Return (time after the last processed record [s], rows of completed checkpoints that were triggered in that time)."""
    series, rows = run["series"], run["checkpoints"]
    served = series.loc[series["numRecordsInPerSecond"] > 0, "time"]
    last_s = min(end_s, float(served.max())) if len(served) else 0.0
    triggered_after = rows[(rows["status"] == "COMPLETED") & (rows["trigger_timestamp"] >= 1e3 * last_s)]
    if _served_after_samples(run):
        # the last, partial second has no sample, so the time of its records is unknown
        return 0.0, triggered_after.tail(1)
    return end_s - last_s, triggered_after


def _served_after_samples(run: Tables) -> bool:
    """Return True if tasks of the last job processed records after the last sample.  Samples are taken once a second."""
    tasks, series = _rows_of_last_job(run["tasks"]), _rows_of_last_job(run["series"])
    return bool(tasks["numRecordsIn"].sum() > series["numRecordsInPerSecond"].sum() + _ROUNDING_RECORDS)


def last_trigger_s(
    runs: Sequence[Tables], ends_s: Sequence[float], interval_s: float, min_pause_s: float = 0.0
) -> float:
    """Return the time of the last trigger in all runs [s], or NaN if checkpoints continue until the end of some run.

    Checkpoints continue if at most `_MAX_SILENT_INTERVALS` intervals passed since the end of the min-pause after the last
    checkpoint, or since the last restart, if a checkpoint is in progress, or if the job is down at the end of the run.
    `ends_s`: end of each run.
    """
    latest_s = 0.0
    for run, end_s in zip(runs, ends_s, strict=True):
        rows, restarts = run["checkpoints"], run["recoveries"]
        done_ms = (rows["trigger_timestamp"] + rows["end_to_end_duration"]).max() if len(rows) else 0.0
        running_ms = restarts["running"].max() if len(restarts) else 0.0
        since_s = max(done_ms / 1e3 + min_pause_s, running_ms / 1e3)
        down = len(restarts) and restarts["running"].iloc[-1] < 0
        if down or (rows["status"] == "IN_PROGRESS").any() or end_s - since_s <= _MAX_SILENT_INTERVALS * interval_s:
            return math.nan
        latest_s = max(latest_s, float(rows["trigger_timestamp"].max()) / 1e3 if len(rows) else 0.0)
    return latest_s
