"""Threads of a task: the task thread, the asynchronous part, steps that are equal."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import simpy

from sim.plane.interface import DataPlane
from sim.protocol.task_checkpointing import TaskCheckpointing
from sim.protocol.task_messages import TaskCommand, TaskEvent
from sim.runtime.clock import TwoPlaneEnvironment
from sim.storage.ledger import StorageFailed
from sim.storage.requests import DetachedWork, Work, run_detached, schedule_urgent_callback

# ---- A task's one asynchronous thread: snapshots take their turns, each stays until it is acknowledged or cancelled.
#
# Flink: the asyncOperationsThreadPool of StreamTask never grows past one thread, so asynchronous work of one task is
# serial.


@dataclass(slots=True)
class _Turn:
    """The asynchronous work of one snapshot, which waits for the thread or has it."""

    checkpoint: int
    work: Work[None]
    done: Callable[[], None]
    failed: Callable[[], None]
    working: DetachedWork | None = None


class AsyncThread:
    """The one asynchronous thread of a task."""

    def __init__(self, env: TwoPlaneEnvironment) -> None:
        self.env = env
        self._turns: list[_Turn] = []  # the first one has the thread

    @property
    def at_work(self) -> bool:
        """Whether a snapshot has the thread, or waits for it."""
        return bool(self._turns)

    def queue(
        self, checkpoint: int, work: Work[None], done: Callable[[], None], failed: Callable[[], None] = lambda: None
    ) -> None:
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
            schedule_urgent_callback(self.env, turn.working.break_off)
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
        # the event is over: the work goes on in a turn of its own
        if awaited is not None and awaited.callbacks is None:
            schedule_urgent_callback(self.env, lambda: self._go_on(turn, work, awaited))
        elif awaited is not None:
            turn.working = run_detached(work, awaited)

    def _go_on(self, turn: _Turn, work: Work[None], awaited: simpy.Event) -> None:
        if turn in self._turns:
            turn.working = run_detached(work, awaited)
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


# ---- Steps of equal machines, made once: many tasks of a vertex meet the barriers of a checkpoint at the same time.
#
# Machines are values and steps are functions of them.  A task that stands where another stood, and hears the same, goes
# the same way.

_MAX_STEPS_REMEMBERED = 512
"""Steps remembered: tasks that are equal step one after the other."""

_Answer = tuple[TaskCheckpointing, tuple[TaskCommand, ...]]


class EqualSteps:
    """The steps of the machines of one vertex, each computed once for all tasks that are equal."""

    def __init__(self, first: TaskCheckpointing) -> None:
        self.first = first
        # by the identity of the machine, which stays alive here
        self._steps: dict[int, tuple[TaskCheckpointing, TaskEvent, _Answer]] = {}
        self._rest = first  # the latest one without a snapshot

    def on(self, machine: TaskCheckpointing, event: TaskEvent) -> _Answer:
        """`TaskCheckpointing.on`."""
        step = self._steps.get(id(machine))
        if step is not None and step[1] == event:
            return step[2]
        after, commands = machine.on(event)
        if not after.snapshots:
            self._rest = after = self._rest if self._rest == after else after
        if len(self._steps) == _MAX_STEPS_REMEMBERED:
            self._steps.clear()
        self._steps[id(machine)] = machine, event, (after, commands)
        return after, commands


# ---- A task's thread as the control plane sees it: mails run between records, longer work holds the thread.
#
# Flink:  StreamTask's mailbox.  A mail runs at the next safe point of the data plane, never inside a record.  Mails run
# in batches: those that come while a mail works wait for the next batch, and one element of the input comes before it
# (MailboxProcessor#runMailboxLoop).


class TaskThread:
    """The thread of one task."""

    def __init__(self, plane: DataPlane, task: int) -> None:
        self.plane = plane
        self.task = task
        self.occupied = False
        self.suspended = False  # from outside: it is occupied, and does nothing
        self.stopped = False
        self.mails_only = False  # no record is served any more
        self.freed: Callable[[], None] = lambda: None  # told when it was stopped at work, and the work is over
        self.yields = False  # an operator waits: only notifications pass
        self._at_mails = False
        self._writes = False  # outputs were let go: no mail before they are written
        self._released = False  # it takes mails only, but writes now what was let go
        self._mails: list[tuple[Callable[[], None], bool]] = []
        self._batch: int | None = None  # mails left of a batch in which one kept the thread

    def post(self, mail: Callable[[], None], *, notifies: bool = False) -> None:
        """Have `mail` run by the task thread, between records, after the mails before it.

        `notifies`: it is a notification, which an operator that waits lets through as well (mails of the highest priority).
        """
        if self.stopped:
            return
        self._mails.append((mail, notifies))
        if not self.occupied and (notifies or not self.yields):
            self._call()

    def at_safe_point(self) -> None:
        """The plane reports that the task is between records."""
        self._at_mails = True
        self._writes = False
        while not self.occupied and not self._writes and self._batch != 0 and (mail := self._next()) is not None:
            if self._batch is not None:
                self._batch -= 1
            mail()  # which may stop the thread
            if self.occupied and self._batch is None and not self.mails_only:
                self._batch = len(self._mails)
        self._at_mails = False
        if self._mails and not self.stopped and not self.occupied and (self._writes or self._batch == 0):
            self._interrupt()

    def release_late_outputs(self, until: int) -> None:
        """The thread writes the outputs of the first `until` records now: they may block it, and mails wait for them.

        A thread that takes mails only goes back to them: the plane says when the outputs are written.
        """
        self.plane.release_late_outputs(self.task, until)
        self._writes = True
        self._release()
        if self.mails_only:
            self.plane.report_written(self.task)

    def stop(self) -> None:
        """The thread takes no mail any more."""
        self.stopped = True
        self._mails.clear()

    def end(self) -> None:
        """An exception leaves the thread: it serves nothing more, and a cancellation does not wait for its work."""
        self.occupy()
        self.stop()
        self.occupied = False

    def occupy(self) -> None:
        """Keep the thread for the control plane (no effect if it is kept already).  Call at a safe point only."""
        if not self.occupied:
            self.occupied = True
            if not self.mails_only:
                self.plane.hold(self.task)

    def suspend(self, for_ns: int, call_in: Callable[[int, Callable[[], None]], None]) -> None:
        """Suspend the thread for some time, from its next mail on."""

        def freeze() -> None:
            self.suspended = True
            self.occupy()
            call_in(for_ns, end_suspension)

        def end_suspension() -> None:
            self.suspended = False
            self.vacate()

        self.post(freeze, notifies=True)  # an operator that waits lets it pass, too

    def vacate(self) -> None:
        """Let the thread go back to mails and records."""
        if self.occupied and self.stopped:
            self.freed()
        elif self.occupied:
            self.occupied = False
            if not self.mails_only:
                self.plane.release(self.task)
            if self._mails:
                self._call()
            elif self._batch == 0:
                self._batch = None

    def serve_mails_only(self) -> None:
        """No record any more, mails at once: the data of this task ends here.  Call at a safe point only."""
        if not self.mails_only:
            if not self.occupied:
                self.plane.hold(self.task)
            self.mails_only = True
            self._batch = None

    @property
    def takes_mails(self) -> bool:
        """Whether the thread takes all mails at its next safe point."""
        return not (self.occupied or self.yields)

    def begin_yield(self) -> None:
        """An operator waits for late outputs at the end of its input (MailboxExecutor#yield): neither barriers nor records meanwhile."""
        self.yields = True
        self._release()
        self.plane.wait_for_late(self.task)

    def end_yield(self) -> None:
        """The last late output is written.  Call when the plane says so."""
        self.yields = False
        self.written()
        if self._mails and not self.occupied:
            self._call()

    def written(self) -> bool:
        """What was let go is written: a thread that takes mails only does so again, unless its operator waits for late outputs.

        True: it was such a thread that wrote.  Call when the plane says so.
        """
        if not self._released:
            return False
        if not self.yields:
            self._released = False
            self.plane.hold(self.task)
            if self._mails:
                self._call()
        return True

    def _release(self) -> None:
        """The data of this task has ended, but it still has outputs to write."""
        if self.mails_only and not self._released:
            self._released = True
            self.plane.release(self.task)

    def _next(self) -> Callable[[], None] | None:
        """Take the next mail, if there is one."""
        place = next((i for i, (_, notifies) in enumerate(self._mails) if notifies or not self.yields), None)
        if place is None:
            return None
        mail, _ = self._mails[place]
        del self._mails[place]
        return mail

    def _call(self) -> None:
        """Make the thread look for mails."""
        if not self.mails_only:
            self._interrupt()
        elif not self._at_mails and not self._released:
            self.at_safe_point()

    def _interrupt(self) -> None:
        """Ask for a safe point: at once, or behind an element where a batch of mails is over."""
        if self._batch == 0:
            self._batch = None
            self.plane.interrupt_behind(self.task)
        else:
            self.plane.interrupt(self.task)
