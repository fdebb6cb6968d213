"""The `series` table: once per interval, what each vertex did since the last sample and what waits in its queues."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import simpy

from sim.metrics.packed import PackedRows
from sim.metrics.schema import SERIES
from sim.runtime.observe.backlog import due_records
from sim.runtime.observe.record_latency import RecordLatency

if TYPE_CHECKING:
    from sim.runtime.context import Context
    from sim.runtime.counters import Counters

__all__ = ["SAMPLE_NS", "Sampler"]

SAMPLE_NS = 1_000_000_000
_LOOKS = 5  # at how far records have come, per sample
_SECOND = 1_000_000_000


_RATES = {"numRecordsInPerSecond": "served", "numBytesOutPerSecond": "bytes_out"}
_SHARES = {"busy": ("busy_ns",), "idle": ("idle_ns",), "backPressured": ("soft_ns", "hard_ns")}
_QUEUES = {  # column: (end of the edge it belongs to, of channels, less these)
    "inputQueueSize": ("downstream", "arrived", "taken"),
    "outputQueueSize": ("upstream", "written", "sent"),
    "inputQueueLength": ("downstream", "at_hand", None),
    "outputQueueLength": ("upstream", "queued", None),
}


class Sampler:
    """A process that looks at the plane every `SAMPLE_NS`; `progress` hears the simulated time; `only`: columns that are asked for."""

    def __init__(
        self, context: Context, counters: Counters, progress: Callable[[int], None] | None, only: Collection[str] | None = None
    ) -> None:
        self.context = context
        self.counters = counters
        self.progress = progress
        self._vertices = context.scenario.job.vertices
        self._times = [SAMPLE_NS * vertex.parallelism for vertex in self._vertices]  # of all tasks, per sample
        self.rows = PackedRows([column.name for column in SERIES if only is None or column.name in only])
        asked_for = set(self.rows.columns)
        self._rates = {name: column for name, column in _RATES.items() if name in asked_for}
        self._shares = {name: columns for name, columns in _SHARES.items() if name in asked_for}
        self._queues = {name: queue for name, queue in _QUEUES.items() if name in asked_for}
        self._of_tasks = (*self._rates.values(), *chain.from_iterable(self._shares.values()))
        self._of_channels = [column for _, *columns in self._queues.values() for column in columns if column]
        self._ends = {
            end: np.array([getattr(edge, end) for edge in context.spec.edges], np.int64) for end in ("upstream", "downstream")
        }  # vertices, by edge
        self._record_latency = RecordLatency(context.scenario.job, context.env.now, self._served())
        context.env.process(self._run())

    def _run(self) -> Generator[simpy.Event, None, None]:
        before = self.counters.vertices(*self._of_tasks)
        while True:
            for _ in range(_LOOKS):
                yield self.context.env.timeout(SAMPLE_NS // _LOOKS)
                self._record_latency.look(self.context.env.now, self._served())
            after = self.counters.vertices(*self._of_tasks)
            self._sample({name: (after[name] - before[name]).tolist() for name in self._of_tasks})
            before = after
            if self.progress is not None:
                self.progress(self.context.env.now)

    def _served(self) -> list[int]:
        """By vertex, in the present attempts."""
        served: list[int] = self.context.plane.vertices("served")["served"].tolist()
        return served

    def _sample(self, gained: Mapping[str, Sequence[int]]) -> None:
        """A row for each vertex; `gained`: since the last sample, by vertex."""
        vertices = range(len(self._vertices))
        cells: dict[str, Sequence[Any]] = {
            "time": [self.context.env.now / _SECOND] * len(vertices), "vertex": [vertex.name for vertex in self._vertices],
        }  # fmt: skip
        for name, column in self._rates.items():
            cells[name] = [float(value) * _SECOND / SAMPLE_NS for value in gained[column]]
        for name, columns in self._shares.items():
            spent = map(sum, zip(*(gained[column] for column in columns), strict=True))
            cells[name] = [value / time for value, time in zip(spent, self._times, strict=True)]
        cells |= self._waiting()
        cells["backlog"], cells["lag"] = zip(*map(self._behind, vertices), strict=True)
        cells["x_latency"] = [self._record_latency.mean_ms(v) for v in vertices]
        for row in zip(*(cells[name] for name in self.rows.columns), strict=True):
            self.rows.add(row)

    def _waiting(self) -> dict[str, list[int]]:
        """Bytes and buffers in queues, by vertex."""
        edges, waiting = self.context.plane.edges(*self._of_channels), {}
        for name, (end, column, less) in self._queues.items():
            total = np.zeros(len(self._vertices), np.int64)
            np.add.at(total, self._ends[end], edges[column] if less is None else edges[column] - edges[less])
            waiting[name] = total.tolist()
        return waiting

    def _behind(self, v: int) -> tuple[int, float]:
        """(records due and not emitted, age of the oldest of them in s) of a source."""
        source, now = self.context.spec.vertices[v].source, self.context.env.now
        if source is None or not source.segments:
            return 0, 0.0
        first = self.context.layout.first_task[v]
        due, here = due_records(source, now), self.context.plane.served()[first : first + self._vertices[v].emitting]
        behind = np.maximum(due - here, 0)
        oldest = int(here.min())
        return int(behind.sum()), (now - source.due(oldest)) / _SECOND if oldest < due else 0.0
