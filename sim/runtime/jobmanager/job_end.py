"""The end of tasks as the JobManager knows it: whose data has ended, which have finished, and the checkpoint that follows.

Source: SchedulerBase#notifyEndOfData, VertexEndOfDataListener.  Plans leave out finished tasks as soon as their last message is here.
"""

from __future__ import annotations

from collections.abc import Callable

from sim.metrics.journal import Happening
from sim.plane.seam.layout import Layout
from sim.protocol.coordinator.plan import TaskGraph, VertexLink, plan
from sim.protocol.coordinator.union_state import UnionState
from sim.protocol.reasons import FailureReason
from sim.protocol.task.finishing import Finishing
from sim.protocol.vocabulary import CheckpointRequested, CoordinatorEvent, Plan, RequestKind, SchedulerStopped
from sim.runtime.context import Context
from sim.runtime.outcome import Outcome


class JobEnd:
    """The tasks that have reported the end of their data, and those that have finished.  `tell` passes events to the coordinator."""

    def __init__(self, context: Context, rule: Finishing, outcome: Outcome, tell: Callable[[CoordinatorEvent], None]) -> None:
        self.context = context
        self.rule = rule
        self.outcome = outcome
        self.tell = tell
        self.graph = task_graph(context)
        self.ended: set[int] = set()  # tasks that reported the end of their data
        self.finished: frozenset[int] = frozenset()
        self.union_state = UnionState(self.graph, frozenset(n for n, row in enumerate(context.scenario.job.vertices) if row.union_state))
        self._plan = plan(self.graph, frozenset())

    def plan(self, not_running: frozenset[int]) -> Plan | None:
        """Who takes part in a checkpoint decided on now; None: a required task does not run."""
        if not_running or self.finished:
            return plan(self.graph, self.finished, not_running, after_finish=self.rule.after_finish)
        return self._plan

    def begun(self, checkpoint: int, finished: frozenset[int]) -> None:
        """A checkpoint without those who have finished."""
        self.union_state = self.union_state.begun(checkpoint, finished)

    def finished_in(self, task: int, checkpoint: int) -> None:
        """A task takes part whose operators have finished."""
        self.union_state = self.union_state.finished_in(task, checkpoint)

    def renewed(self, task: int) -> None:
        """A restarted task runs again (VertexEndOfDataListener#restoreVertices)."""
        self.ended.discard(task)
        self.finished -= {task}

    def data_ended(self, task: int) -> None:
        """Once for each task; with the last one a checkpoint follows at once: it will hold everything."""
        self.ended.add(task)
        if self.rule.final_trigger and len(self.ended) == len(self.graph.tasks) and self.context.periodic:
            self.tell(CheckpointRequested(self.context.env.now, RequestKind.MANUAL))

    def task_finished(self, task: int) -> None:
        self.finished |= {task}
        if self.finished == self.graph.tasks:
            self.tell(SchedulerStopped(self.context.env.now, FailureReason.CHECKPOINT_COORDINATOR_SHUTDOWN))
            self.context.note(Happening.JOB_FINISHED)
            self.outcome.finish()


def task_graph(context: Context) -> TaskGraph:
    """The tasks of a job and the edges between them."""
    layout, job = context.layout, context.scenario.job
    number = {vertex.name: i for i, vertex in enumerate(job.vertices)}
    vertices = tuple(range(first, first + vertex.parallelism) for first, vertex in zip(layout.first_task, job.vertices, strict=True))
    edges = [(inlet, number[reader.name]) for reader in job.vertices for inlet in reader.inputs]
    links = [
        VertexLink(number[inlet.upstream], reader, _predecessors(layout, edge, vertices[reader]) if inlet.shipping.pointwise else None)
        for edge, (inlet, reader) in enumerate(edges)
    ]
    return TaskGraph(vertices, tuple(links))


def _predecessors(layout: Layout, edge: int, readers: range) -> tuple[tuple[int, ...], ...]:
    """The writers that each reader of a pointwise edge reads."""
    gates = [next(gate for gate in layout.task_gates[task] if layout.gates[gate][1] == edge) for task in readers]
    return tuple(tuple(layout.writer[channel] for channel in layout.gates[gate][2]) for gate in gates)
