"""Rates of a job in records/s: processed by sinks, emitted by sources, and due at sources; and whether the job keeps up.

Records that are processed again after a restore count once, so that failures do not increase throughput.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

Tables = Mapping[str, pd.DataFrame]
"""Name -> result table of a run."""
Edges = Sequence[tuple[str, str]]
"""(upstream, downstream) of each edge of the job graph."""
MIN_SHORTFALL_SHARE = 0.015
"""Sources fall short if they emit less than is due by more than this share.  Smaller differences are noise."""
_MIN_BACKLOG_SECONDS = 8
"""Minimum number of samples, one per second, from which the growth of the backlog is determined."""
MAX_REMAINING_SHARE = 0.1
"""A backlog counts as processed when at most this share of its maximum is left."""
_MAX_IDLE_SHARE = 0.1
"""A vertex counts as never idle up to this idle share."""
_MIN_PEAK_FACTOR = 1.2
"""Ratio of the records due per second while the backlog grows to those before from which the load has a peak."""
_MIN_TRIGGERS = 3
"""Minimum number of checkpoints since the last restart, because the backlog may grow during each and shrink after it."""


class KeepingUp(NamedTuple):
    """The rates of a job's sources before the first failure or fault."""

    emitted_per_second: float
    due_per_second: float
    until_s: float  # time of the first failure or fault; NaN if there was none
    # (name, busy share, back-pressured share) of the most downstream vertex that is hardly ever idle; None if unknown
    never_idle: tuple[str, float, float] | None = None
    # (name, busy share) of the busiest subtask until then; None if the job has one parallelism for the whole run
    busiest: tuple[str, float] | None = None
    # since when the backlog grows, if that is in the second half of the time: a peak of the load
    since_s: float = np.nan
    source: str = ""  # the only source that the rates are of, if all together keep up

    @property
    def falls_short(self) -> bool:
        """Return True if the sources emit notably less than is due."""
        return self.emitted_per_second < (1 - MIN_SHORTFALL_SHARE) * self.due_per_second


def served_per_second(load: pd.DataFrame, edges: Edges, without_records: Collection[str]) -> float:
    """Return the records/s that sinks (vertices without downstream vertices) process, or NaN without samples.

    `load`: mean load by vertex.  `without_records`: vertices that read no records, such
    as committers, which do not count as downstream vertices.
    """
    read = {up for up, down in edges if down not in without_records}
    sinks = [name for name in load.index if name not in read]
    return float(load.loc[sinks, "numRecordsInPerSecond"].sum()) if len(load) else np.nan


def emitted_per_second(load: pd.DataFrame, edges: Edges) -> float:
    """Return the records/s that sources emit, or NaN without samples.  `load`: mean load by vertex."""
    sources = [name for name in load.index if name not in {down for _, down in edges}]
    return float(load.loc[sources, "numRecordsInPerSecond"].sum()) if len(load) else np.nan


def reprocessed_per_second(runs: Sequence[Tables], column: str, warmup_s: float) -> float:
    """Return the records/s that were repeated because of failures after the warm-up, mean over all runs.

    `column`: column of the table `recoveries` that counts them.
    """
    seconds, records = 0.0, 0.0
    for run in runs:
        times = run["series"]["time"]
        seconds += max(0.0, float(times.max()) - warmup_s) if len(times) else 0.0
        restarts = run.get("recoveries")
        if restarts is not None and len(restarts):
            records += float(restarts.loc[restarts["failed"] >= warmup_s * 1e3, column].sum())
    return records / seconds if seconds else 0.0


def backlog(series: pd.DataFrame) -> pd.Series[float]:
    """Return the number of records in the backlogs of all sources, by time [s]."""
    return series["backlog"].groupby(series["time"]).sum()


def backlog_per_second(series: pd.DataFrame, warmup_s: float) -> float:
    """Return the growth of the sources' backlog in records/s; negative if the backlog shrinks."""
    waiting = backlog(series)
    counted = waiting[waiting.index > warmup_s]
    if counted.empty:
        return 0.0
    before = waiting[waiting.index <= warmup_s]
    return float(counted.iloc[-1] - (before.iloc[-1] if len(before) else 0.0)) / float(counted.index[-1] - warmup_s)


def keeping_up(
    runs: Sequence[Tables], edges: Edges, *, warmup_s: float = 0.0, faults_s: Sequence[float] = ()
) -> KeepingUp | None:
    """Return the rates of the run whose sources fall short most, or None if all keep up or there are too few samples.

    Only the time after the warm-up and before the first failure or fault counts.  `faults_s`: time of the first planned
    fault of each run; the failures are in the table `recoveries`.
    """
    rates_of_runs = [
        (_keeping_up(run, edges, warmup_s, fault_s), run)
        for run, fault_s in zip(runs, faults_s or [np.inf] * len(runs), strict=True)
    ]
    short = [(rates, run) for rates, run in rates_of_runs if rates is not None and rates.falls_short]
    if not short:
        return None
    rates, run = min(short, key=lambda pair: pair[0].emitted_per_second / pair[0].due_per_second)
    times = run["series"]["time"]
    is_calm = (times > max(warmup_s, np.nan_to_num(rates.since_s))) & ~(times > rates.until_s)
    calm = run["series"][is_calm]
    if not np.isnan(rates.since_s):
        busy = calm.groupby("vertex")["busy"].mean()
        rates = rates._replace(busiest=(str(busy.idxmax()), float(busy.max())))
    return rates._replace(never_idle=_never_idle(calm, edges))


