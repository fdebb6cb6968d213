"""From a failure to all tasks running again: what is restarted, when, and whether the job fails instead.

One machine per job.  A failure takes its whole regions along; these are cancelled while the restart delay runs, and restored when both are
over (DefaultScheduler#restartTasksWithDelay).  A failure of tasks that are being restarted takes them over into its own restart, which
goes back to the same checkpoint.  The job counts as RESTARTING while any restart waits: checkpoints are suspended that long.

  RUNNING --TasksFailed--> cancelling and waiting --both over--> initializing, task by task --> RUNNING
"""

from __future__ import annotations

from dataclasses import field
from enum import Enum

from sim.model.faults import Restart
from sim.protocol.machine import InvalidTransition, changed, heard
from sim.protocol.recovery.regions import restarted_with
from sim.protocol.recovery.restart import RestartStrategy, restart_strategy
from sim.protocol.value_class import value_class


class JobStatus(Enum):
    """Flink's names.  RUNNING says that everything is deployed, not that every task runs."""

    RUNNING = "RUNNING"
    RESTARTING = "RESTARTING"  # a restart waits: for cancelled tasks or for its delay
    FAILED = "FAILED"  # for good


# ---------------------------------------------------------------------------------------------- events


@value_class
class TasksFailed:
    """The JobManager learns that these tasks have failed; `draw` is uniform on 32 bits."""

    now: int
    tasks: frozenset[int]
    reason: str
    draw: int = 0
    stopped: bool = False  # the savepoint is complete that the job stops with


@value_class
class TasksCancelled:
    """Answer to CancelTasks: all of them have stopped."""

    now: int
    restart: int


@value_class
class RestartDelayElapsed:
    """The wake-up of ArmRestart."""

    now: int
    restart: int


@value_class
class TaskInitialized:
    """A restored task runs: its state is there and its recovered input is read."""

    now: int
    task: int


@value_class
class JobManagerReturned:
    """A new JobManager takes over: it knows the completed checkpoints and nothing else, and restarts everything without delay.

    Its restart strategy has seen no failure, unless it is the same one that `goes_on` with another parallelism.
    """

    now: int
    goes_on: bool = False


RecoveryEvent = TasksFailed | TasksCancelled | RestartDelayElapsed | TaskInitialized | JobManagerReturned

# ---------------------------------------------------------------------------------------------- commands


@value_class
class SuspendCheckpoints:
    """The job is no longer RUNNING: stop the coordinator's scheduler, which aborts everything pending."""


@value_class
class CancelTasks:
    """Stop these tasks, answer TasksCancelled."""

    restart: int
    tasks: frozenset[int]


@value_class
class ArmRestart:
    """Send RestartDelayElapsed at `at_ns`."""

    restart: int
    at_ns: int


@value_class
class RestoreTasks:
    """Deploy these tasks with the state of the latest completed checkpoint; answer TaskInitialized for each."""

    restart: int
    tasks: frozenset[int]


@value_class
class ResumeCheckpoints:
    """The job is RUNNING again: the coordinator's scheduler may start (its triggers are refused while tasks initialize)."""


@value_class
class ReportRecovered:
    """All tasks run."""


@value_class
class FailForGood:
    """The restart strategy gives up."""

    reason: str


@value_class
class FailStopped:
    """The job has made the savepoint it stops with, and failed then: it is neither restarted nor finished."""

    reason: str


RecoveryCommand = (
    SuspendCheckpoints | CancelTasks | ArmRestart | RestoreTasks | ResumeCheckpoints | ReportRecovered | FailForGood | FailStopped
)  # fmt: skip

# ---------------------------------------------------------------------------------------------- the machine

_Answer = tuple["Recovery", tuple[RecoveryCommand, ...]]


@value_class
class PendingRestart:
    """A restart that waits for cancelled tasks or for its delay."""

    number: int
    tasks: frozenset[int]
    cancelled: bool = False
    delayed: bool = False  # the delay is over

    @property
    def due(self) -> bool:
        return self.cancelled and self.delayed


