"""How far a restarted job has come: its first record, what its sources emit again, and when their backlog is back to what it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sim.metrics.recoveries import RecoveryStats
from sim.runtime.backlog import due_records
from sim.storage.work import Work

if TYPE_CHECKING:
    from sim.runtime.contents import Held
    from sim.runtime.world import World

__all__ = ["LOOK_NS", "CatchUp"]

LOOK_NS = 10_000_000
"""How often it looks [ns]: the precision of `first_record`; `caught_up` is looked for ten times less often."""


class CatchUp:
    """Of one restart; made before its tasks are started again, while they stand where they failed."""

    def __init__(self, world: World, stats: RecoveryStats, held: dict[int, Held]) -> None:
        self.world = world
        self.env = world.env
        self.stats = stats
        begun = world.beginning if stats.number == 1 else None  # how this job instance began
        served = world.plane.tasks()["served"] if begun is None else begun.served
        self.sources = [task for task in sorted(held) if not world.layout.task_gates[task]]
        self.position = {task: int(served[task]) for task in self.sources}  # where they stood
        stats.replayed_records = sum(max(0, self.position[task] - held[task].position.served) for task in self.sources)
        self.waiting = sum(self._backlog(task, stats.failed_ns, self.position[task]) for task in self.sources)
        readers = [task for task in sorted(held) if world.layout.task_gates[task]] or self.sources
        self.readers = np.array(readers, dtype=np.int64)
        self.begun = np.array([held[int(task)].position.served for task in self.readers], dtype=np.int64)

    def watch(self, tasks: set[int]) -> Work[None]:
        """Process: looks until the job has caught up or `tasks` have failed again."""
        everything = len(tasks)
        while len(tasks) == everything and self.stats.caught_up_ns < 0:
            yield self.env.timeout(LOOK_NS if self.stats.first_record_ns < 0 else 10 * LOOK_NS)
            served = self.world.plane.tasks()["served"]
            if self.stats.first_record_ns < 0 and bool((served[self.readers] > self.begun).any()):
                self.stats.first_record_ns = self.env.now
            if self.stats.first_record_ns >= 0 and self._caught_up(served):
                self.stats.caught_up_ns = self.env.now

    def _caught_up(self, served: np.ndarray) -> bool:
        """Every source is where it was, and no more waits in its log than then (but the record it is about to emit)."""
        here = {task: int(served[task]) for task in self.sources}
        if any(here[task] < self.position[task] for task in self.sources):
            return False
        return sum(self._backlog(task, self.env.now, here[task]) for task in self.sources) <= self.waiting + len(self.sources)

    def _backlog(self, task: int, now: int, emitted: int) -> int:
        source = self.world.spec.vertices[self.world.layout.vertex[task]].source
        return 0 if source is None else max(0, due_records(source, now) - emitted)
