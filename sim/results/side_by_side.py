"""Strategies as rows of a comparison: the single checkpoints that sentences refer to, and the table of strategies."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from operator import itemgetter
from typing import Any, NamedTuple

import pandas as pd

from sim.model.frozen import frozen
from sim.model.text import one_line
from sim.results.columns import Population, ResultColumn, numbers_of, units_of
from sim.results.end_of_job import Finish
from sim.results.estimates import is_noise
from sim.results.formats import MISSING
from sim.results.late_triggers import LateTriggers, LongSavepoint
from sim.results.not_completed import INTERRUPTIONS, PARTS, BarrierPath, NotCompleted, path
from sim.results.rates import MIN_SHORTFALL_SHARE, KeepingUp, Tables
from sim.results.summary import PRINTED, Summary, has_sample
from sim.results.tables import NOT_TRIGGERED, TOO_MANY_FAILED, first_uploads, is_periodic, job_of

# ---- Single checkpoints that sentences refer to: the median one, the slowest one, the first upload, a failed one.
#
# They are actual checkpoints of a run. The result tables of the run contain them under the same id.

FINALISATION = "finalisation"
"""Part of a critical path in which the coordinator writes the metadata (`sim.results.critical_path.PathKind`)."""


@frozen
class Single:
    """A single checkpoint or savepoint of a strategy."""

    number: int  # checkpoint id
    job: int | None  # number of the job instance; None if the run has only one
    replication: int | None  # number of the run; None if the strategy has only one
    duration_ms: float  # end-to-end, or until the failure or the end of the run
    written_bytes: float  # Flink's checkpointed size
    persisted_bytes: float  # in-flight data
    path: BarrierPath  # its critical path
    savepoint_format: str = ""  # CANONICAL or NATIVE; "" for a checkpoint
    cut_off: str = (
        ""  # part of its critical path that the failure or the end of the run interrupted; "" if it completed
    )
    late_input: str = ""  # upstream subtask whose barrier ends the longest alignment
    # (cause, time of the loss [ms], time of its detection [ms]) of a TaskManager, if the checkpoint failed in between
    unknown_loss: tuple[str, float, float] | None = None

    def __str__(self) -> str:
        """Return ``checkpoint 7``, ``checkpoint 7 of job 1`` or ``savepoint 7 of replication 0``."""
        job = "" if self.job is None else f" of job {self.job}"
        return f"{'savepoint' if self.savepoint_format else 'checkpoint'} {self.number}{job}" + (
            "" if self.replication is None else f" of replication {self.replication}"
        )


class Singles(NamedTuple):
    """Checkpoints and failures of a strategy that sentences refer to.  A field is None if there is no such checkpoint."""

    median: Single | None  # the one at `median_index`
    slowest: Single | None
    first_upload: Single | None  # of the first run that has one
    failed: Single | None = None  # the first one that failed for the most frequent reason
    under_way: Single | None = None  # the oldest one that is in progress at the end of the run
    savepoint: Single | None = None  # the longest savepoint that completed or failed
    # (reason, count), the most frequent first, except those that a restart or the end of the job interrupted
    failures: tuple[tuple[str, int], ...] = ()
    in_a_row: int = 0  # maximum number of consecutive failures
    restarts: int = 0  # number of restarts because more checkpoints failed in a row than are tolerated
    from_beginning: int = 0  # number of these restarts without a restored checkpoint
    tail: int = 0  # number of checkpoints in the slowest quarter
    barriers_in_tail: int = 0  # number of these that wait longer for barriers than for files


CheckpointRow = Mapping[Any, Any]
"""A row of the table `checkpoints`, with the number of its run."""
_duration_ms = itemgetter("end_to_end_duration")


def singles(runs: Sequence[Tables], *, warmup_s: float = 0.0) -> Singles:
    """Return the single checkpoints of a strategy.

    The median and the slowest one are selected from the checkpoints that `summarize` counts.
    """
    checkpoints = [
        {**row, "run": run, "is_first": is_first, "is_periodic": is_scheduled}
        for run, rows in enumerate(tables["checkpoints"] for tables in runs)
        for row, is_first, is_scheduled in zip(
            rows.to_dict("records"), first_uploads(rows), is_periodic(rows), strict=True
        )
    ]
    periodic = [row for row in checkpoints if row["is_periodic"]]
    later = [row for row in periodic if not row["is_first"] and row["trigger_timestamp"] >= warmup_s * 1e3]
    done = sorted((row for row in later if row["status"] == "COMPLETED"), key=_duration_ms)
    tail = done[-math.ceil(len(done) / 4) :]
    ended = [
        row for row in checkpoints if row["status"] != "IN_PROGRESS" and row["failure_message"] not in INTERRUPTIONS
    ]
    failed = [row for row in later if row["status"] == "FAILED" and row["failure_message"] not in INTERRUPTIONS]
    reasons = sorted(
        Counter(str(row["failure_message"]) for row in failed).items(), key=lambda item: (-item[1], item[0])
    )
    open_ = [row for row in periodic if row["status"] == "IN_PROGRESS"]
    recoveries = pd.concat([tables["recoveries"][["cause", "restored_checkpoint"]] for tables in runs])
    is_by_failures = recoveries["cause"].astype(str).str.startswith(TOO_MANY_FAILED)
    restored = recoveries.loc[is_by_failures, "restored_checkpoint"]

    def single(rows: Iterable[CheckpointRow]) -> Single | None:
        """Return the first of these checkpoints, or None if there are none."""
        return next((_single(runs, row) for row in rows), None)

    return Singles(
        median=single(done[index] for index in [median_index([*map(_duration_ms, done)])] if done),
        slowest=single(row for row in done if _duration_ms(row) == _duration_ms(done[-1])),
        first_upload=single(row for row in checkpoints if row["is_first"]),
        failed=single(row for row in failed if row["failure_message"] == reasons[0][0]),
        under_way=single(sorted(open_, key=itemgetter("trigger_timestamp"))),
        savepoint=single(sorted((row for row in ended if not row["is_periodic"]), key=_duration_ms)[-1:]),
        failures=tuple(reasons),
        in_a_row=max((_max_consecutive_failures(tables["checkpoints"]) for tables in runs), default=0),
        restarts=len(restored),
        from_beginning=int((restored == 0).sum()),
        tail=len(tail),
        barriers_in_tail=_count_held_by_barriers(runs, tail),
    )


def median_index(durations: Sequence[float]) -> int:
    """Return the index of the checkpoint that stands for the median of sorted durations, in any unit.  0 if there are none.

    Of an even number, it is the faster of the two in the middle, or the slower one if they differ by more than noise.
    """
    low, high = max(len(durations) - 1, 0) // 2, len(durations) // 2
    return low if low >= high or is_noise(durations[high], durations[low]) else high


_SIGN_OF_KIND = {"queue": 1, "timeout": 1, "alignment": 1, "upload": -1, "channel_state": -1}
"""Kind of wait -> 1 if it is for barriers, -1 if it is for files."""


def _count_held_by_barriers(runs: Sequence[Tables], checkpoints: Sequence[CheckpointRow]) -> int:
    """Return how many of these checkpoints wait longer for barriers than for the files that their critical path writes."""
    count = 0
    for run, tables in enumerate(runs):
        keys = {(row.get("x_job", 0), row["id"]) for row in checkpoints if row["run"] == run}
        parts = tables["path"]
        spent_ns = Counter[tuple[int, int]]()
        for *key, part, ns in zip(job_of(parts), parts["id"], parts["part"], parts["duration"], strict=True):
            spent_ns[key[0], key[1]] += _SIGN_OF_KIND.get(PARTS.get(part, ""), 0) * ns
        count += sum(spent_ns[key] > 0 for key in keys)
    return count


def _max_consecutive_failures(rows: pd.DataFrame) -> int:
    """Return the maximum number of consecutive checkpoint failures that count (CheckpointFailureManager).

    A completed savepoint ends a series of failures; a failed savepoint, and a trigger that no task answered, are ignored.
    """
    is_failure = (
        (rows["status"] == "FAILED")
        & ~rows["failure_message"].isin([*INTERRUPTIONS, NOT_TRIGGERED])
        & is_periodic(rows)
    )
    ended = (rows["trigger_timestamp"] + rows["end_to_end_duration"])[
        is_failure | (rows["status"] == "COMPLETED")
    ].sort_values()
    failed = is_failure[ended.index]
    return int(failed.groupby((~failed).cumsum()).sum().max()) if len(failed) else 0


def _single(runs: Sequence[Tables], row: CheckpointRow) -> Single:
    """Return a checkpoint as a `Single`, with its critical path.  `row`: its row, including the number of its run."""
    tables = runs[row["run"]]
    job = int(row["x_job"]) if "x_job" in row else None
    parts = _rows_of_job(tables["path"], job)
    parts = parts[parts["id"] == row["id"]]
    is_cut_off = row["status"] != "COMPLETED" and len(parts) > 0
    return Single(
        number=int(row["id"]),
        job=job,
        replication=row["run"] if len(runs) > 1 else None,
        duration_ms=float(
            parts["duration"].sum() / 1e6 if row["status"] == "IN_PROGRESS" else row["end_to_end_duration"]
        ),
        written_bytes=float(row["checkpointed_size"]),
        persisted_bytes=float(row["persisted_data"]),
        savepoint_format=str(row["savepointFormat"]),
        # without finalisation: if writing the metadata fails, the path ends with the last acknowledgement
        path=path(parts[parts["part"] != FINALISATION]),
        cut_off=str(parts["part"].iloc[-1]) if is_cut_off else "",
        late_input="".join(parts[parts["part"] == "alignment"].sort_values("duration")["upstream"].tail(1)),
        unknown_loss=_unknown_loss(row, _rows_of_job(tables["recoveries"], job)) if row["status"] == "FAILED" else None,
    )


def _unknown_loss(checkpoint: CheckpointRow, recoveries: pd.DataFrame) -> tuple[str, float, float] | None:
    """Return (cause, time [ms], time of detection [ms]) of a TaskManager whose loss was undetected when the checkpoint failed.

    Returns None if there is no such loss.
    """
    failed_ms = checkpoint["trigger_timestamp"] + checkpoint["end_to_end_duration"]
    is_unknown = (recoveries["failed"] < failed_ms) & (failed_ms < recoveries["detected"])
    for row in recoveries[is_unknown & (recoveries["kind"] == "task-manager")].to_dict("records"):
        return str(row["cause"]), float(row["failed"]), float(row["detected"])
    return None


def _rows_of_job(rows: pd.DataFrame, job: int | None) -> pd.DataFrame:
    """Return the rows of a job instance, or all rows if `job` is None."""
    return rows if job is None else rows[rows["x_job"] == job]


# ---- The table of strategies, as numbers and as short texts.
#
# First uploads, and checkpoints that did not complete, have separate rows below the row of their strategy. Percentiles
# are shown only if the sample is large enough (`sim.model.quantities`).

FIRST_UPLOAD = "{}: first upload"
"""Label of the row of first uploads, below that of their strategy."""
NOT_COMPLETED = "{}: {} {}"
"""Label of a row of checkpoints that did not complete: strategy, number, fate."""


@frozen
class StrategyRow:
    """A strategy as a row of a comparison."""

    label: str
    axes: tuple[tuple[str, str], ...]  # (axis, value) for each axis that the scenario varies
    group: str  # workload; only strategies of the same group are comparable
    status: str  # RUNNING, FINISHED, or FAILED with the reason
    summary: Summary
    baseline_per_second: float = math.nan  # throughput of the same job without checkpoints
    failed: bool = False  # the job failed, not only checkpoints
    name: str = ""  # the label without its group
    steady: bool = True  # the job neither restarted nor ended, so that sinks processed each record once
    until_s: float = math.nan  # end of the job, mean over its runs; NaN if it does not end in some run
    overload: KeepingUp | None = None  # rates before the first fault; None if the job keeps up
    singles: Singles = Singles(None, None, None)
    first: Summary | None = None  # summary of first uploads; None if there are none
    finish: Finish | None = None  # end of the job; None if it does not finish in some run
    intervals: float = math.inf  # as `sim.results.estimates.count_intervals`
    interval_ms: float = 0.0
    warmup_ms: float = 0.0
    last_trigger_s: float = math.nan  # last trigger, if checkpoints stop before the job does; else NaN
    late: LateTriggers | None = None  # None if checkpoints are triggered on time
    savepoint: LongSavepoint | None = None  # None if no savepoint takes much longer than checkpoints
    has_savepoints: bool = False  # some savepoint completed or failed
    committers: tuple[str, ...] = ()  # vertices that only commit
    commit_ms: Mapping[str, float] = field(
        default_factory=dict
    )  # vertex that commits in its own thread -> time of a commit
    firing: tuple[str, ...] = ()  # vertices with windows whose firing occupies the task thread
    is_off: bool = False  # periodic checkpoints are disabled; there may be savepoints
    without_interval: bool = False  # periodic checkpoints are disabled, and there are no savepoints
    commits: bool = False  # some vertex commits
    hidden: tuple[str, ...] = ()  # vertices that commit, if none of their output became visible
    not_completed: tuple[NotCompleted, ...] = ()  # checkpoints that did not complete, one entry per fate
    sinks: tuple[str, ...] = ()  # vertices whose throughput is summarized
    sources: tuple[str, ...] = ()
    unlimited_bytes: int = 0  # `Scenario.unlimited_bytes`
    tolerable: int = 0  # tolerable consecutive failures of checkpoints
    held_window: str = ""  # clause on an event-time window that emits nothing; "" if there is none
    # clause on a sink that forbids unaligned barriers, e.g. ``'table' (Apache Paimon) does not start``; "" if there is none
    harmed_sink: str = ""
    aligned: tuple[
        str, ...
    ] = ()  # vertices at which barriers do not overtake, though unaligned checkpoints are enabled
    card_bytes_per_second: float = math.inf  # of the network cards of all TaskManagers together

    @property
    def short_name(self) -> str:
        """Return the name of the strategy in a sentence."""
        return self.name or self.label

    @property
    def busiest(self) -> tuple[str, float]:
        """Return (bottleneck, busy share): a vertex with the mean of its subtasks, or the busiest of them if it is much busier.

        Much busier is 10 percentage points, or an idle share of less than half.
        """
        row = self.summary
        idle_share, mean_idle_share = 1 - row.busiest_subtask_share, 1 - row.busy_share
        if idle_share < max(mean_idle_share - 0.1, mean_idle_share / 2 - 0.01):
            return f"{row.bottleneck}[{row.busiest_subtask}]", row.busiest_subtask_share
        return row.bottleneck, row.busy_share

    @property
    def is_over(self) -> bool:
        """Return True if some job of the strategy ended within the run."""
        return self.status != "RUNNING" or not math.isnan(self.until_s)

    @property
    def completes_end(self) -> bool:
        """Return True if the final checkpoint of the job completes."""
        return self.finish is not None and self.finish.final is not None

    @property
    def shortfall(self) -> tuple[float, float] | None:
        """Return (emitted, due) records/s of the sources if they emit less than is due, else None.

        Rates are over the whole run if it is steady, and otherwise over the time before the first fault.
        """
        row = self.summary
        if self.steady and row.emitted_per_second < (1 - MIN_SHORTFALL_SHARE) * row.offered_per_second:
            return row.emitted_per_second, row.offered_per_second
        return None if self.overload is None else (self.overload.emitted_per_second, self.overload.due_per_second)

    @property
    def throughput_change(self) -> float:
        """Return the relative change of throughput compared with the same job without checkpoints, or NaN if unknown."""
        if not self.baseline_per_second > 0:
            return math.nan
        return self.summary.throughput_per_second / self.baseline_per_second - 1


def table(strategies: Sequence[StrategyRow]) -> pd.DataFrame:
    """Return all numbers as a table with a row per strategy, and units in column names.

    Percentiles with too small a sample are NaN.  The last columns are axes of quantities as numbers, which sort by size.
    """
    rows = [
        {"strategy": line.label, **dict(line.axes), "status": line.status, **_with_sample(line.summary)}
        | {name: getattr(line, name) for name in _OF_LINE}
        | {column: getattr(line.finish, name, math.nan) for column, name in _FINISH.items()}
        | {f"overload_{name}": getattr(line.overload, name, math.nan) for name in _OVERLOAD}
        for line in strategies
    ]
    found = pd.DataFrame(rows)
    for key in dict.fromkeys(axis for line in strategies for axis, _ in line.axes if axis):
        quantity = numbers_of(key, found[key].dropna())
        if quantity is not None and quantity[0] != key:
            found[quantity[0]] = found[key].map(quantity[1])
    found.attrs["units"] = units_of(map(str, found))
    return found


def texts(
    strategies: Sequence[StrategyRow], columns: Sequence[ResultColumn] = PRINTED
) -> tuple[list[str], list[list[str]]]:
    """Return (header, rows) of the printed table, first uploads last.  Optional columns without a value are omitted."""
    rows: list[list[str]] = []
    first_rows: list[list[str]] = []
    for line in strategies:
        rows.append([line.label, *(_cell_text(line, column) for column in columns)])
        if line.first is not None:
            firsts = replace(line, summary=line.first)
            first_rows.append(
                [FIRST_UPLOAD.format(line.label), *(_first_upload_cell_text(firsts, column) for column in columns)]
            )
        rows += [
            [NOT_COMPLETED.format(line.label, found.count, found.fate), *map(found.text, columns)]
            for found in line.not_completed
        ]
    rows += first_rows
    shown = [
        i for i, column in enumerate(columns) if not (rows and all(column.says_nothing(row[1 + i]) for row in rows))
    ]
    header = [_heading_with_vertices(columns[i], strategies) for i in shown]
    return ["strategy", *header], [[row[0], *(row[1 + i] for i in shown)] for row in rows]


_OF_LINE = ("baseline_per_second", "throughput_change", "until_s", "last_trigger_s")
"""Attributes of `StrategyRow` that are columns of the table."""
_FINISH = {"finish_idle_s": "idle_s", "finish_checkpoints": "checkpoints", "final_checkpoint_ms": "final_ms"}
"""Column of the table -> field of `Finish`."""
_OVERLOAD = ("emitted_per_second", "due_per_second", "until_s")
"""Fields of `KeepingUp` that are columns of the table, with the prefix ``overload_``."""


def _cell_text(line: StrategyRow, column: ResultColumn) -> str:
    """Return a cell of the printed table."""
    return column.value_text(line.summary.row()) if column.cell is None else column.cell(line)


def _first_upload_cell_text(line: StrategyRow, column: ResultColumn) -> str:
    """Return a cell of the row of first uploads; columns about the whole run are empty."""
    if column.name == "completed":
        return str(line.summary.completed)
    return _cell_text(line, column) if column.population in (Population.COMPLETED, None) else MISSING


def _with_sample(summary: Summary) -> dict[str, Any]:
    """Return the flat row, with NaN for percentiles whose sample is too small."""
    row = summary.row()
    return {column: value if has_sample(column, row) else math.nan for column, value in row.items()}


def _heading_with_vertices(column: ResultColumn, strategies: Sequence[StrategyRow]) -> str:
    """Return the heading, with its vertices if they are the same in all rows, e.g. ``throughput (sink)``."""
    vertices = {getattr(line, column.vertices) for line in strategies} if column.vertices else set()
    if len(vertices) != 1 or not (names := vertices.pop()):
        return column.heading
    return f"{column.heading} ({one_line(names[0], 24) if len(names) == 1 else f'{len(names)} vertices'})"
