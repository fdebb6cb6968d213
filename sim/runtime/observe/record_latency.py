"""The latency of records from the sources to the vertices without readers, counted while a run goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from sim.metrics.latency import Latency
from sim.model.job import Job
from sim.units import MS


class RecordLatency:
    """The latency of records from all sources to the vertices without readers.

    `tasks`: the numbers of the tasks of each vertex; `room`: so many rows of positions may come, where that is known.
    """

    def __init__(self, job: Job, tasks: Sequence[np.ndarray], now: int, positions: np.ndarray, room: int = 0) -> None:
        self._tasks = [slice(int(of_vertex[0]), int(of_vertex[-1]) + 1) for of_vertex in tasks]  # they stand together (N1)
        self._copies = {
            v: [(source, float(number)) for source, number in copies.items()] for v, copies in enumerate(_copies(job)) if copies
        }
        begun = {v: [float(curve[0]) for curve in self._curves(v, positions[None])] for v in self._copies}
        self._latency = {v: Latency(now, emitted, served, room) for v, (emitted, served) in begun.items()}

    def means_ms(self, times: np.ndarray, positions: np.ndarray, stride: int) -> Mapping[int, np.ndarray]:
        """By vertex without readers, for `stride` rows the mean of the records it has served since the row before them [ms]; -1: none.

        A row of `positions` per time: records each task has served, each counted once.
        """
        means_ns = {v: latency.means(times, *self._curves(v, positions), stride) for v, latency in self._latency.items()}
        return {v: np.where(means >= 0, means / MS, -1.0) for v, means in means_ns.items()}

    def _curves(self, v: int, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(records emitted, records served) per row of positions."""
        emitted = np.zeros(len(positions))
        for source, copies in self._copies[v]:
            emitted += copies * positions[:, self._tasks[source]].sum(axis=1)
        return emitted, positions[:, self._tasks[v]].sum(axis=1).astype(float)


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
