"""Recovery of a job: restart strategy, failure detection, restart and redeployment."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import field
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import inf
from typing import NamedTuple, Protocol

from sim.model.faults import Restart
from sim.protocol.machine import InvalidTransition, replace, value_class

# ---- Restart strategies, failover regions, and the slots of lost TaskManagers.

# ---- Restart strategies: whether the job restarts after a failure, and after which delay (RestartBackoffTimeStrategy).
#
# A strategy is a value: `strategy, delay_ns = strategy.failed(now, draw)`.


class RestartStrategy(Protocol):
    """A restart strategy, with its history of failures."""

    def failed(self, now: int, draw: int) -> tuple[RestartStrategy, int | None]:
        """Return the strategy after a failure at `now` [ns], and the delay of the restart [ns]; None: the job fails for good.

        `draw` is a random 32-bit integer for the jitter.
        """


@value_class
class NoRestart:
    """No restart (NoRestartBackoffTimeStrategy)."""

    def failed(self, now: int, draw: int) -> tuple[NoRestart, int | None]:
        return self, None


@value_class
class FixedDelay:
    """A limited number of restarts, each after the same delay (FixedDelayRestartBackoffTimeStrategy)."""

    delay_ns: int
    attempts: int | None  # None: unlimited
    made: int = 0

    def failed(self, now: int, draw: int) -> tuple[FixedDelay, int | None]:
        after: FixedDelay = replace(self, made=self.made + 1)
        spent = self.attempts is not None and after.made > self.attempts
        return after, None if spent else self.delay_ns


@value_class
class ExponentialDelay:
    """Restarts after exponentially growing delays (ExponentialDelayRestartBackoffTimeStrategy, FLIP-364).

    Failures that occur while a restart waits are merged into it.
    """

    initial_ns: int
    max_ns: int
    multiplier: Fraction
    jitter: Fraction
    reset_ns: int
    attempts: int | None  # until the reset; None: unlimited
    made: int = 0
    next_restart_ns: int | None = None

    def failed(self, now: int, draw: int) -> tuple[ExponentialDelay, int | None]:
        if self.next_restart_ns is not None and now <= self.next_restart_ns:
            return self, self.next_restart_ns - now
        quiet = self.next_restart_ns is not None and now - self.next_restart_ns >= self.reset_ns
        made = 0 if quiet else self.made
        delay_ns = self._delay_ns(made, draw)
        after: ExponentialDelay = replace(self, made=made + 1, next_restart_ns=now + delay_ns)
        spent = self.attempts is not None and after.made > self.attempts
        return after, None if spent else delay_ns

    def _delay_ns(self, made: int, draw: int) -> int:
        """Return min(initial * multiplier^made, max), plus or minus the jitter."""
        delay = Fraction(self.initial_ns)
        for _ in range(made):
            delay *= self.multiplier
            if delay >= self.max_ns or self.multiplier == 1:
                break
        delay = min(delay, Fraction(self.max_ns))
        spread = delay * self.jitter * (2 * Fraction(draw, 1 << 32) - 1)
        return min(max(round(delay + spread), self.initial_ns), self.max_ns)


@value_class
class FailureRate:
    """Restarts unless more than `rate` failures occur within an interval (FailureRateRestartBackoffTimeStrategy)."""

    delay_ns: int
    rate: int
    interval_ns: int
    latest_ns: tuple[int, ...] = ()  # times of the latest failures, oldest first

    def failed(self, now: int, draw: int) -> tuple[FailureRate, int | None]:
        latest = (*self.latest_ns[-self.rate :], now)  # one more than allowed
        after: FailureRate = replace(self, latest_ns=latest)
        spent = len(latest) > self.rate and now - latest[0] <= self.interval_ns
        return after, None if spent else self.delay_ns


MAKERS: dict[str, Callable[[Restart], RestartStrategy]] = {
    "none": lambda _: NoRestart(),
    "fixed-delay": lambda given: FixedDelay(given.delay_ns, given.attempts),
    "exponential-delay": lambda given: ExponentialDelay(
        given.initial_ns, given.max_ns, given.multiplier, given.jitter, given.reset_ns, given.attempts
    ),
    "failure-rate": lambda given: FailureRate(given.delay_ns, given.rate, given.rate_interval_ns),
}
"""Constructor of each strategy in RESTARTS."""


def restart_strategy(options: Restart) -> RestartStrategy:
    """Create the restart strategy for these options, without failures so far."""
    return MAKERS[options.strategy](options)


# ---- Failover regions: tasks that restart together because they exchange data (RestartPipelinedRegionFailoverStrategy).
#
# A region is a connected component of tasks over pipelined edges, and all edges of a streaming job are pipelined.  An
# all-to-all edge connects all subtasks of its vertices; with pointwise edges (forward, rescale) regions may be smaller.


def regions(tasks: int, exchanges: Iterable[tuple[int, int]]) -> tuple[frozenset[int], ...]:
    """Return the regions of tasks 0 to `tasks` - 1, sorted by their first task.

    `exchanges` are the (upstream task, downstream task) pairs that exchange data.
    """
    leader = list(range(tasks))

    def find(task: int) -> int:
        while leader[task] != task:
            leader[task] = leader[leader[task]]
            task = leader[task]
        return task

    for writer, reader in exchanges:
        first, second = sorted((find(writer), find(reader)))
        leader[second] = first
    members: dict[int, list[int]] = {}
    for task in range(tasks):
        members.setdefault(find(task), []).append(task)
    return tuple(frozenset(group) for _, group in sorted(members.items()))


def tasks_to_restart(failed: Iterable[int], regions_of_job: tuple[frozenset[int], ...]) -> frozenset[int]:
    """Return all tasks of the regions of the failed tasks."""
    return frozenset().union(*(region for region in regions_of_job if not region.isdisjoint(failed)))


# ---- Slots of lost TaskManagers: how long they are in the slot pool, and when others are allocated (DeclarativeSlotPool,
# SlotManager).
#
# A restart deploys into the slots of the JobMaster's pool.  The slots of a lost TaskManager stay in it until the
# JobMaster or the ResourceManager, which notifies it, detects the loss.  A deployment into one fails at once
# (RecipientUnreachableException) and counts as a failure for the restart strategy.  The ResourceManager allocates other
# slots when it knows of the loss, by heartbeats or from its resource provider, and when other slots exist.


@value_class
class LostSlots:
    """The slots of one lost TaskManager."""

    missed_ns: int  # when the JobMaster detects the loss
    released_ns: int  # when the ResourceManager unregisters them
    replaced_ns: int  # when other slots exist
    refusal_ns: int = 0  # time until a deployment into them fails, unless the loss is detected before
    requested_ns: int = -1  # when the ResourceManager requests a replacement from Kubernetes or YARN; -1: it does not

    def for_new_leader(self, now: int) -> LostSlots:
        """Return the slots as a JobManager elected at `now` knows them: the lost TaskManager does not register with it."""
        return replace(self, missed_ns=min(self.missed_ns, now), released_ns=min(self.released_ns, now))

    @property
    def gone_ns(self) -> int:
        """When the slots leave the JobMaster's pool.  A ResourceManager that detects the loss notifies the JobMaster."""
        return min(self.missed_ns, self.released_ns)

    @property
    def offered_ns(self) -> int:
        """When the ResourceManager can allocate other slots."""
        return max(self.released_ns, self.replaced_ns)


