"""The summary of a strategy: its warm-up, checkpoint durations and phases, and throughput; and all columns of result rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import fields
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from sim.model.frozen import frozen
from sim.model.quantities import title_of
from sim.results.columns import (
    Population,
    ResultColumn,
    columns_of,
    compute_columns,
    in_printing_order,
    result_column,
    unit_of,
)
from sim.results.consequences import Consequences
from sim.results.estimates import Duration, quantiles
from sim.results.formats import MISSING, bytes_text, change_text, ms_text, per_second_text, share_text
from sim.results.not_completed import INTERRUPTIONS, BarrierPath, path
from sim.results.rates import (
    Edges,
    Tables,
    backlog,
    backlog_per_second,
    emitted_per_second,
    reprocessed_per_second,
    served_per_second,
)
from sim.results.stored import COST_COLUMN, StorageUse, whole_periods_ms
from sim.results.tables import first_uploads, is_periodic, job_of, pool_rows

# ---- The warm-up: the first part of a run, which results leave out. The scenario sets its length, or it ends when the run
# is steady.
#
# The rule is Conway's (Some Tactical Problems in Digital Simulation, Management Science 10, 1963): observations are
# dropped until the first remaining one is neither the maximum nor the minimum of the remaining ones. The first upload is a
# maximum, queues that fill up start at a minimum, and a backlog starts at a maximum. Here an extreme must differ by more
# than a tenth from all later values. Otherwise a slow drift, which never ends, would count as warm-up.
#
# Rules that minimize the error of the mean (MSER) drop more. They would also drop a slow node that appears in the first
# half of a run, and with it the tail that users ask about. With this rule, a later extreme never extends the warm-up.

SETTLED_SHARE = 0.1
"""Relative difference by which an extreme must differ from all later values."""


_SMOOTHED_SAMPLES, _DRAINED_FACTOR = 5, 1.5
"""Number of samples in a moving average, and the factor by which a queue must fall to count as drained."""


class WarmUpEnd(NamedTuple):
    """The end of the warm-up of a run."""

    ns: int  # time since the start of the run
    cause: str = ""  # quantity that settled last; "" if the scenario sets the length

    def __str__(self) -> str:
        """Return ``30 s, until the size of checkpoints settled``."""
        return f"{ms_text(self.ns / 1e6)}, until {self.cause} settled" if self.cause else ms_text(self.ns / 1e6)


def warm_up(results: Sequence[Any]) -> WarmUpEnd:
    """Return the longest warm-up among the replications of one setting.  It applies to all of them.

    `results`: results of runs (`sim.runtime.result.Result`).
    """
    run = results[0].scenario.run
    if not run.finds_warm_up:
        return WarmUpEnd(run.warmup_ns)
    return max(_warm_up_end(result.tables) for result in results)


def cold_start(results: Sequence[Any]) -> WarmUpEnd:
    """Return the longest cold start among the replications of one setting, or 0 if the scenario has none.

    A cold start ends when tasks are warm, the initial backlog is drained, and throughput has reached its later level.
    """
    scenario = results[0].scenario
    min_ns = scenario.run.cold_start_ns
    if not min_ns:
        return WarmUpEnd(0)
    warm = WarmUpEnd(min_ns + scenario.restart.warm_up_ns)
    settled = [
        WarmUpEnd(ns, cause) for result in results for cause, ns in _settling_of_queues(result.tables, drained_after)
    ]
    served = [WarmUpEnd(_throughput_settled_ns(result.tables), "throughput") for result in results]
    return max((warm, *settled, *served), key=lambda end: end.ns)


def _throughput_settled_ns(tables: Tables) -> int:
    """Return the time [ns] after which throughput stays within `SETTLED_SHARE` of the median of the last third, or 0.

    Drops in the second half of the run do not count.
    """
    curve = tables["series"].groupby("time")["numRecordsInPerSecond"].sum()
    if len(curve) < 3 * _SMOOTHED_SAMPLES:
        return 0
    below = np.flatnonzero(curve.to_numpy(dtype=float) < (1 - SETTLED_SHARE) * curve.iloc[-len(curve) // 3 :].median())
    early = below[below < len(curve) // 2]
    return round(float(curve.index[early[-1]]) * 1e9) if len(early) else 0


def drained_after(values: np.ndarray[Any, np.dtype[Any]]) -> int:
    """Return the number of values until the initial backlog is drained, or all if it is not drained in this run.

    A backlog is drained when it is at the level of the last third of the run.  Moving averages are compared, because
    checkpoints and bursts make queues rise and fall.
    """
    if len(values) < 3 * _SMOOTHED_SAMPLES:
        return 0
    means = np.convolve(values, np.ones(_SMOOTHED_SAMPLES) / _SMOOTHED_SAMPLES, "valid")
    last = means[-len(means) // 3 :]
    early, late = np.array_split(last, 2)
    if early.mean() > _DRAINED_FACTOR * late.mean():
        return len(values)
    above = np.flatnonzero(means > _DRAINED_FACTOR * last.max())
    return int(above[-1]) + _SMOOTHED_SAMPLES if len(above) else 0


def settled_after(values: np.ndarray[Any, np.dtype[Any]]) -> int:
    """Return the number of values to drop at the beginning, or 0 if values do not settle in the first half."""
    if len(values) < 3:
        return 0
    largest = np.maximum.accumulate(values[::-1])[::-1][1:]  # maximum of all later values
    smallest = np.minimum.accumulate(values[::-1])[::-1][1:]
    inside = np.flatnonzero(
        (values[:-1] <= largest * (1 + SETTLED_SHARE)) & (values[:-1] >= smallest * (1 - SETTLED_SHARE))
    )
    return int(inside[0]) if len(inside) and 2 * inside[0] <= len(values) else 0


def _warm_up_end(tables: Tables) -> WarmUpEnd:
    """Return the end of the warm-up of one run, when all its quantities have settled."""
    ends = [
        WarmUpEnd(ns, cause)
        for cause, ns in (*_settling_of_checkpoints(tables), *_settling_of_queues(tables))
        if ns > 0
    ]
    return max(ends, default=WarmUpEnd(0))


def _settling_of_checkpoints(tables: Tables) -> Iterator[tuple[str, int]]:
    """Yield (quantity, time at which it settles [ns]) for the size and the duration of checkpoints.

    The time is just before the trigger of the first checkpoint that counts.
    """
    rows = tables["checkpoints"]
    rows = rows[is_periodic(rows)]
    rows = rows[(rows["status"] == "COMPLETED") & (rows["trigger_timestamp"] <= _first_failure_ms(tables))].sort_values(
        "trigger_timestamp"
    )
    for cause, column in (
        ("the size of checkpoints", "checkpointed_size"),
        ("the duration of checkpoints", "end_to_end_duration"),
    ):
        if count := settled_after(rows[column].to_numpy(dtype=float)):
            yield cause, (math.ceil(rows["trigger_timestamp"].iloc[count]) - 1) * 1_000_000


def _settling_of_queues(
    tables: Tables, after: Callable[[np.ndarray[Any, np.dtype[Any]]], int] = settled_after
) -> Iterator[tuple[str, int]]:
    """Yield (quantity, time at which it settles [ns]) for data in queues and the lag of sources.

    `after`: function that returns the number of initial values to drop.
    """
    series = tables["series"]
    series = series.loc[
        series["time"] * 1e3 <= _first_failure_ms(tables), ["time", "inputQueueSize", "outputQueueSize", "lag"]
    ]
    queued: pd.Series[float] = (series["inputQueueSize"] + series["outputQueueSize"]).groupby(series["time"]).sum()
    for cause, curve in (("data in queues", queued), ("the lag of sources", series.groupby("time")["lag"].max())):
        if count := after(curve.to_numpy(dtype=float)):
            yield cause, round(float(curve.index[count - 1]) * 1e9)


def _first_failure_ms(tables: Tables) -> float:
    """Return the time of the first failure [ms], or infinity.  Later values do not count for the warm-up."""
    failed = tables["recoveries"]["failed"]
    return float(failed.min()) if len(failed) else math.inf


# ---- Durations of checkpoints including those that failed or were in progress at the end of the run.
#
# `ckptsim run` prints durations of completed checkpoints, and the number of failed ones. When settings are compared, failed
# checkpoints must count: a setting whose slow checkpoints expire must not look fast.

_SHARES = {"end_to_end_p50_ms": 0.5, "end_to_end_p90_ms": 0.9, "end_to_end_p99_ms": 0.99, "end_to_end_max_ms": 1.0}


def durations_of_checkpoints(checkpoints: pd.DataFrame, end_ms: float, warmup_ms: float) -> dict[str, Duration]:
    """Return {column: quantile of the duration} over the checkpoints that were triggered after the warm-up.

    Checkpoints that did not complete count as longer than their observed duration.  First uploads and savepoints do not
    count, as in summaries.  `end_ms`: end of the run.
    """
    rows = checkpoints[
        (checkpoints["trigger_timestamp"] >= warmup_ms).to_numpy()
        & ~first_uploads(checkpoints)
        & is_periodic(checkpoints)
    ]
    durations = rows["end_to_end_duration"].astype(float)
    lasted = durations.where(rows["status"] != "IN_PROGRESS", end_ms - rows["trigger_timestamp"])
    completed = (rows["status"] == "COMPLETED").to_numpy()
    ended, cut_off = lasted.to_numpy(dtype=float)[completed], lasted.to_numpy(dtype=float)[~completed]
    return dict(zip(_SHARES, quantiles(ended, cut_off, *_SHARES.values()), strict=True))


# ---- The row of a strategy: checkpoint durations and their phases, throughput and load.
#
# Only checkpoints that were triggered after the warm-up, and samples after it, count. Durations and phases are those of
# *completed* checkpoints; `completed` is their number. Savepoints are in another table (`sim.results.stored`), and first
# uploads (`sim.results.tables`) have a separate row. Percentiles are computed from any number of checkpoints;
# `sim.model.quantities` defines the sample from which they may be shown.
#
# Replications of a strategy are pooled: percentiles are over all their checkpoints, throughput and load are means.


# ---- Cells of printed columns that combine several values. `line` is a `sim.results.side_by_side.StrategyRow`.


def _completed_text(line: Any) -> str:
    """Return the number of completed checkpoints, and those of failed and interrupted ones if there are any."""
    row = line.summary
    counts = {"failed": row.failed - row.interrupted, "interrupted": row.interrupted}
    fates = [str(row.completed), *(f"{count} {fate}" for fate, count in counts.items() if count)]
    end = "not stopped" if "not complete at the end" in line.status else "job failed"
    end = "restarts forever" if line.status.startswith("RESTARTING") else end
    return ", ".join([*fates, *[end] * line.failed])


def _throughput_text(line: Any) -> str:
    """Return the throughput, with the end of the job if it ended within the run."""
    until = "" if math.isnan(line.until_s) else f" until {ms_text(1e3 * line.until_s)}"
    return per_second_text(line.summary.throughput_per_second) + until


def _emitted_text(line: Any) -> str:
    """Return ``emitted of due`` if the sources fall short, else MISSING."""
    if line.shortfall is None:
        return MISSING
    of = f" ({line.overload.source})" if line.overload is not None and line.overload.source else ""
    return " of ".join(map(per_second_text, line.shortfall)) + of


def _written_text(line: Any) -> str:
    """Return the median of the bytes that a checkpoint writes, the mean if it differs by half, and what is materialized."""
    median, mean = line.summary.checkpointed_bytes, line.summary.checkpointed_mean_bytes
    hourly = line.summary.materialized_bytes_per_hour
    written = (
        f"median {bytes_text(median)}, mean {bytes_text(mean)}"
        if abs(mean - median) > median / 2
        else bytes_text(median)
    )
    return f"{written}, materialized {bytes_text(hourly)}/h" if hourly else written


def _backpressured_text(line: Any) -> str:
    """Return the most back-pressured vertex and its share, or MISSING if the share is below 0.5 %."""
    share = line.summary.most_backpressured_share
    return f"{line.summary.most_backpressured} {share_text(share)}" if share >= 0.005 else MISSING


MEDIAN, TAIL = "end_to_end_p50_ms", "end_to_end_p99_ms"


def _duration_column(share: float, name: str, heading: str, meaning: str, **options: Any) -> Any:
    """Return a field with a quantile of the durations of completed checkpoints."""
    if share < 1:
        options |= {"quantile": share, "counted_by": "completed"}
    return result_column(
        meaning,
        Population.COMPLETED,
        lambda run: _quantile(run.durations, share),
        ends="complete its checkpoints within the run",
        title=title_of("end_to_end_duration", name),
        heading=heading,
        **options,
    )


def _median_column(meaning: str, compute: Callable[[Any], float], **options: Any) -> Any:
    """Return a field with a measure of completed checkpoints.  It is a lower bound if their median duration is one."""
    return result_column(meaning, Population.COMPLETED, compute, follows=MEDIAN, **options)


@frozen
class Summary:
    """The results of a strategy as one row.

    A value is NaN if it was not measured, for example a percentile if no checkpoint completed.
    """

    path: BarrierPath  # critical paths: medians over all completed checkpoints
    tail: BarrierPath  # critical paths: medians over the slowest tenth of them
    completed: int = result_column(
        "n of every percentile",
        Population.COMPLETED,
        lambda run: len(run.done),
        worse="neither",
        title=title_of("completed"),
        heading="completed (n)",
        cell=_completed_text,
    )
    failed: int = result_column(
        "failed, for any reason", Population.CHECKPOINTS, lambda run: len(run.failures), title=title_of("failed")
    )
    interrupted: int = result_column(
        "failed by a restart or the end of the job",
        Population.CHECKPOINTS,
        lambda run: int(run.failures.isin(INTERRUPTIONS).sum()),
        worse="neither",
    )
    in_progress: int = result_column(
        "in progress at the end of the run",
        Population.CHECKPOINTS,
        lambda run: int((run.checkpoints["status"] == "IN_PROGRESS").sum()),
    )
    failure: str = result_column(
        "the most frequent failure message",
        Population.CHECKPOINTS,
        lambda run: _most_frequent(run.failures[~run.failures.isin(INTERRUPTIONS)]) or _most_frequent(run.failures),
    )
    standstill: str = result_column(
        "tasks that wait for each other, so that checkpoints hang although nothing is slow",
        Population.CHECKPOINTS,
        lambda run: _most_frequent(run.checkpoints.loc[run.checkpoints["x_standstill"] != "", "x_standstill"]),
    )
    end_to_end_p50_ms: float = _duration_column(0.5, "median", "p50", "last acknowledgement - trigger, median")
    end_to_end_p90_ms: float = _duration_column(
        0.9,
        "p90",
        "p90",
        "likewise, 90 % quantile; of fewer than 10 it is hardly more than the longest",
        is_optional=True,
    )
    end_to_end_p99_ms: float = _duration_column(
        0.99,
        "p99",
        "p99",
        "likewise, 99 % quantile; of fewer than 100 it is hardly more than the longest",
        is_optional=True,
    )
    end_to_end_max_ms: float = _duration_column(1.0, "longest", "max", "likewise, the longest")
    first_uploads: int = result_column(
        "checkpoints that upload everything at the beginning, warm-up or not; no other column counts them",
        Population.FIRST_UPLOADS,
        lambda run: len(run.firsts),
        worse="neither",
        title="checkpoints that uploaded everything at the beginning",
    )
    first_upload_ms: float = result_column(
        "end-to-end duration, median",
        Population.FIRST_UPLOADS,
        lambda run: float(run.firsts["end_to_end_duration"].median()),
        of="first_uploads",
        title="duration of the first upload",
    )
    first_upload_bytes: float = result_column(
        "written by each, median",
        Population.FIRST_UPLOADS,
        lambda run: float(run.firsts["checkpointed_size"].median()),
        of="first_uploads",
        title="written by the first upload",
    )
    start_delay_ms: float = _median_column(
        "trigger -> first barrier, median over checkpoints and subtasks, of the vertex where it is largest",
        lambda run: _value_or_nan(run.delays, _name_of_largest(run.delays)),
        title=title_of("start_delay", "median"),
        heading="start delay",
    )
    start_delay_vertex: str = result_column(
        "that vertex", Population.COMPLETED, lambda run: _name_of_largest(run.delays)
    )
    alignment_ms: float = _median_column(
        "alignment, of the slowest subtask, median over checkpoints",
        lambda run: float(run.slowest["alignment_duration"]),
        title=title_of("alignment_duration", "median"),
        heading="alignment",
    )
    sync_ms: float = _median_column(
        "synchronous part, of the slowest subtask, median over checkpoints",
        lambda run: float(run.slowest["sync_duration"]),
        title=title_of("sync_duration", "median"),
        heading="sync",
    )
    async_ms: float = _median_column(
        "asynchronous part, of the slowest subtask, median over checkpoints",
        lambda run: float(run.slowest["async_duration"]),
        title=title_of("async_duration", "median"),
        heading="async",
    )
    persisted_bytes: float = _median_column(
        "in-flight data stored, median per checkpoint",
        lambda run: float(run.done["persisted_data"].median()),
        title="in-flight data per checkpoint",
        heading="in flight",
    )
    persisted_mean_bytes: float = _median_column(
        "likewise, mean: where back-pressure comes and goes, half of the checkpoints store none",
        lambda run: float(run.done["persisted_data"].mean()),
    )
    checkpointed_bytes: float = _median_column(
        "all that is written, median per checkpoint",
        lambda run: float(run.done["checkpointed_size"].median()),
        title=title_of("checkpointed_size", "median"),
        heading="written",
        after="end_to_end_max_ms",
        cell=_written_text,
        is_optional=True,
    )
    checkpointed_mean_bytes: float = _median_column(
        "likewise, mean: compactions and full files make few checkpoints large",
        lambda run: float(run.done["checkpointed_size"].mean()),
        title=title_of("checkpointed_size", "mean"),
    )
    materialized_bytes_per_hour: float = result_column(
        "written by materializations of changelogs, which no checkpoint counts",
        Population.AFTER_WARMUP,
        lambda run: run.materialized,
        title="written by materializations",
    )
    written_bytes_per_hour: float = result_column(
        "written by them, and by materializations of changelogs",
        Population.COMPLETED,
        lambda run: run.materialized + _written_per_hour(run.done, run.runs, run.warmup_s),
        title="written by checkpoints",
    )
    throughput_per_second: float = result_column(
        "records served by the sinks, without what they served again after failures",
        Population.AFTER_WARMUP,
        lambda run: (
            served_per_second(run.load, run.edges, run.without_records)
            - reprocessed_per_second(run.runs, "served_again", run.rates_s)
        ),
        worse="less",
        title="throughput",
        heading="throughput",
        cell=_throughput_text,
        vertices="sinks",
    )
    emitted_per_second: float = result_column(
        "records emitted by the sources, without what they emitted again after failures",
        Population.AFTER_WARMUP,
        lambda run: run.emitted,
        worse="less",
        title="emitted by sources",
        heading="emitted",
        cell=_emitted_text,
        vertices="sources",
        is_optional=True,
    )
    offered_per_second: float = result_column(
        "likewise, and by how much their backlog grew: what they were due to emit",
        Population.AFTER_WARMUP,
        lambda run: (
            run.emitted + sum(backlog_per_second(own["series"], run.rates_s) for own in run.runs) / len(run.runs)
        ),
        worse="less",
    )
    bottleneck: str = result_column(
        "the vertex with the busiest subtask; of equals the one furthest downstream",
        Population.RUN,
        lambda run: run.bottleneck[0],
    )
    busy_share: float = result_column(
        "of the bottleneck, mean over its subtasks",
        Population.AFTER_WARMUP,
        lambda run: _value_or_nan(run.load["busy"], run.bottleneck[0]),
    )
    busiest_subtask: int = result_column(
        "its index: one hot subtask holds up all others", Population.RUN, lambda run: run.bottleneck[1], worse="neither"
    )
    busiest_subtask_share: float = result_column(
        "its busy share",
        Population.RUN,
        lambda run: run.bottleneck[2],
        title="busiest vertex",
        heading="busiest",
        cell=lambda line: f"{line.busiest[0]} {share_text(line.busiest[1])}".strip(),
    )
    most_backpressured: str = result_column(
        "the vertex that waits most for those after it", Population.AFTER_WARMUP, lambda run: run.waiting
    )
    most_backpressured_share: float = result_column(
        "of that vertex, mean over its subtasks",
        Population.AFTER_WARMUP,
        lambda run: _value_or_nan(run.load["backPressured"], run.waiting),
        title="most back-pressured vertex",
        heading="back-pressured",
        cell=_backpressured_text,
    )
    backlog_growth: float = result_column(
        "largest backlog of the sources in the second half of the time observed, less that in the first half",
        Population.AFTER_WARMUP,
        lambda run: max((_backlog_growth(own["series"], run.warmup_s) for own in run.runs), default=np.nan),
    )

    def row(self) -> dict[str, Any]:
        """Return the summary as a flat row; fields of `path` become path_*, those of `tail` tail_*."""
        paths = {"path": self.path, "tail": self.tail}
        row = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in paths}
        return row | {
            f"{name}_{field.name}": getattr(path, field.name) for name, path in paths.items() for field in fields(path)
        }


def summarize(
    runs: Sequence[Tables],
    edges: Edges,
    *,
    warmup_s: float = 0.0,
    without_records: Collection[str] = (),
    of_first_uploads: bool = False,
    rates_from_s: float = 0.0,
) -> Summary:
    """Summarize the runs of a strategy.

    `runs`: replications.  `without_records`: vertices that read no
    records (committers), so that a vertex upstream of them counts as a sink.  `of_first_uploads`: summarize first uploads
    instead of the other checkpoints.  `rates_from_s`: end of the cold start, from which rates count.
    """
    rates_s = max(warmup_s, rates_from_s)
    firsts, others = _checkpoints(runs, warmup_s)
    checkpoints = firsts if of_first_uploads else others
    done, paths = checkpoints[checkpoints["status"] == "COMPLETED"], _pooled(runs, "path")
    subtasks = _pooled(runs, "subtasks")
    subtasks = subtasks[subtasks["id"].isin(done["id"])]
    rates = _rates(runs, edges, without_records, rates_s)
    durations = done["end_to_end_duration"].to_numpy(dtype=float)
    source = SimpleNamespace(
        **vars(rates),
        warmup_s=warmup_s,
        firsts=firsts,
        checkpoints=checkpoints,
        done=done,
        failures=checkpoints.loc[checkpoints["status"] == "FAILED", "failure_message"],
        durations=durations,
        delays=subtasks[subtasks["start_delay"] >= 0].groupby("vertex", sort=False)["start_delay"].median(),
        slowest=subtasks.groupby("id")[["alignment_duration", "sync_duration", "async_duration"]].max().median(),
        emitted=emitted_per_second(rates.load, edges) - reprocessed_per_second(runs, "replayed_records", rates_s),
        materialized=0.0 if of_first_uploads else _materialized_per_hour(_pooled(runs, "tasks")),
        bottleneck=bottleneck(_pooled(runs, "tasks")),
        waiting=_name_of_largest(rates.load["backPressured"]),
    )
    return Summary(
        path=path(paths[paths["id"].isin(done["id"])]),
        tail=path(paths[paths["id"].isin(done.loc[durations >= _quantile(durations, 0.9), "id"])]),
        **compute_columns(Summary, source)[0],
    )


def _rates(
    runs: Sequence[Tables], edges: Sequence[tuple[str, str]], without_records: Collection[str], rates_s: float
) -> SimpleNamespace:
    """Return what rates are computed from."""
    load = _mean_load(runs, rates_s)
    return SimpleNamespace(runs=runs, edges=edges, without_records=without_records, rates_s=rates_s, load=load)


def throughput_per_second(
    runs: Sequence[Tables],
    edges: Sequence[tuple[str, str]],
    *,
    without_records: Collection[str] = (),
    rates_from_s: float = 0.0,
) -> float:
    """Return the same value as `summarize(...).throughput_per_second`, without computing the rest."""
    compute = columns_of(Summary)["throughput_per_second"].compute
    assert compute is not None
    return float(compute(_rates(runs, edges, without_records, rates_from_s)))


def _written_per_hour(done: pd.DataFrame, runs: Sequence[Tables], warmup_s: float) -> float:
    """Return the bytes that completed checkpoints write per hour, over whole intervals between them."""
    hours, written = 0.0, 0.0
    for i, run in enumerate(runs):
        own = done[(done["id"] // _IDS_PER_RUN == i) | (len(runs) == 1)]
        begin_ms, end_ms = whole_periods_ms(own["trigger_timestamp"], 1e3 * warmup_s, 1e3 * run["series"]["time"].max())
        hours += (end_ms - begin_ms) / 3.6e6
        written += float(own.loc[own["trigger_timestamp"] > begin_ms, "checkpointed_size"].sum())
    return written / hours if hours > 0 else math.nan


def _materialized_per_hour(tasks: pd.DataFrame) -> float:
    """Return the bytes that materializations of all changelogs write per hour."""
    known = tasks[tasks["x_materialized"] >= 0]
    if known.empty:  # most jobs; grouping no rows takes 4 ms
        return 0.0
    sizes = known.groupby("vertex").agg({"x_materialized": "mean", "index": "nunique"})
    return float((sizes["x_materialized"] * sizes["index"]).sum())


def _most_frequent(texts: pd.Series[str]) -> str:
    """Return the most frequent text, or "" if there is none."""
    return "" if texts.empty else str(texts.mode().iloc[0])


def median_duration_ms(runs: Sequence[Tables], *, warmup_s: float) -> float:
    """Return the same value as `summarize(...).end_to_end_p50_ms`, without computing the rest."""
    _, others = _checkpoints(runs, warmup_s)
    return _quantile(others.loc[others["status"] == "COMPLETED", "end_to_end_duration"].to_numpy(dtype=float), 0.5)


def _checkpoints(runs: Sequence[Tables], warmup_s: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return (first uploads, other periodic checkpoints that were triggered after the warm-up) of all runs."""
    every = _pooled(runs, "checkpoints")
    is_first = np.concatenate([first_uploads(run["checkpoints"]) for run in runs])
    return every[is_first], every[
        ~is_first & is_periodic(every) & (every["trigger_timestamp"] >= warmup_s * 1e3).to_numpy()
    ]


