"""Time in storage, and what breaks it: waits that an outage ends early, attempts with a time limit, retries with backoff.

A client tries each request, block or part again (`Retry`) until its attempts are used up; then `StorageFailed` is raised.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import simpy

from sim.model.storage import Retry
from sim.storage.failures import StorageFailed, TimedOut, Transient, Unreachable
from sim.storage.work import Work, go_on

T = TypeVar("T")


class Done(simpy.Event):
    """An event whose waiters go on in the very turn in which it fires, not in a later turn of the same instant."""

    def fire(self) -> None:
        if not self.triggered:
            self._ok, self._value = True, None
            waiters, self.callbacks = self.callbacks, None  # type: ignore[assignment]  # simpy's mark of a processed event
            for waiter in waiters:
                waiter(self)

    def break_off(self, failure: Exception) -> None:
        """A waiter learns of the failure in a turn of its own.  It may be gone by then: a failure without a waiter is no error."""
        if not self.triggered:
            self.fail(failure)
            self.defused = True


class Attempts:
    """The clock of one storage.  All its waiting is done here, so that an outage or a time limit can end it."""

    def __init__(self, env: simpy.Environment, retry: Retry) -> None:
        self.env = env
        self.retry = retry
        self.down_until_ns = 0  # the end of the last outage
        self._pending: dict[Done, None] = {}  # in the order they were begun

    @property
    def now(self) -> int:
        return int(self.env.now)

    def wait(self, delay_ns: int) -> Done:
        """An event `delay_ns` from now, or the end of the attempt."""
        done = self.pending()
        self.env.timeout(delay_ns).callbacks.append(lambda _: self.fire(done))
        return done

    def pending(self) -> Done:
        """An event that the caller, or the next outage, will fire."""
        done = Done(self.env)
        self._pending[done] = None
        return done

    def fire(self, done: Done) -> None:
        self._pending.pop(done, None)
        done.fire()

    def forget(self, done: Done) -> None:
        """Drop an event that will not fire any more."""
        self._pending.pop(done, None)

    def fail_until(self, until_ns: int) -> None:
        """An outage begins: what is under way breaks off now, and nothing is reached before `until_ns`."""
        self.down_until_ns = max(self.down_until_ns, until_ns)
        pending, self._pending = self._pending, {}
        for done in pending:
            done.break_off(Unreachable(f"storage is down until {until_ns / 1e9:g} s"))

    def insist(self, attempt: Callable[[int], Work[T]]) -> Work[T]:
        """Process: `attempt(0)`, and again with the next number after each failure that may pass."""
        for number in range(self.retry.attempts):
            try:
                if self.now < self.down_until_ns:
                    raise Unreachable(f"storage is down until {self.down_until_ns / 1e9:g} s")
                work = attempt(number)
                return (yield from (work if self.retry.timeout_ns is None else self._limited(work, self.retry.timeout_ns)))
            except Transient as failure:
                last = failure
            if number + 1 < self.retry.attempts:
                yield self.env.timeout(min(self.retry.backoff_ns << number, self.retry.most_backoff_ns))
        raise StorageFailed(f"{last} ({self.retry.attempts} attempts)")

    def _limited(self, work: Work[T], limit_ns: int) -> Work[T]:
        """The same process; what it waits for fails when its time is up."""
        awaited: simpy.Event | None = None

        def expire(_: simpy.Event) -> None:
            if isinstance(awaited, Done):
                awaited.break_off(TimedOut(f"no answer within {limit_ns / 1e9:g} s"))

        def wait(event: simpy.Event) -> None:
            nonlocal awaited
            awaited = event

        self.env.timeout(limit_ns).callbacks.append(expire)
        try:
            return (yield from go_on(work, next(work), wait))
        except StopIteration as end:  # the work takes no time
            return end.value  # type: ignore[no-any-return]
        finally:
            awaited = None
