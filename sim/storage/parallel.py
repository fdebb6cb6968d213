"""Several pieces of work by a few threads: each thread takes the next piece when it is done with one (list scheduling)."""

from __future__ import annotations

from collections.abc import Sequence

import simpy

from sim.storage.attempts import Done
from sim.storage.failures import StorageFailed
from sim.storage.work import Carried, Work, carry_on, in_own_turn


def in_parallel(env: simpy.Environment, works: Sequence[Work[object]], threads: int) -> Work[None]:
    """Process: all of them, begun in the order given.  The first failure stops everything, and is raised."""
    if threads <= 1 or len(works) <= 1:
        for work in works:
            yield from work
    else:
        yield from _Threads(env, works, threads).all()


class _Threads:
    """Threads that take pieces of work from one list."""

    def __init__(self, env: simpy.Environment, works: Sequence[Work[object]], threads: int) -> None:
        self.env = env
        self.works = works
        self.threads = min(threads, len(works))
        self._next = 0
        self._done = 0
        self._running: list[Carried] = []
        self._over = Done(env)  # all done, or one failed

    def all(self) -> Work[None]:
        in_own_turn(self.env, self._begin)
        try:
            yield self._over
        except BaseException:
            in_own_turn(self.env, self._break_off)
            raise

    def _begin(self) -> None:
        """Most pieces are small, and over at once: no thread is a process of its own."""
        for _ in range(self.threads):
            if self._next == len(self.works):
                break  # the threads before have taken all
            thread = self._thread()
            if (awaited := next(thread, None)) is not None:
                self._running.append(carry_on(thread, awaited))

    def _break_off(self) -> None:
        for thread in self._running:
            thread.break_off()

    def _thread(self) -> Work[None]:
        try:
            while self._next < len(self.works):
                work, self._next = self.works[self._next], self._next + 1
                yield from work
                self._done += 1
        except StorageFailed as failure:
            self._over.break_off(failure)  # the waiter may be stopped in this very instant
        except simpy.Interrupt:
            return
        else:
            if self._done == len(self.works) and not self._over.triggered:
                self._over.succeed()
