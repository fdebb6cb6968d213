"""Work that takes time: generators of events, begun in the turn of whoever wants it done."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeVar

import simpy

__all__ = ["Work", "carry_on", "go_on"]

T = TypeVar("T")
Work = Generator[simpy.Event, Any, T]
"""A process in the making: what it yields it waits for."""


def go_on(work: Work[T], awaited: simpy.Event, watch: Callable[[simpy.Event], None] = lambda _: None) -> Work[T]:
    """The rest of a work that was begun with `next(work)`; what is thrown at the process (failures, interrupts) reaches it.

    `watch` is told of each event before the work waits for it.
    """
    try:
        while True:
            watch(awaited)
            try:
                value = yield awaited
            except BaseException as failure:  # noqa: BLE001  # handed on
                awaited = work.throw(failure)
            else:
                awaited = work.send(value)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


def carry_on(work: Work[None], awaited: simpy.Event) -> None:
    """The rest of a work that was begun with `next(work)`: less than a process, in that nobody can wait for it or interrupt it."""

    def resume(event: simpy.Event) -> None:
        while True:
            try:
                value: Any = event.value
                event.defused = True
                event = work.send(value) if event.ok else work.throw(value)
            except StopIteration:
                return
            if event.callbacks is not None:
                event.callbacks.append(resume)
                return

    if awaited.callbacks is None:
        resume(awaited)
    else:
        awaited.callbacks.append(resume)