_IDS_PER_RUN, _IDS_PER_JOB = 10**9, 10**8


def _pooled(runs: Sequence[Tables], table: str) -> pd.DataFrame:
    """Return the rows of all runs in one table.  Checkpoint ids are made unique, because each run and job counts its own."""
    frames = [run[table] for run in runs]
    # job instances of a chain continue the count of their snapshot
    if "id" in frames[0] and (len(runs) > 1 or "x_job" in frames[0]):
        frames = [
            frame.assign(id=frame["id"] + i * _IDS_PER_RUN + job_of(frame) * _IDS_PER_JOB)
            for i, frame in enumerate(frames)
        ]
    return pool_rows(frames)


def bottleneck(tasks: pd.DataFrame) -> tuple[str, int, float]:
    """Return (vertex, subtask, busy share) of the busiest subtask, or ("", -1, NaN) without tasks.

    Of several vertices within 0.02 of the largest share, the most downstream one is returned, because it slows down the
    others.  Subtasks with the same index before and after a rescale have other keys, so they count as different subtasks.
    """
    if tasks.empty:
        return "", -1, np.nan
    times = tasks[
        ["accumulateBusyTimeMs", "accumulateIdleTimeMs", "x_softBackPressuredTimeMs", "x_hardBackPressuredTimeMs"]
    ].to_numpy(dtype=float)
    spent = times.sum(axis=1)
    busy = (times[:, 0] / np.where(spent > 0, spent, 1.0)).tolist()
    jobs, vertices, indices = job_of(tasks).tolist(), tasks["vertex"].tolist(), tasks["index"].tolist()
    parallelism: dict[tuple[int, str], int] = {}
    for job, name, index in zip(jobs, vertices, indices, strict=True):
        parallelism[job, name] = max(index, parallelism.get((job, name), 0))
    shares: dict[tuple[str, int, int], list[float]] = {}
    for job, name, index, share in zip(jobs, vertices, indices, busy, strict=True):
        shares.setdefault((name, index, parallelism[job, name]), []).append(share)
    busiest: dict[str, tuple[int, float]] = {}
    for (name, index, _), of_runs in shares.items():
        mean = math.fsum(of_runs) / len(of_runs)
        if name not in busiest or mean > busiest[name][1]:
            busiest[name] = index, mean
    limit = max(mean for _, mean in busiest.values()) - 0.02
    vertex = [name for name, (_, mean) in busiest.items() if mean >= limit][-1]
    return vertex, *busiest[vertex]