@value_class
class Deployment:
    """The outcome of a deployment: it succeeds, or fails because TaskManagers are unreachable or missing."""

    unreachable: frozenset[int]
    at_ns: int  # when it succeeds or fails
    is_lost: bool = False  # whether the JobManager knows of the loss of these TaskManagers, and finds no other slots


@value_class
class Slots:
    """The slots that are lost and not replaced yet."""

    check_ns: int = 0  # from a request until the ResourceManager allocates slots
    timeout_ns: int | None = None  # of a request, and start-up period of a standalone JobManager; None: requests wait
    started_ns: int | None = None  # end of the start-up period; None: the cluster is not standalone
    lost: Mapping[int, LostSlots] = field(default_factory=dict)  # by TaskManager

    @classmethod
    def configured(cls, restart: Restart) -> Slots:
        """Return the slots of a cluster that has run for longer than its start-up period.

        The adaptive scheduler does not request slots but waits for them.
        """
        timeout_ns = None if restart.scheduler == "adaptive" else restart.slot_timeout_ns
        return cls(restart.slot_check_ns, timeout_ns, 0 if restart.provider == "standalone" else None)

    def lose(self, task_manager: int, slots: LostSlots) -> Slots:
        """Add the slots of a lost TaskManager, which may itself be a replacement."""
        return replace(self, lost={**self.lost, task_manager: slots})

    def for_new_leader(self, now: int) -> Slots:
        """Return the slots as a JobManager elected at `now` knows them: only live TaskManagers register with it."""
        started_ns = None if self.started_ns is None else now + (self.timeout_ns or 0)
        lost = {number: slots.for_new_leader(now) for number, slots in self.lost.items()}
        return replace(self, started_ns=started_ns, lost=lost)

    def deployment(self, task_managers: Iterable[int], now: int) -> Deployment:
        """Return the outcome of a deployment at `now` into slots of these TaskManagers."""
        concerned = {number: self.lost[number] for number in task_managers if number in self.lost}
        unreachable = frozenset(number for number, slots in concerned.items() if now < slots.gone_ns)
        if unreachable:
            lost = (concerned[number] for number in unreachable)
            return Deployment(unreachable, min(min(now + slots.refusal_ns, slots.gone_ns) for slots in lost))
        if not concerned:
            return Deployment(unreachable, now)
        missing = {n: ns for n, slots in concerned.items() if slots.offered_ns > (ns := self._fails_ns(slots, now))}
        if missing:
            return Deployment(frozenset(missing), int(min(missing.values())), is_lost=True)
        return Deployment(frozenset(), max(now + self.check_ns, *(slots.offered_ns for slots in concerned.values())))

    def _fails_ns(self, slots: LostSlots, now: int) -> float:
        """Return when a request at `now` for other slots than these lost ones fails; infinity if it waits."""
        if self.timeout_ns is None:
            return inf
        if self.started_ns is None:
            return now + self.timeout_ns
        return max(self.started_ns, max(now, slots.released_ns) + self.check_ns)

    def replaced(self, task_managers: Iterable[int]) -> frozenset[int]:
        """Return which of these TaskManagers are new processes that have not run tasks of the job."""
        return frozenset(number for number in task_managers if number in self.lost)

    def deployed(self, task_managers: Iterable[int]) -> Slots:
        """Record that tasks are deployed on these TaskManagers, or on their replacements."""
        left = {number: slots for number, slots in self.lost.items() if number not in set(task_managers)}
        return self if len(left) == len(self.lost) else replace(self, lost=left)


