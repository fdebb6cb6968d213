"""The `series` table: once per interval, what each vertex did since the last sample and what waits in its queues."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping
from operator import itemgetter

import numpy as np
import simpy

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
    """A process that looks at the plane every `SAMPLE_NS`; `progress` hears the simulated time; `only`: columns that are asked for."""

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
        context.env.process(self._run())

    def _run(self) -> Generator[simpy.Event, None, None]:
        before = self._totals()
        while True:
            for _ in range(_LOOKS):
                yield self.context.env.timeout(SAMPLE_NS // _LOOKS)
                positions = self.context.plane.served()
                self._record_latency.look(self.context.env.now, positions)
            after = self._totals()
            self._sample({name: after[name] - before[name] for name in _OF_TASKS}, positions)
            before = after
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
        sums = (
            self._summed(self._reader, rows["arrived"] - rows["taken"]),
            self._summed(self._writer, rows["written"] - rows["sent"]),
            self._summed(self._reader, at_hand),
            self._summed(self._writer, rows["queued"]),
        )
        return [tuple(map(int, of_vertex)) for of_vertex in zip(*sums, strict=True)]

    def _summed(self, vertex: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Values by channel added up by vertex; `vertex` is that of each edge."""
        total = np.zeros(len(self._tasks), np.int64)
        np.add.at(total, vertex, np.add.reduceat(values, self._channels))
        return total

    def _behind(self, v: int, emitted: np.ndarray) -> tuple[int, float]:
        """(records due and not emitted, age of the oldest of them in s) of a source."""
        source, now = self.context.spec.vertices[v].source, self.context.env.now
        if source is None or not source.segments:
            return 0, 0.0
        due, here = due_records(source, now), emitted[self._tasks[v]][: self.context.scenario.job.vertices[v].emitting]
        behind = np.maximum(due - here, 0)
        oldest = int(here.min())
        return int(behind.sum()), (now - source.due(oldest)) / _SECOND if oldest < due else 0.0
