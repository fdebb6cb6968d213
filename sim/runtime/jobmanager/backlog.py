"""The enumerators of sources that report a backlog: they look at the positions of their readers, and report to the coordinator (FLIP-309).

Flink: SplitEnumeratorContext#setIsProcessingBacklog.  HybridSourceSplitEnumerator reports one until its last source begins; after a
failure it stands where its checkpoint says, and may report it again.
"""

from __future__ import annotations

from sim.model.job import Backlog
from sim.protocol.vocabulary import BacklogReported
from sim.runtime.context import Context
from sim.runtime.jobmanager.coordinator_host import CoordinatorHost

LOOK_NS = 100_000_000
"""How often an enumerator looks [ns]; a report is at most so late."""


def report_backlogs(context: Context, coordinator: CoordinatorHost) -> None:
    """From now to the end of the job, for each source that reports one."""
    for number, vertex in enumerate(context.scenario.job.vertices):
        if vertex.source is not None and vertex.source.backlog is not None:
            _Enumerator(context, coordinator, number, vertex.source.backlog).look()


class _Enumerator:
    """The enumerator of one source: it reports whether the source reads a backlog."""

    def __init__(self, context: Context, coordinator: CoordinatorHost, vertex: int, backlog: Backlog) -> None:
        self.context = context
        self.coordinator = coordinator
        self.vertex = vertex
        self.backlog = backlog
        first = context.layout.first_task[vertex]
        self.tasks = slice(first, first + context.scenario.job.vertices[vertex].emitting)
        self.behind = False  # as the JobManager knows it ...
        self._leader = 0  # ... that was told

    def look(self) -> None:
        """Look now, and again after each period."""
        machine = self.coordinator.machine
        if machine.leader != self._leader:
            self.behind, self._leader = False, machine.leader
        behind = not machine.absent and any(self._is_behind(served) for served in self.context.plane.served()[self.tasks].tolist())
        if behind != self.behind:
            self.behind = behind
            self.coordinator.tell(BacklogReported(self.context.env.now, self.vertex, behind))
        self.context.env.call_in(LOOK_NS, self.look)

    def _is_behind(self, served: int) -> bool:
        source = self.context.spec.vertices[self.vertex].source
        if source is None or served == source.total:
            return False
        if self.backlog.lag_ns is None:
            return served < (self.backlog.records or 0)
        return self.context.env.now - source.due(served) > self.backlog.lag_ns
