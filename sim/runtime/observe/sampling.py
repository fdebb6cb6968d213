"""The `series` table: once per interval, what each vertex did since the last sample and what waits in its queues.

While the job runs a look copies a few numbers of the plane.  Rows are made of many looks at once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np
import pandas as pd

from sim.metrics.packed import PackedRows
from sim.metrics.schema import SERIES
from sim.plane.seam.interface import OF_EDGES, OF_VERTICES
from sim.runtime.context import Context
from sim.runtime.counters import Counters
from sim.runtime.observe.backlog import due_records
from sim.runtime.observe.record_latency import RecordLatency
from sim.storage.work import in_own_turn
from sim.units import SECOND

SAMPLE_NS = 1_000_000_000
_LOOKS = 5  # at how far records have come, per sample
_KEPT = 1 << 16
"""So many numbers are kept before they become rows: little beside the job itself, and much for a call of NumPy."""


class Sampler:
    """The samples of a run, one every `SAMPLE_NS`.  `progress` hears the simulated time; `only`: columns that are asked for."""

    def __init__(
        self, context: Context, counters: Counters, progress: Callable[[int], None] | None, only: Collection[str] | None = None
    ) -> None:
        self.context = context
        self.counters = counters
        self.progress = progress
        layout, vertices = context.layout, context.scenario.job.vertices
        samples = context.scenario.run.duration_ns // SAMPLE_NS  # none comes later; of another instance of the job, fewer
        self._rows = PackedRows([column.name for column in SERIES if only is None or column.name in only], samples * len(vertices))
        self._vertices = np.array([vertex.name for vertex in vertices], object)
        vertex = np.array(layout.vertex)
        self._tasks = [np.flatnonzero(vertex == v) for v in range(len(vertices))]
        self._first = [int(tasks[0]) for tasks in self._tasks]  # a vertex' tasks stand together (N1)
        edges = context.spec.edges
        self._readers = [edge.downstream for edge in edges]  # vertex, by edge
        self._writers = [edge.upstream for edge in edges]
        self._record_latency = RecordLatency(context.scenario.job, self._tasks, context.env.now, context.plane.served(), samples * _LOOKS)
        self._block = max(1, _KEPT // (len(layout.vertex) * _LOOKS)) * _LOOKS  # looks that are kept
        self._times: list[int] = []  # of the looks that are kept
        self._positions: list[np.ndarray] = []  # that they saw, several to an array
        self._sums: list[np.ndarray] = []  # of the plane at each sample, and at the last one before
        self._earlier: list[np.ndarray] = []  # what the tasks served in earlier attempts
        in_own_turn(context.env, self._begin)

    def frame(self) -> pd.DataFrame:
        """The table, at the end of the run."""
        self._make_rows()
        return self._rows.frame()

    def _begin(self) -> None:
        self._sum_up()
        self.context.env.look_every(SAMPLE_NS // _LOOKS, self._look, self._looks_left)

    def _looks_left(self) -> int:
        """Until the next sample."""
        return _LOOKS - len(self._times) % _LOOKS

    def _look(self, times: Sequence[int], served: np.ndarray) -> None:
        self._times.extend(times)
        self._positions.append(served)
        if len(self._times) % _LOOKS == 0:
            self._sum_up()
            if len(self._times) == self._block:
                self._make_rows()
            if self.progress is not None:
                self.progress(self.context.env.now)

    def _sum_up(self) -> None:
        self._sums.append(self.context.plane.sums())
        self._earlier.append(self.counters.before)

    def _make_rows(self) -> None:
        """Rows of the samples that are kept."""
        samples = len(self._sums) - 1
        if samples < 1:
            return
        times, positions = np.array(self._times[: samples * _LOOKS]), np.concatenate(self._positions)[: samples * _LOOKS]
        vertices, at = len(self._vertices), len(self._vertices) * len(OF_VERTICES)
        sums = np.array(self._sums)
        done = dict(zip(OF_VERTICES, np.moveaxis(sums[:, :at].reshape(samples + 1, vertices, -1), 2, 0), strict=True))
        done["served"] = done["served"] + np.add.reduceat(np.array(self._earlier), self._first, axis=1)
        columns = {
            "time": np.repeat(times[_LOOKS - 1 :: _LOOKS] / SECOND, vertices),
            "vertex": np.tile(self._vertices, samples).tolist(),
            **self._rates({name: np.diff(totals, axis=0).astype(float) for name, totals in done.items()}),
            **self._queues(sums[1:, at:].reshape(samples, -1, len(OF_EDGES))),
            **self._behind(times[_LOOKS - 1 :: _LOOKS].tolist(), positions[_LOOKS - 1 :: _LOOKS]),
            "x_latency": self._latency(times, positions),
        }
        self._rows.extend(
            [values if isinstance(values, list) else values.reshape(-1) for name, values in columns.items() if name in self._rows.columns]
        )
        self._times, self._positions, self._sums, self._earlier = [], [], self._sums[-1:], self._earlier[-1:]

    # ------------------------------------------------------------------------------------------ columns: a row per sample, vertex by vertex

    def _rates(self, gained: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        spent = SAMPLE_NS * np.array([len(tasks) for tasks in self._tasks])
        return {
            "numRecordsInPerSecond": gained["served"] * SECOND / SAMPLE_NS,
            "numBytesOutPerSecond": gained["bytes_out"] * SECOND / SAMPLE_NS,
            "busy": gained["busy_ns"] / spent,
            "idle": gained["idle_ns"] / spent,
            "backPressured": (gained["soft_ns"] + gained["hard_ns"]) / spent,
        }

    def _queues(self, waiting: np.ndarray) -> dict[str, np.ndarray]:
        """`waiting`: by sample and edge what `OF_EDGES` says."""
        names = {
            "inputQueueSize": self._readers,
            "outputQueueSize": self._writers,
            "inputQueueLength": self._readers,
            "outputQueueLength": self._writers,
        }
        columns = {}
        for (name, vertex), values in zip(names.items(), np.moveaxis(waiting[:, :, [0, 2, 1, 3]], 2, 0), strict=True):
            columns[name] = np.zeros((len(self._vertices), len(waiting)), np.int64)
            np.add.at(columns[name], vertex, values.T)
        return {name: values.T for name, values in columns.items()}

    def _behind(self, times: list[int], positions: np.ndarray) -> dict[str, np.ndarray]:
        """Records due and not emitted, and the age of the oldest of them in s, of sources."""
        backlog, lag = np.zeros((len(times), len(self._vertices)), np.int64), np.zeros((len(times), len(self._vertices)))
        for v, vertex in enumerate(self.context.spec.vertices):
            source = vertex.source
            if source is None or not source.segments:
                continue
            emitted = positions[:, self._tasks[v]][:, : self.context.scenario.job.vertices[v].emitting]
            due = [due_records(source, now) for now in times]
            backlog[:, v] = np.maximum(np.array(due)[:, None] - emitted, 0).sum(axis=1)
            for i, oldest in enumerate(emitted.min(axis=1).tolist()):
                if oldest < due[i]:
                    lag[i, v] = (times[i] - source.due(oldest)) / SECOND
        return {"backlog": backlog, "lag": lag}

    def _latency(self, times: np.ndarray, positions: np.ndarray) -> np.ndarray:
        means = np.full((len(times) // _LOOKS, len(self._vertices)), -1.0)
        for v, of_vertex in self._record_latency.means_ms(times, positions, _LOOKS).items():
            means[:, v] = of_vertex
        return means