# ---- Detection of a lost TaskManager by heartbeats (HeartbeatManagerSenderImpl, HeartbeatMonitorImpl).
#
# The JobMaster and the ResourceManager send heartbeats to all TaskManagers, each on its own schedule.  If the process
# is dead, the connection is refused: heartbeats fail at once, and a number of consecutive failures counts as "no longer
# reachable" (FLINK-23209).  If the machine or the network does not respond, the heartbeat times out.


@value_class
class Heartbeats:
    """The heartbeats of one sender, which it sends to all TaskManagers at the same times."""

    interval_ns: int
    timeout_ns: int
    # consecutive failures that count as a loss (heartbeat.rpc-failure-threshold); None: only timeouts count
    failures: int | None
    phase_ns: int = 0  # a time at which heartbeats are sent

    @classmethod
    def configured(cls, restart: Restart, part: int, parts: int) -> Heartbeats:
        """Return the heartbeats of a sender whose phase is this part of an interval."""
        interval_ns = min(restart.heartbeat_interval_ns, restart.heartbeat_timeout_ns)
        phase_ns = interval_ns * part // parts
        return cls(interval_ns, restart.heartbeat_timeout_ns, restart.heartbeat_failures, phase_ns)

    def missed_ns(self, lost_ns: int, *, silent: bool) -> int:
        """Return the time at which the loss of a TaskManager at `lost_ns` is detected [ns].

        `silent` means that the machine or the network does not respond, so that connections are not refused.
        """
        first_ns = lost_ns + (self.phase_ns - lost_ns) % self.interval_ns  # first heartbeat without an answer
        timed_out_ns = max(lost_ns, first_ns - self.interval_ns + self.timeout_ns)
        if silent or self.failures is None:
            return timed_out_ns
        return min(timed_out_ns, first_ns + (self.failures - 1) * self.interval_ns)


