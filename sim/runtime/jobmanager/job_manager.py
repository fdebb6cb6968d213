"""The JobManager of one job instance: creates its components, and passes the calls of tasks to them."""

from __future__ import annotations

from collections.abc import Iterable

from sim.protocol.coordinator import Coordinator
from sim.protocol.coordinator_messages import CoordinatorEvent
from sim.protocol.task_finishing import FINISHING, Finishing
from sim.runtime.context import Contents, Context
from sim.runtime.host_loop import Speed
from sim.runtime.jobmanager.coordinator_host import CoordinatorHost, JobEnd
from sim.runtime.jobmanager.faults import Faults
from sim.runtime.jobmanager.recovery_host import RecoveryHost
from sim.runtime.jobmanager.restore import RestoreContext
from sim.runtime.jobmanager.snapshot_files import SnapshotFiles
from sim.runtime.jobmanager.task_managers import Reachability, TaskManagers, WarmUp
from sim.runtime.ports import Checks, TasksPort
from sim.runtime.result import Outcome
from sim.runtime.sampling import UsualBacklog
from sim.storage.state_files import Handle


class JobManager:
    """The JobManager of one job instance.  `before` are the faults of the previous job instance, or None for the first one."""

    def __init__(
        self,
        context: Context,
        tasks: TasksPort,
        contents: Contents,
        outcome: Outcome,
        speed: Speed,
        checks: Checks,
        before: Faults | None,
    ) -> None:
        scenario = context.scenario
        machine = Coordinator.configured(
            scenario.checkpoint, num_retained=scenario.checkpoint.num_retained, restored=context.begun_from
        )
        reachability = Reachability(context.env, context.hosts)
        self.files = SnapshotFiles(context, contents)
        self.job_end = JobEnd(context, FINISHING[scenario.checkpoint.finish], outcome, self._tell_coordinator)
        self.coordinator = CoordinatorHost(
            context,
            machine,
            tasks,
            contents,
            self.files,
            self.job_end,
            reachability,
            self._fail_job,
            checks,
        )
        self.warm_up = WarmUp(context.env, scenario.restart, speed)
        self.task_managers = TaskManagers(context)
        usual = UsualBacklog(context, lambda: {host.task for host in tasks if host.stopped} <= self.job_end.finished)
        cluster = RestoreContext(
            context,
            contents,
            self.files,
            tasks,
            self.job_end,
            self.warm_up,
            self.task_managers,
            usual,
            checks,
        )
        self.recovery = RecoveryHost(cluster, self.coordinator, self.job_end, outcome)
        # what tasks call goes to the component that handles it
        self.message, self.decline = self.coordinator.message, self.coordinator.receive_decline
        self.abandon, self.task_runs = self.files.abandon, self.recovery.task_runs
        self.finished_in, self.data_ended = self.job_end.finished_in, self.job_end.data_ended
        self.task_finished = self.job_end.task_finished
        self.faults = Faults(context, tasks, self.recovery, reachability, speed, before)

    # ------------------------------------------------------------------------------------------ called by tasks

    @property
    def rule(self) -> Finishing:
        """The rules by which the job ends."""
        return self.job_end.rule

    def acknowledge(self, task: int, checkpoint: int, handles: Iterable[Handle]) -> None:
        """Send the acknowledgement of a task, with the files of its snapshot."""
        self.files.offer(checkpoint, task, handles)
        self.coordinator.receive_acknowledgement(task, checkpoint)

    def fail_task(self, task: int, reason: str) -> None:
        """Fail a task with an exception."""
        self.recovery.fail_tasks([task], reason)

    # ------------------------------------------------------------------------------------------ called by its components

    def _tell_coordinator(self, event: CoordinatorEvent) -> None:
        self.coordinator.dispatch(event)

    def _fail_job(self, reason: str, task: int | None) -> None:
        self.recovery.fail_job(reason, task)
