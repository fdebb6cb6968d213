"""A task's one asynchronous thread: snapshots take their turns, each stays until it is acknowledged or cancelled.

Flink: the asyncOperationsThreadPool of StreamTask never grows past one thread, so asynchronous work of one task is serial.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import simpy

from sim.runtime.clock import TwoPlaneEnvironment
from sim.storage.failures import StorageFailed
from sim.storage.work import Work, go_on

__all__ = ["AsyncThread"]


@dataclass(slots=True)
class _Turn:
    checkpoint: int
    work: Work[None]
    done: Callable[[], None]
    failed: Callable[[], None]
    working: simpy.Process | None = None


class AsyncThread:
    def __init__(self, env: TwoPlaneEnvironment) -> None:
        self.env = env
        self._turns: deque[_Turn] = deque()  # the first one has the thread

    def queue(self, checkpoint: int, work: Work[None], done: Callable[[], None], failed: Callable[[], None] = lambda: None) -> None:
        """Begin the work when the thread is free, then call `done`; keep the thread until `leave`.  `failed`: storage gave up."""
        self._turns.append(_Turn(checkpoint, work, done, failed))
        if len(self._turns) == 1:
            self._next()

    def leave(self, checkpoint: int) -> None:
        """This snapshot needs the thread no more; unfinished work stops where it is."""
        turn = next((turn for turn in self._turns if turn.checkpoint == checkpoint), None)
        if turn is None:
            return
        first = turn is self._turns[0]
        self._turns.remove(turn)
        if turn.working is not None:
            turn.working.interrupt()
        if first and self._turns:
            self._next()

    def stop(self) -> None:
        """The task is gone."""
        for turn in tuple(self._turns)[1:]:
            self._turns.remove(turn)
        if self._turns:
            self.leave(self._turns[0].checkpoint)

    def _next(self) -> None:
        turn = self._turns[0]
        try:
            awaited = next(turn.work, None)
        except StorageFailed:
            turn.failed()
            return
        if awaited is None:  # nothing that takes time: no process is needed
            turn.done()
        else:
            turn.working = self.env.process(self._work(turn, awaited))

    def _work(self, turn: _Turn, awaited: simpy.Event) -> Work[None]:
        try:
            if turn not in self._turns:  # it left before this process began, whose interrupt comes too late
                turn.work.throw(simpy.Interrupt(None))
            yield from go_on(turn.work, awaited)
        except simpy.Interrupt:
            return  # cancelled: its files are left behind
        except StorageFailed:
            turn.working = None
            turn.failed()
            return
        turn.working = None
        turn.done()
