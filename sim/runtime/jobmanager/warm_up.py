"""Tasks are slow at first, restarted ones and those of a cold start.

Code is loaded and compiled anew (a new class loader or process), caches are empty.
"""

from __future__ import annotations

from fractions import Fraction

from sim.model.faults import Restart
from sim.runtime.clock import TwoPlaneEnvironment
from sim.runtime.speed import Speed


class WarmUp:
    """The warm-up of all tasks of a run; `Restart.warm_up_ns` 0: there is none."""

    def __init__(self, env: TwoPlaneEnvironment, restart: Restart, speed: Speed) -> None:
        self.env = env
        self.restart = restart
        self.speed = speed
        self._warm_ns: dict[int, int] = {}  # by task: since when, or when it will be

    def begin(self, task: int) -> None:
        """A task begins, restarted or in a job that has just been submitted; one that was still cold begins its warm-up anew."""
        if not self.restart.warm_up_ns:
            return
        self._warm_ns[task] = self.env.now + self.restart.warm_up_ns
        self.speed.slow(task, "warm-up", self.restart.warm_up_factor)
        self.env.call_in(self.restart.warm_up_ns, lambda: self._end(task))

    def _end(self, task: int) -> None:
        if self.env.now >= self._warm_ns[task]:
            self.speed.slow(task, "warm-up", Fraction(1))