CANCEL_CALLS = 4
"""Calls that time out before a task counts as cancelled (the first, and Execution.NUM_CANCEL_CALL_TRIES retries)."""


# ---- The adaptive scheduler runs a job with the available slots (AdaptiveScheduler; FLIP-160, FLIP-291, FLIP-461, FLIP-472).
#
# After a failure the whole job waits for resources.  With all slots it starts at once.  With fewer it waits until their
# number is stable, and starts with reduced parallelism.  When slots return it is rescaled after a cooldown: at once if
# all slots are available, otherwise when their number is stable.  Flink 2.x waits for the next completed checkpoint.
#
#   WaitingForResources --all slots, or stable--> Executing --slots return, and a checkpoint--> Restarting --> Executing


class Start(NamedTuple):
    """The end of WaitingForResources."""

    at_ns: int
    complete: bool  # whether all slots are available


def compute_start(now: int, returns_ns: Collection[int], restart: Restart) -> Start:
    """Return when a job that waits for resources from `now` on starts (WaitingForResources).

    `returns_ns` are the times at which missing slots return.
    """
    complete_ns = max(returns_ns, default=now)
    stable_ns = now + (0 if restart.reactive else restart.stabilization_ns)
    return Start(max(now, complete_ns), complete=True) if complete_ns <= stable_ns else Start(stable_ns, complete=False)


def compute_rescale_ns(begun_ns: int, returns_ns: Collection[int], restart: Restart) -> int:
    """Return the time from which a job may be rescaled [ns].

    `begun_ns` is the start of Executing; `returns_ns` are the times at which missing slots return.

    Source: DefaultStateTransitionManager (cooldown, idling, stabilizing, stabilized).
    """
    cool_ns = begun_ns + restart.cooldown_ns
    first_ns, complete_ns = max(cool_ns, min(returns_ns)), max(cool_ns, *returns_ns)
    return min(complete_ns, first_ns + restart.rescale_stabilization_ns)


# ---- The time for which the tasks of a killed TaskManager have no slots: a distribution, because heartbeat phases are unknown.
#
# For each pair of phases on a grid, the restart strategy, heartbeats and slots are evaluated as in a simulated run.

_PHASES_TRIED = 40
"""Phases tried within a heartbeat interval, for each of the two senders."""
_MEDIAN_DRAW = 1 << 31


class Outage(NamedTuple):
    """The delays after a TaskManager is killed [ns after the kill]."""

    ready_ns: int | None  # when the tasks have slots; None: the job fails for good
    deployments: int
    missed_ns: int  # when the JobMaster detects the loss


@lru_cache(maxsize=256)
def outages(restart: Restart, *, fail_ns: int, restart_ns: int) -> tuple[Outage, ...]:
    """Return the outcomes for all heartbeat phases on a grid.  They are equally likely; restart delays have no jitter.

    `fail_ns` is the time from a failure until the JobManager handles it; `restart_ns` is the time from the end of the
    restart delay to the deployment.
    """
    senders = (Heartbeats.configured(restart, 2 * k + 1, 2 * _PHASES_TRIED) for k in range(_PHASES_TRIED))
    missed_ns = [sender.missed_ns(0, silent=False) for sender in senders]
    return tuple(_outage(restart, both, fail_ns, restart_ns) for both in product(missed_ns, missed_ns))


