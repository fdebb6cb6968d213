"""The coordinators of aligned sources: they receive watermarks, and announce to each subtask how far it may read (FLIP-182)."""

from __future__ import annotations

from collections import defaultdict
from functools import partial

from sim.model.job import Alignment
from sim.protocol.alignment import Group
from sim.runtime.context import Context
from sim.runtime.jobmanager.coordinator_host import CoordinatorHost
from sim.runtime.ports import Checks, TasksPort


class WatermarkAlignment:
    """The coordinators of all groups of a job.  A JobManager knows only the watermarks that were reported to it."""

    def __init__(self, context: Context, tasks: TasksPort, job_manager: CoordinatorHost, checks: Checks) -> None:
        self.context = context
        self.tasks = tasks
        self.job_manager = job_manager
        self.checks = checks
        self.groups: dict[str, Group] = defaultdict(Group)
        self._leader = 0  # whom they were reported to

    def start(self) -> None:
        """From now to the end of the job, for each source that is in a group."""
        for number, vertex in enumerate(self.context.scenario.job.vertices):
            if vertex.source is not None and vertex.source.watermark.alignment is not None:
                first = self.context.layout.first_task[number]
                self._announce_later(vertex.source.watermark.alignment, range(first, first + vertex.parallelism))

    def hear(self, task: int, watermark_ns: int) -> None:
        """A subtask reports its watermark."""
        source = self.context.scenario.job.vertices[self.context.layout.vertex[task]].source
        if source is not None and source.watermark.alignment is not None:
            name = source.watermark.alignment.group
            self.job_manager.message(self.context.scenario.overheads.acknowledge_ns, partial(self._report, name, task, watermark_ns))

    def _report(self, name: str, task: int, watermark_ns: int) -> None:
        self.checks.watermark_reported(self.job_manager.machine.leader, name, task, watermark_ns)
        self._group(name).report(task, watermark_ns)

    def _group(self, name: str) -> Group:
        """The watermarks of a group, as the present JobManager knows them.  A new JobManager knows none."""
        leader = self.job_manager.machine.leader
        if leader != self._leader:
            self.groups.clear()
            self._leader = leader
        return self.groups[name]

    def _announce_later(self, alignment: Alignment, tasks: range) -> None:
        self.context.env.call_in(alignment.every_ns, lambda: self._announce(alignment, tasks))

    def _announce(self, alignment: Alignment, tasks: range) -> None:
        group = self._group(alignment.group)
        limit_ns = group.limit(alignment.drift_ns)
        listeners = [task for task in tasks if task in group.reported and self.tasks[task].running]
        for task in listeners:
            self.context.env.call_in(self.context.scenario.overheads.notify_ns, partial(self.tasks.limit, task, limit_ns))
        if listeners:
            self.checks.limits_announced(self._leader, alignment.group, alignment.drift_ns, limit_ns)
        self._announce_later(alignment, tasks)
