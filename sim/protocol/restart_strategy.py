"""Restart strategies, failover regions, and the slots of lost TaskManagers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from fractions import Fraction
from typing import Protocol

from sim.model.faults import Restart
from sim.protocol.machine import value_class

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
    def given_ns(self) -> int:
        """When the ResourceManager can allocate other slots."""
        return max(self.released_ns, self.replaced_ns)


@value_class
class Deployment:
    """The outcome of a deployment: it succeeds, or fails because TaskManagers are unreachable."""

    unreachable: frozenset[int]
    at_ns: int  # when it succeeds or fails


@value_class
class Slots:
    """The slots that are lost and not replaced yet."""

    check_ns: int = 0  # from a request until the ResourceManager allocates slots
    lost: Mapping[int, LostSlots] = field(default_factory=dict)  # by TaskManager

    def lose(self, task_manager: int, slots: LostSlots) -> Slots:
        """Add the slots of a lost TaskManager, which may itself be a replacement."""
        return replace(self, lost={**self.lost, task_manager: slots})

    def for_new_leader(self, now: int) -> Slots:
        """Return the slots as a JobManager elected at `now` knows them: only live TaskManagers register with it."""
        return replace(self, lost={number: slots.for_new_leader(now) for number, slots in self.lost.items()})

    def deployment(self, task_managers: Iterable[int], now: int) -> Deployment:
        """Return the outcome of a deployment at `now` into slots of these TaskManagers."""
        concerned = {number: self.lost[number] for number in task_managers if number in self.lost}
        unreachable = frozenset(number for number, slots in concerned.items() if now < slots.gone_ns)
        if unreachable:
            lost = (concerned[number] for number in unreachable)
            return Deployment(unreachable, min(min(now + slots.refusal_ns, slots.gone_ns) for slots in lost))
        if not concerned:
            return Deployment(unreachable, now)
        return Deployment(frozenset(), max(now + self.check_ns, *(slots.given_ns for slots in concerned.values())))

    def replaced(self, task_managers: Iterable[int]) -> frozenset[int]:
        """Return which of these TaskManagers are new processes that have not run tasks of the job."""
        return frozenset(number for number in task_managers if number in self.lost)

    def deployed(self, task_managers: Iterable[int]) -> Slots:
        """Record that tasks are deployed on these TaskManagers, or on their replacements."""
        left = {number: slots for number, slots in self.lost.items() if number not in set(task_managers)}
        return self if len(left) == len(self.lost) else replace(self, lost=left)
