"""The clock of a simulation, and work in the background."""

# Two queues decide what happens next, and `TwoPlaneEnvironment.step` merges them:
#
#   control plane: SimPy's heap `_queue`          data plane: the tree of events in sim/plane/text/basics.py
#   (time, priority, place, entry)                time << shift | rank: one leaf per task, line and timer
#
#   entry           what `step` does with it
#   simpy.Event     SimPy's own `step`: run the callbacks
#   _Call           call the action once                           (call_in)
#   _Repetition     call the action, queue the next period         (call_every)
#   _Looks          the data plane advances through several        (look_every)
#                   look times in one call, up to the next entry
#                   or a notice
#
#   step:  t = time of the first entry
#          plane.advance(t) runs data events before t ---> notice at n:  now = n, on_notice, ask again
#                                                     ---> QUIET:        take the entry at t
#
# `on_notice` may queue entries before t.  They run first, because the head of the heap is read again.
#
# `place` is SimPy's event counter: entries of equal time and priority run in the order in which they were
# queued.  The three tuples take a place like an event does, so the order is that of the processes and
# timeouts they replace.  `_Round` keeps its place while it is queued again.
#
# Records and buffers are never SimPy events: the idiomatic SimPy model is 65 to 184 times slower than the
# kernel (docs/performance.md).  Work that takes no time is not a process either: of 18 events per task and
# checkpoint 3 remained (commit e34d3b8e).  Samples look at the tasks five times per second; one call of the
# plane for several looks and copying positions inside the kernel reduced the CPU time of a simulated day to
# 0.93 (commit eef4e51d).

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush
from typing import Any, NamedTuple, TypeVar

import numpy as np
import simpy

from sim.plane.interface import DataPlane, Notice, NoticeKind
from sim.storage.ledger import StorageFailed
from sim.storage.requests import Work, resume_work

# ---- One clock for two planes: a SimPy environment that lets the data plane catch up before each control event.
#
# Control events due at t run before data events at t; a notice suspends the data plane until nothing more is due at t
# (rule E3 of ``sim/plane/RULES.md``).  Time is integer nanoseconds: a float delay is a TypeError.

END_OF_TIME_NS = 1 << 61
"""Later than any run [ns]: so far the data plane goes on when no control event is scheduled."""
NO_INTEGER = "a delay is an integer number of nanoseconds, not {!r}"


