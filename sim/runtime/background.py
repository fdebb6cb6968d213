"""Work that runs beside everything else and calls back: begun in the caller's turn, a process only if it takes time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import simpy

from sim.storage.failures import StorageFailed
from sim.storage.work import Work, go_on

T = TypeVar("T")


def begin(
    env: simpy.Environment, work: Work[T], done: Callable[[T], None], failed: Callable[[StorageFailed], None] | None = None
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
    return env.process(_to_its_end(go_on(work, awaited), done, failed))


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
