"""Work that takes time: generators of events, begun in the caller's turn."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import suppress
from typing import Any, TypeVar

import simpy

from sim.storage.failures import StorageFailed

T = TypeVar("T")
Work = Generator[simpy.Event, Any, T]
"""A process in the making: what it yields it waits for."""


def go_on(work: Work[T], awaited: simpy.Event, watch: Callable[[simpy.Event], None] = lambda _: None, *, outlasts: bool = False) -> Work[T]:
    """The rest of a work that was begun with `next(work)`; what is thrown at the process (failures, interrupts) reaches it.

    `watch` is told of each event before the work waits for it.  `outlasts`: an interrupt does not reach the work; see `outlasting`.
    """
    try:
        while True:
            watch(awaited)
            try:
                value = yield awaited
            except BaseException as failure:  # handed on
                if outlasts and isinstance(failure, simpy.Interrupt):
                    rest = _to_its_end(work, awaited)
                    carry_on(rest, next(rest))
                    raise
                awaited = work.throw(failure)
            else:
                awaited = work.send(value)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


def outlasting(work: Work[T]) -> Work[T]:
    """The same work.  If its waiter is interrupted it goes on by itself, and what fails then concerns no waiter."""
    try:
        awaited = next(work)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    return (yield from go_on(work, awaited, outlasts=True))


def _to_its_end(work: Work[T], awaited: simpy.Event) -> Work[None]:
    with suppress(StorageFailed):
        yield from go_on(work, awaited)


def in_own_turn(env: simpy.Environment, action: Callable[[], None]) -> None:
    """Have `action` called in a turn of its own, before anything else of this instant."""
    turn = simpy.Event(env)
    turn._ok, turn._value = True, None  # noqa: SLF001  # as `simpy.events` makes those of its own that no component triggers
    turn.callbacks.append(lambda _: action())
    env.schedule(turn, simpy.events.URGENT, 0)


class Carried:
    """A work that goes on by itself: less than a process, in that no process can wait for it.  Its beginning and its end are no events."""

    def __init__(self, work: Work[None]) -> None:
        self._work = work
        self._awaited: simpy.Event | None = None

    def wait_for(self, event: simpy.Event) -> None:
        """Go on when the event has happened: at once if it is over."""
        if event.callbacks is None:
            self._go_on(event)
        else:
            self._awaited = event
            event.callbacks.append(self._go_on)

    def break_off(self) -> None:
        """The work hears of it as `simpy.Interrupt`, unless it is over."""
        if self._awaited is not None:
            self._awaited.callbacks.remove(self._go_on)
            self._proceed(lambda: self._work.throw(simpy.Interrupt(None)))

    def _go_on(self, event: simpy.Event) -> None:
        self._proceed(lambda: self._hear(event))

    def _proceed(self, step: Callable[[], simpy.Event]) -> None:
        self._awaited = None
        with suppress(StopIteration):
            awaited = step()
            while awaited.callbacks is None:
                awaited = self._hear(awaited)
            self.wait_for(awaited)

    def _hear(self, event: simpy.Event) -> simpy.Event:
        """Tell the work what became of the event; what it waits for next."""
        event.defused = True
        return self._work.send(event.value) if event.ok else self._work.throw(event.value)  # type: ignore[arg-type]  # a failure


def carry_on(work: Work[None], awaited: simpy.Event) -> Carried:
    """The rest of a work that was begun with `next(work)`."""
    carried = Carried(work)
    carried.wait_for(awaited)
    return carried
