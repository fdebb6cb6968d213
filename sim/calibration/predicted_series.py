"""What a simulated run shows between its checkpoints, in the rows `sim.recordings.observed_series` makes from a recording."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sim.recordings.observed_series import SETTLED_AFTER
from sim.recordings.quantities import Value

if TYPE_CHECKING:
    from sim.runtime.result import Result

__all__ = ["of_series"]

_SHARES = {"busyTimeMsPerSecond": "busy", "idleTimeMsPerSecond": "idle", "backPressuredTimeMsPerSecond": "backPressured"}
_OUT, _IN = ("outputQueueLength", "outputQueueSize"), ("inputQueueLength", "inputQueueSize")


def of_series(result: Result) -> Iterator[Value]:
    """Values of the whole run and of its samples, over the last three quarters."""
    settled = result.series[result.series["time"] > SETTLED_AFTER * result.series["time"].max()]
    vertices = result.scenario.job.vertices
    sources = {vertex.name for vertex in vertices if not vertex.inputs}
    ends = {vertex.name for vertex in vertices} - {inlet.upstream for vertex in vertices for inlet in vertex.inputs}
    parallelism = {vertex.name: vertex.parallelism for vertex in vertices}
    for name, samples in settled.groupby("vertex", sort=False):
        vertex = str(name)
        rate = "numRecordsOutPerSecond" if vertex in sources else "numRecordsInPerSecond"
        yield rate, vertex, float(samples["numRecordsInPerSecond"].mean())
        yield from ((quantity, vertex, 1000 * float(samples[share].mean())) for quantity, share in _SHARES.items())
        for quantity in (*(() if vertex in ends else _OUT), *(() if vertex in sources else _IN)):
            yield from ((quantity, vertex, float(size) / parallelism[vertex]) for size in samples[quantity])
        yield from (("latency", vertex, float(mean)) for mean in samples["x_latency"] if mean >= 0)
