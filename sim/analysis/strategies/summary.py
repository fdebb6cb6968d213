"""The tables of a strategy -> a row: durations of checkpoints, their parts, their costs.

Only checkpoints triggered after the warm-up count, and the series after it.  Savepoints have a table of their own
(`sim.analysis.strategies.stored`).  Durations and their parts are of *completed* checkpoints;
`completed` is their number.  A first checkpoint that uploads everything is not among them (`sim.analysis.strategies.kinds_of_checkpoints`):
it is a row of its own.  Percentiles are computed of any number; `sim.quantities.results` says which may be shown.

Several runs of a strategy (replications) are pooled: percentiles over all their checkpoints, throughput and load as means.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any

import numpy as np
import pandas as pd

from sim.analysis.strategies.kinds_of_checkpoints import first_uploads, is_periodic
from sim.analysis.strategies.not_completed import INTERRUPTIONS
from sim.analysis.strategies.path import BarrierPath, path
from sim.analysis.strategies.rates import Tables, again_per_second, backlog_per_second, emitted_per_second, served_per_second
from sim.quantities.populations import Population

__all__ = ["Summary", "Tables", "median_duration_ms", "summarize", "throughput"]


@dataclass(frozen=True, slots=True)
class Summary:
    """The results of a strategy as one row.  NaN: not measured, e.g. a percentile without a completed checkpoint."""

    completed: Annotated[int, "n of every percentile", Population.COMPLETED]
    failed: Annotated[int, "failed, for any reason", Population.CHECKPOINTS]
    interrupted: Annotated[int, "failed by a restart or the end of the job", Population.CHECKPOINTS]
    in_progress: Annotated[int, "under way at the end of the run", Population.CHECKPOINTS]
    failure: Annotated[str, "the most frequent failure message", Population.CHECKPOINTS]
    standstill: Annotated[str, "why checkpoints hang although nothing is slow: tasks that wait for each other", Population.CHECKPOINTS]
    end_to_end_p50_ms: Annotated[float, "last acknowledgement - trigger, median", Population.COMPLETED]
    end_to_end_p90_ms: Annotated[
        float, "likewise, 90 % quantile; of fewer than 10 it is hardly more than the longest", Population.COMPLETED
    ]
    end_to_end_p99_ms: Annotated[
        float, "likewise, 99 % quantile; of fewer than 100 it is hardly more than the longest", Population.COMPLETED
    ]
    end_to_end_max_ms: Annotated[float, "likewise, the longest", Population.COMPLETED]
    first_uploads: Annotated[
        int, "checkpoints that upload everything at the beginning, warm-up or not; no other column counts them", Population.FIRST_UPLOADS
    ]
    first_upload_ms: Annotated[float, "end-to-end duration, median", Population.FIRST_UPLOADS]
    first_upload_bytes: Annotated[float, "written by each, median", Population.FIRST_UPLOADS]
    start_delay_ms: Annotated[
        float, "trigger -> first barrier, median over checkpoints and subtasks, of the vertex where it is largest", Population.COMPLETED
    ]
    start_delay_vertex: Annotated[str, "that vertex", Population.COMPLETED]
    alignment_ms: Annotated[float, "alignment, of the slowest subtask, median over checkpoints", Population.COMPLETED]
    sync_ms: Annotated[float, "synchronous part, of the slowest subtask, median over checkpoints", Population.COMPLETED]
    async_ms: Annotated[float, "asynchronous part, of the slowest subtask, median over checkpoints", Population.COMPLETED]
    persisted_bytes: Annotated[float, "in-flight data stored, median per checkpoint", Population.COMPLETED]
    persisted_mean_bytes: Annotated[
        float, "likewise, mean: where back-pressure comes and goes, half of the checkpoints store none", Population.COMPLETED
    ]
    checkpointed_bytes: Annotated[float, "all that is written, median per checkpoint", Population.COMPLETED]
    checkpointed_mean_bytes: Annotated[float, "likewise, mean: compactions and full files make few checkpoints large", Population.COMPLETED]
    throughput_per_second: Annotated[
        float, "records served by the sinks, without what they served again after failures", Population.AFTER_WARMUP
    ]
    emitted_per_second: Annotated[
        float, "records emitted by the sources, without what they emitted again after failures", Population.AFTER_WARMUP
    ]
    offered_per_second: Annotated[
        float, "likewise, and by how much their backlog grew: what they were due to emit", Population.AFTER_WARMUP
    ]
    bottleneck: Annotated[str, "the vertex with the busiest subtask; of equals the one furthest downstream", Population.RUN]
    busy_share: Annotated[float, "of the bottleneck, mean over its subtasks", Population.AFTER_WARMUP]
    busiest_subtask: Annotated[int, "its index: one hot subtask holds up all others", Population.RUN]
    busiest_subtask_share: Annotated[float, "its busy share", Population.RUN]
    backpressured_share: Annotated[float, "of the bottleneck, mean over its subtasks", Population.AFTER_WARMUP]
    most_backpressured: Annotated[str, "the vertex that waits most for those after it", Population.AFTER_WARMUP]
    most_backpressured_share: Annotated[float, "of that vertex, mean over its subtasks", Population.AFTER_WARMUP]
    backlog_growth: Annotated[
        float,
        "largest backlog of the sources in the second half of the time observed, less that in the first half",
        Population.AFTER_WARMUP,
    ]
    path: BarrierPath  # medians of all completed checkpoints
    tail: BarrierPath  # of their slowest tenth

    def row(self) -> dict[str, Any]:
        """A flat row: the parts of `path` become path_*, those of `tail` tail_*."""
        ways = {"path": self.path, "tail": self.tail}
        own = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in ways}
        return own | {f"{name}_{field.name}": getattr(way, field.name) for name, way in ways.items() for field in fields(way)}


def summarize(
    runs: Sequence[Tables], edges: Sequence[tuple[str, str]], *, warmup_s: float = 0.0, without_records: Collection[str] = (),
    of_first_uploads: bool = False, rates_from_s: float = 0.0,
) -> Summary:  # fmt: skip
    """Summarise a strategy.  `edges` are the job graph's (upstream, downstream); `runs` are its replications.

    `without_records`: vertices that read no records (committers).  The vertex before them may still be a sink.
    `of_first_uploads`: the row is about them, and about no other checkpoint.  `rates_from_s`: before that no rate counts, the end of a
    cold start.
    """
    rates_s = max(warmup_s, rates_from_s)
    firsts, others = _checkpoints(runs, warmup_s)
    checkpoints = firsts if of_first_uploads else others
    done, ways = checkpoints[checkpoints["status"] == "COMPLETED"], _pooled(runs, "path")
    subtasks = _pooled(runs, "subtasks")
    subtasks = subtasks[subtasks["id"].isin(done["id"])]
    load = _load(runs, rates_s)
    failures = checkpoints.loc[checkpoints["status"] == "FAILED", "failure_message"]
    (bottleneck, hot, hot_share), waiting = _bottleneck(_pooled(runs, "tasks")), _largest(load["backPressured"])
    delays = subtasks[subtasks["start_delay"] >= 0].groupby("vertex", sort=False)["start_delay"].median()
    slowest = subtasks.groupby("id")[["alignment_duration", "sync_duration", "async_duration"]].max().median()
    durations = done["end_to_end_duration"].to_numpy(dtype=float)
    emitted = emitted_per_second(load, edges) - again_per_second(runs, "replayed_records", rates_s)
    return Summary(
        completed=len(done),
        failed=len(failures),
        interrupted=int(failures.isin(INTERRUPTIONS).sum()),
        in_progress=int((checkpoints["status"] == "IN_PROGRESS").sum()),
        failure=_most_frequent(failures[~failures.isin(INTERRUPTIONS)]) or _most_frequent(failures),
        standstill=_most_frequent(checkpoints.loc[checkpoints["x_standstill"] != "", "x_standstill"]),
        end_to_end_p50_ms=_quantile(durations, 0.5),
        end_to_end_p90_ms=_quantile(durations, 0.9),
        end_to_end_p99_ms=_quantile(durations, 0.99),
        end_to_end_max_ms=_quantile(durations, 1.0),
        first_uploads=len(firsts),
        first_upload_ms=float(firsts["end_to_end_duration"].median()),
        first_upload_bytes=float(firsts["checkpointed_size"].median()),
        start_delay_ms=_at(delays, _largest(delays)),
        start_delay_vertex=_largest(delays),
        alignment_ms=float(slowest["alignment_duration"]),
        sync_ms=float(slowest["sync_duration"]),
        async_ms=float(slowest["async_duration"]),
        persisted_bytes=float(done["persisted_data"].median()),
        persisted_mean_bytes=float(done["persisted_data"].mean()),
        checkpointed_bytes=float(done["checkpointed_size"].median()),
        checkpointed_mean_bytes=float(done["checkpointed_size"].mean()),
        throughput_per_second=_throughput(runs, load, edges, rates_s, without_records),
        emitted_per_second=emitted,
        offered_per_second=emitted + sum(backlog_per_second(run["series"], rates_s) for run in runs) / len(runs),
        bottleneck=bottleneck,
        busy_share=_at(load["busy"], bottleneck),
        busiest_subtask=hot,
        busiest_subtask_share=hot_share,
        backpressured_share=_at(load["backPressured"], bottleneck),
        most_backpressured=waiting,
        most_backpressured_share=_at(load["backPressured"], waiting),
        backlog_growth=max((_backlog_growth(run["series"], warmup_s) for run in runs), default=np.nan),
        path=path(ways[ways["id"].isin(done["id"])]),
        tail=path(ways[ways["id"].isin(done.loc[durations >= _quantile(durations, 0.9), "id"])]),
    )


def throughput(
    runs: Sequence[Tables], edges: Sequence[tuple[str, str]], *, warmup_s: float = 0.0, without_records: Collection[str] = ()
) -> float:
    """What `summarize` calls `throughput_per_second`, for a tenth of its time."""
    return _throughput(runs, _load(runs, warmup_s), edges, warmup_s, without_records)


def _most_frequent(texts: pd.Series[str]) -> str:
    return "" if texts.empty else str(texts.mode().iloc[0])


def median_duration_ms(runs: Sequence[Tables], *, warmup_s: float) -> float:
    """The `end_to_end_p50_ms` of a summary, without the rest of it."""
    _, others = _checkpoints(runs, warmup_s)
    return _quantile(others.loc[others["status"] == "COMPLETED", "end_to_end_duration"].to_numpy(dtype=float), 0.5)


def _checkpoints(runs: Sequence[Tables], warmup_s: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    """First uploads, and the other periodic checkpoints that were triggered after the warm-up."""
    every = _pooled(runs, "checkpoints")
    is_first = np.concatenate([first_uploads(run["checkpoints"]) for run in runs])
    return every[is_first], every[~is_first & is_periodic(every) & (every["trigger_timestamp"] >= warmup_s * 1e3).to_numpy()]


def _pooled(runs: Sequence[Tables], table: str) -> pd.DataFrame:
    """The rows of all runs in one table; ids stay distinct, as every run counts its checkpoints from 1."""
    frames = [_apart(run[table]) for run in runs]
    if len(runs) == 1:
        return frames[0]
    if "id" in frames[0]:
        frames = [frame.assign(id=frame["id"] + i * 10**9) for i, frame in enumerate(frames)]
    filled = [frame for frame in frames if len(frame)]  # an empty one has no types to agree with
    return pd.concat(filled, ignore_index=True) if filled else frames[0]


def _apart(frame: pd.DataFrame) -> pd.DataFrame:
    """Distinct ids for the job instances of a chain, which continue the count of their snapshot."""
    return frame.assign(id=frame["id"] + frame["x_job"] * 10**8) if {"id", "x_job"} <= set(frame) else frame


def _bottleneck(tasks: pd.DataFrame) -> tuple[str, int, float]:
    """(vertex, subtask, busy share).  Within 0.02 of the greatest share the most downstream subtask counts: it slows the others."""
    if tasks.empty:
        return "", -1, np.nan
    spent = tasks[["accumulateBusyTimeMs", "accumulateIdleTimeMs", "x_softBackPressuredTimeMs", "x_hardBackPressuredTimeMs"]].sum(axis=1)
    busy = (tasks["accumulateBusyTimeMs"] / spent.where(spent > 0, 1.0)).groupby([tasks["vertex"], tasks["index"]], sort=False).mean()
    vertices = busy.groupby(level=0, sort=False).max()
    vertex = vertices.index[vertices >= vertices.max() - 0.02][-1]
    return str(vertex), int(busy[vertex].idxmax()), float(busy[vertex].max())


def _load(runs: Sequence[Tables], warmup_s: float) -> pd.DataFrame:
    """Vertex -> means of its series, made column by column: a copy of all of a day's is as large as the series."""
    series = _pooled(runs, "series")
    counted = (series["time"] > warmup_s).to_numpy()
    vertex, names = pd.factorize(series["vertex"].to_numpy()[counted])
    columns = ["busy", "backPressured", "numRecordsInPerSecond"]
    means = {name: pd.Series(series[name].to_numpy()[counted]).groupby(vertex, sort=False).mean() for name in columns}
    return pd.DataFrame(means).set_axis(names)


def _throughput(
    runs: Sequence[Tables], load: pd.DataFrame, edges: Sequence[tuple[str, str]], warmup_s: float, without_records: Collection[str]
) -> float:
    return served_per_second(load, edges, without_records) - again_per_second(runs, "served_again", warmup_s)


def _backlog_growth(series: pd.DataFrame, warmup_s: float) -> float:
    """Checkpoints come and go in both halves; a job that falls behind has more to do in the second."""
    counted = series["time"] > warmup_s
    waiting = series["backlog"][counted].groupby(series["time"][counted]).sum()
    half = len(waiting) // 2
    return float(waiting.iloc[half:].max() - waiting.iloc[:half].max()) if half else np.nan


def _largest(values: pd.Series[float]) -> str:
    return str(values.idxmax()) if len(values) else ""


def _at(values: pd.Series[float], name: str) -> float:
    return float(values[name]) if name in values.index else np.nan  # a job may end before the first sample


def _quantile(values: np.ndarray[Any, np.dtype[np.float64]], q: float) -> float:
    return float(np.quantile(values, q)) if len(values) else np.nan
