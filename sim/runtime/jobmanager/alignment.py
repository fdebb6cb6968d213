"""The coordinators of sources that keep in step: they hear watermarks, and announce to each subtask how far it may read (FLIP-182)."""

from __future__ import annotations

from collections import defaultdict
from functools import partial

from sim.model.job import Alignment
from sim.protocol.alignment import Group
from sim.runtime.context import Context
from sim.runtime.ports import TasksPort

__all__ = ["WatermarkAlignment"]


class WatermarkAlignment:
    """All groups of a job."""

    def __init__(self, context: Context, tasks: TasksPort) -> None:
        self.context = context
        self.tasks = tasks
        self.groups: dict[str, Group] = defaultdict(Group)

    def start(self) -> None:
        """From now to the end of the job, for each source that is in a group."""
        for number, vertex in enumerate(self.context.scenario.job.vertices):
            if vertex.source is not None and vertex.source.watermark.alignment is not None:
                first = self.context.layout.first_task[number]
                self._announce_later(vertex.source.watermark.alignment, range(first, first + vertex.parallelism))

    def hear(self, task: int, watermark_ns: int) -> None:
        """A subtask reports."""
        source = self.context.scenario.job.vertices[self.context.layout.vertex[task]].source
        if source is not None and source.watermark.alignment is not None:
            group = self.groups[source.watermark.alignment.group]
            self.context.env.call_in(self.context.scenario.overheads.acknowledge_ns, lambda: group.report(task, watermark_ns))

    def _announce_later(self, alignment: Alignment, tasks: range) -> None:
        self.context.env.call_in(alignment.every_ns, lambda: self._announce(alignment, tasks))

    def _announce(self, alignment: Alignment, tasks: range) -> None:
        group = self.groups[alignment.group]
        limit_ns = group.limit(alignment.drift_ns)
        for task in tasks:
            if task in group.reported and self.tasks[task].running:
                self.context.env.call_in(self.context.scenario.overheads.notify_ns, partial(self.tasks.limit, task, limit_ns))
        self._announce_later(alignment, tasks)
