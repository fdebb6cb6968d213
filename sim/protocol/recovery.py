"""Recovery of a job: detection, restart, redeployment, progress."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from enum import Enum
from itertools import product
from typing import NamedTuple

from sim.model.faults import Restart
from sim.protocol.machine import InvalidTransition, value_class
from sim.protocol.restart_strategy import LostSlots, RestartStrategy, Slots, restart_strategy, restarted_with

# ---- The detection of a lost task manager by the senders of its heartbeats (HeartbeatManagerSenderImpl, HeartbeatMonitorImpl).
#
# The JobMaster and the ResourceManager each send heartbeats to all task managers, at times of their own.  A process
# that is gone refuses the connection: each heartbeat fails at once, and several failures in a row count as "no longer
# reachable" (FLINK-23209).  A machine that says nothing, or a network that is cut, is missed when no answer has come
# for the timeout.


@value_class
class Heartbeats:
    """The heartbeats of one sender.  They reach all task managers at the same times."""

    interval_ns: int
    timeout_ns: int
    failures: int | None  # in a row that count (heartbeat.rpc-failure-threshold); None: they do not count
    phase_ns: int = 0  # one of the times at which they are sent

    def missed_ns(self, lost_ns: int, *, silent: bool) -> int:
        """When a task manager that is lost at `lost_ns` counts as lost."""
        first_ns = lost_ns + (self.phase_ns - lost_ns) % self.interval_ns  # heartbeat that it does not answer
        timed_out_ns = max(lost_ns, first_ns - self.interval_ns + self.timeout_ns)
        if silent or self.failures is None:
            return timed_out_ns
        return min(timed_out_ns, first_ns + (self.failures - 1) * self.interval_ns)


# ---- The adaptive scheduler: a job that runs with the slots there are (AdaptiveScheduler; FLIP-160, FLIP-291, FLIP-461, FLIP-472).
#
# After a failure the whole job waits for resources.  With all slots it starts at once.  With fewer it waits until these
# are stable, and starts with as many subtasks as there are slots.  When slots come back it is rescaled after a
# cooldown: at once if all are there, else when these are stable.  Flink 2.x rescales it with the next completed
# checkpoint.
#
#   WaitingForResources --all slots, or stable--> Executing --slots are back, and a checkpoint--> Restarting --> Executing


class Start(NamedTuple):
    """The outcome of waiting for resources."""

    at_ns: int
    complete: bool  # with all slots; False: with those that are there


def started(now: int, returns_ns: Collection[int], restart: Restart) -> Start:
    """When a job starts that waits for resources since `now`, and lacks slots that return at these times (WaitingForResources)."""
    complete_ns = max(returns_ns, default=now)
    stable_ns = now + (0 if restart.reactive else restart.stabilization_ns)
    return Start(max(now, complete_ns), complete=True) if complete_ns <= stable_ns else Start(stable_ns, complete=False)


def rescalable_ns(begun_ns: int, returns_ns: Collection[int], restart: Restart) -> int:
    """When a job may be rescaled that has executed since `begun_ns` without the slots that return at these times.

    DefaultStateTransitionManager: cooldown, idling, stabilizing, stabilized.
    """
    cool_ns = begun_ns + restart.cooldown_ns
    first_ns, complete_ns = max(cool_ns, min(returns_ns)), max(cool_ns, *returns_ns)
    return min(complete_ns, first_ns + restart.rescale_stabilization_ns)


# ---- Progress of a job that restarts: it makes none if it causes each restart itself and always returns to the same checkpoint.
#
# Flink restarts such a job for ever, as its strategy has no end.  Causes may take turns: a checkpoint expires here, a
# request there.  The caller decides which causes are the job's own, and what counts as progress.

MIN_RESTARTS = 5
"""Restarts in a row that are no accident."""


class Restarted(NamedTuple):
    """A restart of the job, and the checkpoint that it returned to."""

    failed_ns: int
    checkpoint: int  # 0: from the beginning
    own: bool  # by the job's own doing; faults that others make may end


class RestartLoop(NamedTuple):
    """The latest restarts, if all of them returned to the same checkpoint."""

    times: int
    checkpoint: int


def find_restart_loop(restarts: Sequence[Restarted], progress_ns: int) -> RestartLoop | None:
    """`restarts` in the order of time; `progress_ns`: when a checkpoint was completed, something committed or a fault over at last."""
    row: list[Restarted] = []
    for restart in reversed(restarts):
        if restart.failed_ns <= progress_ns or not restart.own or (row and restart.checkpoint != row[0].checkpoint):
            break
        row.append(restart)
    return RestartLoop(len(row), row[0].checkpoint) if len(row) >= MIN_RESTARTS else None


# ---- The time without slots for the tasks of a killed task manager: a distribution, as the phases of heartbeats are unknown.
#
# Restart strategy, heartbeats and slots are asked in turn, as a run asks them, for each of a grid of their times.

_PHASES_TRIED = 40
"""Times within an interval of heartbeats that are tried, for each of both senders."""
_MEDIAN_DRAW = 1 << 31


class Outage(NamedTuple):
    """The delays that follow the kill of a task manager."""

    ready_ns: int | None  # the tasks have slots; None: the job has failed before
    deployments: int
    missed_ns: int  # the JobMaster misses its heartbeats


def outages(restart: Restart, *, fail_ns: int, restart_ns: int) -> list[Outage]:
    """All outcomes, which are equally likely.  Restart delays are without jitter.

    `fail_ns`: a failure -> it is known; `restart_ns`: a delay is over -> deployment.
    """
    interval_ns = min(restart.heartbeat_interval_ns, restart.heartbeat_timeout_ns)
    phases = [interval_ns * (2 * k + 1) // (2 * _PHASES_TRIED) for k in range(_PHASES_TRIED)]
    return [_outage(restart, interval_ns, both, fail_ns, restart_ns) for both in product(phases, phases)]


def added_ns(restart: Restart, *, fail_ns: int, restart_ns: int) -> tuple[int, int] | None:
    """The least and the most that a lost task manager adds to the recovery from a failing task; None: the job may fail for good."""
    law = [outage.ready_ns for outage in outages(restart, fail_ns=fail_ns, restart_ns=restart_ns)]
    _, attempt = restart_strategy(restart).failed(fail_ns, _MEDIAN_DRAW)
    ready = [ready_ns for ready_ns in law if ready_ns is not None]
    if len(ready) < len(law) or attempt.delay_ns is None:
        return None
    own_ns = fail_ns + attempt.delay_ns + restart_ns
    more_ns = restart.fresh_start_ns - own_ns
    return max(min(ready) + more_ns, 0), max(max(ready) + more_ns, 0)


def _outage(restart: Restart, interval_ns: int, phases: tuple[int, int], fail_ns: int, restart_ns: int) -> Outage:
    """The outage for these phases of heartbeats.  The task manager is killed at time 0."""
    missed_ns, released_ns = (
        Heartbeats(interval_ns, restart.heartbeat_timeout_ns, restart.heartbeat_failures, phase).missed_ns(
            0, silent=False
        )
        for phase in phases
    )
    given_ns = released_ns if restart.provider == "standalone" else 0
    slots = Slots(restart.slot_check_ns).lose(0, LostSlots(missed_ns, given_ns, restart.replacement.mean))
    strategy, deployments = restart_strategy(restart), 0
    now = min(restart.connection_reset_ns, slots.lost[0].gone_ns) + fail_ns
    while True:
        strategy, attempt = strategy.failed(now, _MEDIAN_DRAW)
        if attempt.delay_ns is None:
            return Outage(None, deployments, slots.lost[0].gone_ns)
        now += attempt.delay_ns + restart_ns
        deployments += 1
        deployment = slots.deployment({0}, now)
        if not deployment.unreachable:
            return Outage(deployment.at_ns, deployments, slots.lost[0].gone_ns)
        now = deployment.at_ns + fail_ns


# ---- From a failure to all tasks running again: what is restarted, when, and whether the job fails instead.
#
# One machine per job.  A failure takes its whole regions along; these are cancelled while the restart delay runs, and
# restored when both are over (DefaultScheduler#restartTasksWithDelay).  A failure of tasks that are being restarted
# takes them over into its own restart, which goes back to the same checkpoint.  The job counts as RESTARTING while any
# restart waits: checkpoints are suspended that long.
#
#   RUNNING --TasksFailed--> cancelling and waiting --both over--> initializing, task by task --> RUNNING


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

    Its restart strategy has seen no failure, unless it is the same JobManager that resumes the job with another
    parallelism.
    """

    now: int
    resumes: bool = False


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
    SuspendCheckpoints
    | CancelTasks
    | ArmRestart
    | RestoreTasks
    | ResumeCheckpoints
    | ReportRecovered
    | FailForGood
    | FailStopped
)

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
                after, commands = self._restart_progressed(event, cancelled=True)
            case RestartDelayElapsed():
                after, commands = self._restart_progressed(event, delayed=True)
            case TaskInitialized():
                after, commands = self._initialized(event)
            case JobManagerReturned():
                everything: frozenset[int] = frozenset().union(*self.regions)
                strategy = self.strategy if event.resumes else self.unused
                after, commands = _restarting(replace(self, strategy=strategy), everything, event.now)
        return after, commands

    def _failed(self, event: TasksFailed) -> _Answer:
        """Nothing restarts a job that has made the savepoint it stops with: its output is visible and no checkpoint holds it.

        StopWithSavepointStoppingException, a NonRecoverableError.
        """
        if event.stopped:
            return self, (FailStopped(event.reason),)
        strategy, attempt = self.strategy.failed(event.now, event.draw)
        after: Recovery = replace(self, strategy=strategy)
        if attempt.delay_ns is None:
            suspend = (SuspendCheckpoints(),) if self.status is JobStatus.RUNNING else ()
            return replace(after, status=JobStatus.FAILED, waiting=(), initializing=frozenset()), (
                *suspend,
                FailForGood(event.reason),
            )
        return _restarting(after, restarted_with(event.tasks, self.regions), event.now + attempt.delay_ns)

    def _restart_progressed(
        self, event: TasksCancelled | RestartDelayElapsed, *, cancelled: bool = False, delayed: bool = False
    ) -> _Answer:
        waiting = tuple(
            replace(restart, cancelled=restart.cancelled or cancelled, delayed=restart.delayed or delayed)
            if restart.number == event.restart
            else restart
            for restart in self.waiting
        )
        due = next((restart for restart in waiting if restart.due), None)
        if due is None:
            return replace(self, waiting=waiting), ()  # or a later failure has taken its tasks over
        rest = tuple(restart for restart in waiting if restart is not due)
        after: Recovery = replace(self, waiting=rest, initializing=self.initializing | due.tasks)
        restore = RestoreTasks(due.number, due.tasks)
        if rest:
            return after, (restore,)
        return replace(after, status=JobStatus.RUNNING), (restore, ResumeCheckpoints())

    def _initialized(self, event: TaskInitialized) -> _Answer:
        if event.task not in self.initializing:
            raise InvalidTransition("recovery", self, event, "this task is not being restored")
        after: Recovery = replace(self, initializing=self.initializing - {event.task})
        recovered = not after.initializing and not after.waiting
        return after, ((ReportRecovered(),) if recovered else ())


def _restarting(recovery: Recovery, tasks: frozenset[int], at_ns: int) -> _Answer:
    """Take these tasks out of every restart under way, into one of their own."""
    left = tuple(replace(restart, tasks=restart.tasks - tasks) for restart in recovery.waiting)
    number = recovery.restarts + 1
    after: Recovery = replace(
        recovery,
        status=JobStatus.RESTARTING,
        waiting=(*(restart for restart in left if restart.tasks), PendingRestart(number, tasks)),
        initializing=recovery.initializing - tasks,
        restarts=number,
    )
    suspend = (SuspendCheckpoints(),) if recovery.status is JobStatus.RUNNING else ()
    return after, (*suspend, CancelTasks(number, tasks), ArmRestart(number, at_ns))
