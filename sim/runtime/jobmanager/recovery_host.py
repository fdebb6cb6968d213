"""The host of the recovery machine, which executes its commands in simulated time.

`sim.protocol.recovery` decides what restarts and when, `restore` restores tasks, and `faults` injects faults.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple, assert_never

import simpy

from sim.model.faults import TaskManagerLost
from sim.model.randomness import draw, stream
from sim.protocol import recovery
from sim.protocol.coordinator_messages import SchedulerStopped
from sim.protocol.options import FailureReason
from sim.protocol.recovery import JobStatus, Recovery, RecoveryCommand, RecoveryEvent
from sim.protocol.restart_strategy import RestartStrategy, regions, tasks_to_restart
from sim.results.journal import Happening
from sim.results.tables import RecoveryStats, stopped_with
from sim.runtime.host_loop import HostLoop
from sim.runtime.jobmanager.coordinator_host import CoordinatorHost, JobEnd
from sim.runtime.jobmanager.elasticity import Elasticity
from sim.runtime.jobmanager.restore import Restore, RestoreContext
from sim.runtime.result import Outcome


class RestartsSoFar(NamedTuple):
    """What a JobMaster knows of restarts when it restarts the job with another parallelism."""

    strategy: RestartStrategy  # with its history of failures
    outage: RecoveryStats | None  # the restart that waits for slots; None: the job was running


class RecoveryHost:
    """The host of the recovery machine, which restarts tasks and replaces task managers and JobManagers."""

    def __init__(
        self, cluster: RestoreContext, coordinator: CoordinatorHost, job_end: JobEnd, outcome: Outcome
    ) -> None:
        self.cluster = cluster
        self.context = cluster.context
        self.env = cluster.context.env
        self._note = cluster.context.note
        self.overheads = cluster.context.scenario.overheads
        self.tasks = cluster.tasks
        self.coordinator = coordinator
        self.job_end = job_end
        self.outcome = outcome
        self.restores: dict[int, Restore] = {}  # by restart
        self._loop: HostLoop[Recovery, RecoveryEvent, RecoveryCommand] | None = None
        self._resuming = False  # the checkpoint scheduler starts when the first task runs
        self._anew = False  # a new JobManager deploys all tasks: the scheduler starts when all tasks run
        self._inherited: RestartStrategy | None = None  # of the previous instance
        self._awaited = 0  # losses of a JobManager without a successor yet
        self.elected: simpy.Event | None = None  # set while no JobManager is running; fires at the election
        self._stopped_ns = -1  # when tasks stopped because heartbeats of the JobManager were missing; -1: not stopped
        self._again: RecoveryStats | None = None  # the restart whose failed deployment is retried
        self._failure = ("", "", -1)  # (kind, description, time) of the failure being reported
        self.stats: dict[int, RecoveryStats] = {}
        self.elasticity = Elasticity(self.context, cluster.task_managers, coordinator, outcome, self._is_current)

    @property
    def machine(self) -> Recovery:
        return self._begun().machine

    def _begun(self) -> HostLoop[Recovery, RecoveryEvent, RecoveryCommand]:
        """Return the loop of the recovery machine, created at the first failure because computing regions takes time."""
        if self._loop is None:
            layout = self.context.layout
            exchanges = zip(layout.writer, layout.reader, strict=True)
            machine = Recovery.configured(self.context.scenario.restart, regions(len(layout.vertex), exchanges))
            if self._inherited is not None:
                machine = replace(machine, strategy=self._inherited)
            self._loop = HostLoop(machine, Recovery.on, self.carry_out)
        return self._loop

    # ------------------------------------------------------------------------------------------ failures

    def fail_tasks(self, tasks: Iterable[int], reason: str) -> None:
        """Let running tasks fail with an exception, which is reported to the JobManager."""
        failed_ns, failing = self.env.now, self._running(tasks)
        if not failing:
            return
        for task in failing:
            self._note(Happening.TASK_FAILED, task=task, detail=reason)
        self.stop(failing)
        self.coordinator.message(self.overheads.fail_ns, lambda: self.report(failing, "task", reason, failed_ns))

    def _running(self, tasks: Iterable[int]) -> list[int]:
        """Return those of the tasks that have neither stopped nor finished."""
        return [task for task in tasks if not self.tasks[task].stopped and task not in self.job_end.finished]

    def lose_host(self, number: int, how: TaskManagerLost) -> None:
        """Lose a task manager.  Its finished tasks are not restarted (Execution#fail), unless they are waiting for deployment."""
        here = [task for task, host in enumerate(self.context.hosts) if host == number]
        waiting = [task for task in here if any(restore.awaits(task) for restore in self.restores.values())]
        lost = [task for task in here if task in waiting or task not in self.job_end.finished]
        failed_ns, reason = self.env.now, f"task manager {number} lost"
        self._note(Happening.TASK_MANAGER_LOST, number=number)
        missing = [task for task in lost if task in waiting or not self.tasks[task].stopped]
        after_ns = self.cluster.task_managers.lose(how, number) - failed_ns
        refusal_ns = self.cluster.task_managers.slots.lost[number].refusal_ns
        if not how.silent and (waiting or self._has_readers(number)):
            after_ns = min(after_ns, self.context.scenario.restart.connection_reset_ns)
        presumed = {task: refusal_ns for task in lost if self.tasks[task].running}
        self.stop(lost)
        self.coordinator.presumed_running.update(presumed)
        self.context.storage.lose_disk(number)
        for task in lost:
            self.tasks[task].free()

        def detect() -> None:
            self._forget_presumed(presumed)
            self.report(missing, "task-manager", reason, failed_ns)

        if missing:  # otherwise no task is affected until the next restart finds the slots lost
            self.coordinator.message(after_ns + self.overheads.fail_ns, detect)

    def _forget_presumed(self, tasks: Iterable[int]) -> None:
        for task in tasks:
            self.coordinator.presumed_running.pop(task, None)

    def _has_readers(self, number: int) -> bool:
        """Whether tasks on other task managers read from this one.  Readers report a reset connection, writers do not."""
        layout, hosts = self.context.layout, self.context.hosts
        ends = zip(layout.writer, layout.reader, strict=True)
        return any(
            hosts[writer] == number and hosts[reader] != number and not self.tasks[reader].stopped
            for writer, reader in ends
        )

    def begin(self, what: str, kind: str, so_far: RestartsSoFar | None = None) -> None:
        """Start a job instance from a snapshot by deploying all tasks, as a new JobManager does.

        `so_far`: restarts of the previous instance, if the JobMaster is the same.
        """
        self._failure, self._anew = (kind, what, self.env.now), True
        if so_far is not None:
            self._again = so_far.outage
            self._inherited = so_far.strategy
        self.dispatch(recovery.JobManagerReturned(self.env.now, resumes=so_far is not None))

    def left(self) -> RestartsSoFar:
        """Return what the next instance takes over, including a restart that waits for slots."""
        waiting = [stats for stats in self.stats.values() if stats.deployed_ns < 0]
        return RestartsSoFar(self.machine.strategy, self.stats.pop(waiting[-1].number) if waiting else None)

    def fail_job(self, reason: str, task: int | None) -> None:
        """Fail the job, or the task that declined, because of too many failed checkpoints."""
        self.report(self.context.tasks if task is None else [task], "checkpoints", reason, self.env.now)

    def report(self, tasks: Iterable[int], kind: str, what: str, failed_ns: int) -> None:
        """Report a failure to the recovery machine."""
        stopped = bool(stopped_with(self.context.stats))
        u = draw(stream(self.context.scenario.run.seed, "restart-jitter"), self._begun().machine.restarts)
        self._failure, self._anew = (kind, what, failed_ns), False
        self._begun().dispatch(recovery.TasksFailed(self.env.now, frozenset(tasks), what, u, stopped))

    def lose_job_manager(self, down_ns: int) -> None:
        """Lose the JobManager for `down_ns`.  Tasks continue until the heartbeat timeout."""
        self._awaited += 1
        if self.elected is None:
            self._without_job_manager()
        self.env.call_in(down_ns, self._take_over)

    def _without_job_manager(self) -> None:
        self._note(Happening.JOB_MANAGER_LOST)
        self._stopped_ns = -1
        self.elected = self.env.event()
        self._resuming = False
        self.coordinator.lose_leader()
        for restore in self.restores.values():
            restore.cancel_deployment()
        absence, missed_ns = self.elected, self.cluster.task_managers.silent_since(self.env.now)
        self.env.call_in(missed_ns - self.env.now, lambda: self._miss_heartbeat(absence))

    def _miss_heartbeat(self, absence: simpy.Event) -> None:
        """Fail all tasks because heartbeats of the JobMaster are missing (TaskExecutor#disconnectJobManagerConnection)."""
        if self.elected is absence:
            running = self._running(self.context.tasks)
            for task in running:
                self._note(Happening.TASK_FAILED, task=task, detail="no heartbeat of a JobManager")
            self.stop(running)
            self._stopped_ns = self.env.now

    def _take_over(self) -> None:
        self._awaited -= 1
        if self._awaited or self.elected is None:
            return  # another loss is still waiting for its successor
        self._note(Happening.JOB_MANAGER_ELECTED)
        elected, self.elected = self.elected, None
        self.coordinator.elect_leader()
        self.cluster.task_managers.elect()
        self._failure, self._anew = (
            ("job-manager", "job manager lost", self._stopped_ns if self._stopped_ns >= 0 else self.env.now),
            True,
        )
        self.dispatch(recovery.JobManagerReturned(self.env.now))
        elected.succeed()

    def stop(self, tasks: Iterable[int]) -> None:
        """Stop the threads of these tasks at once."""
        tasks = list(tasks)
        for restore in self.restores.values():
            restore.give_up(tasks)  # also tasks that are not deployed yet
        stopping = [task for task in tasks if not self.tasks[task].stopped]
        for task in stopping:
            self.tasks[task].stop()
        self.context.plane.halt(stopping)

    # ------------------------------------------------------------------------------------------ the machine

    def dispatch(self, event: RecoveryEvent) -> None:
        if self.elected is None:  # otherwise the report is lost, and the next JobManager restarts all tasks
            self._begun().dispatch(event)

    def task_runs(self, task: int) -> None:
        """Mark a restored task as running: it has its state and its recovered input."""
        self.tasks[task].running = True
        self._note(Happening.TASK_RUNS, task=task)
        for restore in self.restores.values():
            restore.task_runs(task)
        if task in self.machine.initializing:
            self.dispatch(recovery.TaskInitialized(self.env.now, task))
        if self._resuming and (not self.machine.initializing or not self._anew):
            self._start_scheduler(restarted=bool(self.machine.initializing))

    def carry_out(self, command: RecoveryCommand) -> None:
        """Execute a command, or schedule its execution."""
        match command:
            case recovery.SuspendCheckpoints():
                self._resuming = False
                self.coordinator.dispatch(SchedulerStopped(self.env.now, FailureReason.CHECKPOINT_COORDINATOR_SUSPEND))
            case recovery.CancelTasks():
                self._cancel(command)
            case recovery.ArmRestart():
                elapsed = lambda: self.dispatch(recovery.RestartDelayElapsed(self.env.now, command.restart))  # noqa: E731
                self.env.call_in(max(0, command.at_ns - self.env.now) + self.overheads.restart_ns, elapsed)
            case recovery.RestoreTasks():
                self._restore(command)
            case recovery.ResumeCheckpoints():
                self._resume()
            case recovery.ReportRecovered():
                self._note(Happening.JOB_RECOVERED)
            case recovery.FailForGood():
                self._note(Happening.GIVEN_UP, detail=command.reason)
                self.outcome.fail(command.reason)
            case recovery.FailStopped():
                self.outcome.fail(f"stopped with a savepoint, then failed: {command.reason}")
            case _:
                assert_never(command)

    def _cancel(self, command: recovery.CancelTasks) -> None:
        kind, what, failed_ns = self._failure
        again, self._again = self._again, None
        if again is None:
            self.stats[command.restart] = RecoveryStats(
                command.restart, kind, what, failed_ns, self.env.now, len(command.tasks)
            )
        else:
            self.stats.pop(again.number, None)  # absent if it is of the previous instance
            again.number, again.tasks = command.restart, len(command.tasks)
            self.stats[command.restart] = again
        self._note(Happening.JOB_RESTARTING, number=command.restart, detail=what)
        self.stop(sorted(command.tasks))
        self.cluster.checks.restarting(command.restart)
        unreachable = {task: self.coordinator.presumed_running.get(task, 0) for task in command.tasks}
        self._forget_presumed(command.tasks)
        stuck = {task for task in command.tasks if self.tasks[task].occupied or unreachable[task]}

        def freed(task: int) -> None:
            stuck.discard(task)
            if not stuck:
                self._cancelled(command.restart)

        for task in sorted(stuck):
            if unreachable[task]:
                self.env.call_in(self._unanswered_cancellation_ns(task), lambda task=task: freed(task))  # type: ignore[misc]
            else:
                self.tasks[task].when_freed(lambda task=task: freed(task))  # type: ignore[misc]
        if stuck:
            limit_ns = self.context.scenario.restart.cancellation_timeout_ns
            if limit_ns:  # 0: no watchdog, as in Flink
                self.env.call_in(limit_ns, lambda: self._kill_stuck(stuck))
        else:
            self._cancelled(command.restart)

    def _unanswered_cancellation_ns(self, task: int) -> int:
        """Return the time until a task of a silent task manager counts as cancelled [ns] (Execution#sendCancelRpcCall)."""
        lost = self.cluster.task_managers.slots.lost[self.context.hosts[task]]
        return max(0, min(lost.gone_ns - self.env.now, recovery.CANCEL_CALLS * lost.refusal_ns))

    def _kill_stuck(self, stuck: set[int]) -> None:
        """Terminate the task managers of tasks that do not stop in time (TaskCancelerWatchDog)."""
        for host in sorted({self.context.hosts[task] for task in stuck if self.tasks[task].occupied}):
            self.lose_host(host, TaskManagerLost(host, orderly=True))  # a fatal error, which shuts it down

    def _cancelled(self, restart: int) -> None:
        if self.stats[restart].cancelled_ns < 0:  # otherwise this is a retry after a failed deployment
            self.stats[restart].cancelled_ns = self.env.now
        self.dispatch(recovery.TasksCancelled(self.env.now, restart))

    def _restore(self, command: recovery.RestoreTasks) -> None:
        stats, checkpoint = self.stats[command.restart], self.coordinator.machine.latest_completed
        stats.deployments += 1
        deployment = self.cluster.task_managers.deployment(command.tasks)
        failing = [task for task in sorted(command.tasks) if self.context.hosts[task] in deployment.unreachable]
        tasks = command.tasks - tasks_to_restart(failing, self.machine.regions)
        if failing:
            self._fail_deployment(failing, stats, deployment.at_ns, alone=not tasks)
            deployment = self.cluster.task_managers.deployment(tasks)
        if tasks and not failing and not self._anew and self.elasticity.waits(command.restart):
            stats.deployments -= 1
            return
        if tasks:
            self.elasticity.executes(command.restart, deployment.at_ns)
            fail_task = lambda task, reason: self.fail_tasks([task], reason)  # noqa: E731
            caught_up = self.outcome.catch_up if stats.is_failure else lambda: None
            self.restores[command.restart] = Restore(
                self.cluster, stats, tasks, self.machine.regions, checkpoint, deployment.at_ns, fail_task, caught_up
            )

    def _is_current(self, restart: int) -> bool:
        return self.elected is None and self.machine.restarts == restart

    def _fail_deployment(self, tasks: list[int], stats: RecoveryStats, at_ns: int, *, alone: bool) -> None:
        """Fail a deployment into slots of a lost task manager that is not detected yet (RecipientUnreachableException).

        `alone`: no other task of this restart is deployed.
        """
        number = self.context.hosts[tasks[0]]
        self._note(Happening.DEPLOYMENT_FAILED, task=tasks[0], number=number)

        def report_unreachable() -> None:
            self._again = stats if alone and self.stats.get(stats.number) is stats else None
            self.report(tasks, stats.kind, f"task manager {number} is not reachable", stats.failed_ns)
            self._again = None

        self.coordinator.message(at_ns - self.env.now + self.overheads.fail_ns, report_unreachable)

    def _resume(self) -> None:
        """Resume periodic checkpoints: in Flink 1.x now that the job is RUNNING, in 2.x when a task runs."""
        self._resuming = True
        if self.context.scenario.cluster.profile != "2.x":
            self._start_scheduler(restarted=True)

    def _start_scheduler(self, *, restarted: bool) -> None:
        self._resuming = False
        self.coordinator.start(self.machine.restarts, restarted=restarted)

    @property
    def restarting(self) -> bool:
        """Whether the job is RESTARTING or FAILED."""
        return self._loop is not None and self._loop.machine.status is not JobStatus.RUNNING
