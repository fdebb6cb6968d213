"""The JobManager's failure handling: it carries out the commands of the recovery machine in simulated time.

Decides nothing: what restarts when is `sim.protocol`'s.  How one task comes back is `restore`'s, what goes wrong is
`faults`'.
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
    """What a JobMaster knows of restarts when it goes on with another parallelism."""

    strategy: RestartStrategy  # with the failures that it has seen
    outage: RecoveryStats | None  # the restart that waits for slots; None: the job ran


class RecoveryHost:
    """The host of the recovery machine: it restarts tasks, and replaces task managers and JobManagers."""

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
        self._resuming = False  # the scheduler starts as soon as a task runs ...
        self._anew = False  # ... or all do: another JobManager deploys them
        self._inherited: RestartStrategy | None = None  # of the instance before
        self._awaited = 0  # JobManagers
        self.elected: simpy.Event | None = None  # there is none, until this happens
        self._stopped_ns = -1  # when tasks stopped that heard no heartbeat of a JobManager; -1: they have not
        self._again: RecoveryStats | None = None  # the restart whose deployment has failed, and is tried again
        self._failure = ("", "", -1)  # kind, what and time of the one being reported
        self.stats: dict[int, RecoveryStats] = {}
        self.elasticity = Elasticity(self.context, cluster.task_managers, coordinator, outcome, self._is_current)

    @property
    def machine(self) -> Recovery:
        return self._begun().machine

    def _begun(self) -> HostLoop[Recovery, RecoveryEvent, RecoveryCommand]:
        """The loop of the recovery machine.  It is made at the first failure: regions of thousands of channels take time to find."""
        if self._loop is None:
            layout = self.context.layout
            exchanges = zip(layout.writer, layout.reader, strict=True)
            machine = Recovery.configured(self.context.scenario.restart, regions(len(layout.vertex), exchanges))
            if self._inherited is not None:
                machine = replace(machine, strategy=self._inherited)
            self._loop = HostLoop(machine, Recovery.on, self.carry_out)
        return self._loop

    # ------------------------------------------------------------------------------------------ what fails

    def fail_tasks(self, tasks: Iterable[int], reason: str) -> None:
        """Exceptions end tasks, which report them to the JobManager.  A task that does not run cannot fail."""
        finished, failed_ns = self.job_end.finished, self.env.now
        failing = [task for task in tasks if not self.tasks[task].stopped and task not in finished]
        if not failing:
            return
        for task in failing:
            self._note(Happening.TASK_FAILED, task=task, detail=reason)
        self.stop(failing)
        self.coordinator.message(self.overheads.fail_ns, lambda: self.report(failing, "task", reason, failed_ns))

    def lose_host(self, number: int, how: TaskManagerLost) -> None:
        """A task manager is lost.  Its finished tasks are not restarted (Execution#fail), unless they are about to be deployed again."""
        here = [task for task, host in enumerate(self.context.hosts) if host == number]
        waiting = [task for task in here if any(restore.awaits(task) for restore in self.restores.values())]
        lost = [task for task in here if task in waiting or task not in self.job_end.finished]
        failed_ns, reason = self.env.now, f"task manager {number} lost"
        self._note(Happening.TASK_MANAGER_LOST, number=number)
        missing = [task for task in lost if task in waiting or not self.tasks[task].stopped]
        after_ns = self.cluster.task_managers.lose(how, number) - failed_ns
        if not how.silent and (waiting or self._has_readers(number)):
            after_ns = min(after_ns, self.context.scenario.restart.connection_reset_ns)
        self.stop(lost)
        self.context.storage.lose_disk(number)
        for task in lost:
            self.tasks[task].free()
        if missing:  # else no restart has come so far yet, and the next one meets slots that are gone
            self.coordinator.message(
                after_ns + self.overheads.fail_ns, lambda: self.report(missing, "task-manager", reason, failed_ns)
            )

    def _has_readers(self, number: int) -> bool:
        """Whether tasks on other task managers read from this host.  Readers report a reset connection, writers do not."""
        layout, hosts = self.context.layout, self.context.hosts
        ends = zip(layout.writer, layout.reader, strict=True)
        return any(
            hosts[writer] == number and hosts[reader] != number and not self.tasks[reader].stopped
            for writer, reader in ends
        )

    def begin(self, what: str, kind: str, so_far: RestartsSoFar | None = None) -> None:
        """A job instance that begins from a snapshot: everything is deployed as a new JobManager would deploy it.

        `so_far`: the JobMaster is that of the instance before.
        """
        self._failure, self._anew = (kind, what, self.env.now), True
        if so_far is not None:
            self._again = so_far.outage
            self._inherited = so_far.strategy
        self.dispatch(recovery.JobManagerReturned(self.env.now, resumes=so_far is not None))

    def left(self) -> RestartsSoFar:
        """What the next instance goes on with.  A restart that waits for slots is that one's."""
        waiting = [stats for stats in self.stats.values() if stats.deployed_ns < 0]
        return RestartsSoFar(self.machine.strategy, self.stats.pop(waiting[-1].number) if waiting else None)

    def fail_job(self, reason: str, task: int | None) -> None:
        """Too many failed checkpoints: the job fails, or the task that declined the last one."""
        all_tasks = range(len(self.context.layout.vertex))
        self.report(all_tasks if task is None else [task], "checkpoints", reason, self.env.now)

    def report(self, tasks: Iterable[int], kind: str, what: str, failed_ns: int) -> None:
        """The JobManager learns of a failure."""
        stopped = bool(stopped_with(self.context.stats))
        u = draw(stream(self.context.scenario.run.seed, "restart-jitter"), self._begun().machine.restarts)
        self._failure, self._anew = (kind, what, failed_ns), False
        self._begun().dispatch(recovery.TasksFailed(self.env.now, frozenset(tasks), what, u, stopped))

    def lose_job_manager(self, down_ns: int) -> None:
        """The JobManager is lost for a time.  Tasks go on without it until the timeout of the heartbeat."""
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
        """Task managers fail all tasks of a job whose JobMaster is silent (TaskExecutor#disconnectJobManagerConnection)."""
        if self.elected is absence:
            running = [
                task
                for task in range(len(self.tasks))
                if not self.tasks[task].stopped and task not in self.job_end.finished
            ]
            for task in running:
                self._note(Happening.TASK_FAILED, task=task, detail="no heartbeat of a JobManager")
            self.stop(running)
            self._stopped_ns = self.env.now

    def _take_over(self) -> None:
        self._awaited -= 1
        if self._awaited or self.elected is None:
            return  # lost again before it came
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
        """The threads of these tasks stop where they are."""
        tasks = list(tasks)
        for restore in self.restores.values():
            restore.give_up(tasks)  # those not deployed yet too
        stopping = [task for task in tasks if not self.tasks[task].stopped]
        for task in stopping:
            self.tasks[task].stop()
        self.context.plane.halt(stopping)

    # ------------------------------------------------------------------------------------------ the machine

    def dispatch(self, event: RecoveryEvent) -> None:
        if self.elected is None:  # without a JobManager the report is lost, and the next one restarts all tasks
            self._begun().dispatch(event)

    def task_runs(self, task: int) -> None:
        """A restored task has its state and its recovered input."""
        self.tasks[task].running = True
        self._note(Happening.TASK_RUNS, task=task)
        for restore in self.restores.values():
            restore.task_runs(task)
        if task in self.machine.initializing:
            self.dispatch(recovery.TaskInitialized(self.env.now, task))
        if self._resuming and (not self.machine.initializing or not self._anew):
            self._start_scheduler(restarted=bool(self.machine.initializing))

    def carry_out(self, command: RecoveryCommand) -> None:
        """Do what a command says, or have it done in time."""
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
            self.stats.pop(again.number, None)  # it may be that of the instance before
            again.number, again.tasks = command.restart, len(command.tasks)
            self.stats[command.restart] = again
        self._note(Happening.JOB_RESTARTING, number=command.restart, detail=what)
        self.stop(sorted(command.tasks))
        self.cluster.checks.restarting(command.restart)
        stuck = {task for task in command.tasks if self.tasks[task].occupied}

        def freed(task: int) -> None:
            stuck.discard(task)
            if not stuck:
                self._cancelled(command.restart)

        for task in sorted(stuck):
            self.tasks[task].when_freed(lambda task=task: freed(task))  # type: ignore[misc]
        if stuck:
            limit_ns = self.context.scenario.restart.cancellation_timeout_ns
            if limit_ns:  # 0: no watchdog, as in Flink
                self.env.call_in(limit_ns, lambda: self._kill_stuck(stuck))
        else:
            self._cancelled(command.restart)

    def _kill_stuck(self, stuck: set[int]) -> None:
        """Tasks that do not stop take their task managers down (TaskCancelerWatchDog)."""
        for host in sorted({self.context.hosts[task] for task in stuck}):
            self.lose_host(host, TaskManagerLost(host, orderly=True))  # a fatal error shuts it down

    def _cancelled(self, restart: int) -> None:
        if self.stats[restart].cancelled_ns < 0:  # else a deployment has failed since
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
        """The JobMaster deploys into slots of task managers that it does not miss yet (RecipientUnreachableException).

        `alone`: nothing else of this restart is deployed.
        """
        number = self.context.hosts[tasks[0]]
        self._note(Happening.DEPLOYMENT_FAILED, task=tasks[0], number=number)

        def learn() -> None:
            self._again = stats if alone and self.stats.get(stats.number) is stats else None
            self.report(tasks, stats.kind, f"task manager {number} is not reachable", stats.failed_ns)
            self._again = None

        self.coordinator.message(at_ns - self.env.now + self.overheads.fail_ns, learn)

    def _resume(self) -> None:
        """Flink 2.x: when a task runs; 1.x: now that the job is RUNNING."""
        self._resuming = True
        if self.context.scenario.cluster.profile != "2.x":
            self._start_scheduler(restarted=True)

    def _start_scheduler(self, *, restarted: bool) -> None:
        self._resuming = False
        self.coordinator.start(self.machine.restarts, restarted=restarted)

    @property
    def restarting(self) -> bool:
        """Whether the job is not RUNNING."""
        return self._loop is not None and self._loop.machine.status is not JobStatus.RUNNING
