"""The latency of records from the sources to the vertices without readers, counted while a run goes on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np

from sim.metrics.latency import Latency
from sim.model.job import Job

_MS = 1_000_000


class RecordLatency:
    """The latency of records from all sources to the vertices without readers.  `tasks`: the numbers of the tasks of each vertex."""

    def __init__(self, job: Job, tasks: Sequence[np.ndarray], now: int, positions: np.ndarray) -> None:
        self._tasks = [slice(int(of_vertex[0]), int(of_vertex[-1]) + 1) for of_vertex in tasks]  # they stand together (N1)
        self._sources = [v for v, vertex in enumerate(job.vertices) if vertex.source is not None]
        self._copies = {
            v: [(source, float(number)) for source, number in copies.items()] for v, copies in enumerate(_copies(job)) if copies
        }
        self._latency = {v: Latency(now, *begun) for v in self._copies for begun in self._curves(v, positions[None])}

    def look(self, times: Sequence[int], positions: np.ndarray) -> None:
        """A row of `positions` per time: records each task has served, each counted once."""
        for v, latency in self._latency.items():
            for now, (emitted, served) in zip(times, self._curves(v, positions), strict=True):
                latency.count(now, emitted, served)

    def mean_ms(self, v: int) -> float:
        """Mean of the records a vertex has served since the last call [ms]; -1: none, or the vertex is read by others."""
        mean_ns = self._latency[v].mean() if v in self._latency else -1.0
        return mean_ns / _MS if mean_ns >= 0 else -1.0

    def _curves(self, v: int, positions: np.ndarray) -> Iterable[tuple[float, float]]:
        """(records emitted, records served) per row of positions."""
        emitted = np.zeros(len(positions))
        for source, copies in self._copies[v]:
            emitted += copies * positions[:, self._tasks[source]].sum(axis=1)
        return zip(emitted.tolist(), positions[:, self._tasks[v]].sum(axis=1).astype(float).tolist(), strict=True)


def _copies(job: Job) -> list[dict[int, Fraction]]:
    """How many records a vertex without readers is given for one record of each source; nothing for the other vertices."""
    given: dict[str, dict[int, Fraction]] = {}
    read = {inlet.upstream for vertex in job.vertices for inlet in vertex.inputs if not vertex.committer_of}
    ends: list[dict[int, Fraction]] = []
    for v, vertex in enumerate(job.vertices):
        mine = {v: Fraction(1)} if vertex.source is not None else {}
        for inlet in vertex.inputs:
            factor = job.fan_out(inlet) * (vertex.parallelism if inlet.shipping.copies else 1)
            for source, copies in given[inlet.upstream].items():
                mine[source] = mine.get(source, Fraction(0)) + copies * factor
        given[vertex.name] = mine
        ends.append(mine if vertex.inputs and vertex.name not in read and not vertex.committer_of else {})
    return ends