def falls_behind(run: Tables, edges: Edges, *, warmup_s: float = 0.0, fault_s: float = np.inf) -> bool:
    """Return True if the backlog grows permanently.

    It grows before the first fault and is not processed later, or it grows after the last restart has caught up.
    """
    restarts = run["recoveries"]
    before = _keeping_up(run, edges, warmup_s, fault_s)
    if before is not None and before.falls_short:
        series = run["series"]
        waiting = backlog(series[series["vertex"] == before.source] if before.source else series)
        is_before = waiting.index <= before.until_s
        return not waiting[~is_before].min() <= MAX_REMAINING_SHARE * waiting[is_before].max()
    if not (restarts["caught_up"] >= 0).any():
        return False
    return overload_since(run, edges, float(restarts["caught_up"].max()) / 1e3, warmup_s=warmup_s) is not None


def overload_since(run: Tables, edges: Edges, since_s: float, *, warmup_s: float = 0.0) -> KeepingUp | None:
    """Return the rates since a time, or None if the backlog does not grow steadily since then."""
    begun, waiting = run["checkpoints"]["trigger_timestamp"] / 1e3, backlog(run["series"])
    quarters = np.array(
        [part.mean() for part in np.array_split(waiting[waiting.index > since_s].to_numpy(), 4) if len(part)]
    )
    steps = np.diff(quarters)
    is_steady = len(steps) == 3 and steps.min() > 0.5 * steps.mean() > 0
    if not is_steady or (len(begun) > 0 and (begun > since_s).sum() < _MIN_TRIGGERS):
        return None  # the growth may be due to one slow checkpoint
    after = _keeping_up({**run, "recoveries": run["recoveries"].iloc[:0]}, edges, max(warmup_s, since_s), np.inf)
    return after if after is not None and after.falls_short else None


def _keeping_up(run: Tables, edges: Edges, warmup_s: float, fault_s: float) -> KeepingUp | None:
    """Return the rates of one run, or None if its backlog does not grow or there are too few samples.

    They are of all sources together, or of one that falls short if together they do not: others may emit much more.
    """
    series, restarts = run["series"], run.get("recoveries")
    if restarts is not None and len(restarts):
        fault_s = min(fault_s, float(restarts["failed"].min()) / 1e3)
    rates = _rates(series, edges, warmup_s, fault_s)
    names = [str(name) for name in series["vertex"].unique() if name not in {down for _, down in edges}]
    for name in names if len(names) > 1 and (rates is None or not rates.falls_short) else ():
        own = _rates(series[series["vertex"] == name], edges, warmup_s, fault_s)
        if own is not None and own.falls_short:
            return own._replace(source=name)
    return rates


def _rates(series: pd.DataFrame, edges: Edges, warmup_s: float, fault_s: float) -> KeepingUp | None:
    """Return the rates of the sources in these samples, or None if their backlog does not grow or there are too few samples."""
    calm = series[(series["time"] <= fault_s).to_numpy()]
    waiting = backlog(calm)
    waiting = waiting[waiting.index > warmup_s]
    last = waiting.iloc[-len(waiting) // 4 :]
    if (
        len(waiting) < _MIN_BACKLOG_SECONDS
        or last.min() <= waiting.iloc[: len(waiting) // 2].max()
        or last.max() < waiting.max()
    ):
        return None  # the backlog does not grow, is processed from time to time, or shrinks since a peak of the load
    of_sources = calm[~calm["vertex"].isin([down for _, down in edges])]
    emitted_in = of_sources.groupby("time")["numRecordsInPerSecond"].sum()
    begin_s, since_s = warmup_s, float(waiting.index[waiting <= MAX_REMAINING_SHARE * waiting.iloc[-1]].max())
    before = emitted_in[(emitted_in.index > warmup_s) & (emitted_in.index <= since_s)].mean()
    is_peak = (
        emitted_in[emitted_in.index > since_s].mean() + backlog_per_second(calm, since_s) > _MIN_PEAK_FACTOR * before
    )
    if is_peak and since_s > waiting.index[len(waiting) // 2]:
        begin_s = since_s
    emitted = float(emitted_in[emitted_in.index > begin_s].mean())
    due = emitted + backlog_per_second(calm, begin_s)
    until_s = fault_s if fault_s < float(series["time"].max()) else np.nan
    return KeepingUp(emitted, due, until_s, since_s=begin_s if begin_s > warmup_s else np.nan)


def _never_idle(series: pd.DataFrame, edges: Edges) -> tuple[str, float, float] | None:
    """Return (name, busy share, back-pressured share) of the vertex that limits the job although no vertex is always busy.

    Its upstream vertices wait for it, and its downstream vertices are idle at times.  An example is a window operator: it is
    busy between window ends, and back-pressured when it emits all results of a window at once.  Returns None if there is no
    such vertex.
    """
    load = series.groupby("vertex")[["busy", "backPressured", "idle"]].mean()
    never = {str(name) for name in load.index[(load["idle"] <= _MAX_IDLE_SHARE) & (load["busy"] > _MAX_IDLE_SHARE)]}
    last = [name for name in never if not any(up == name and down in never for up, down in edges)]
    if not last:
        return None
    busy, waits = load["busy"].to_dict(), load["backPressured"].to_dict()
    name = max(last, key=lambda name: float(busy[name]))
    return name, float(busy[name]), float(waits[name])
