"""The clock of a simulation, which merges the events of both planes, and background work."""

# Two queues decide what happens next, and `TwoPlaneEnvironment.step` merges them:
#
#   control plane: the heap `_entries`             data plane: the tree of events in sim/plane/text/basics.py
#   (time, priority, place, entry)                time << shift | rank: one leaf per task, line and timer
#
#   entry           what `step` does with it
#   simpy.Event     run its callbacks, as SimPy does
#   _Call           call the action once                           (call_in)
#   _Round          call the actions up to one that did something  (call_each_in)
#   _Polls          the data plane advances through several        (poll_every)
#                   look times in one call, up to the next entry
#                   or a notice
#
#   step:  t = time of the first entry
#          plane.advance(t) runs data events before t ---> notice at n:  now = n, on_notice, ask again
#                                                     ---> REACHED_TIME: take the entry at t
#
# `on_notice` may queue entries before t.  They run first, because the head of the heap is read again.
#
# `place` counts entries, as SimPy does: those of equal time and priority run in the order in which they were
# queued.  The tuples take a place like an event does, so the order is that of the processes and
# timeouts they replace.  `_Round` keeps its place while it is queued again.  SimPy is used for processes, events
# and conditions; its own heap stays empty.
#
# Records and buffers are never SimPy events: the idiomatic SimPy model is 65 to 184 times slower than the
# kernel (docs/performance.md).  Work that takes no time is not a process either: of 18 events per task and
# checkpoint 3 remained (commit e34d3b8e).  Samples look at the tasks five times per second; one call of the
# plane for several looks and copying positions inside the kernel reduced the CPU time of a simulated day to
# 0.93 (commit eef4e51d).

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
import simpy

from sim.plane.interface import Notice, NoticeKind
from sim.storage.ledger import StorageFailed
from sim.storage.requests import Work, resume_work

if TYPE_CHECKING:
    from sim.plane.kernel import KernelPlane

# ---- One clock for two planes: a SimPy environment that advances the data plane before each control event.
#
# Control events due at t run before data events at t; a notice suspends the data plane until nothing more is due at t
# (rule E3 of ``sim/plane/RULES.md``).  Time is integer nanoseconds: a float delay is a TypeError.

END_OF_TIME_NS = 1 << 61
"""Later than the end of any run [ns].  The data plane advances up to it when no control event is scheduled."""
_BEFORE_ALL = -1
"""A priority before `simpy.events.URGENT`."""
NO_INTEGER = "a delay is an integer number of nanoseconds, not {!r}"


