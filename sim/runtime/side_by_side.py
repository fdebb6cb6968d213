"""Several pieces of work by a few threads: each thread takes the next piece, the first failure stops them all."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import simpy

from sim.storage import StorageFailed
from sim.storage.work import Work

__all__ = ["side_by_side"]


def side_by_side(env: simpy.Environment, pieces: Sequence[Callable[[], Work[None]]], threads: int) -> Work[None]:
    """Process: done when all pieces are done; stopped with all of them.  Raises what the first failing piece raises (StorageFailed)."""
    if threads == 1 or len(pieces) <= 1:  # no process of its own is needed
        for piece in pieces:
            yield from piece()
        return
    waiting = deque(pieces)
    failures: list[StorageFailed] = []
    failed = env.event()

    def thread() -> Work[None]:
        try:
            while waiting and not failures:
                yield from waiting.popleft()()
        except simpy.Interrupt:
            return  # stopped where it is
        except StorageFailed as failure:
            failures.append(failure)
            if not failed.triggered:
                failed.succeed()

    workers = [env.process(thread()) for _ in range(min(threads, len(pieces)))]
    try:
        yield env.all_of(workers) | failed
        if failures:
            raise failures[0]
    finally:
        for worker in workers:
            if worker.is_alive:
                worker.interrupt()
