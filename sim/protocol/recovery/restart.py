"""Restart strategies: whether a failure is followed by a restart, and how long after it (RestartBackoffTimeStrategy).

`strategy, attempt = strategy.failed(now, draw)`; each is a value, `restart_strategy` chooses by name.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple, Protocol

from sim.model.faults import Restart
from sim.protocol.machine import changed
from sim.protocol.value_class import value_class


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

    def failed(self, now: int, draw: int) -> tuple[NoRestart, Attempt]:  # noqa: ARG002 -- the strategies share one signature
        return self, Attempt(None)


@value_class
class FixedDelay:
    """A limited number of restarts, each after the same delay (FixedDelayRestartBackoffTimeStrategy)."""

    delay_ns: int
    attempts: int | None  # None: without end
    made: int = 0

    def failed(self, now: int, draw: int) -> tuple[FixedDelay, Attempt]:  # noqa: ARG002 -- the strategies share one signature
        after: FixedDelay = changed(self, made=self.made + 1)
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
        after: ExponentialDelay = changed(self, made=made + 1, next_restart_ns=now + delay_ns)
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

    def failed(self, now: int, draw: int) -> tuple[FailureRate, Attempt]:  # noqa: ARG002 -- the strategies share one signature
        latest = (*self.latest_ns[-self.rate :], now)  # one more than may happen within the interval
        after: FailureRate = changed(self, latest_ns=latest)
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
