"""Rates, shares and queues of a simulated run, in the rows of `sim.recordings.observe.series`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from sim.recordings.observe.series import SETTLED_AFTER, growth, steady
from sim.recordings.observe.tidy import RunValue

if TYPE_CHECKING:
    from sim.runtime.run.result import Result

_SHARES = {"busyTimeMsPerSecond": "busy", "idleTimeMsPerSecond": "idle", "backPressuredTimeMsPerSecond": "backPressured"}
_OUT, _IN = ("outputQueueLength", "outputQueueSize"), ("inputQueueLength", "inputQueueSize")


def of_series(result: Result) -> Iterator[RunValue]:
    """Values of the whole run and of its samples, over the last three quarters."""
    series = result.series
    periodic = result.checkpoints[result.checkpoints["savepointFormat"] == ""]
    window = steady(0.0, 1000 * float(series["time"].max()), periodic[periodic["status"] == "COMPLETED"]["trigger_timestamp"])
    vertices = result.scenario.job.vertices
    sources = {vertex.name for vertex in vertices if not vertex.inputs}
    ends = {vertex.name for vertex in vertices} - {inlet.upstream for vertex in vertices for inlet in vertex.inputs}
    parallelism = {vertex.name: vertex.parallelism for vertex in vertices}
    for name, rows in series.groupby("vertex", sort=False):
        vertex, samples = str(name), rows[rows["time"] > SETTLED_AFTER * series["time"].max()]
        rate = "numRecordsOutPerSecond" if vertex in sources else "numRecordsInPerSecond"
        for quantity, column, unit in ((rate, "numRecordsInPerSecond", 1.0), *((meter, share, 1000.0) for meter, share in _SHARES.items())):
            if (mean := _mean(rows, column, window)) is not None:
                yield quantity, vertex, unit * mean
        for quantity in (*(() if vertex in ends else _OUT), *(() if vertex in sources else _IN)):
            yield from ((quantity, vertex, float(size) / parallelism[vertex]) for size in samples[quantity])
        yield from (("latency", vertex, float(mean)) for mean in samples["x_latency"] if mean >= 0)


def _mean(rows: pd.DataFrame, column: str, window: tuple[float, float]) -> float | None:
    """The mean of a rate or share of a vertex over the window; None: there are no samples."""
    times_ms = 1000 * np.append(0.0, rows["time"].to_numpy(dtype=float))
    counted = np.append(0.0, (rows[column].to_numpy(dtype=float) * np.diff(times_ms)).cumsum())
    return growth(times_ms, counted, window)
