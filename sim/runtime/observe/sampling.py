"""The `series` table: once per interval, what each vertex did since the last sample and what waits in its queues."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from operator import itemgetter

import numpy as np

from sim.metrics.packed import PackedRows
from sim.metrics.schema import SERIES
from sim.runtime.context import Context
from sim.runtime.counters import Counters
from sim.runtime.observe.backlog import due_records
from sim.runtime.observe.record_latency import RecordLatency

SAMPLE_NS = 1_000_000_000
_LOOKS = 5  # at how far records have come, per sample
_SECOND = 1_000_000_000


_OF_TASKS = ("served", "bytes_out", "busy_ns", "idle_ns", "soft_ns", "hard_ns")
_OF_CHANNELS = ("written", "sent", "arrived", "taken", "queued", "received")


class Sampler:
    """The samples of a run, one every `SAMPLE_NS`.  `progress` hears the simulated time; `only`: columns that are asked for."""

    def __init__(
        self, context: Context, counters: Counters, progress: Callable[[int], None] | None, only: Collection[str] | None = None
    ) -> None:
        self.context = context
        self.counters = counters
        self.progress = progress
        names = [column.name for column in SERIES]
        self.rows = PackedRows([name for name in names if only is None or name in only])
        self._asked_for = itemgetter(*map(names.index, self.rows.columns))
        layout = context.layout
        vertices = range(len(context.scenario.job.vertices))
        vertex = np.array(layout.vertex)
        self._tasks = [np.flatnonzero(vertex == v) for v in vertices]
        self._first = [int(tasks[0]) for tasks in self._tasks]  # a vertex' tasks stand together (N1)
        edges = context.spec.edges
        self._reader = np.array([edge.downstream for edge in edges], np.int64)  # vertex, by edge
        self._writer = np.array([edge.upstream for edge in edges], np.int64)
        self._channels = np.searchsorted(np.array(layout.edge), range(len(edges)))  # the first of each edge: they stand together (N3)
        self._record_latency = RecordLatency(context.scenario.job, self._tasks, context.env.now, context.plane.served())
        self._local = np.array(layout.local, dtype=bool)
        self._times: list[int] = []  # of the looks since the last sample
        self._positions: list[np.ndarray] = []  # that each of them saw
        self._before: dict[str, np.ndarray] = {}  # totals at the last sample
        context.env.call_next(self._begin)

    def _begin(self) -> None:
        self._before = self._totals()
        self.context.env.call_every(SAMPLE_NS // _LOOKS, self._look)

    def _look(self) -> None:
        self._times.append(self.context.env.now)
        self._positions.append(self.context.plane.served())
        if len(self._times) == _LOOKS:
            self._take_sample()

    def _take_sample(self) -> None:
        positions = self._positions[-1]
        self._record_latency.look(self._times, np.array(self._positions))
        self._times.clear()
        self._positions.clear()
        after = self._totals()
        self._sample({name: after[name] - self._before[name] for name in _OF_TASKS}, positions)
        self._before = after
        if self.progress is not None:
            self.progress(self.context.env.now)

    def _totals(self) -> dict[str, np.ndarray]:
        """By column, a number per vertex."""
        rows = self.counters.rows(*_OF_TASKS)
        return {name: np.add.reduceat(rows[name], self._first) for name in _OF_TASKS}

    def _sample(self, gained: Mapping[str, np.ndarray], positions: np.ndarray) -> None:
        waiting = self._queues()
        for v, vertex in enumerate(self.context.scenario.job.vertices):
            done, behind = self._rates(v, {name: float(values[v]) for name, values in gained.items()}), self._behind(v, positions)
            row = self.context.env.now / _SECOND, vertex.name, *done, *waiting[v], *behind, self._record_latency.mean_ms(v)
            self.rows.add(self._asked_for(row))

    def _rates(self, v: int, gained: Mapping[str, float]) -> tuple[float, ...]:
        spent = SAMPLE_NS * len(self._tasks[v])
        return (
            gained["served"] * _SECOND / SAMPLE_NS, gained["bytes_out"] * _SECOND / SAMPLE_NS,
            gained["busy_ns"] / spent, gained["idle_ns"] / spent, (gained["soft_ns"] + gained["hard_ns"]) / spent,
        )  # fmt: skip

    def _queues(self) -> list[tuple[int, ...]]:
        """By vertex: (input bytes, output bytes, input buffers, output buffers)"""
        rows = self.context.plane.channels(*_OF_CHANNELS)
        at_hand = np.where(self._local, rows["queued"], rows["received"])
        read = self._summed(self._reader, rows["arrived"] - rows["taken"], at_hand)
        written = self._summed(self._writer, rows["written"] - rows["sent"], rows["queued"])
        return list(zip(read[0], written[0], read[1], written[1], strict=True))

    def _summed(self, vertex: np.ndarray, *values: np.ndarray) -> list[list[int]]:
        """Values by channel added up by vertex; `vertex` is that of each edge."""
        of_edges = np.add.reduceat(values, self._channels, axis=1)
        total = np.zeros((len(values), len(self._tasks)), np.int64)
        np.add.at(total.T, vertex, of_edges.T)
        sums: list[list[int]] = total.tolist()
        return sums

    def _behind(self, v: int, emitted: np.ndarray) -> tuple[int, float]:
        """(records due and not emitted, age of the oldest of them in s) of a source."""
        source, now = self.context.spec.vertices[v].source, self.context.env.now
        if source is None or not source.segments:
            return 0, 0.0
        due, here = due_records(source, now), emitted[self._tasks[v]][: self.context.scenario.job.vertices[v].emitting]
        behind = np.maximum(due - here, 0)
        oldest = int(here.min())
        return int(behind.sum()), (now - source.due(oldest)) / _SECOND if oldest < due else 0.0
