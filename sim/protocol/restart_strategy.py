"""Restarts: strategies, regions to restart, slots."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from fractions import Fraction
from typing import NamedTuple, Protocol

from sim.model.faults import Restart
from sim.protocol.machine import value_class

# ---- Restart strategies: whether a failure is followed by a restart, and how long after it (RestartBackoffTimeStrategy).
#
# `strategy, attempt = strategy.failed(now, draw)`; each is a value, `restart_strategy` chooses by name.


class Attempt(NamedTuple):
    """The answer of a restart strategy to a failure."""

    delay_ns: int | None  # None: the job has failed for good
    merged: bool = False  # no attempt of its own: a restart was on its way already


class RestartStrategy(Protocol):
    """A restart strategy, with the failures that it has seen."""

    def failed(self, now: int, draw: int) -> tuple[RestartStrategy, Attempt]:
        """A failure at `now` [ns]; `draw` is uniform on 32 bits."""


@value_class
class NoRestart:
    """No restart: the first failure ends the job (NoRestartBackoffTimeStrategy)."""

    def failed(self, now: int, draw: int) -> tuple[NoRestart, Attempt]:
        return self, Attempt(None)


@value_class
class FixedDelay:
    """A limited number of restarts, each after the same delay (FixedDelayRestartBackoffTimeStrategy)."""

    delay_ns: int
    attempts: int | None  # None: without end
    made: int = 0

    def failed(self, now: int, draw: int) -> tuple[FixedDelay, Attempt]:
        after: FixedDelay = replace(self, made=self.made + 1)
        spent = self.attempts is not None and after.made > self.attempts
        return after, Attempt(None if spent else self.delay_ns)


@value_class
class ExponentialDelay:
    """Restarts after delays that grow (ExponentialDelayRestartBackoffTimeStrategy, FLIP-364).

    Failures before the restart that they would cause are merged into it.
    """

    initial_ns: int
    max_ns: int
    multiplier: Fraction
    jitter: Fraction
    reset_ns: int
    attempts: int | None  # before the reset; None: without end
    made: int = 0
    next_restart_ns: int | None = None

    def failed(self, now: int, draw: int) -> tuple[ExponentialDelay, Attempt]:
        if self.next_restart_ns is not None and now <= self.next_restart_ns:
            return self, Attempt(self.next_restart_ns - now, merged=True)
        quiet = self.next_restart_ns is not None and now - self.next_restart_ns >= self.reset_ns
        made = 0 if quiet else self.made
        delay_ns = self._delay_ns(made, draw)
        after: ExponentialDelay = replace(self, made=made + 1, next_restart_ns=now + delay_ns)
        spent = self.attempts is not None and after.made > self.attempts
        return after, Attempt(None if spent else delay_ns)

    def _delay_ns(self, made: int, draw: int) -> int:
        """initial * multiplier^made, at most max, give or take the jitter."""
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
    """Restarts until too many failures lie within an interval (FailureRateRestartBackoffTimeStrategy)."""

    delay_ns: int
    rate: int
    interval_ns: int
    latest_ns: tuple[int, ...] = ()  # failures, oldest first

    def failed(self, now: int, draw: int) -> tuple[FailureRate, Attempt]:
        latest = (*self.latest_ns[-self.rate :], now)  # one more than may happen within the interval
        after: FailureRate = replace(self, latest_ns=latest)
        spent = len(latest) > self.rate and now - latest[0] <= self.interval_ns
        return after, Attempt(None if spent else self.delay_ns)


MAKERS: dict[str, Callable[[Restart], RestartStrategy]] = {
    "none": lambda _: NoRestart(),
    "fixed-delay": lambda given: FixedDelay(given.delay_ns, given.attempts),
    "exponential-delay": lambda given: ExponentialDelay(
        given.initial_ns, given.max_ns, given.multiplier, given.jitter, given.reset_ns, given.attempts
    ),
    "failure-rate": lambda given: FailureRate(given.delay_ns, given.rate, given.rate_interval_ns),
}
"""One for each name of RESTARTS."""


def restart_strategy(options: Restart) -> RestartStrategy:
    return MAKERS[options.strategy](options)


# ---- Failover regions: tasks that fail together because they exchange data (RestartPipelinedRegionFailoverStrategy).
#
# A region is a connected component over pipelined edges, task by task: one all-to-all edge joins all subtasks of its
# two vertices, pointwise edges (forward, rescale) leave slices apart.  All edges of a streaming job are pipelined, so
# no region consumes another.


def regions(tasks: int, exchanges: Iterable[tuple[int, int]]) -> tuple[frozenset[int], ...]:
    """The regions of a job of so many tasks, by their first task; `exchanges` are (writing task, reading task)."""
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


def restarted_with(failed: Iterable[int], of: tuple[frozenset[int], ...]) -> frozenset[int]:
    """Everything that restarts when these tasks fail."""
    tasks = frozenset(failed)
    return frozenset().union(*(region for region in of if region & tasks))


# ---- Slots of lost task managers: how long JobMaster and ResourceManager count them, and their replacement (DeclarativeSlotPool,
# SlotManager).
#
# A restart deploys into the slots that the JobMaster has.  Those of a lost task manager are among them until its
# heartbeats are missed.  A deployment into one fails at once (RecipientUnreachableException), and the restart strategy
# counts it.  Only then others are asked for.  Their heartbeats are missed by the JobMaster itself, or by the
# ResourceManager, which then tells it.  The ResourceManager gives others when it has missed the task manager too, or
# its provider has told it so, and there are some.


@value_class
class LostSlots:
    """The slots of one lost task manager."""

    missed_ns: int  # the JobMaster misses their heartbeats
    released_ns: int  # the ResourceManager does not count them any more
    replaced_ns: int  # there are others
    refusal_ns: int = 0  # a deployment into them fails after so long, if they are not missed before

    def known(self, now: int) -> LostSlots:
        """The slots as a new component sees them, which knows the live task managers."""
        return replace(self, missed_ns=min(self.missed_ns, now), released_ns=min(self.released_ns, now))

    @property
    def gone_ns(self) -> int:
        """The JobMaster does not deploy into them any more: a ResourceManager that closes its connection to them tells it so."""
        return min(self.missed_ns, self.released_ns)

    @property
    def given_ns(self) -> int:
        """When the ResourceManager gives others, once it is asked."""
        return max(self.released_ns, self.replaced_ns)


@value_class
class Deployment:
    """The outcome of a deployment: all slots are there, or task managers that are `unreachable` fail it."""

    unreachable: frozenset[int]
    at_ns: int  # either of both


@value_class
class Slots:
    """The slots that were lost, until tasks are deployed into others in their place."""

    check_ns: int = 0  # a request -> slots are looked for
    lost: Mapping[int, LostSlots] = field(default_factory=dict)  # by number of the task manager

    def lose(self, task_manager: int, slots: LostSlots) -> Slots:
        """A task manager is lost, perhaps one that has replaced another."""
        return replace(self, lost={**self.lost, task_manager: slots})

    def known(self, now: int) -> Slots:
        """The slots that another JobManager knows: only task managers that live report to it."""
        lost = self.lost.items()
        return replace(self, lost={number: slots.known(now) for number, slots in lost})

    def deployment(self, task_managers: Iterable[int], now: int) -> Deployment:
        """The outcome of deploying tasks whose slots are on these task managers."""
        concerned = {number: self.lost[number] for number in task_managers if number in self.lost}
        unreachable = frozenset(number for number, slots in concerned.items() if now < slots.gone_ns)
        if unreachable:
            lost = (concerned[number] for number in unreachable)
            return Deployment(unreachable, min(min(now + slots.refusal_ns, slots.gone_ns) for slots in lost))
        if not concerned:
            return Deployment(unreachable, now)
        return Deployment(frozenset(), max(now + self.check_ns, *(slots.given_ns for slots in concerned.values())))

    def replaced(self, task_managers: Iterable[int]) -> frozenset[int]:
        """The task managers, among these, that are new processes and ran nothing of the job yet."""
        return frozenset(number for number in task_managers if number in self.lost)

    def deployed(self, task_managers: Iterable[int]) -> Slots:
        """Tasks are deployed on these, or on what replaces them."""
        left = {number: slots for number, slots in self.lost.items() if number not in set(task_managers)}
        return self if len(left) == len(self.lost) else replace(self, lost=left)
