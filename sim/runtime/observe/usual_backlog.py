"""What usually waits in a job that runs undisturbed: the mean of looks over the last checkpoint interval, whatever its phase.

Checkpoints, windows and bursts let queues rise and fall.  A failure at their lowest point and one at their highest end at the same level.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import numpy as np

from sim.runtime.context import Context
from sim.runtime.observe.backlog import due_records
from sim.storage.work import in_own_turn

LEAST_NS = 10_000_000_000
"""Looks go back so far at least [ns], and over a whole checkpoint interval and a whole window."""
LOOKS = 20
"""In that time: the mean of so many is off by a twentieth of what rises and falls."""


class UsualBacklog:
    """Looks from time to time, but not while tasks are down or catching up.  `is_up`: whether all tasks run."""

    def __init__(self, context: Context, is_up: Callable[[], bool]) -> None:
        self.context = context
        self.is_up = is_up
        self.catching_up = 0  # restarts
        self._looks: deque[tuple[int, np.ndarray, np.ndarray]] = deque(maxlen=LOOKS)  # time; by task: served, `in_flight`
        scenario = context.scenario
        windows_ns = (vertex.window.size_ns for vertex in scenario.job.vertices if vertex.window is not None)
        every_ns = max(LEAST_NS, scenario.checkpoint.interval_ns or 0, *windows_ns) // LOOKS
        in_own_turn(context.env, lambda: context.env.call_every(every_ns, self._look))

    def _look(self) -> None:
        if not self.catching_up and self.is_up():
            self._looks.append((self.context.env.now, self.context.plane.served(), self.context.plane.in_flight()))

    def in_log(self, task: int, now: int, emitted: int) -> int:
        """Records of a source that are due and not emitted."""
        layout = self.context.layout
        source = self.context.spec.vertices[layout.vertex[task]].log(layout.subtask[task])
        return 0 if source is None else max(0, due_records(source, now) - emitted)

    def waiting(self, sources: Sequence[int]) -> float | None:
        """Records in the logs of these tasks; None: not measured."""
        found = [sum(self.in_log(task, now, int(served[task])) for task in sources) for now, served, _ in self._looks]
        return sum(found) / len(found) if found else None

    def flying(self, tasks: Sequence[int]) -> float | None:
        """Records between these tasks, which restart together; None: not measured."""
        found = [int(flying[tasks].sum()) for _, _, flying in self._looks]
        return sum(found) / len(found) if found else None
