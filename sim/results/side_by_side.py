"""Barrier modes side by side: the printed table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from sim.model.text import one_line
from sim.results.columns import Population, ResultColumn
from sim.results.consequences import Finish, LateTriggers, LongSavepoint, first_uploads, is_periodic
from sim.results.formats import MISSING, ms_text
from sim.results.not_completed import INTERRUPTIONS, BarrierPath, NotCompleted, path
from sim.results.rates import FALLS_SHORT, KeepingUp, Tables
from sim.results.summary import PRINTED, Summary, has_sample
from sim.results.tables import TOO_MANY_FAILED

# ---- Single checkpoints of a strategy, for sentences: the median one, the slowest one, the first upload, one that failed.
#
# Each exists, and its numbers stand in the tables of its run under its id.

FINALISATION = "finalisation"
"""Part of a path (`sim.results.critical_path.PathKind`): the metadata is written."""


@dataclass(frozen=True, slots=True)
class Single:
    """One checkpoint of a strategy."""

    number: int  # its id
    job: int | None  # number of its job; None: the run has only one
    replication: int | None  # None: the strategy has one run
    duration_ms: float
    written_bytes: float
    persisted_bytes: float
    path: BarrierPath
    is_savepoint: bool = False
    cut_off: str = ""  # the part of its path in which it failed or the run ended; empty: it completed

    def __str__(self) -> str:
        """``checkpoint 7``, ``checkpoint 7 of job 1``, ``savepoint 7 of replication 0``."""
        job = "" if self.job is None else f" of job {self.job}"
        return f"{'savepoint' if self.is_savepoint else 'checkpoint'} {self.number}{job}" + (
            "" if self.replication is None else f" of replication {self.replication}"
        )


class Singles(NamedTuple):
    """The single checkpoints of a strategy that sentences are about.  None: there is no such checkpoint."""

    median: Single | None  # of two in the middle the quicker
    slowest: Single | None
    first_upload: Single | None  # of the first run that has one
    failed: Single | None = None  # the first that failed for the most frequent reason
    under_way: Single | None = None  # when the run ended, for the longest
    savepoint: Single | None = None  # that took longest, or failed after the longest time
    # (reason, how many), the most frequent first; without what a restart or the end interrupted
    failures: tuple[tuple[str, int], ...] = ()
    in_a_row: int = 0  # failures without a completed checkpoint between them, at most
    restarts: int = 0  # of the job, because more checkpoints failed in a row than it tolerates
    from_beginning: int = 0  # of these: no checkpoint had completed


def singles(runs: Sequence[Tables], *, warmup_s: float = 0.0) -> Singles:
    """Median and slowest of those that `summarize` counts, over all runs."""
    counted: list[tuple[float, int, int]] = []  # duration, run, position in its table
    firsts: list[tuple[int, int]] = []
    failures: dict[str, list[tuple[int, int]]] = {}  # by reason
    savepoints: list[tuple[float, int, int]] = []  # as `counted`
    under_way: list[tuple[float, int, int]] = []  # trigger, run, position in its table
    for run, tables in enumerate(runs):
        rows = tables["checkpoints"]
        is_first = first_uploads(rows)
        is_later = ~is_first & is_periodic(rows) & (rows["trigger_timestamp"] >= warmup_s * 1e3).to_numpy()
        is_counted = (rows["status"] == "COMPLETED").to_numpy() & is_later
        is_failure = (
            (rows["status"] == "FAILED").to_numpy() & ~rows["failure_message"].isin(INTERRUPTIONS).to_numpy() & is_later
        )
        durations = rows["end_to_end_duration"].to_numpy(dtype=float)
        counted += [(float(durations[i]), run, int(i)) for i in np.flatnonzero(is_counted)]
        firsts += [(run, int(i)) for i in np.flatnonzero(is_first)]
        for i in np.flatnonzero(is_failure):
            failures.setdefault(str(rows["failure_message"].iloc[i]), []).append((run, int(i)))
        is_over = ~rows["failure_message"].isin(INTERRUPTIONS).to_numpy() & (rows["status"] != "IN_PROGRESS").to_numpy()
        savepoints += [(float(durations[i]), run, int(i)) for i in np.flatnonzero(is_over & ~is_periodic(rows))]
        is_open = (rows["status"] == "IN_PROGRESS").to_numpy() & is_periodic(rows)
        under_way += [(float(rows["trigger_timestamp"].iloc[i]), run, int(i)) for i in np.flatnonzero(is_open)]
    recoveries = pd.concat([tables["recoveries"][["cause", "restored_checkpoint"]] for tables in runs])
    is_by_failures = recoveries["cause"].astype(str).str.startswith(TOO_MANY_FAILED)
    restored = recoveries.loc[is_by_failures, "restored_checkpoint"]
    counted.sort()
    in_a_row = max((_in_a_row(tables["checkpoints"]) for tables in runs), default=0)
    reasons = sorted(failures, key=lambda reason: (-len(failures[reason]), reason))
    return Singles(
        median=_single(runs, *counted[(len(counted) - 1) // 2][1:]) if counted else None,
        slowest=_single(runs, *max(counted, key=lambda row: row[0])[1:]) if counted else None,
        first_upload=_single(runs, *firsts[0]) if firsts else None,
        failed=_single(runs, *failures[reasons[0]][0]) if reasons else None,
        under_way=_single(runs, *min(under_way)[1:]) if under_way else None,
        savepoint=_single(runs, *max(savepoints)[1:]) if savepoints else None,
        failures=tuple((reason, len(failures[reason])) for reason in reasons),
        in_a_row=in_a_row,
        restarts=len(restored),
        from_beginning=int((restored == 0).sum()),
    )


def _in_a_row(rows: pd.DataFrame) -> int:
    """A savepoint that completes ends them, too; one that fails is none of them."""
    is_failure = (rows["status"] == "FAILED") & ~rows["failure_message"].isin(INTERRUPTIONS) & is_periodic(rows)
    ended = (rows["trigger_timestamp"] + rows["end_to_end_duration"])[
        is_failure | (rows["status"] == "COMPLETED")
    ].sort_values()
    failed = is_failure[ended.index]
    return int(failed.groupby((~failed).cumsum()).sum().max()) if len(failed) else 0


def _single(runs: Sequence[Tables], run: int, position: int) -> Single:
    tables = runs[run]
    row = tables["checkpoints"].iloc[position]
    job = int(row["x_job"]) if "x_job" in row.index else None
    parts = _of(tables["path"], int(row["id"]), job)
    is_cut_off = row["status"] != "COMPLETED" and len(parts) > 0
    return Single(
        number=int(row["id"]),
        job=job,
        replication=run if len(runs) > 1 else None,
        duration_ms=float(
            parts["duration"].sum() / 1e6 if row["status"] == "IN_PROGRESS" else row["end_to_end_duration"]
        ),
        written_bytes=float(row["checkpointed_size"]),
        persisted_bytes=float(row["persisted_data"]),
        is_savepoint=bool(row["savepointFormat"]),
        # before the failure, if it was its metadata that was not written
        path=path(parts[parts["part"] != FINALISATION]),
        cut_off=str(parts["part"].iloc[-1]) if is_cut_off else "",
    )


def _of(rows: pd.DataFrame, number: int, job: int | None) -> pd.DataFrame:
    chosen = rows["id"] == number
    return rows[chosen if job is None else chosen & (rows["x_job"] == job)]


# ---- Strategies side by side: a row each, as numbers for machines and as short texts for people.
#
# A first upload is a row of its own, below its strategy, and so are checkpoints that did not complete.  A percentile
# stands there only with its sample (`sim.model.quantities`).

FIRST_UPLOAD = "{}: first upload"
"""Name of the row of first uploads, below that of their strategy."""
NOT_COMPLETED = "{}: {} {}"
"""Name of a row of checkpoints that did not complete: strategy, number, fate."""


@dataclass(frozen=True, slots=True)
class StrategyRow:
    """A strategy as a row of a comparison."""

    label: str
    axes: tuple[tuple[str, str], ...]  # (axis, value) of the scenario's variations
    group: str  # variation of the job: strategies of a group meet the same workload
    status: str  # RUNNING, FINISHED, or FAILED with its reason
    summary: Summary
    baseline_per_second: float = math.nan  # throughput of the same job without checkpoints
    failed: bool = False  # the job failed, not only checkpoints
    name: str = ""  # the label without the part that names the group
    steady: bool = True  # neither restarted nor ended, so the sinks served all arrivals once
    until_s: float = math.nan  # when the job was over, mean over its runs; NaN: some run on
    overload: KeepingUp | None = None  # before anything went wrong; None: it keeps up
    singles: Singles = Singles(None, None, None)  # the checkpoints that sentences speak of
    first: Summary | None = None  # of its first uploads alone; None: it has none
    finish: Finish | None = None  # None: some job of it does not finish
    last_trigger_s: float = math.nan  # checkpoints end then, and the job runs on; NaN: they go on
    late: LateTriggers | None = None  # than the interval says; None: they are not
    savepoint: LongSavepoint | None = None  # None: none outlasts the checkpoints
    has_savepoints: bool = False  # some savepoint completed or failed
    committers: tuple[str, ...] = ()  # vertices that do nothing else
    without_interval: bool = False  # no checkpoint is ever due, nor a savepoint
    hidden: tuple[str, ...] = ()  # vertices that commit, if nothing of theirs became visible
    not_completed: tuple[NotCompleted, ...] = ()  # by fate
    sinks: tuple[str, ...] = ()  # the vertices whose throughput it is
    sources: tuple[str, ...] = ()
    unlimited_bytes: int = 0  # as in `Scenario`
    tolerable: int = 0  # failed checkpoints in a row
    harmed_sink: str = (
        ""  # ``'table' (Apache Paimon) does not start``: a sink under which no barrier may overtake data; empty: none
    )

    @property
    def called(self) -> str:
        """The name of the strategy in a sentence."""
        return self.name or self.label

    @property
    def busiest(self) -> tuple[str, float]:
        """The bottleneck and its share of busy time; a subtask of it, if that is much busier than the others."""
        row = self.summary
        if row.busiest_subtask_share > row.busy_share + 0.1:
            return f"{row.bottleneck}[{row.busiest_subtask}]", row.busiest_subtask_share
        return row.bottleneck, row.busy_share

    @property
    def is_over(self) -> bool:
        """Whether some job of it ended within the run."""
        return self.status != "RUNNING" or not math.isnan(self.until_s)

    @property
    def shortfall(self) -> tuple[float, float] | None:
        """(emitted, due) per second by its sources if they fall short: over a run without restarts, or before the first fault."""
        row = self.summary
        if self.steady and row.emitted_per_second < (1 - FALLS_SHORT) * row.offered_per_second:
            return row.emitted_per_second, row.offered_per_second
        return None if self.overload is None else (self.overload.emitted_per_second, self.overload.due_per_second)

    @property
    def throughput_change(self) -> float:
        """The change against no checkpoints, as a share."""
        if not self.baseline_per_second > 0:
            return math.nan
        return self.summary.throughput_per_second / self.baseline_per_second - 1


def table(strategies: Sequence[StrategyRow]) -> pd.DataFrame:
    """Every number, units in the column names.  NaN: a percentile of too few."""
    rows = [
        {"strategy": line.label, **dict(line.axes), "status": line.status, **_with_sample(line.summary)}
        | {
            "baseline_per_second": line.baseline_per_second,
            "throughput_change": line.throughput_change,
            "until_s": line.until_s,
        }
        | {"last_trigger_s": line.last_trigger_s, **_finish(line.finish)}
        | {f"overload_{name}": getattr(line.overload, name, math.nan) for name in _OVERLOAD}
        for line in strategies
    ]
    return pd.DataFrame(rows)


def _finish(found: Finish | None) -> dict[str, float]:
    if found is None:
        return {"finish_idle_s": math.nan, "finish_checkpoints": math.nan, "final_checkpoint_ms": math.nan}
    return {
        "finish_idle_s": found.idle_s,
        "finish_checkpoints": found.checkpoints,
        "final_checkpoint_ms": found.final_ms,
    }


def texts(strategies: Sequence[StrategyRow]) -> tuple[list[str], list[list[str]]]:
    """(header, rows) for a terminal.  Columns that say nothing of any strategy are left out."""
    rows: list[list[str]] = []
    for line in strategies:
        rows.append(
            [
                line.label,
                *(own.value_text(line.summary.row()) if own.cell is None else own.cell(line) for own in PRINTED),
            ]
        )
        if line.first is not None:
            rows.append([FIRST_UPLOAD.format(line.label), *_first_texts(line, line.first)])
        rows += [
            [NOT_COMPLETED.format(line.label, found.count, found.fate), *_not_completed_texts(found)]
            for found in line.not_completed
        ]
    shown = [i for i, own in enumerate(PRINTED) if not (rows and all(own.says_nothing(row[1 + i]) for row in rows))]
    header = [_of_vertices(PRINTED[i], strategies) for i in shown]
    return ["strategy", *header], [[row[0], *(row[1 + i] for i in shown)] for row in rows]


_OVERLOAD = ("emitted_per_second", "due_per_second", "until_s")
"""Columns of a job that does not keep up; the last one: until when that was looked at, NaN: to the end."""


def _first_texts(line: StrategyRow, first: Summary) -> Iterator[str]:
    """The row of first uploads; what is about all of the run is in the row of the strategy."""
    own_line, row = replace(line, summary=first), first.row()
    for own in PRINTED:
        if own.name == "completed":
            yield str(first.completed)
        elif own.population not in (Population.COMPLETED, None):
            yield MISSING
        else:
            yield own.value_text(row) if own.cell is None else own.cell(own_line)


def _not_completed_texts(found: NotCompleted) -> Iterator[str]:
    """Their durations are bounds, and so is the part in which they were given up."""
    bounds = {"end_to_end_p50_ms": found.median_ms, "end_to_end_max_ms": found.longest_ms}
    for own in PRINTED:
        if own.name == "completed":
            yield "0"
        elif (ms := bounds.get(own.name, found.parts_ms.get(own.heading))) is not None:
            yield ("> " if own.name in bounds or own.heading == found.cut_off else "") + ms_text(ms)
        else:
            yield MISSING


def _with_sample(summary: Summary) -> dict[str, Any]:
    """The flat row, without percentiles of too few."""
    row = summary.row()
    return {column: value if has_sample(column, row) else math.nan for column, value in row.items()}


def _of_vertices(column: ResultColumn, strategies: Sequence[StrategyRow]) -> str:
    """``throughput (sink)``: of which vertices it is, if that is the same in all rows."""
    vertices = {getattr(line, column.vertices) for line in strategies} if column.vertices else set()
    if len(vertices) != 1 or not (names := vertices.pop()):
        return column.heading
    return f"{column.heading} ({one_line(names[0], 24) if len(names) == 1 else f'{len(names)} vertices'})"
