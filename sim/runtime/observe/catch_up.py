"""How far a restarted job has come: its first record, what its sources emit again, and when as much waits as usual."""

from __future__ import annotations

from collections.abc import Callable

from sim.metrics.recoveries import RecoveryStats
from sim.runtime.contents import TaskSnapshot
from sim.runtime.context import Context
from sim.runtime.observe.usual_backlog import UsualBacklog
from sim.storage.work import Work

LOOK_NS = 10_000_000
"""How often it looks for the first record [ns], which is its precision.  Whether a job has caught up is looked at ten times less often."""
LONGEST_NS = 1_000_000_000
"""The longest wait between two looks.  The pace so far underrates a job that is still cold, or held up by checkpoints."""


class CatchUp:
    """The progress of one restart; made before its tasks are started again, while they stand where they failed."""

    def __init__(self, context: Context, stats: RecoveryStats, parts: dict[int, TaskSnapshot], usual: UsualBacklog) -> None:
        self.context = context
        self.usual = usual
        usual.catching_up += 1
        self.env = context.env
        self.stats = stats
        begun = context.origin if stats.number == 1 else None
        served = context.plane.served() if begun is None else begun.served
        self.sources = [task for task in sorted(parts) if not context.layout.task_gates[task]]
        self.position = {task: int(served[task]) for task in self.sources}  # where they stood
        stats.replayed_records = sum(max(0, self.position[task] - parts[task].position.served) for task in self.sources)
        job = context.scenario.job
        read = {inlet.upstream for vertex in job.vertices for inlet in vertex.inputs if not vertex.committer_of}
        is_end = [vertex.name not in read and not vertex.committer_of for vertex in job.vertices]
        ends = [task for task in sorted(parts) if is_end[context.layout.vertex[task]]]
        stats.served_again = sum(max(0, int(served[task]) - parts[task].position.served) for task in ends)
        self.tasks = sorted(parts)
        waiting, flying = usual.waiting(self.sources), usual.flying(self.tasks)  # their readers restart with them
        if waiting is None:  # it failed before anything was looked at, or begins from a snapshot: what waited then
            waiting = float(sum(usual.in_log(task, stats.failed_ns, self.position[task]) for task in self.sources))
        self.waiting = waiting
        if flying is None and begun is None:
            flying = float(self._in_flight())
        self.flying = flying  # None: another layout has no comparable channels
        readers = [task for task in self.tasks if context.layout.task_gates[task]] or self.sources
        self.readers = {task: parts[task].position.served for task in readers}
        self._watching = False

    def begin(self, tasks: set[int], then: Callable[[], None]) -> None:
        """The first thread of the restarted `tasks` begins: look until they have caught up, or some of them have failed again.

        `then` is called in both cases.
        """
        if not self._watching:
            self._watching = True
            self.env.process(self._watch(tasks, then))

    def _watch(self, tasks: set[int], then: Callable[[], None]) -> Work[None]:
        yield from self._look_until_caught_up(tasks)
        self.usual.catching_up -= 1
        then()

    def _look_until_caught_up(self, tasks: set[int]) -> Work[None]:
        everything, begun_ns = len(tasks), self.env.now
        most, next_ns = self._distance(), LOOK_NS
        while True:
            yield self.env.timeout(next_ns)
            if len(tasks) < everything:
                return
            if self.stats.first_record_ns < 0:
                served = self.context.plane.served()
                if any(served[task] > begun for task, begun in self.readers.items()):
                    self.stats.first_record_ns = self.env.now
            elif (distance := self._distance()) <= len(self.tasks) and self.stats.running_ns >= 0:  # one record each is at hand
                self.stats.caught_up_ns = self.env.now
                return
            else:
                most = max(most, distance)
                next_ns = self._half_way(most, distance, self.env.now - begun_ns)

    def _half_way(self, most: float, distance: float, spent_ns: int) -> int:
        """Until the next look: half of what is left to do at the pace so far."""
        left_ns = int(spent_ns * distance / (most - distance)) if most > distance else 2 * spent_ns
        return min(max(10 * LOOK_NS, left_ns // 2), LONGEST_NS)

    def _distance(self) -> float:
        """Records: how far each source is from where it was, and how many more wait in the logs and between the tasks than usual."""
        here = self.context.plane.served()
        behind = sum(max(0, self.position[task] - int(here[task])) for task in self.sources)
        waiting = sum(self.usual.in_log(task, self.env.now, int(here[task])) for task in self.sources)
        flying = 0.0 if self.flying is None else self._in_flight() - self.flying
        return behind + max(0, waiting - self.waiting) + max(0, flying)

    def _in_flight(self) -> int:
        """Records written and not read yet."""
        return int(self.context.plane.in_flight()[self.tasks].sum())
