"""Task threads that want more cores than their host has slow each other down.

A mean-field law: what counts is how busy each thread has been lately, not which of them run at this moment.  So bursts that are shorter
than the memory slow each other down by as much as the average of their host.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from sim.model.randomness.contention import slowdown
from sim.runtime.context import Context
from sim.runtime.speed import Speed

_FIRST_NS, _LATER_NS = 100_000_000, 1_000_000_000
"""From one look to the next; the first ones follow each other sooner, so that a run does not begin with idle cores."""
_MEMORY_NS = 5_000_000_000
"""Busy shares are averages over about so long: as long as a gauge of Flink needs to see a wait."""
_CHANGE = 0.01
"""A smaller change of the slowdown changes nothing."""


class Contention:
    """The tasks of one host; `start` it once the tasks run."""

    def __init__(self, context: Context, speed: Speed, tasks: Sequence[int], cores: int) -> None:
        self.context = context
        self.speed = speed
        self.tasks = list(tasks)
        self.cores = cores
        self.factor = 1.0
        self._shares = [0.0] * len(self.tasks)
        self._busy_ns, self._served = [0] * len(self.tasks), [0] * len(self.tasks)
        vertices = context.scenario.job.vertices
        self._works_ns = [vertices[context.layout.vertex[task]].work_ns for task in self.tasks]
        self._known_ns = 0  # what the averages are over

    def start(self) -> None:
        """From now to the end of the job, if there are more threads than cores."""
        if len(self.tasks) > self.cores:
            self._busy_ns, self._served = self._read()
            self.context.env.call_in(_FIRST_NS, lambda: self._look(_FIRST_NS))

    def _read(self) -> tuple[list[int], list[int]]:
        """Read the busy time [ns] and the records served so far, by task."""
        rows = self.context.plane.tasks("busy_ns", "served")[self.tasks]
        return rows["busy_ns"].tolist(), rows["served"].tolist()

    def _look(self, since_ns: int) -> None:
        busy_ns, served = self._busy_ns, self._served
        self._busy_ns, self._served = self._read()
        self._known_ns = min(self._known_ns + since_ns, _MEMORY_NS)
        weight = since_ns / self._known_ns
        for i, work_ns in enumerate(self._works_ns):
            worked_ns = float(max(self._busy_ns[i] - busy_ns[i], 0))
            if work_ns is not None:
                worked_ns = min(worked_ns, max(self._served[i] - served[i], 0) * work_ns * self.factor)
            self._shares[i] += weight * (worked_ns / since_ns - self._shares[i])
        factor = slowdown(self._shares, self.cores)
        if not math.isclose(factor, self.factor, rel_tol=_CHANGE):
            self.factor = factor
            for task in self.tasks:
                self.speed.slow(task, "cores", Fraction(round(factor * 1024), 1024))
        after_ns = min(2 * since_ns, _LATER_NS)
        self.context.env.call_in(after_ns, lambda: self._look(after_ns))
