"""The restore of tasks after a failure: deployment, download of state, recovered in-flight data, and catching up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import simpy

from sim.plane.interface import Layout, channels_in, channels_out
from sim.results.journal import EventType
from sim.results.tables import RecoveryStats
from sim.runtime.context import Checks, Context, StateSnapshot, TaskSnapshot, initial_task_snapshot
from sim.runtime.jobmanager.coordinator_host import JobEnd
from sim.runtime.jobmanager.snapshot_files import SnapshotFiles
from sim.runtime.jobmanager.task_managers import TaskManagers, WarmUp
from sim.runtime.sampling import CatchUp, NormalBacklog
from sim.runtime.task.tasks import Tasks
from sim.storage.ledger import StorageFailed
from sim.storage.requests import Work

# ---- Captured output that is recovered by the tasks that read it (`...unaligned.recover-output-on-downstream.enabled`).
#
# Source: SequentialChannelStateReaderImpl#readInputData, second pass.  The reader reads the captured output of its
# channels, and the writer does not send it again.


def move_captured_output_downstream(parts: Mapping[int, TaskSnapshot], layout: Layout) -> dict[int, TaskSnapshot]:
    """Move the captured output of each channel to its reader.  `parts` must contain both ends of each channel."""
    output_bytes, inlined_bytes = np.zeros((2, len(layout.writer)), np.int64)  # by channel
    for task, part in parts.items():
        outputs = channels_out(layout, task)
        output_bytes[outputs] = part.position.overtaken
        if part.inlined_bytes:
            inlined_bytes[outputs] = part.position.overtaken
    return {
        task: _move_output_downstream(part, output_bytes[inputs], int(inlined_bytes[inputs].sum()))
        for task, part in parts.items()
        for inputs in (channels_in(layout, task),)
    }


def _move_output_downstream(part: TaskSnapshot, received: np.ndarray, received_inlined_bytes: int) -> TaskSnapshot:
    """Return a snapshot with the captured output of its upstream tasks and without its own.

    `received` is their captured output by input channel [bytes]; `received_inlined_bytes` of it were stored in
    acknowledgements (below the inline threshold).
    """
    position = part.position
    captured = position.captured + received
    moved = position._replace(captured=captured, overtaken=np.zeros_like(position.overtaken))
    if part.read_bytes is not None:
        sent_bytes = int(position.overtaken.sum())
        read_bytes = max(0, part.read_bytes - sent_bytes) + int(received.sum())
        inlined_bytes = max(0, part.inlined_bytes - sent_bytes) + received_inlined_bytes
        return replace(part, position=moved, read_bytes=read_bytes, inlined_bytes=min(inlined_bytes, read_bytes))
    own_bytes = int(position.captured.sum()) if part.inlined_bytes else 0
    return replace(part, position=moved, inlined_bytes=own_bytes + received_inlined_bytes)


# ---- The restore of tasks: deployment, download of state, recovered input, until they run.
#
# Source: StreamTask#restoreInternal, SequentialChannelStateReaderImpl.  A task processes its recovered input while it is
# INITIALIZING; only when it runs can upstream tasks send to it.  If checkpoints during recovery are enabled, it switches
# to RUNNING immediately (FLIP-547).


@dataclass(frozen=True, slots=True, eq=False)
class RestoreContext:
    """The parts of the runtime that a restore uses."""

    context: Context
    files: SnapshotFiles
    tasks: Tasks
    job_end: JobEnd
    warm_up: WarmUp
    task_managers: TaskManagers
    normal_backlog: NormalBacklog
    checks: Checks


class Restore:
    """Restores the tasks of one restart.  Slots are available from `ready_ns`.

    `fail_task` is called with a task whose download fails, and the reason.  `caught_up` is called when all tasks run and
    the job has caught up.
    """

    def __init__(
        self,
        cluster: RestoreContext,
        stats: RecoveryStats,
        tasks: frozenset[int],
        regions: Iterable[frozenset[int]],
        checkpoint: int,
        ready_ns: int,
        fail_task: Callable[[int, str], None],
        caught_up: Callable[[], None],
    ) -> None:
        self.cluster = cluster
        self.context = cluster.context
        self.env = cluster.context.env
        self.stats = stats
        self.tasks = set(tasks)  # tasks that failed again are removed: a later restart restores them
        self.regions = regions
        self.checkpoint = checkpoint
        self.fail_task = fail_task
        self.caught_up = caught_up
        self._catch_up: CatchUp
        self._downloads: dict[int, simpy.Process] = {}
        self.env.call_at(ready_ns + self.context.scenario.overheads.deploy_ns, self._deploy)

    def cancel(self, tasks: Iterable[int]) -> None:
        """Stop restoring these tasks, which have failed again."""
        for task in tasks:
            self.tasks.discard(task)
            if (download := self._downloads.pop(task, None)) is not None:
                download.interrupt()

    def is_waiting_for_deployment(self, task: int) -> bool:
        """Return whether a task waits for its deployment."""
        return task in self.tasks and self.stats.deployed_ns < 0

    def cancel_deployment(self) -> None:
        """Cancel the restore if the JobManager is lost before the deployment."""
        if self.stats.deployed_ns < 0:
            self.tasks.clear()

    def _deploy(self) -> None:
        """Set all tasks of the restart to their positions, and start their downloads.

        Regions that lost a TaskManager since the restart began are skipped: a new restart follows when the loss is
        detected.
        """
        self.tasks = set[int]().union(*(region for region in self.regions if region <= self.tasks))
        if not self.tasks:
            return
        cluster, context, stats = self.cluster, self.context, self.stats
        on_new_processes = cluster.task_managers.tasks_on_new_processes(self.tasks)
        cluster.task_managers.mark_deployed(self.tasks)
        stats.deployed_ns, stats.checkpoint = self.env.now, self.checkpoint
        cluster.files.failed_over(self.checkpoint)
        tasks = sorted(self.tasks)
        context.note(EventType.JOB_RESTORED, self.checkpoint, number=stats.number)
        parts = {task: self._part(task) for task in tasks}
        if context.scenario.checkpoint.recover_output_on_downstream:
            parts = move_captured_output_downstream(parts, context.layout)
        self._catch_up = CatchUp(context, stats, parts, cluster.normal_backlog)
        context.plane.start({task: part.position for task, part in parts.items()})
        cluster.checks.restarted(self.checkpoint, tasks)
        for task in tasks:
            cluster.job_end.reset_task(task)
            cluster.tasks.replace(task)
            self._downloads[task] = self.env.process(
                self._download(task, parts[task], self._start_ns(task, parts[task], task in on_new_processes))
            )

    def _start_ns(self, task: int, part: TaskSnapshot, is_new_process: bool) -> int:
        """Return the time from the deployment of a task until it reads its part of the checkpoint."""
        restart = self.context.scenario.restart
        reads = part.checkpoint > 0 and self.context.vertex(task).state is not None
        return (restart.fresh_start_ns if is_new_process else 0) + (restart.state_start_ns if reads else 0)

    def _part(self, task: int) -> TaskSnapshot:
        """Return the part of a task in the checkpoint, or its initial state if there is none."""
        part = self.context.contents.of(self.checkpoint, task)
        return initial_task_snapshot(self.context.layout, task) if part is None else part

    def _union(self, task: int) -> tuple[StateSnapshot, ...]:
        """Return the union list state of all subtasks of the vertex (StateAssignmentOperation#reDistributePartitionableStates)."""
        vertex = self.context.vertex(task)
        if vertex.union_state is None:
            return ()
        first = self.context.layout.first_task[self.context.layout.vertex[task]]
        return self.context.contents.union_of(self.checkpoint, range(first, first + vertex.parallelism))

    def _download(self, task: int, part: TaskSnapshot, start_ns: int) -> Work[None]:
        """Process: download the state and the in-flight data of a task after `start_ns`, then start the task."""
        context, host = self.context, self.cluster.tasks[task]
        try:
            if start_ns:
                yield self.env.timeout(start_ns)
            downloaded = yield from host.download(part, self._union(task))
        except simpy.Interrupt:
            return
        except StorageFailed as failure:
            if self._downloads.pop(task, None) is not None:  # None: `cancel` was called at the same time
                self.fail_task(task, f"restore: {failure}")
            return
        if self._downloads.pop(task, None) is None:
            return
        self.stats.restored_bytes += downloaded
        self.stats.recovered_bytes += part.in_flight_bytes
        context.note(EventType.TASK_RESTORED, self.checkpoint, task, downloaded)
        host.restored(self.checkpoint, part)
        if host.stopped:
            return
        self.cluster.warm_up.begin(task)
        if not host.thread.occupied:  # e.g. by the commit of restored transactions
            context.plane.release(task)
        if task in self._catch_up.readers:
            self._catch_up.begin(self.tasks, self._report_caught_up)
        yield self.env.timeout(0)  # a process has at least one event

    def task_runs(self, task: int) -> None:
        """Handle that a task runs, i.e. that its recovered input is read."""
        if task in self.tasks and all(self.cluster.tasks[t].running for t in self.tasks):
            self.stats.running_ns = self.env.now
            self._report_caught_up()

    def _report_caught_up(self) -> None:
        """Call `caught_up` when all tasks run and the job has caught up; either may be first."""
        if self.stats.running_ns >= 0 and self.stats.caught_up_ns >= 0:
            self.caught_up()