class TwoPlaneEnvironment(simpy.Environment):
    """A SimPy environment with a data plane and another event queue.  SimPy provides processes, events and conditions.

    `on_notice` is called at the time of the notice; events that it schedules run before the data plane advances.
    """

    def __init__(self, plane: KernelPlane, on_notice: Callable[[Notice], None], begin_ns: int = 0) -> None:
        super().__init__()
        self.plane = plane
        self.on_notice = on_notice
        self._time_ns = begin_ns
        self._entries: list[tuple[int, int, int, _Entry]] = []  # a heap of (time, priority, place, entry)
        self._places = count()

    @property
    def now(self) -> int:
        """Simulated time [ns]."""
        return self._time_ns

    def peek(self) -> float:
        """Return the time of the next entry [ns], or infinity."""
        return self._entries[0][0] if self._entries else simpy.core.Infinity

    def step(self) -> None:
        """Let the data plane catch up with the next control event, then process that event.

        Raises:
            simpy.core.EmptySchedule: nothing is scheduled.
        """
        entries, advance = self._entries, self.plane.advance
        if entries and isinstance(looks := entries[0][3], _Polls):
            self._look(entries[0][0], looks)
            return
        while (notice := advance(entries[0][0] if entries else END_OF_TIME_NS)).kind is not NoticeKind.REACHED_TIME:
            self._time_ns = notice.time
            self.on_notice(notice)
        if not entries:
            raise simpy.core.EmptySchedule
        self._time_ns, _, _, entry = heappop(entries)
        if isinstance(entry, _Call):
            entry.action()
        elif isinstance(entry, _Round):
            if any(action() for action in entry.remaining):
                self._enter_round(self._time_ns, entry)
        else:
            assert isinstance(entry, simpy.Event), "only `poll_every`, before the run, makes looks the first entry"
            self._run_callbacks(entry)

    def _run_callbacks(self, event: simpy.Event) -> None:
        """Run the callbacks of an event, as `simpy.Environment.step` does."""
        callbacks, event.callbacks = event.callbacks or [], None  # type: ignore[assignment]  # SimPy: None when it is processed
        for number, callback in enumerate(callbacks, 1):
            try:
                callback(event)
            except simpy.core.StopSimulation:
                event.callbacks = callbacks[number:]  # they run when the simulation resumes
                self.schedule(event, _BEFORE_ALL)
                raise
        if not event.ok and not event.defused:
            assert isinstance(event.value, BaseException)
            raise event.value

    def call_in(self, delay_ns: int, action: Callable[[], None]) -> None:
        """Call `action` after `delay_ns`, or at once if it is 0."""
        if delay_ns == 0:
            action()
        elif delay_ns < 0:
            raise ValueError(f"a delay must not be negative: {delay_ns} ns")
        else:
            self._enter(delay_ns, _Call(action))

    def call_at(self, at_ns: int, action: Callable[[], None]) -> None:
        """Call `action` at this time, which is not over."""
        self.call_in(at_ns - self._time_ns, action)

    def call_each_in(self, delay_ns: int, actions: Iterable[Callable[[], bool]]) -> None:
        """Call all actions after a delay.  An action that does nothing returns False, and the next one follows at once.

        The order is the same as with `call_in` for each action.
        """
        if delay_ns:
            self._enter_round(self._time_ns + delay_ns, _Round(iter(actions), next(self._places)))
        else:
            for action in actions:
                action()

    def poll_every(
        self, period_ns: int, look: Callable[[Sequence[int], np.ndarray], None], left: Callable[[], int]
    ) -> None:
        """Sample the number of records served by each task once per period, for the first time after one period.

        `look(times, rows)` is called with one row per time; a call has the samples of one or more periods.  `left` returns
        the maximum number of periods for the next call.
        """
        self._enter(period_ns, _Polls(period_ns, look, left))

    def _look(self, first_ns: int, looks: _Polls) -> None:
        """Process an entry of `poll_every`.  One call of the data plane takes all samples before the next other entry or a notice."""
        following_ns = min((entry[0] for entry in self._entries[1:3]), default=END_OF_TIME_NS)  # children of the root
        times = min(looks.left(), max(1, -(-(following_ns - first_ns) // looks.period_ns)))
        rows, notice = self.plane.sample_served(first_ns, looks.period_ns, times)
        if len(rows):
            heappop(self._entries)
            times_ns = range(first_ns, first_ns + len(rows) * looks.period_ns, looks.period_ns)
            self._time_ns = times_ns[-1]
            looks.look(times_ns, rows)
            self._enter(looks.period_ns, looks)
        if notice.kind is not NoticeKind.REACHED_TIME:
            self._time_ns = notice.time
            self.on_notice(notice)

    def _enter(self, delay_ns: float, entry: _Entry, priority: int = simpy.events.NORMAL) -> None:
        if not isinstance(delay_ns, int):
            raise TypeError(NO_INTEGER.format(delay_ns))
        heappush(self._entries, (self._time_ns + delay_ns, priority, next(self._places), entry))

    def _enter_round(self, at_ns: int, entry: _Round) -> None:
        heappush(self._entries, (at_ns, simpy.events.NORMAL, entry.place, entry))

    def schedule(self, event: simpy.Event, priority: int = simpy.events.NORMAL, delay: float = 0) -> None:
        self._enter(delay, event, priority)


class _Round(NamedTuple):
    """Actions at the same time.  After each action that did something, the rest is queued again at the same place."""

    remaining: Iterator[Callable[[], bool]]
    place: int


class _Call(NamedTuple):
    """An entry that calls an action.  It is cheaper than an event, because nothing can wait for it."""

    action: Callable[[], None]


class _Polls(NamedTuple):
    """An entry that reads the data plane once per period."""

    period_ns: int
    look: Callable[[Sequence[int], np.ndarray], None]
    left: Callable[[], int]


_Entry = simpy.Event | _Call | _Round | _Polls

# ---- Background work with callbacks.  It starts at once, and becomes a process only if it takes time.

T = TypeVar("T")


def begin(
    env: simpy.Environment,
    work: Work[T],
    done: Callable[[T], None],
    failed: Callable[[StorageFailed], None] | None = None,
) -> simpy.Process | None:
    """Run work, then call `done` with its result, or `failed` (if given) if storage has failed.

    Returns the process, which may be interrupted (then neither is called), or None if the work has ended already.
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
    return env.process(_run_to_completion(resume_work(work, awaited), done, failed))


def _run_to_completion(
    work: Work[T], done: Callable[[T], None], failed: Callable[[StorageFailed], None] | None
) -> Work[None]:
    try:
        value = yield from work
    except simpy.Interrupt:
        return
    except StorageFailed as failure:
        if failed is not None:
            failed(failure)
        return
    done(value)