def _mean_load(runs: Sequence[Tables], warmup_s: float) -> pd.DataFrame:
    """Return the mean load of each vertex after the warm-up.

    It is computed column by column, because a copy of all columns for a run of a day takes much memory.
    """
    series = _pooled(runs, "series")
    counted = (series["time"] > warmup_s).to_numpy()
    vertex, names = pd.factorize(series["vertex"].to_numpy()[counted])
    columns = ["busy", "backPressured", "numRecordsInPerSecond"]
    means = {name: pd.Series(series[name].to_numpy()[counted]).groupby(vertex, sort=False).mean() for name in columns}
    return pd.DataFrame(means).set_axis(names)


def _backlog_growth(series: pd.DataFrame, warmup_s: float) -> float:
    """Return the growth of the largest backlog from the first to the second half of the time after the warm-up."""
    waiting = backlog(series[series["time"] > warmup_s])
    half = len(waiting) // 2
    return float(waiting.iloc[half:].max() - waiting.iloc[:half].max()) if half else np.nan


def _name_of_largest(values: pd.Series[float]) -> str:
    """Return the name of the largest value, or "" if there is none."""
    return str(values.idxmax()) if len(values) else ""


def _value_or_nan(values: pd.Series[float], name: str) -> float:
    # the name is missing if the job ended before the first sample
    """Return the value with this name, or NaN."""
    return float(values[name]) if name in values.index else np.nan


