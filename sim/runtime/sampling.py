"""The `series` table: once per interval, what each vertex did since the last sample and what waits in its queues."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import simpy

if TYPE_CHECKING:
    from sim.runtime.world import World

__all__ = ["SAMPLE_NS", "Sampler"]

SAMPLE_NS = 1_000_000_000
_SECOND = 1_000_000_000


class Sampler:
    """A process that looks at the plane every `SAMPLE_NS`; `progress` hears the simulated time."""

    def __init__(self, world: World, progress: Callable[[int], None] | None) -> None:
        self.world = world
        self.progress = progress
        self.rows: list[tuple[Any, ...]] = []
        layout = world.layout
        vertices = range(len(world.scenario.job.vertices))
        self._tasks = [np.flatnonzero(np.array(layout.vertex) == v) for v in vertices]
        self._in = [_channels(layout.gates[g][2] for t in tasks for g in layout.task_gates[t]) for tasks in self._tasks]
        self._out = [_channels(layout.partitions[p][2] for t in tasks for p in layout.task_partitions[t]) for tasks in self._tasks]
        world.env.process(self._run())

    def _run(self) -> Generator[simpy.Event, None, None]:
        before = self.world.plane.tasks()
        while True:
            yield self.world.env.timeout(SAMPLE_NS)
            after, channels = self.world.plane.tasks(), self.world.plane.channels()
            for v, vertex in enumerate(self.world.scenario.job.vertices):
                self.rows.append((self.world.env.now / _SECOND, vertex.name, *self._rates(v, before, after), *self._queues(v, channels)))
            before = after
            if self.progress is not None:
                self.progress(self.world.env.now)

    def _rates(self, v: int, before: np.ndarray, after: np.ndarray) -> tuple[float, ...]:
        def gained(column: str) -> float:
            return float((after[column] - before[column])[self._tasks[v]].sum())

        spent = SAMPLE_NS * len(self._tasks[v])
        return (
            gained("served") * _SECOND / SAMPLE_NS, gained("bytes_out") * _SECOND / SAMPLE_NS,
            gained("busy_ns") / spent, gained("idle_ns") / spent, (gained("soft_ns") + gained("hard_ns")) / spent,
        )  # fmt: skip

    def _queues(self, v: int, channels: np.ndarray) -> tuple[int, int]:
        received = (channels["arrived"] - channels["taken"])[self._in[v]].sum()
        unsent = (channels["written"] - channels["sent"])[self._out[v]].sum()
        return int(received), int(unsent)


def _channels(groups: Iterable[Iterable[int]]) -> np.ndarray:
    return np.fromiter(chain.from_iterable(groups), dtype=np.int64)
