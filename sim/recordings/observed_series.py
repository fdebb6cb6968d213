"""What a recording shows between its checkpoints: rates, shares of time, queues, latency.

============================  ===================================================================================================
quantity                      meaning
============================  ===================================================================================================
numRecordsInPerSecond         of each vertex that reads, the sum of its subtasks; numRecordsOutPerSecond of each source
busyTimeMsPerSecond           mean of the subtasks of a vertex; so are idleTimeMsPerSecond and backPressuredTimeMsPerSecond (soft, hard)
latency                       a record leaves its source -> a vertex nobody reads has served it; mean of each second
outputQueueLength             buffers in the result partitions, mean of the subtasks, sample by sample; outputQueueSize: bytes
inputQueueLength              buffers received and not consumed, mean of the subtasks; inputQueueSize: bytes
============================  ===================================================================================================

All of it over the last three quarters of the samples: queues fill and a JVM warms up before.  Rates and shares are growths of
counters from end to end (Flink's own meters look back 60 s), so they are numbers of the whole run; the others have a row per sample.
"""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from sim.recordings.quantities import Value
from sim.recordings.recording import Recording

__all__ = ["SETTLED_AFTER", "of_series"]

SETTLED_AFTER = 0.25
"""Share of the samples left out."""
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


def of_series(recording: Recording) -> Iterator[Value]:
    """Values of the whole run and of its samples."""
    for node in recording.config.nodes:
        source = node.kind == "source"
        rate = _growth(recording.metric(node.id, "numRecordsOut" if source else "numRecordsIn"))
        if rate is not None:
            yield "numRecordsOutPerSecond" if source else "numRecordsInPerSecond", node.id, rate * 1000
        for quantity, counter in _SHARES.items():
            if (spent := _growth(recording.metric(node.id, counter))) is not None:
                yield quantity, node.id, 1000 * spent / node.parallelism
        for quantity, metric in _QUEUES.items():
            if source if quantity.startswith("input") else not recording.config.is_read(node.id):
                continue
            samples = _settled(recording.metric(node.id, metric))
            yield from ((quantity, node.id, float(value)) for value in samples.mean(axis=1))
    yield from _latencies(recording)


def _latencies(recording: Recording) -> Iterator[Value]:
    """Mean over the records of each second, all subtasks together; the last second is not complete."""
    rows = recording.event_table("sink_second")
    if rows.empty:
        return
    for vertex, ours in rows.groupby("node", sort=False):
        begun, ended = ours["second"].min(), ours["second"].max()
        settled = ours[(ours["second"] >= begun + SETTLED_AFTER * (ended - begun)) & (ours["second"] < ended)]
        total = (settled["n"] * settled["lat_mean"]).groupby(settled["second"]).sum()
        yield from (("latency", str(vertex), float(value)) for value in total / settled.groupby("second")["n"].sum())


def _settled(samples: pd.DataFrame) -> pd.DataFrame:
    complete = samples.dropna(how="any")
    return complete.iloc[int(len(complete) * SETTLED_AFTER) :]


def _growth(samples: pd.DataFrame) -> float | None:
    """Growth of a counter per ms, summed over subtasks, once things have settled; a restarted counter counts from 0 again."""
    settled = _settled(samples)
    if len(settled) < 2 or settled.index[-1] <= settled.index[0]:
        return None
    steps = settled.diff().iloc[1:]
    grown = steps.where(steps >= 0, settled.iloc[1:])
    return float(grown.to_numpy().sum() / (settled.index[-1] - settled.index[0]))
