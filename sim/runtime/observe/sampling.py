"""The `series` table: once per interval, what each vertex did since the last sample and what waits in its queues."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import simpy

from sim.runtime.observe.backlog import due_records, due_time_ns
from sim.runtime.observe.record_latency import RecordLatency

if TYPE_CHECKING:
    from sim.runtime.context import Context
    from sim.runtime.counters import Counters

__all__ = ["SAMPLE_NS", "Sampler"]

SAMPLE_NS = 1_000_000_000
_LOOKS = 5  # at how far records have come, per sample
_SECOND = 1_000_000_000


class Sampler:
    """A process that looks at the plane every `SAMPLE_NS`; `progress` hears the simulated time."""

    def __init__(self, context: Context, counters: Counters, progress: Callable[[int], None] | None) -> None:
        self.context = context
        self.counters = counters
        self.progress = progress
        self.rows: list[tuple[Any, ...]] = []
        layout = context.layout
        vertices = range(len(context.scenario.job.vertices))
        self._tasks = [np.flatnonzero(np.array(layout.vertex) == v) for v in vertices]
        self._in = [_channels(layout.gates[g][2] for t in tasks for g in layout.task_gates[t]) for tasks in self._tasks]
        self._out = [_channels(layout.partitions[p][2] for t in tasks for p in layout.task_partitions[t]) for tasks in self._tasks]
        self._record_latency = RecordLatency(context.scenario.job, self._tasks, context.env.now, context.plane.served())
        self._local = np.array(layout.local, dtype=bool)
        context.env.process(self._run())

    def _run(self) -> Generator[simpy.Event, None, None]:
        before = self.counters.rows()
        while True:
            for _ in range(_LOOKS):
                yield self.context.env.timeout(SAMPLE_NS // _LOOKS)
                positions = self.context.plane.served()
                self._record_latency.look(self.context.env.now, positions)
            after = self.counters.rows()
            self._sample(before, after, positions)
            before = after
            if self.progress is not None:
                self.progress(self.context.env.now)

    def _sample(self, before: np.ndarray, after: np.ndarray, positions: np.ndarray) -> None:
        channels = self.context.plane.channels()
        for v, vertex in enumerate(self.context.scenario.job.vertices):
            done, waiting, behind = self._rates(v, before, after), self._queues(v, channels), self._behind(v, positions)
            self.rows.append((self.context.env.now / _SECOND, vertex.name, *done, *waiting, *behind, self._record_latency.mean_ms(v)))

    def _rates(self, v: int, before: np.ndarray, after: np.ndarray) -> tuple[float, ...]:
        def gained(column: str) -> float:
            return float((after[column] - before[column])[self._tasks[v]].sum())

        spent = SAMPLE_NS * len(self._tasks[v])
        return (
            gained("served") * _SECOND / SAMPLE_NS, gained("bytes_out") * _SECOND / SAMPLE_NS,
            gained("busy_ns") / spent, gained("idle_ns") / spent, (gained("soft_ns") + gained("hard_ns")) / spent,
        )  # fmt: skip

    def _queues(self, v: int, channels: np.ndarray) -> tuple[int, ...]:
        """(input bytes, output bytes, input buffers, output buffers)"""
        inputs, outputs = self._in[v], self._out[v]
        received, unsent = channels["arrived"] - channels["taken"], channels["written"] - channels["sent"]
        at_hand = np.where(self._local, channels["queued"], channels["received"])
        return int(received[inputs].sum()), int(unsent[outputs].sum()), int(at_hand[inputs].sum()), int(channels["queued"][outputs].sum())

    def _behind(self, v: int, emitted: np.ndarray) -> tuple[int, float]:
        """(records due and not emitted, age of the oldest of them in s) of a source."""
        source, now = self.context.spec.vertices[v].source, self.context.env.now
        if source is None or not source.segments:
            return 0, 0.0
        due, here = due_records(source, now), emitted[self._tasks[v]]
        behind = np.maximum(due - here, 0)
        oldest = int(here.min())
        return int(behind.sum()), (now - due_time_ns(source, oldest)) / _SECOND if oldest < due else 0.0


def _channels(groups: Iterable[Iterable[int]]) -> np.ndarray:
    return np.fromiter(chain.from_iterable(groups), dtype=np.int64)