class TwoPlaneEnvironment(simpy.Environment):
    """A SimPy environment with a data plane.

    `on_notice` is called at the notice's time; what it schedules runs before the data plane goes on.
    """

    def __init__(self, plane: DataPlane, on_notice: Callable[[Notice], None], begin_ns: int = 0) -> None:
        super().__init__(initial_time=begin_ns)
        self.plane = plane
        self.on_notice = on_notice

    @property
    def now(self) -> int:
        """Simulated time [ns]."""
        return self._now  # type: ignore[return-value]  # `schedule` takes integers only

    def step(self) -> None:
        """Let the data plane catch up with the next control event, then process that event."""
        queue, advance = self._queue, self.plane.advance
        if queue and type(queue[0][3]) is _Looks:  # type: ignore[comparison-overlap]  # no event
            self._look()
            return
        while (notice := advance(queue[0][0] if queue else END_OF_TIME_NS)).kind is not NoticeKind.QUIET:  # type: ignore[arg-type]  # integers
            self._now = notice.time
            self.on_notice(notice)
        kind = type(queue[0][3]) if queue else None
        if kind is _Call:  # type: ignore[comparison-overlap]  # no event
            self._now, _, _, call = heappop(queue)
            call.action()  # type: ignore[attr-defined]
        elif kind is _Repetition:  # type: ignore[comparison-overlap]
            self._repeat()
        else:
            super().step()

    def call_in(self, delay_ns: int, action: Callable[[], None]) -> None:
        """Have `action` called `delay_ns` from now; at once in this event's turn if the delay is 0."""
        if delay_ns == 0:
            action()
        elif delay_ns < 0:
            raise ValueError(f"a delay is not below 0: {delay_ns} ns")
        else:
            self._enter(delay_ns, _Call(action))

    def call_each_in(self, delay_ns: int, actions: Iterable[Callable[[], bool]]) -> None:
        """`call_in` for each of many.  An action that does nothing returns False and needs no turn of its own.

        The order is that of an event for each.
        """
        if delay_ns:
            _Round(self, delay_ns, actions)
        else:
            for action in actions:
                action()

    def call_every(self, period_ns: int, action: Callable[[], None]) -> None:
        """Have `action` called once per period until the end, first in one period from now.

        The order is that of a process which waits for a timeout of one period after the other.
        """
        self._queue_next(_Repetition(period_ns, action))

    def look_every(
        self, period_ns: int, look: Callable[[Sequence[int], np.ndarray], None], left: Callable[[], int]
    ) -> None:
        """`call_every` for a look at the records that each task has served: `look` gets times and rows of several at once.

        `left`: so many more looks may be told together.
        """
        self._queue_next(_Looks(period_ns, look, left))

    def _look(self) -> None:
        """The next entries of the queue are looks.  The data plane takes all that come before another event, up to a notice."""
        queue = self._queue
        first, _, _, looks = queue[0]
        # it is a heap
        following = min(queue[1][0], queue[2 if len(queue) > 2 else 1][0]) if len(queue) > 1 else END_OF_TIME_NS
        times = min(looks.left(), max(1, -(-(following - first) // looks.period_ns)))  # type: ignore[attr-defined]  # no event
        rows, notice = self.plane.look(first, looks.period_ns, times)  # type: ignore[arg-type, attr-defined]
        if len(rows):
            heappop(queue)
            seen = range(first, first + len(rows) * looks.period_ns, looks.period_ns)  # type: ignore[arg-type, attr-defined]
            self._now = seen[-1]
            looks.look(seen, rows)  # type: ignore[attr-defined]
            self._queue_next(looks)  # type: ignore[arg-type]
        if notice.kind is not NoticeKind.QUIET:
            self._now = notice.time
            self.on_notice(notice)

    def _repeat(self) -> None:
        """The next entry of the queue is an action that is repeated."""
        self._now, _, _, repetition = heappop(self._queue)
        repetition.action()  # type: ignore[attr-defined]  # no event
        self._queue_next(repetition)  # type: ignore[arg-type]

    def _queue_next(self, repetition: _Repetition | _Looks) -> None:
        self._enter(repetition.period_ns, repetition)

    def _enter(self, delay_ns: int, entry: _Call | _Repetition | _Looks) -> None:
        """Into the queue, as an event would be."""
        if not isinstance(delay_ns, int):
            raise TypeError(NO_INTEGER.format(delay_ns))
        heappush(self._queue, (self._now + delay_ns, simpy.events.NORMAL, next(self._eid), entry))  # type: ignore[misc]

    def next_place(self) -> int:
        """A place in the queue, behind all events that are scheduled."""
        return next(self._eid)

    def queue(self, event: simpy.Event, at_ns: int, place: int) -> None:
        """`schedule` for an event that has its place."""
        heappush(self._queue, (at_ns, simpy.events.NORMAL, place, event))

    def schedule(self, event: Any, priority: Any = simpy.events.NORMAL, delay: float = 0) -> None:
        if not isinstance(delay, int):
            raise TypeError(NO_INTEGER.format(delay))
        super().schedule(event, priority, delay)


class _Round(simpy.Event):
    """Actions of the same time.  After each that did something the event goes back to its old place in the queue."""

    def __init__(self, env: TwoPlaneEnvironment, delay_ns: int, actions: Iterable[Callable[[], bool]]) -> None:
        super().__init__(env)
        self._ok, self._value = True, None
        self._remaining = iter(actions)
        self._clock, self._place = env, env.next_place()
        self._queue(env.now + delay_ns)

    def _queue(self, at_ns: int) -> None:
        self.callbacks = [self._go_on]
        self._clock.queue(self, at_ns, self._place)

    def _go_on(self, _: simpy.Event) -> None:
        if any(action() for action in self._remaining):
            self._queue(self._clock.now)


class _Call(NamedTuple):
    """What stands in the queue for an action.  No other component waits for it, so it needs nothing of an event."""

    action: Callable[[], None]


class _Repetition(NamedTuple):
    """What stands in the queue for an action that is repeated."""

    period_ns: int
    action: Callable[[], None]


class _Looks(NamedTuple):
    """What stands in the queue for looks at the data plane."""

    period_ns: int
    look: Callable[[Sequence[int], np.ndarray], None]
    left: Callable[[], int]


# ---- Work that runs beside everything else and calls back: begun in the caller's turn, a process only if it takes time.

T = TypeVar("T")


def begin(
    env: simpy.Environment,
    work: Work[T],
    done: Callable[[T], None],
    failed: Callable[[StorageFailed], None] | None = None,
) -> simpy.Process | None:
    """Do the work, then call `done` with what it returns, or `failed` if storage gave up (None: a failure has no consequence).

    Returns the process, which may be interrupted (then neither is called), or None if all is over already.
    """
    try:
        awaited = next(work)
    except StopIteration as end:
        done(end.value)
        return None
    except StorageFailed as failure:
        if failed is not None:
            failed(failure)
        return None
    return env.process(_to_its_end(resume_work(work, awaited), done, failed))


def _to_its_end(work: Work[T], done: Callable[[T], None], failed: Callable[[StorageFailed], None] | None) -> Work[None]:
    try:
        value = yield from work
    except simpy.Interrupt:
        return
    except StorageFailed as failure:
        if failed is not None:
            failed(failure)
        return
    done(value)
