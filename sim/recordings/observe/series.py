"""Observations between checkpoints: rates, shares of time, queues, latency.

All values come after `SETTLED_AFTER`.  Rates and shares are growths of counters over whole checkpoints (`steady`), so they are numbers
of the whole run: Flink's own meters cover 60 s.  The other quantities have a row per sample.  The job's own counts come first, as they
are exact: its ends count each second, other vertices count in every snapshot.  Flink's counters are sampled, and may be seconds old.

Simulated runs are judged by the same rules.  The first quarter is left out: queues fill and a JVM warms up.  The rest is cut to whole
checkpoints, from trigger to trigger.  A job that stands still for seconds in every checkpoint has a meaningful rate only over whole ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
import pandas as pd

from sim.recordings.observe.tidy import RunValue
from sim.recordings.source.graph import is_read
from sim.recordings.source.recorded_job import RecordedJob

_SHARES = {
    "busyTimeMsPerSecond": "accumulateBusyTimeMs",
    "idleTimeMsPerSecond": "accumulateIdleTimeMs",
    "backPressuredTimeMsPerSecond": "accumulateBackPressuredTimeMs",
}
_QUEUES = {
    "outputQueueLength": "Output.Buffers.outputQueueLength",
    "outputQueueSize": "Output.Buffers.outputQueueSize",
    "inputQueueLength": "Input.Buffers.inputQueueLength",
    "inputQueueSize": "Input.Buffers.inputQueueSize",
}


def of_series(recording: RecordedJob) -> Iterator[RunValue]:
    """Values of the whole run and its samples."""
    served = recording.event_table("sink_second")
    for node in recording.vertices:
        source = not node.inputs
        rate = _served(recording, served[served["node"] == node.id]) if len(served) else None
        if rate is None:
            rate = _passed(recording, node.id, "source_snapshot" if source else "snapshot", "emitted" if source else "in")
        if rate is None:
            rate = _growth(recording, recording.metric(node.id, "numRecordsOut" if source else "numRecordsIn"))
        if rate is not None:
            yield "numRecordsOutPerSecond" if source else "numRecordsInPerSecond", node.id, rate * 1000
        for quantity, counter in _SHARES.items():
            if (spent := _growth(recording, recording.metric(node.id, counter))) is not None:
                yield quantity, node.id, 1000 * spent / node.parallelism
        for quantity, metric in _QUEUES.items():
            if source if quantity.startswith("input") else not is_read(recording.vertices, node.id):
                continue
            samples = _settled(recording.metric(node.id, metric))
            yield from ((quantity, node.id, float(value)) for value in samples.mean(axis=1))
    yield from _latencies(served)


def _latencies(served: pd.DataFrame) -> Iterator[RunValue]:
    """Mean over the records of each second, all subtasks together; the last second is incomplete."""
    if served.empty:
        return
    for vertex, ours in served.groupby("node", sort=False):
        begun, ended = ours["second"].min(), ours["second"].max()
        settled = ours[(ours["second"] >= begun + SETTLED_AFTER * (ended - begun)) & (ours["second"] < ended)]
        total = (settled["n"] * settled["lat_mean"]).groupby(settled["second"]).sum()
        yield from (("latency", str(vertex), float(value)) for value in total / settled.groupby("second")["n"].sum())


def _settled(samples: pd.DataFrame) -> pd.DataFrame:
    complete = samples.dropna(how="any")
    return complete.iloc[int(len(complete) * SETTLED_AFTER) :]


def _served(recording: RecordedJob, seconds: pd.DataFrame) -> float | None:
    """Records per ms that a vertex served, from its own count of each second."""
    counts = seconds.groupby("second")["n"].sum()
    if len(counts) < 2:
        return None
    times_ms = 1000 * (counts.index.to_numpy(dtype=float) + 1)
    return growth(times_ms, counts.to_numpy(dtype=float).cumsum(), _window(recording, times_ms[0], times_ms[-1]))


def _passed(recording: RecordedJob, vertex: str, kind: str, counted: str) -> float | None:
    """Records per ms, from each subtask's position in its snapshots.  A restored subtask does not count: it repeats an earlier position."""
    rows = recording.event_table(kind)
    if rows.empty:
        return None
    rates = []
    for _, ours in rows[rows["node"] == vertex].groupby("sub"):
        times_ms, positions = ours["t"].to_numpy(dtype=float), ours[counted].to_numpy(dtype=float)
        if len(ours) < 2 or (np.diff(positions) < 0).any():
            return None
        rates.append(growth(times_ms, positions, _window(recording, times_ms[0], times_ms[-1])))
    known = [rate for rate in rates if rate is not None]
    return sum(known) if known and len(known) == len(rates) else None


def _growth(recording: RecordedJob, samples: pd.DataFrame) -> float | None:
    """Growth of a sampled counter per ms, summed over subtasks; a restarted counter begins at 0 again."""
    complete = samples.dropna(how="any")
    if len(complete) < 2:
        return None
    steps = complete.diff()
    steps.iloc[0] = 0
    grown = steps.where(steps >= 0, complete)
    times_ms = complete.index.to_numpy(dtype=float)
    return growth(times_ms, grown.sum(axis=1).to_numpy(dtype=float).cumsum(), _window(recording, times_ms[0], times_ms[-1]))


def _window(recording: RecordedJob, begin_ms: float, end_ms: float) -> tuple[float, float]:
    done = (point for point in recording.checkpoints.list if not point.is_savepoint and point.status == "COMPLETED")
    return steady(begin_ms, end_ms, (float(point.trigger_timestamp) for point in done))


SETTLED_AFTER = 0.25
"""Share of a run that is left out."""

Numbers = npt.NDArray[np.float64]


def steady(begin_ms: float, end_ms: float, triggers_ms: Iterable[float]) -> tuple[float, float]:
    """(from, to) of the window; the uncut window if the cut would leave less than half of it."""
    settled_ms = begin_ms + SETTLED_AFTER * (end_ms - begin_ms)
    inside = [time for time in triggers_ms if settled_ms <= time <= end_ms]
    if inside and max(inside) - min(inside) >= (end_ms - settled_ms) / 2:
        return min(inside), max(inside)
    return settled_ms, end_ms


def growth(times_ms: Numbers, counted: Numbers, window: tuple[float, float]) -> float | None:
    """Growth of a counter per ms, linear between its samples.  None: fewer than two samples in the window."""
    begin, end = max(window[0], float(times_ms[0])) if len(times_ms) else 0.0, min(window[1], float(times_ms[-1])) if len(times_ms) else 0.0
    if np.count_nonzero((times_ms >= begin) & (times_ms <= end)) < 2 or end <= begin:
        return None
    there, here = np.interp([end, begin], times_ms, counted)
    return float(there - here) / (end - begin)