def _outage(restart: Restart, both_ns: tuple[int, int], fail_ns: int, restart_ns: int) -> Outage:
    """Return the outage if JobMaster and ResourceManager miss the TaskManager at these times.  It is killed at time 0."""
    missed_ns, released_ns = both_ns
    unregistered_ns = released_ns if restart.provider == "standalone" else 0
    slots = Slots.configured(restart).lose(0, LostSlots(missed_ns, unregistered_ns, restart.replacement.mean))
    if restart.strategy == "fixed-delay" and restart.attempts is None:
        slots = replace(slots, timeout_ns=None)  # thousands of attempts may fail, and only the last delay matters
    strategy, deployments = restart_strategy(restart), 0
    now = min(restart.connection_reset_ns, slots.lost[0].gone_ns) + fail_ns
    while True:
        strategy, delay_ns = strategy.failed(now, _MEDIAN_DRAW)
        if delay_ns is None:
            return Outage(None, deployments, slots.lost[0].gone_ns)
        now += delay_ns + restart_ns
        deployments += 1
        deployment = slots.deployment({0}, now)
        if not deployment.unreachable:
            return Outage(deployment.at_ns, deployments, slots.lost[0].gone_ns)
        now = deployment.at_ns + fail_ns


# ---- The recovery machine of a job: which tasks restart, when, and whether the job fails instead.
#
# A failure restarts all tasks of its regions.  They are cancelled during the restart delay, and restored when both are
# over (DefaultScheduler#restartTasksWithDelay).  If restarting tasks fail again, a new restart, from the same
# checkpoint, includes them.  The job is RESTARTING, and checkpoints are suspended, while any restart waits.
#
#   RUNNING --TasksFailed--> cancelling and waiting --both over--> initializing, task by task --> RUNNING


class JobStatus(Enum):
    """JobStatus, with Flink's names.  RUNNING: all tasks are deployed, but some may still initialize."""

    RUNNING = "RUNNING"
    RESTARTING = "RESTARTING"  # a restart waits for cancelled tasks or for its delay
    FAILED = "FAILED"  # not restarted any more


# ---------------------------------------------------------------------------------------------- events


@value_class
class TasksFailed:
    """The JobManager is notified that these tasks have failed.  `draw`: a random 32-bit integer, for the jitter."""

    now: int
    tasks: frozenset[int]
    reason: str
    draw: int = 0
    stopped: bool = False  # the job's stop-with-savepoint has completed its savepoint


@value_class
class TasksCancelled:
    """Answer to CancelTasks: all tasks have stopped."""

    now: int
    restart: int


@value_class
class RestartDelayElapsed:
    """The timer of ArmRestart has fired."""

    now: int
    restart: int


@value_class
class TaskInitialized:
    """A restored task is RUNNING: its state is downloaded and its recovered input is read."""

    now: int
    task: int


@value_class
class JobManagerReturned:
    """A JobManager takes over and restarts all tasks without delay.  It knows only the completed checkpoints.

    `resumes` means that the same JobManager restarts the job with another parallelism, and keeps the counts of its
    restart strategy.
    """

    now: int
    resumes: bool = False


RecoveryEvent = TasksFailed | TasksCancelled | RestartDelayElapsed | TaskInitialized | JobManagerReturned

# ---------------------------------------------------------------------------------------------- commands


@value_class
class SuspendCheckpoints:
    """Stop the coordinator's scheduler, which aborts pending checkpoints: the job is no longer RUNNING."""


@value_class
class CancelTasks:
    """Cancel these tasks; answer TasksCancelled."""

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
    """Start the coordinator's scheduler: the job is RUNNING again.  Triggers are refused while tasks initialize."""


@value_class
class ReportRecovered:
    """All tasks are running again."""


@value_class
class FailForGood:
    """Fail the job: the restart strategy allows no further restart."""

    reason: str


@value_class
class FailStopped:
    """Fail a job that failed after its stop-with-savepoint had completed: it neither restarts nor finishes."""

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
        """Whether the tasks can be restored now: all are cancelled, and the delay is over."""
        return self.cancelled and self.delayed


