"""What the JobManager knows of tasks that end: whose data ended, who has finished, and what follows from it.

Source: SchedulerBase#notifyEndOfData, VertexEndOfDataListener.  Plans leave out finished tasks as soon as their last message is here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.metrics.journal import Happening
from sim.protocol.finishing import Finishing
from sim.protocol.plan import TaskGraph, VertexLink, plan
from sim.protocol.reasons import FailureReason
from sim.protocol.vocabulary import CheckpointRequested, Plan, RequestKind, SchedulerStopped

if TYPE_CHECKING:
    from sim.plane.seam.layout import Layout
    from sim.runtime.run.world import World

__all__ = ["JobEnd", "task_graph"]


class JobEnd:
    def __init__(self, world: World, rule: Finishing) -> None:
        self.world = world
        self.rule = rule
        self.graph = task_graph(world)
        self.ended: set[int] = set()  # tasks that reported the end of their data
        self.finished: frozenset[int] = frozenset()
        self._plan = plan(self.graph, frozenset())
        self._union = frozenset(n for n, vertex in enumerate(world.scenario.job.vertices) if vertex.union_state)
        self._over: dict[int, set[int]] = {}  # of each checkpoint: tasks whose operators have finished

    def plan(self, not_running: frozenset[int]) -> Plan | None:
        """Who takes part in a checkpoint decided on now; None: a required task does not run."""
        if not_running or self.finished:
            return plan(self.graph, self.finished, not_running, after_finish=self.rule.after_finish)
        return self._plan

    def begun(self, checkpoint: int, finished: frozenset[int]) -> None:
        """A checkpoint without those who have finished."""
        if self._union:
            self._over[checkpoint] = set(finished)

    def snapshot_over(self, checkpoint: int, task: int) -> None:
        """A task takes part whose operators have finished."""
        if self._union:
            self._over[checkpoint].add(task)

    def splits_union_state(self, checkpoint: int) -> bool:
        """Whether a vertex with union list state is over in some of its tasks only (PartialFinishingNotSupportedByStateException)."""
        return bool(self._union) and not self._union.isdisjoint(self.graph.partial(frozenset(self._over[checkpoint])))

    def renewed(self, task: int) -> None:
        """A restarted task runs again (VertexEndOfDataListener#restoreVertices)."""
        self.ended.discard(task)
        self.finished -= {task}

    def data_ended(self, task: int) -> None:
        """Once for each task; with the last one a checkpoint follows at once: it will hold everything."""
        self.ended.add(task)
        if self.rule.final_trigger and len(self.ended) == len(self.graph.tasks) and self.world.scenario.checkpoint.interval_ns is not None:
            self.world.coordinator.tell(CheckpointRequested(self.world.env.now, RequestKind.MANUAL))

    def task_finished(self, task: int) -> None:
        self.finished |= {task}
        if self.finished == self.graph.tasks:
            self.world.coordinator.tell(SchedulerStopped(self.world.env.now, FailureReason.CHECKPOINT_COORDINATOR_SHUTDOWN))
            self.world.journal.note(self.world.env.now, Happening.JOB_FINISHED)
            self.world.finish()


def task_graph(world: World) -> TaskGraph:
    """The tasks of a job and who feeds whom."""
    layout, job = world.layout, world.scenario.job
    number = {vertex.name: i for i, vertex in enumerate(job.vertices)}
    vertices = tuple(range(first, first + vertex.parallelism) for first, vertex in zip(layout.first_task, job.vertices, strict=True))
    edges = [(inlet, number[reader.name]) for reader in job.vertices for inlet in reader.inputs]
    links = [
        VertexLink(number[inlet.upstream], reader, _predecessors(layout, edge, vertices[reader]) if inlet.shipping.pointwise else None)
        for edge, (inlet, reader) in enumerate(edges)
    ]
    return TaskGraph(vertices, tuple(links))


def _predecessors(layout: Layout, edge: int, readers: range) -> tuple[tuple[int, ...], ...]:
    """Of each reader of a pointwise edge: the writers it reads."""
    gates = [next(gate for gate in layout.task_gates[task] if layout.gates[gate][1] == edge) for task in readers]
    return tuple(tuple(layout.writer[channel] for channel in layout.gates[gate][2]) for gate in gates)
