"""The JobManager's failure handling where the planes meet: the recovery machine's commands get their time and reach the tasks.

Decides nothing: what restarts when is `sim.protocol.recovery`'s.  How one task comes back is `restore`'s, what goes wrong is `faults`'.
"""

from __future__ import annotations

from collections import deque
from functools import cached_property
from typing import TYPE_CHECKING

from sim.metrics.journal import Happening
from sim.metrics.recoveries import RecoveryStats
from sim.model.random import draw, stream
from sim.protocol import recovery as say
from sim.protocol.reasons import FailureReason
from sim.protocol.recovery import JobStatus, Recovery
from sim.protocol.regions import regions
from sim.protocol.timer import first_trigger_delay
from sim.protocol.vocabulary import SchedulerStopped
from sim.runtime.by_kind import by_kind
from sim.runtime.jobmanager.restore import Restore

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sim.runtime.run.world import World

__all__ = ["RecoveryHost"]


class RecoveryHost:
    def __init__(self, world: World) -> None:
        self.world = world
        self.env = world.env
        self.overheads = world.scenario.overheads
        self.restores: dict[int, Restore] = {}  # by restart
        self.available_ns: dict[int, int] = {}  # lost task managers: when another one offers their slots
        self._resuming = False  # the scheduler starts as soon as a task runs ...
        self._anew = False  # ... or all do: another JobManager deploys them
        self._heard: deque[say.RecoveryEvent] = deque()
        self._absent = 0  # JobManagers awaited
        self._failure = ("", "", -1)  # kind, what and time of the one being reported
        self.stats: dict[int, RecoveryStats] = {}

    @cached_property
    def _first(self) -> Recovery:
        layout = self.world.layout
        exchanges = zip(layout.writer, layout.reader, strict=True)
        return Recovery.configured(self.world.scenario.restart, regions(len(layout.vertex), exchanges))

    @property
    def machine(self) -> Recovery:
        """Made when it is needed first: regions of thousands of channels take their time."""
        return self.__dict__.setdefault("_machine", self._first)  # type: ignore[no-any-return]

    # ------------------------------------------------------------------------------------------ what fails

    def fail_tasks(self, tasks: Iterable[int], reason: str) -> None:
        """Exceptions end tasks; they tell the JobManager.  Those that do not run, or no more, cannot fail."""
        finished, failed_ns = self.world.job_end.finished, self.env.now
        failing = [task for task in tasks if not self.world.tasks[task].stopped and task not in finished]
        if not failing:
            return
        for task in failing:
            self._note(Happening.TASK_FAILED, task, detail=reason)
        self.stop(failing)
        self.env.call_in(self.overheads.fail_ns, lambda: self.report(failing, "task", reason, failed_ns))

    def lose_host(self, number: int, after_ns: int) -> None:
        """A task manager is gone; somebody notices `after_ns` from now.  Tasks that have finished are not missed (Execution#fail)."""
        lost = [t for t, host in enumerate(self.world.hosts) if host == number and t not in self.world.job_end.finished]
        failed_ns, reason = self.env.now, f"task manager {number} lost"
        self._note(Happening.TASK_MANAGER_LOST, number=number)
        self.available_ns[number] = failed_ns + self.world.scenario.restart.replacement_ns
        self.stop(lost)
        self.world.storage.lose_disk(number)
        for task in lost:
            self.world.tasks[task].free()
        if lost:
            self.env.call_in(after_ns + self.overheads.fail_ns, lambda: self.report(lost, "task-manager", reason, failed_ns))

    def begin(self, words: str, kind: str) -> None:
        """A job instance that begins from a snapshot: everything is deployed as a new JobManager would deploy it."""
        self._failure, self._anew = (kind, words, self.env.now), True
        self.tell(say.JobManagerReturned(self.env.now))

    def fail_job(self, reason: str, task: int | None) -> None:
        """Too many failed checkpoints: the job fails, or the task that declined the last one."""
        everybody = range(len(self.world.layout.vertex))
        self.report(everybody if task is None else [task], "checkpoints", reason, self.env.now)

    def report(self, tasks: Iterable[int], kind: str, what: str, failed_ns: int) -> None:
        """The JobManager learns of a failure.  Nothing restarts a job that has made the savepoint it stops with.

        Its output is visible and no checkpoint holds it (StopWithSavepointStoppingException, a NonRecoverableError).
        """
        if any(row.stops and row.status == "COMPLETED" for row in self.world.stats.values()):
            self.world.fail(f"stopped with a savepoint, then failed: {what}")
            return
        u = draw(stream(self.world.scenario.run.seed, "restart-jitter"), len(self.stats))
        self._failure, self._anew = (kind, what, failed_ns), False
        self.tell(say.TasksFailed(self.env.now, frozenset(tasks), what, u))

    def lose_job_manager(self, down_ns: int) -> None:
        """Nobody coordinates for so long; without a heartbeat the tasks go on no longer than its timeout."""
        failed_ns, heartbeat_ns = self.env.now, self.world.scenario.restart.heartbeat_timeout_ns
        self._note(Happening.JOB_MANAGER_LOST)
        self._resuming = False
        self._absent += 1
        self.world.coordinator.lose()
        if down_ns > heartbeat_ns:
            self.env.call_in(heartbeat_ns, lambda: self.stop(range(len(self.world.tasks))))

        def take_over() -> None:
            self._absent -= 1
            if self._absent:
                return  # lost again before it came
            self._failure, self._anew = ("job-manager", "job manager lost", failed_ns), True
            self.tell(say.JobManagerReturned(self.env.now))

        self.env.call_in(down_ns, take_over)

    def stop(self, tasks: Iterable[int]) -> None:
        """The threads of these tasks stop where they are."""
        tasks = list(tasks)
        for restore in self.restores.values():
            restore.give_up(tasks)  # those not deployed yet too
        stopping = [task for task in tasks if not self.world.tasks[task].stopped]
        for task in stopping:
            self.world.tasks[task].stop()
        self.world.plane.halt(stopping)

    # ------------------------------------------------------------------------------------------ the machine

    def tell(self, event: say.RecoveryEvent) -> None:
        """One event after the other: what a command brings about is heard when all commands before it are carried out."""
        if self._absent:
            return  # nobody hears it; the next JobManager restarts everything anyway
        self._heard.append(event)
        if len(self._heard) > 1:
            return
        while self._heard:
            machine, commands = self.machine.on(self._heard[0])
            self.__dict__["_machine"] = machine
            for command in commands:
                self.carry_out(command)
            self._heard.popleft()

    def task_runs(self, task: int) -> None:
        """A restored task has its state and its recovered input."""
        self.world.tasks[task].running = True
        self._note(Happening.TASK_RUNS, task)
        for restore in self.restores.values():
            restore.task_runs(task)
        if task in self.machine.initializing:
            self.tell(say.TaskInitialized(self.env.now, task))
        if self._resuming and (not self.machine.initializing or not self._anew):
            self._start_scheduler(restarted=bool(self.machine.initializing))

    @by_kind
    def carry_out(self, command: say.RecoveryCommand) -> None:
        """Do what a command says, or have it done in time."""
        raise TypeError(f"nobody carries out {command}")

    def _note(self, happening: Happening, task: int = -1, number: int = 0, detail: str = "", checkpoint: int = -1) -> None:
        self.world.journal.note(self.env.now, happening, checkpoint, task, number, detail)

    @carry_out.register
    def _suspend(self, _: say.SuspendCheckpoints) -> None:
        self._resuming = False
        self.world.coordinator.tell(SchedulerStopped(self.env.now, FailureReason.CHECKPOINT_COORDINATOR_SUSPEND))

    @carry_out.register
    def _cancel(self, command: say.CancelTasks) -> None:
        kind, what, failed_ns = self._failure
        self.stats[command.restart] = RecoveryStats(command.restart, kind, what, failed_ns, self.env.now, len(command.tasks))
        self._note(Happening.JOB_RESTARTING, number=command.restart, detail=what)
        self.stop(sorted(command.tasks))
        stuck = {task for task in command.tasks if self.world.tasks[task].thread.occupied}

        def freed(task: int) -> None:
            stuck.discard(task)
            if not stuck:
                self._cancelled(command.restart)

        for task in sorted(stuck):
            self.world.tasks[task].when_freed(lambda task=task: freed(task))  # type: ignore[misc]
        if stuck:
            limit_ns = self.world.scenario.restart.cancellation_timeout_ns
            if limit_ns:  # 0: nobody watches, as in Flink
                self.env.call_in(limit_ns, lambda: self._kill_stuck(stuck))
        else:
            self._cancelled(command.restart)

    def _kill_stuck(self, stuck: set[int]) -> None:
        """Tasks that do not stop take their task managers down (TaskCancelerWatchDog)."""
        for host in sorted({self.world.hosts[task] for task in stuck}):
            self.lose_host(host, 0)

    def _cancelled(self, restart: int) -> None:
        self.stats[restart].cancelled_ns = self.env.now
        self.tell(say.TasksCancelled(self.env.now, restart))

    @carry_out.register
    def _arm(self, command: say.ArmRestart) -> None:
        elapsed = lambda: self.tell(say.RestartDelayElapsed(self.env.now, command.restart))  # noqa: E731
        self.env.call_in(max(0, command.at_ns - self.env.now) + self.overheads.restart_ns, elapsed)

    @carry_out.register
    def _restore(self, command: say.RestoreTasks) -> None:
        self.restores[command.restart] = Restore(self.world, self.stats[command.restart], command.tasks)

    @carry_out.register
    def _resume(self, _: say.ResumeCheckpoints) -> None:
        """Flink 2.x: when a task runs; 1.x: now that the job is RUNNING."""
        self._resuming = True
        if self.world.scenario.cluster.profile != "2.x":
            self._start_scheduler(restarted=True)

    def _start_scheduler(self, *, restarted: bool) -> None:
        self._resuming = False
        options = self.world.scenario.checkpoint
        if options.interval_ns is not None:
            delay_ns = first_trigger_delay(
                self.world.scenario.cluster.profile,
                interval_ns=options.interval_ns,
                min_pause_ns=options.min_pause_ns,
                first_trigger_ns=self.overheads.first_trigger_ns,
                restarted=restarted,
                draw=draw(stream(self.world.scenario.run.seed, "first-trigger"), len(self.stats)),
            )
            self.world.coordinator.start(delay_ns)

    @carry_out.register
    def _recovered(self, _: say.ReportRecovered) -> None:
        self._note(Happening.JOB_RECOVERED)

    @carry_out.register
    def _fail_for_good(self, command: say.FailForGood) -> None:
        self._note(Happening.GIVEN_UP, detail=command.reason)
        self.world.fail(command.reason)

    @property
    def restarting(self) -> bool:
        """Whether the job is not RUNNING."""
        return "_machine" in self.__dict__ and self.machine.status is not JobStatus.RUNNING