@value_class
class Recovery:
    """The recovery machine of one job."""

    strategy: RestartStrategy
    initial_strategy: RestartStrategy  # of a new JobManager
    regions: tuple[frozenset[int], ...]
    status: JobStatus = JobStatus.RUNNING
    waiting: tuple[PendingRestart, ...] = ()
    initializing: frozenset[int] = frozenset()
    restarts: int = 0  # number of the latest restart

    @classmethod
    def configured(cls, options: Restart, regions: tuple[frozenset[int], ...]) -> Recovery:
        """Create the machine.  With failover strategy `full` or the adaptive scheduler, all `regions` fail together."""
        if options.restarts_all:
            regions = (frozenset().union(*regions),)
        strategy = restart_strategy(options)
        return cls(strategy, strategy, regions)

    def on(self, event: RecoveryEvent) -> _Answer:
        """Return the next machine and its commands.  A failed job ignores all events."""
        if self.status is JobStatus.FAILED:
            return self, ()
        match event:
            case TasksFailed():
                return self._failed(event)
            case TasksCancelled():
                return self._restart_progressed(event, cancelled=True)
            case RestartDelayElapsed():
                return self._restart_progressed(event, delayed=True)
            case TaskInitialized():
                return self._initialized(event)
            case JobManagerReturned():
                strategy = self.strategy if event.resumes else self.initial_strategy
                anew: Recovery = replace(self, strategy=strategy, waiting=())
                return _begin_restart(anew, frozenset().union(*self.regions), event.now)

    def _failed(self, event: TasksFailed) -> _Answer:
        """Restart the regions of the failed tasks, unless the job fails for good.

        A task that is being cancelled for a restart, or was, cannot fail any more: the restart strategy does not count it
        (Execution#processFail).

        A job is not restarted after its stop-with-savepoint has completed: its output is visible, but in no checkpoint
        (StopWithSavepointStoppingException, a NonRecoverableError).
        """
        if event.stopped:
            return self, (FailStopped(event.reason),)
        failed = event.tasks.difference(*(restart.tasks for restart in self.waiting))
        if not failed:
            return self, ()
        strategy, delay_ns = self.strategy.failed(event.now, event.draw)
        after: Recovery = replace(self, strategy=strategy)
        if delay_ns is None:
            suspend = (SuspendCheckpoints(),) if self.status is JobStatus.RUNNING else ()
            return replace(after, status=JobStatus.FAILED, waiting=(), initializing=frozenset()), (
                *suspend,
                FailForGood(event.reason),
            )
        return _begin_restart(after, tasks_to_restart(failed, self.regions), event.now + delay_ns)

    def _restart_progressed(
        self, event: TasksCancelled | RestartDelayElapsed, *, cancelled: bool = False, delayed: bool = False
    ) -> _Answer:
        """Record that the tasks of a restart are cancelled or its delay is over.  Restore the tasks when both are true."""
        waiting = tuple(
            replace(restart, cancelled=restart.cancelled or cancelled, delayed=restart.delayed or delayed)
            if restart.number == event.restart
            else restart
            for restart in self.waiting
        )
        due = next((restart for restart in waiting if restart.due), None)
        if due is None:
            return replace(self, waiting=waiting), ()  # not due yet, or a later failure has taken over its tasks
        rest = tuple(restart for restart in waiting if restart is not due)
        after: Recovery = replace(self, waiting=rest, initializing=self.initializing | due.tasks)
        restore = RestoreTasks(due.number, due.tasks)
        if rest:
            return after, (restore,)
        return replace(after, status=JobStatus.RUNNING), (restore, ResumeCheckpoints())

    def _initialized(self, event: TaskInitialized) -> _Answer:
        """Record that a restored task is RUNNING.  After the last one, report the recovery."""
        if event.task not in self.initializing:
            raise InvalidTransition(self, event, "the task is not being restored")
        after: Recovery = replace(self, initializing=self.initializing - {event.task})
        recovered = not after.initializing and not after.waiting
        return after, ((ReportRecovered(),) if recovered else ())


def _begin_restart(recovery: Recovery, tasks: frozenset[int], at_ns: int) -> _Answer:
    """Begin a restart of these tasks, none of which another restart waits for."""
    number = recovery.restarts + 1
    after: Recovery = replace(
        recovery,
        status=JobStatus.RESTARTING,
        waiting=(*recovery.waiting, PendingRestart(number, tasks)),
        initializing=recovery.initializing - tasks,
        restarts=number,
    )
    suspend = (SuspendCheckpoints(),) if recovery.status is JobStatus.RUNNING else ()
    return after, (*suspend, CancelTasks(number, tasks), ArmRestart(number, at_ns))