def _quantile(values: np.ndarray[Any, np.dtype[np.float64]], q: float) -> float:
    """Return a quantile, or NaN if there are no values."""
    return float(np.quantile(values, q)) if len(values) else np.nan


# ---- All columns of a strategy's row.

_PARTS = {
    "path_": {"meaning": "median checkpoint: ", "follows": MEDIAN},
    "tail_": {"meaning": "slowest tenth: ", "follows": TAIL, "title": "", "heading": ""},
}
CHANGE = ResultColumn(
    "against the same job under the same load without checkpoints",
    Population.AFTER_WARMUP,
    title="throughput against no checkpoints",
    heading="vs none",
    after="emitted_per_second",
    cell=lambda line: change_text(line.throughput_change),
    worse="less",
    name="throughput_change",
)
STRATEGY_COLUMNS: dict[str, ResultColumn] = {
    **columns_of(Summary),
    **{name: own for prefix, how in _PARTS.items() for name, own in columns_of(BarrierPath, prefix, **how).items()},
    **columns_of(Consequences),
    **columns_of(StorageUse),
}
"""Columns that are computed from the tables of runs."""
STATISTICS = STRATEGY_COLUMNS | {own.name: own for own in (CHANGE, COST_COLUMN)}
"""STRATEGY_COLUMNS, and columns that require other runs or a price list.

`delay_p99_s` has no minimum sample, because it is computed over the seconds of a run, of which there are hundreds.
"""


PRINTED = in_printing_order([*columns_of(Summary).values(), *columns_of(BarrierPath, "path_").values(), CHANGE])
"""Columns of the table that `ckptsim run` prints first."""


def in_words(column: str) -> str:
    """Return the title of a column, e.g. "checkpoint duration, 99th percentile", or its name without the unit."""
    if column in STATISTICS and (title := STATISTICS[column].title):
        return title
    return column.removesuffix(unit_of(column).ending).replace("_", " ")


def has_sample(column: str, row: Mapping[str, Any]) -> bool:
    """Return True if the value of `column` in this row is computed from a large enough sample."""
    return column not in STATISTICS or STATISTICS[column].has_sample(row)
