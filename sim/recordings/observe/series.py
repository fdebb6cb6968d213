"""Observations between checkpoints: rates, shares of time, queues, latency.

All values come after `SETTLED_AFTER`.  Rates and shares are growths of counters over whole checkpoints (`steady`), so they are numbers
of the whole run: Flink's own meters cover 60 s.  The other quantities have a row per sample.  Flink's counters are sampled, and may be
seconds old: where a recording knows exact counts, they come first.

Simulated runs are judged by the same rules.  The first quarter is left out: queues fill and a JVM warms up.  The rest is cut to whole
checkpoints, from trigger to trigger.  A job that stands still for seconds in every checkpoint has a meaningful rate only over whole ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import numpy.typing as npt
import pandas as pd

from sim.recordings.observe.tidy import RunValue
from sim.recordings.source.graph import RecordedVertex, is_read
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


def of_series(recording: RecordedJob, counted: Callable[[RecordedVertex], float | None] = lambda _: None) -> Iterator[RunValue]:
    """Values of the whole run and its samples.  `counted`: records per ms of a vertex as its job has counted them; None: it has not."""
    for node in recording.vertices:
        source = not node.inputs
        rate = counted(node)
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


def _settled(samples: pd.DataFrame) -> pd.DataFrame:
    complete = samples.dropna(how="any")
    return complete.iloc[int(len(complete) * SETTLED_AFTER) :]


def _growth(recording: RecordedJob, samples: pd.DataFrame) -> float | None:
    """Growth of a sampled counter per ms, summed over subtasks; a restarted counter begins at 0 again."""
    complete = samples.dropna(how="any")
    if len(complete) < 2:
        return None
    steps = complete.diff()
    steps.iloc[0] = 0
    grown = steps.where(steps >= 0, complete)
    times_ms = complete.index.to_numpy(dtype=float)
    return growth(times_ms, grown.sum(axis=1).to_numpy(dtype=float).cumsum(), window_of(recording, times_ms[0], times_ms[-1]))


def window_of(recording: RecordedJob, begin_ms: float, end_ms: float) -> tuple[float, float]:
    """`steady` by the completed checkpoints of a recording."""
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
