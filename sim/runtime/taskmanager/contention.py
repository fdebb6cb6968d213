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

__all__ = ["Contention"]

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
        self._busy_ns = [0] * len(self.tasks)
        self._known_ns = 0  # what the averages are over

    def start(self) -> None:
        """From now to the end of the job, if there are more threads than cores."""
        if len(self.tasks) > self.cores:
            self._busy_ns = self._read()
            self.context.env.call_in(_FIRST_NS, lambda: self._look(_FIRST_NS))

    def _read(self) -> list[int]:
        return [int(busy_ns) for busy_ns in self.context.plane.tasks("busy_ns")["busy_ns"][self.tasks]]

    def _look(self, since_ns: int) -> None:
        before, self._busy_ns = self._busy_ns, self._read()
        self._known_ns = min(self._known_ns + since_ns, _MEMORY_NS)
        weight = since_ns / self._known_ns
        for i, (then, now) in enumerate(zip(before, self._busy_ns, strict=True)):
            self._shares[i] += weight * (max(now - then, 0) / since_ns - self._shares[i])
        factor = slowdown(self._shares, self.cores)
        if not math.isclose(factor, self.factor, rel_tol=_CHANGE):
            self.factor = factor
            for task in self.tasks:
                self.speed.slow(task, "cores", Fraction(round(factor * 1024), 1024))
        after_ns = min(2 * since_ns, _LATER_NS)
        self.context.env.call_in(after_ns, lambda: self._look(after_ns))
