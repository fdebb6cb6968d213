"""Executes the commands of `sim.protocol.recovery.Recovery` in simulated time.

`Recovery` decides which tasks restart and when.  This module reports failures to it, cancels and restores tasks, and
replaces lost TaskManagers and JobManagers.  `restore` restores the tasks of one restart, and `faults` injects faults.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import NamedTuple, assert_never

import simpy

from sim.model.faults import TaskManagerLost
from sim.model.randomness import draw, stream
from sim.model.text import listed
from sim.protocol import recovery
from sim.protocol.messages import CheckpointRequested, LeaderElected, RequestKind, SchedulerStopped, TasksRestored
from sim.protocol.options import FailureReason
from sim.protocol.recovery import (
    Deployment,
    Recovery,
    RecoveryCommand,
    RecoveryEvent,
    RestartStrategy,
    compute_rescale_ns,
    compute_start,
    regions,
    tasks_to_restart,
)
from sim.results.journal import NO_HEARTBEAT, EventType
from sim.results.tables import NO_SLOTS, RecoveryStats, stopped_with
from sim.runtime.context import Context
from sim.runtime.host_loop import HostLoop
from sim.runtime.jobmanager.coordinator_host import CoordinatorHost
from sim.runtime.jobmanager.restore import Restore, RestoreContext
from sim.runtime.jobmanager.task_managers import TaskManagers

# ---- The adaptive scheduler: rescales a running job when slots are lost or return.
# `sim.protocol.recovery` decides when, and `sim.runtime.host_loop` computes the parallelism.  A rescaled job is another job
# instance, which starts from the latest completed checkpoint.

RESCALES_WITH_CHECKPOINT = "2.x"
"""Profile whose scheduler waits for a completed checkpoint (FLIP-461)."""


class Elasticity:
    """Rescales one job instance.  `is_current` returns whether a restart is still the latest one."""

    def __init__(
        self,
        context: Context,
        managers: TaskManagers,
        coordinator: CoordinatorHost,
        is_current: Callable[[int], bool],
    ) -> None:
        self.context = context
        self.env = context.env
        self.options = context.scenario.restart
        self.managers = managers
        self.coordinator = coordinator
        self.is_current = is_current
        self._restart = 0  # the restart whose tasks run
        self._rescales_with_checkpoint = False
        self._slots_ns = 0  # when the first of the missing slots returns
        # failed checkpoints since then until the job is rescaled without a completed one; 0 or less: none is counted
        self._failures_left = 0
        coordinator.on_ended = self._on_checkpoint_ended

    @property
    def is_adaptive(self) -> bool:
        """Whether the job has the adaptive scheduler."""
        return self.options.scheduler == "adaptive"

    def waits(self, restart: int) -> bool:
        """Return whether a restart must wait for slots, and is then left to another job instance with fewer slots.

        If so, the rescale is scheduled.
        """
        now, lost = self.env.now, self.managers.returning()
        if not self.is_adaptive or not lost:
            return False
        first_ns = now
        if self.managers.without_any(lost):  # wait for the first slot, and then until slots are stable
            first_ns = min(lost.values())
            self._give_up_later(restart, first_ns)
        start = compute_start(first_ns, lost.values(), self.options)
        left = [number for number, back_ns in lost.items() if back_ns > start.at_ns]
        if start.complete or not self.managers.has_slots_without(left) or not self.coordinator.machine.latest_completed:
            return False
        self.env.call_at(start.at_ns, lambda: self._rescale(restart))
        return True

    def executes(self, restart: int, at_ns: int) -> None:
        """Handle a deployment at `at_ns`.  If TaskManagers are missing, schedule a rescale for when they return."""
        self._restart, self._rescales_with_checkpoint = restart, False
        missing = [slots.offered_ns for slots in self.managers.absent.values()]
        if self.is_adaptive and missing:
            self._slots_ns, self._failures_left = min(missing), self.options.rescale_failures
            ready_ns = compute_rescale_ns(at_ns, missing, self.options)
            self.env.call_at(ready_ns, lambda: self._ready(restart))
            if self.options.rescale_checkpoint and self._waits_for_checkpoint:
                for ns in {max(at_ns + self.options.cooldown_ns, slots_ns) for slots_ns in missing} | {ready_ns}:
                    if ns <= ready_ns:
                        self.env.call_at(ns, lambda: self._trigger_checkpoint(restart))

    @property
    def _waits_for_checkpoint(self) -> bool:
        """Whether a job with missing slots is rescaled with a completed checkpoint."""
        scenario = self.context.scenario
        return scenario.cluster.profile == RESCALES_WITH_CHECKPOINT and scenario.checkpoint.interval_ns is not None

    def _trigger_checkpoint(self, restart: int) -> None:
        """Trigger a checkpoint to rescale the job with, after min-pause, unless one is in progress (FLINK-36753).

        Slots have come back while they stabilize, or are stable (StateTransitionManager.Context#requestActiveCheckpointTrigger).
        """
        machine, now = self.coordinator.machine, self.env.now
        if not self.is_current(restart) or machine.triggering is not None or machine.pending:
            return
        due_ns = now
        if machine.last_completion_ns is not None:
            due_ns = max(now, machine.last_completion_ns + self.context.scenario.checkpoint.min_pause_ns)
        if due_ns > now:
            self.env.call_at(due_ns, lambda: self._trigger_checkpoint(restart))
        else:
            self.coordinator.dispatch(CheckpointRequested(now, RequestKind.MANUAL))

    def _ready(self, restart: int) -> None:
        """Rescale the job now, or after the next completed checkpoint (2.x), for which it waits a limited time."""
        interval_ns = self.context.scenario.checkpoint.interval_ns
        if interval_ns is None or not self._waits_for_checkpoint:
            self._rescale(restart)
        elif self.is_current(restart):
            self._rescales_with_checkpoint = True
            self.env.call_in(self.options.longest_rescale_delay_ns(interval_ns), lambda: self._rescale(restart))

    def _on_checkpoint_ended(self, *, completed: bool) -> None:
        """Rescale a job that waits for a completed checkpoint, or for a number of failed ones (Executing#onFailedCheckpoint).

        A completed checkpoint ends the count, also if the job cannot be rescaled yet.
        """
        if self.env.now < self._slots_ns or not self.is_current(self._restart):
            return
        self._failures_left = 0 if completed else self._failures_left - 1
        lost = self.managers.returning()
        is_due = completed or self._failures_left == 0
        if is_due and self._rescales_with_checkpoint and self.managers.has_slots_without(lost):
            self.context.outcome.rescale(frozenset(lost))

    def _rescale(self, restart: int) -> None:
        """Rescale the job to the available slots, or wait for the first one."""
        if not self.is_current(restart) or not self.coordinator.machine.latest_completed:
            return
        lost = self.managers.returning()
        if self.managers.has_slots_without(lost):
            self.context.outcome.rescale(frozenset(lost))
        else:
            self.env.call_at(min(lost.values()), lambda: self._rescale(restart))

    def _give_up_later(self, restart: int, ready_ns: int) -> None:
        """Fail the job after the resource timeout if it gets no slot (NoResourceAvailableException)."""
        wait_ns = None if self.options.reactive else self.options.resource_wait_ns

        def give_up() -> None:
            if self.is_current(restart):
                reason = "no slot for as long as it waits for resources"
                self.context.note(EventType.GIVEN_UP, detail=reason)
                self.context.outcome.fail(reason)

        if wait_ns is not None and ready_ns > self.env.now + wait_ns:
            self.env.call_in(wait_ns, give_up)


class RestartState(NamedTuple):
    """The restart state that a JobMaster keeps when it rescales the job, i.e. starts another job instance."""

    strategy: RestartStrategy  # including its history of failures
    waiting: RecoveryStats | None  # the restart that is waiting for slots, or None if the job was running


class RecoveryHost:
    """Runs the recovery machine of one job instance: restarts tasks and replaces TaskManagers and JobManagers.

    `context.hosts` has the number of the TaskManager of each task.
    """

    def __init__(self, cluster: RestoreContext, coordinator: CoordinatorHost) -> None:
        self.cluster = cluster
        self.context = cluster.context
        self.env = cluster.context.env
        self._note = cluster.context.note
        self.overheads = cluster.context.scenario.overheads
        self.tasks = cluster.tasks
        self.coordinator = coordinator
        coordinator.fail_job = self.fail_job
        self.job_end = cluster.job_end
        self.restores: dict[int, Restore] = {}  # by number of the restart
        self._loop: HostLoop[Recovery, RecoveryEvent, RecoveryCommand] | None = None
        self._starts_scheduler = (
            False  # the checkpoint scheduler is stopped, and starts when tasks run (see `task_runs`)
        )
        # from the second failure under a JobManager of Flink 2.x on, failovers do not stop the scheduler
        self._keeps_scheduler = False
        self._deploys_all = False  # all tasks are being deployed by a new JobManager, not restarted after a failure
        # the strategy of the previous job instance, if its JobMaster rescaled the job
        self._inherited_strategy: RestartStrategy | None = None
        self._lost_job_managers = 0  # lost JobManagers that have no successor yet
        # the pending election of a JobManager, which fires when it is elected; None while a JobManager is running
        self.election: simpy.Event | None = None
        # when the first tasks stopped that no JobManager restarts; -1 if none has
        self._tasks_stopped_ns = -1
        # the row of a restart whose deployment failed: the next restart retries it and keeps the row
        self._retried_restart: RecoveryStats | None = None
        # (kind, description, time) of the failure that is being reported; `_cancel` reads it during the dispatch
        self._failure = ("", "", -1)
        self.stats: dict[int, RecoveryStats] = {}  # by number of the restart
        self.elasticity = Elasticity(self.context, cluster.task_managers, coordinator, self._is_current)

    @property
    def machine(self) -> Recovery:
        return self._get_loop().machine

    def _get_loop(self) -> HostLoop[Recovery, RecoveryEvent, RecoveryCommand]:
        """Return the loop of the recovery machine, created at the first failure because computing regions takes time."""
        if self._loop is None:
            layout = self.context.layout
            exchanges = zip(layout.writer, layout.reader, strict=True)
            machine = Recovery.configured(self.context.scenario.restart, regions(len(layout.vertex), exchanges))
            if self._inherited_strategy is not None:
                machine = replace(machine, strategy=self._inherited_strategy)
            self._loop = HostLoop(machine, Recovery.on, self.carry_out)
        return self._loop

    # ------------------------------------------------------------------------------------------ failures

    def fail_tasks(self, tasks: Iterable[int], reason: str) -> None:
        """Fail the tasks with an exception, which is reported to the JobManager.  Stopped and finished tasks are ignored."""
        failed_ns, failing = self.env.now, self._running(tasks)
        if not failing:
            return
        for task in failing:
            self._note(EventType.TASK_FAILED, task=task, detail=reason)
            self.tasks[task].thread.fail()
        self.stop(failing)
        if self.election is not None and self._tasks_stopped_ns < 0:
            self._tasks_stopped_ns = failed_ns  # nobody restarts them before a JobManager is elected

        def report_failure() -> None:
            # a restart in between has cancelled this attempt, whose failure is no other one (Execution: FAILED while CANCELING)
            if still_failed := [task for task in failing if self.tasks[task].stopped]:
                self.report(still_failed, "task", reason, failed_ns)

        self.coordinator.message(self.overheads.fail_ns, report_failure)

    def _running(self, tasks: Iterable[int]) -> list[int]:
        """Return the tasks that have neither stopped nor finished."""
        return [task for task in tasks if not self.tasks[task].stopped and task not in self.job_end.finished]

    def lose_task_manager(self, number: int, loss: TaskManagerLost) -> None:
        """Lose TaskManager `number` now, and report the failure of its tasks when the JobMaster detects the loss.

        Finished tasks do not fail (Execution#fail), unless a restart has already scheduled them for deployment.
        """
        # `awaiting` are about to be deployed on it by a restart; only the failures of `failing` are reported
        on_it = [task for task, manager in enumerate(self.context.hosts) if manager == number]
        awaiting = [
            task for task in on_it if any(restore.is_waiting_for_deployment(task) for restore in self.restores.values())
        ]
        lost = [task for task in on_it if task in awaiting or task not in self.job_end.finished]
        failing = [task for task in lost if task in awaiting or not self.tasks[task].stopped]
        failed_ns, reason = self.env.now, f"task manager {number} lost"
        self._note(EventType.TASK_MANAGER_LOST, number=number)
        detection_ns = self.cluster.task_managers.lose(loss, number) - failed_ns
        refusal_ns = self.cluster.task_managers.slots.lost[number].refusal_ns
        if not loss.silent and (awaiting or self._has_remote_readers(number)):
            detection_ns = min(detection_ns, self.context.scenario.restart.connection_reset_ns)
        presumed = {task: refusal_ns for task in lost if self.tasks[task].running}
        self.stop(lost)
        self.coordinator.presumed_running.update(presumed)
        self.context.storage.lose_disk(number)
        for task in lost:
            self.tasks[task].thread.free()

        if failing and self._tasks_stopped_ns < 0:
            self._tasks_stopped_ns = failed_ns

        def detect() -> None:
            for task in presumed:
                self.coordinator.presumed_running.pop(task, None)
            if self.election is None:
                self._tasks_stopped_ns = -1
            self.report(failing, "task-manager", reason, failed_ns)

        if failing:  # otherwise nothing fails now: the next restart finds that these slots are gone
            self.coordinator.message(detection_ns + self.overheads.fail_ns, detect)

    def _has_remote_readers(self, number: int) -> bool:
        """Return whether running tasks on other TaskManagers read from this one.

        Only readers detect that a connection is reset; writers do not.
        """
        layout, managers = self.context.layout, self.context.hosts
        ends = zip(layout.writer, layout.reader, strict=True)
        return any(
            managers[writer] == number and managers[reader] != number and not self.tasks[reader].stopped
            for writer, reader in ends
        )

    def begin(self, kind: str, what: str, before: RestartState | None = None) -> None:
        """Start a job instance from a snapshot by deploying all tasks, as a new JobManager does.

        `kind` and `what` are the kind and the description of the cause, as in `RecoveryStats`.  `before` is the state of the
        previous instance if its JobMaster rescaled the job, or None if the JobMaster is new.
        """
        self._failure, self._deploys_all = (kind, what, self.env.now), True
        if before is not None:
            self._retried_restart = before.waiting
            self._inherited_strategy = before.strategy
        self.dispatch(recovery.JobManagerReturned(self.env.now, resumes=before is not None))

    def restart_state(self) -> RestartState:
        """Return the restart state for the next job instance.

        A restart that is waiting for slots moves to that instance, and is removed from `stats`.
        """
        waiting = [stats for stats in self.stats.values() if stats.deployed_ns < 0]
        return RestartState(self.machine.strategy, self.stats.pop(waiting[-1].number) if waiting else None)

    def fail_job(self, reason: str, task: int | None) -> None:
        """Fail `task`, or the whole job if it is None, because of too many failed checkpoints (CheckpointFailureManager)."""
        self.report(self.context.tasks if task is None else [task], "checkpoints", reason, self.env.now)

    def report(self, tasks: Iterable[int], kind: str, what: str, failed_ns: int) -> None:
        """Report to the recovery machine that these tasks failed at `failed_ns`.

        `kind` and `what` are the kind and the description of the failure, as in `RecoveryStats`.
        """
        has_stopped = bool(stopped_with(self.context.stats))  # with a savepoint
        jitter = draw(stream(self.context.scenario.run.seed, "restart-jitter"), self.machine.restarts)
        self._failure, self._deploys_all = (kind, what, failed_ns), False
        self._get_loop().dispatch(recovery.TasksFailed(self.env.now, frozenset(tasks), what, jitter, has_stopped))

    def lose_job_manager(self, down_ns: int) -> None:
        """Lose the JobManager now; another one takes over after `down_ns`.  Tasks run until its heartbeats time out."""
        self._lost_job_managers += 1
        if self.election is None:
            self._start_job_manager_outage()
        self.env.call_in(down_ns, self._take_over)

    def _start_job_manager_outage(self) -> None:
        """Start the time without a JobManager: no checkpoints, no deployments, and reports to it are lost."""
        self._note(EventType.JOB_MANAGER_LOST)
        self.cluster.task_managers.lose_leader()
        self.election = self.env.event()
        self._starts_scheduler = self._keeps_scheduler = False
        self.coordinator.lose_leader()
        for restore in self.restores.values():
            restore.cancel_deployment()
        election, missed_ns = self.election, self.cluster.task_managers.silent_since(self.env.now)
        self.env.call_at(missed_ns, lambda: self._miss_heartbeat(election))

    def _miss_heartbeat(self, election: simpy.Event) -> None:
        """Fail all tasks because the JobMaster's heartbeats timed out (TaskExecutor#disconnectJobManagerConnection).

        Do nothing if a JobManager was elected before.  `election` is the one that was pending when heartbeats stopped.
        """
        if self.election is election:
            running = self._running(self.context.tasks)
            for task in running:
                self._note(EventType.TASK_FAILED, task=task, detail=NO_HEARTBEAT)
            self.stop(running)
            if self._tasks_stopped_ns < 0:
                self._tasks_stopped_ns = self.env.now

    def _take_over(self) -> None:
        """Elect the successor of a lost JobManager, which deploys all tasks from the latest completed checkpoint."""
        self._lost_job_managers -= 1
        if self._lost_job_managers or self.election is None:
            return  # JobManagers were lost at overlapping times: the last successor takes over
        self._note(EventType.JOB_MANAGER_ELECTED)
        election, self.election = self.election, None
        self.coordinator.dispatch(LeaderElected(self.env.now))
        self.cluster.task_managers.elect()
        stopped_ns = self._tasks_stopped_ns if self._tasks_stopped_ns >= 0 else self.env.now
        self._tasks_stopped_ns = -1
        self._failure, self._deploys_all = ("job-manager", "job manager lost", stopped_ns), True
        self.dispatch(recovery.JobManagerReturned(self.env.now))
        election.succeed()

    def stop(self, tasks: Iterable[int]) -> None:
        """Stop the threads of these tasks immediately, and cancel their restores."""
        tasks = list(tasks)
        for restore in self.restores.values():
            restore.cancel(tasks)  # including tasks that are not deployed yet
        stopping = [task for task in tasks if not self.tasks[task].stopped]
        for task in stopping:
            self.tasks[task].stop()
        self.context.plane.halt(stopping)

    # ------------------------------------------------------------------------------------------ the machine

    def dispatch(self, event: RecoveryEvent) -> None:
        """Pass an event to the recovery machine.  Ignore it while no JobManager is running."""
        if self.election is None:  # otherwise the next JobManager restarts all tasks anyway
            self._get_loop().dispatch(event)

    def task_runs(self, task: int) -> None:
        """Mark a restored task as running: its state is downloaded and its recovered input is read."""
        self.tasks[task].running = True
        self._note(EventType.TASK_RUNS, task=task)
        for restore in self.restores.values():
            restore.task_runs(task)
        if task in self.machine.initializing:
            self.dispatch(recovery.TaskInitialized(self.env.now, task))
        # a new JobManager starts periodic checkpoints when all tasks run; after a failure the first task is enough
        if self._starts_scheduler and (not self.machine.initializing or not self._deploys_all):
            self._start_scheduler(restarted=bool(self.machine.initializing))

    def carry_out(self, command: RecoveryCommand) -> None:
        """Execute a command, or schedule its execution."""
        match command:
            case recovery.SuspendCheckpoints():
                self._suspend_checkpoints()
            case recovery.CancelTasks():
                self._cancel(command)
            case recovery.ArmRestart():
                elapsed = lambda: self.dispatch(recovery.RestartDelayElapsed(self.env.now, command.restart))  # noqa: E731
                self.stats[command.restart].delayed_ns = at_ns = max(command.at_ns, self.env.now)
                self.env.call_at(at_ns + self.overheads.restart_ns, elapsed)
            case recovery.RestoreTasks():
                self.coordinator.dispatch(TasksRestored(self.env.now))
                self._restore(command)
            case recovery.ResumeCheckpoints():
                self._resume()
            case recovery.ReportRecovered():
                self._note(EventType.JOB_RECOVERED)
            case recovery.FailForGood():
                self._note(EventType.GIVEN_UP, detail=command.reason)
                self.context.outcome.fail(command.reason)
            case recovery.FailStopped():
                self.context.outcome.fail(f"stopped with a savepoint, then failed: {command.reason}")
            case _:
                assert_never(command)

    def _cancel(self, command: recovery.CancelTasks) -> None:
        """Cancel the tasks of a restart, and report to the recovery machine when all of them have stopped.

        A task on a lost TaskManager that the JobManager takes for running stops when its cancel calls time out.
        """
        kind, what, failed_ns = self._failure
        context, number, tasks = self.context, command.restart, command.tasks
        row, self._retried_restart = self._retried_restart, None
        if row is None:
            row = RecoveryStats(number, kind, what, failed_ns, self.env.now, len(tasks))
        else:
            self.stats.pop(row.number, None)  # there is no entry if the restart began in the previous job instance
        row.number, row.tasks, self.stats[number] = number, len(tasks), row
        restarted = [context.scenario.job.vertices[v].name for v in sorted({context.layout.vertex[t] for t in tasks})]
        row.vertices = listed(restarted) if len(tasks) < len(context.tasks) else ""
        self._note(EventType.JOB_RESTARTING, number=number, detail=what)
        self.stop(sorted(tasks))
        self.cluster.checks.restarting(number)
        unreachable = {task: self.coordinator.presumed_running.pop(task, 0) for task in tasks}
        # tasks whose cancellation is not confirmed yet, most of them only until their current work ends
        cancelling = {task for task in tasks if self.tasks[task].thread.occupied or unreachable[task]}

        def freed(task: int) -> None:
            cancelling.discard(task)
            if not cancelling:
                self._cancelled(number)

        for task in sorted(cancelling):
            if unreachable[task]:
                self.env.call_in(self._unanswered_cancellation_ns(task), partial(freed, task))
            else:
                self.tasks[task].thread.when_freed = partial(freed, task)
        if cancelling:
            limit_ns = self.context.scenario.restart.cancellation_timeout_ns
            if limit_ns:  # 0: no watchdog, as in Flink
                self.env.call_in(limit_ns, lambda: self._kill_stuck(cancelling))
        else:
            self._cancelled(number)

    def _unanswered_cancellation_ns(self, task: int) -> int:
        """Return the time until a task on an unreachable TaskManager counts as cancelled [ns].

        It ends when all calls have timed out (Execution#sendCancelRpcCall) or the loss of the TaskManager is detected.
        """
        lost = self.cluster.task_managers.slots.lost[self.context.hosts[task]]
        return max(0, min(lost.gone_ns - self.env.now, recovery.CANCEL_CALLS * lost.refusal_ns))

    def _kill_stuck(self, cancelling: set[int]) -> None:
        """Terminate the TaskManagers of tasks that do not stop within the cancellation timeout (TaskCancelerWatchDog)."""
        for manager in sorted({self.context.hosts[task] for task in cancelling if self.tasks[task].thread.occupied}):
            self.lose_task_manager(
                manager, TaskManagerLost(manager, orderly=True)
            )  # a fatal error shuts the process down

    def _cancelled(self, restart: int) -> None:
        """Report that all tasks of a restart have stopped."""
        self.cluster.checks.cancelled(restart)
        if self.stats[restart].cancelled_ns < 0:  # otherwise this restart retries a failed deployment
            self.stats[restart].cancelled_ns = self.env.now
        self.dispatch(recovery.TasksCancelled(self.env.now, restart))

    def _restore(self, command: recovery.RestoreTasks) -> None:
        """Deploy the tasks of a restart from the latest completed checkpoint.

        Regions with a task on an unreachable or missing TaskManager fail instead.  With the adaptive scheduler a restart may
        wait for slots, and is then left to a job instance with another parallelism.
        """
        stats, checkpoint = self.stats[command.restart], self.coordinator.machine.latest_completed
        tasks, managers = command.tasks, self.cluster.task_managers
        deployment = managers.deployment(tasks)
        if not deployment.unreachable and not self._deploys_all and self.elasticity.waits(command.restart):
            return  # nothing is deployed now
        stats.deployments += 1
        while deployment.unreachable:
            failing = [task for task in sorted(tasks) if self.context.hosts[task] in deployment.unreachable]
            tasks -= tasks_to_restart(failing, self.machine.regions)
            self._fail_deployment(failing, stats, deployment, is_entire_restart=not tasks)
            deployment = managers.deployment(tasks)
        if tasks:
            self.elasticity.executes(command.restart, deployment.at_ns)
            fail_task = lambda task, reason: self.fail_tasks([task], reason)  # noqa: E731
            caught_up = self.context.outcome.catch_up if stats.is_failure else lambda: None
            self.restores[command.restart] = Restore(
                self.cluster, stats, tasks, self.machine.regions, checkpoint, deployment.at_ns, fail_task, caught_up
            )

    def _is_current(self, restart: int) -> bool:
        """Return whether a JobManager is running and this is its latest restart."""
        return self.election is None and self.machine.restarts == restart

    def _fail_deployment(
        self, tasks: list[int], stats: RecoveryStats, deployment: Deployment, *, is_entire_restart: bool
    ) -> None:
        """Fail the deployment of `tasks`, because their TaskManager is lost and the JobManager does not know it or has no other slots.

        Flink throws a RecipientUnreachableException or a NoResourceAvailableException.  `is_entire_restart` means that no
        other task of this restart is deployed: the next restart then retries this one and continues its row of statistics.
        """
        number = self.context.hosts[tasks[0]]
        reason = NO_SLOTS if deployment.is_lost else f"task manager {number} is not reachable"
        self._note(EventType.DEPLOYMENT_FAILED, task=tasks[0], number=number, detail=reason)

        def report_unreachable() -> None:
            self._retried_restart = stats if is_entire_restart and self.stats.get(stats.number) is stats else None
            self.report(tasks, stats.kind, reason, stats.failed_ns)
            self._retried_restart = None

        self.coordinator.message(deployment.at_ns - self.env.now + self.overheads.fail_ns, report_unreachable)

    def _suspend_checkpoints(self) -> None:
        """Stop the scheduler because tasks fail, unless they have failed under this JobManager before.

        ExecutionTrackingCheckpointCoordinatorDeActivator stops what it has started.  It counts the executions of the first
        failure as pending for good, so that the scheduler, which the first task of a restart starts, runs on from then.
        Triggers are refused until all tasks run again.
        """
        if self._keeps_scheduler and self.coordinator.machine.schedule is not None:
            return
        scenario = self.context.scenario
        self._starts_scheduler = False
        self._keeps_scheduler = (
            not self._deploys_all and scenario.cluster.profile == "2.x" and scenario.restart.scheduler == "default"
        )
        self.coordinator.dispatch(SchedulerStopped(self.env.now, FailureReason.CHECKPOINT_COORDINATOR_SUSPEND))

    def _resume(self) -> None:
        """Resume periodic checkpoints: immediately in Flink 1.x, where the job is RUNNING now; in 2.x when a task runs."""
        self._starts_scheduler = self.coordinator.machine.schedule is None
        if self.context.scenario.cluster.profile != "2.x":
            self._start_scheduler(restarted=True)

    def _start_scheduler(self, *, restarted: bool) -> None:
        """Start periodic checkpoints.  `restarted` is whether some tasks may still be initializing."""
        self._starts_scheduler = False
        self.coordinator.start(self.machine.restarts, restarted=restarted)
