"""A task's one asynchronous thread: snapshots take their turns, each stays until it is acknowledged or cancelled.

Flink: the asyncOperationsThreadPool of StreamTask never grows past one thread, so asynchronous work of one task is serial.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import simpy

from sim.runtime.clock import TwoPlaneEnvironment
from sim.storage.failures import StorageFailed
from sim.storage.work import Carried, Work, carry_on, in_own_turn


@dataclass(slots=True)
class _Turn:
    """The asynchronous work of one snapshot, which waits for the thread or has it."""

    checkpoint: int
    work: Work[None]
    done: Callable[[], None]
    failed: Callable[[], None]
    working: Carried | None = None


class AsyncThread:
    """The one asynchronous thread of a task."""

    def __init__(self, env: TwoPlaneEnvironment) -> None:
        self.env = env
        self._turns: list[_Turn] = []  # the first one has the thread

    @property
    def at_work(self) -> bool:
        """Whether a snapshot has the thread, or waits for it."""
        return bool(self._turns)

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
            in_own_turn(self.env, turn.working.break_off)
        if first and self._turns:
            self._next()

    def stop(self) -> None:
        """The task has stopped."""
        for turn in tuple(self._turns)[1:]:
            self._turns.remove(turn)
        if self._turns:
            self.leave(self._turns[0].checkpoint)

    def _next(self) -> None:
        turn = self._turns[0]
        work = self._work(turn)
        awaited = next(work, None)
        if awaited is not None and awaited.callbacks is None:  # the event is over: the work goes on in a turn of its own
            in_own_turn(self.env, lambda: self._go_on(turn, work, awaited))
        elif awaited is not None:
            turn.working = carry_on(work, awaited)

    def _go_on(self, turn: _Turn, work: Work[None], awaited: simpy.Event) -> None:
        if turn in self._turns:
            turn.working = carry_on(work, awaited)
        else:
            with suppress(StopIteration):
                work.throw(simpy.Interrupt(None))

    def _work(self, turn: _Turn) -> Work[None]:
        try:
            yield from turn.work
        except simpy.Interrupt:
            return  # cancelled: its files are left behind
        except StorageFailed:
            turn.working = None
            turn.failed()
            return
        turn.working = None
        turn.done()