@value_class
class Recovery:
    """The recovery machine of one job."""

    strategy: RestartStrategy
    unused: RestartStrategy  # as each JobManager makes it
    regions: tuple[frozenset[int], ...]
    status: JobStatus = JobStatus.RUNNING
    waiting: tuple[PendingRestart, ...] = ()
    initializing: frozenset[int] = frozenset()
    restarts: int = 0  # ever begun: their numbers
    story: tuple[object, ...] = field(default=(), compare=False, repr=False)

    @classmethod
    def configured(cls, options: Restart, regions: tuple[frozenset[int], ...]) -> Recovery:
        """`regions` of the job; with failover `full`, or an adaptive scheduler, they fail as one."""
        if options.restarts_all:
            regions = (frozenset().union(*regions),)
        strategy = restart_strategy(options)
        return cls(strategy, strategy, regions)

    def on(self, event: RecoveryEvent) -> _Answer:
        if self.status is JobStatus.FAILED:
            return self, ()
        match event:
            case TasksFailed():
                after, commands = self._failed(event)
            case TasksCancelled():
                after, commands = self._progressed(event, cancelled=True)
            case RestartDelayElapsed():
                after, commands = self._progressed(event, delayed=True)
            case TaskInitialized():
                after, commands = self._initialized(event)
            case JobManagerReturned():
                everything: frozenset[int] = frozenset().union(*self.regions)
                strategy = self.strategy if event.goes_on else self.unused
                after, commands = _restarting(changed(self, strategy=strategy), everything, event.now)
        return heard(self, after, event), commands

    def _failed(self, event: TasksFailed) -> _Answer:
        """Nothing restarts a job that has made the savepoint it stops with: its output is visible and no checkpoint holds it.

        StopWithSavepointStoppingException, a NonRecoverableError.
        """
        if event.stopped:
            return self, (FailStopped(event.reason),)
        strategy, attempt = self.strategy.failed(event.now, event.draw)
        after: Recovery = changed(self, strategy=strategy)
        if attempt.delay_ns is None:
            suspend = (SuspendCheckpoints(),) if self.status is JobStatus.RUNNING else ()
            return changed(after, status=JobStatus.FAILED, waiting=(), initializing=frozenset()), (*suspend, FailForGood(event.reason))
        return _restarting(after, restarted_with(event.tasks, self.regions), event.now + attempt.delay_ns)

    def _progressed(self, event: TasksCancelled | RestartDelayElapsed, **progress: bool) -> _Answer:
        waiting = tuple(changed(restart, **progress) if restart.number == event.restart else restart for restart in self.waiting)
        due = next((restart for restart in waiting if restart.due), None)
        if due is None:
            return changed(self, waiting=waiting), ()  # or a later failure has taken its tasks over
        rest = tuple(restart for restart in waiting if restart is not due)
        after: Recovery = changed(self, waiting=rest, initializing=self.initializing | due.tasks)
        restore = RestoreTasks(due.number, due.tasks)
        if rest:
            return after, (restore,)
        return changed(after, status=JobStatus.RUNNING), (restore, ResumeCheckpoints())

    def _initialized(self, event: TaskInitialized) -> _Answer:
        if event.task not in self.initializing:
            raise InvalidTransition("recovery", self, event, self.story, "this task is not being restored")
        after: Recovery = changed(self, initializing=self.initializing - {event.task})
        recovered = not after.initializing and not after.waiting
        return after, ((ReportRecovered(),) if recovered else ())


def _restarting(recovery: Recovery, tasks: frozenset[int], at_ns: int) -> _Answer:
    """Take these tasks out of every restart under way, into one of their own."""
    left = tuple(changed(restart, tasks=restart.tasks - tasks) for restart in recovery.waiting)
    number = recovery.restarts + 1
    after: Recovery = changed(
        recovery,
        status=JobStatus.RESTARTING,
        waiting=(*(restart for restart in left if restart.tasks), PendingRestart(number, tasks)),
        initializing=recovery.initializing - tasks,
        restarts=number,
    )
    suspend = (SuspendCheckpoints(),) if recovery.status is JobStatus.RUNNING else ()
    return after, (*suspend, CancelTasks(number, tasks), ArmRestart(number, at_ns))
