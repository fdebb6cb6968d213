"""The threads and the slot of a task: the asynchronous thread, the mailbox of the task thread, and a cache of machine steps."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import simpy

from sim.model.job import Vertex
from sim.plane.interface import Position, channels_in
from sim.protocol.messages import TaskCommand, TaskEvent
from sim.protocol.task_checkpointing import TaskCheckpointing
from sim.results.journal import EventType
from sim.runtime.clock import TwoPlaneEnvironment
from sim.runtime.context import Checks, Context, JobManagerPort
from sim.runtime.task_manager import TaskManager
from sim.storage.ledger import StorageFailed
from sim.storage.requests import DetachedWork, Work, run_detached, schedule_urgent_callback

if TYPE_CHECKING:
    from sim.plane.kernel import KernelPlane

# ---- The asynchronous thread of a task: snapshots queue, and each holds it until it is acknowledged or cancelled.
#
# Source: the asyncOperationsThreadPool of StreamTask has only one thread, so asynchronous work of a task is serial.


@dataclass(slots=True)
class _Turn:
    """The asynchronous work of one snapshot, queued or in progress."""

    checkpoint: int
    work: Work[None]
    done: Callable[[], None]
    failed: Callable[[], None]
    working: DetachedWork | None = None


class AsyncThread:
    """The asynchronous thread of a task."""

    def __init__(self, env: TwoPlaneEnvironment) -> None:
        self.env = env
        self._turns: list[_Turn] = []  # the first one holds the thread

    @property
    def at_work(self) -> bool:
        """Whether a snapshot holds the thread or waits for it."""
        return bool(self._turns)

    def queue(
        self, checkpoint: int, work: Work[None], done: Callable[[], None], failed: Callable[[], None] = lambda: None
    ) -> None:
        """Start the work of a snapshot when the thread is free, then call `done`, or `failed` if storage has failed.

        The snapshot holds the thread until `leave`, i.e. until it is acknowledged or cancelled.
        """
        self._turns.append(_Turn(checkpoint, work, done, failed))
        if len(self._turns) == 1:
            self._next()

    def leave(self, checkpoint: int) -> None:
        """Release the thread that a snapshot holds, and interrupt its work."""
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
        """Release the thread of a stopped task."""
        for turn in tuple(self._turns)[1:]:
            self._turns.remove(turn)
        if self._turns:
            self.leave(self._turns[0].checkpoint)

    def _next(self) -> None:
        """Start the work of the first snapshot in the queue."""
        turn = self._turns[0]
        work = self._work(turn)
        awaited = next(work, None)
        # the event has been processed: the work continues in a separate event
        if awaited is not None and awaited.callbacks is None:
            schedule_urgent_callback(self.env, lambda: self._continue(turn, work, awaited))
        elif awaited is not None:
            turn.working = run_detached(work, awaited)

    def _continue(self, turn: _Turn, work: Work[None], awaited: simpy.Event) -> None:
        if turn in self._turns:
            turn.working = run_detached(work, awaited)
        else:
            with suppress(StopIteration):
                work.throw(simpy.Interrupt(None))

    def _work(self, turn: _Turn) -> Work[None]:
        """Process: do the work of a snapshot, then call its `done` or `failed`."""
        try:
            yield from turn.work
        except simpy.Interrupt:
            return  # cancelled; its files remain
        except StorageFailed:
            turn.working = None
            turn.failed()
            return
        turn.working = None
        turn.done()


# ---- A cache of steps: many tasks of a vertex get the same barriers at the same time.
#
# Machines are values and steps are pure functions, so equal machines with equal events have equal successors.

_MAX_CACHED_STEPS = 512
"""Size of the cache.  Equal tasks step one after the other, so it may be small."""

_Answer = tuple[TaskCheckpointing, tuple[TaskCommand, ...]]


class EqualSteps:
    """The steps of the machines of one vertex, each computed once for all equal tasks."""

    def __init__(self, first: TaskCheckpointing) -> None:
        self.first = first
        # by the id of the machine, which this entry keeps alive
        self._steps: dict[int, tuple[TaskCheckpointing, TaskEvent, _Answer]] = {}
        self._rest = first  # the latest one without a snapshot

    def on(self, machine: TaskCheckpointing, event: TaskEvent) -> _Answer:
        """Return `machine.on(event)`, cached."""
        step = self._steps.get(id(machine))
        if step is not None and step[1] == event:
            return step[2]
        after, commands = machine.on(event)
        if not after.snapshots:
            self._rest = after = self._rest if self._rest == after else after
        if len(self._steps) == _MAX_CACHED_STEPS:
            self._steps.clear()
        self._steps[id(machine)] = machine, event, (after, commands)
        return after, commands


# ---- The task thread: mails run between records, longer work holds the thread.
#
# Source: StreamTask's mailbox.  A mail runs at the next safe point of the data plane, never within a record.  Mails run in
# batches: mails that arrive while a mail holds the thread wait for the next batch, before which one element of the input
# is processed (MailboxProcessor#runMailboxLoop).


class TaskThread:
    """The thread of one task."""

    def __init__(self, plane: KernelPlane, task: int) -> None:
        self.plane = plane
        self.task = task
        self.occupied = False
        self.suspended = False  # occupied by a fault, without work
        self.stopped = False
        self.commits = False  # a commit holds it
        self.mails_only = False  # the thread processes no more records
        # called once, when work has ended that held the thread of a stopped task and cannot be interrupted
        self.when_freed: Callable[[], None] = lambda: None
        self.yields = False  # an operator yields: only notifications are processed
        self._at_mails = False
        self._writes = False  # released outputs are being written: mails wait
        self._released = False  # `mails_only`, but writing released outputs now
        self._mails: list[tuple[Callable[[], None], bool]] = []
        # mails left of the current batch, after one of its mails has held the thread; None if none has
        self._batch: int | None = None

    def post(self, mail: Callable[[], None], *, notifies: bool = False) -> None:
        """Queue a mail, which the task thread runs between records.

        `notifies` marks a notification, which is processed even while an operator yields (mails of the highest priority).
        """
        if self.stopped:
            return
        self._mails.append((mail, notifies))
        if not self.occupied and (notifies or not self.yields):
            self._call()

    def at_safe_point(self) -> None:
        """Run mails: the plane reports that the task is between records."""
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
        """Write the outputs of the first `until` records now.  Writing may block the thread, and mails wait for it.

        A thread in `mails_only` returns to mails when the plane reports that the outputs are written.
        """
        self.plane.release_late_outputs(self.task, until)
        self._writes = True
        self._release()
        if self.mails_only:
            self.plane.report_written(self.task)

    def stop(self) -> None:
        """Stop the thread: it processes no more mails."""
        self.stopped = True
        self._mails.clear()

    def end(self) -> None:
        """End the thread by an exception.  A cancellation need not wait for it."""
        self.occupy()
        self.stop()
        self.occupied = False

    def free(self) -> None:
        """Mark the thread of a stopped task as free: its work has ended, or its process has."""
        self.occupied = False
        callback, self.when_freed = self.when_freed, lambda: None
        callback()

    def fail(self) -> None:
        """Handle that the task fails by an exception: a commit that holds the thread has failed."""
        self.occupied = self.occupied and not self.commits

    def occupy(self) -> None:
        """Hold the thread for the control plane, unless it is held already.  To be called at a safe point only."""
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

        self.post(freeze, notifies=True)  # processed even while an operator yields

    def vacate(self) -> None:
        """Release the thread, which processes mails and records again."""
        if self.occupied and self.stopped:
            self.free()
        elif self.occupied:
            self.occupied = False
            if not self.mails_only:
                self.plane.release(self.task)
            if self._mails:
                self._call()
            elif self._batch == 0:
                self._batch = None

    def serve_mails_only(self) -> None:
        """Process no more records, only mails: the data of this task ends.  To be called at a safe point only."""
        if not self.mails_only:
            if not self.occupied:
                self.plane.hold(self.task)
            self.mails_only = True
            self._batch = None

    @property
    def takes_mails(self) -> bool:
        """Whether the thread processes all mails at its next safe point."""
        return not (self.occupied or self.yields)

    def begin_yield(self) -> None:
        """Let an operator yield until its pending outputs are written (MailboxExecutor#yield).

        Until then neither barriers nor records are processed.
        """
        self.yields = True
        self._release()
        self.plane.wait_for_late(self.task)

    def end_yield(self) -> None:
        """End the yield: the plane reports that the last late output is written."""
        self.yields = False
        self.written()
        if self._mails and not self.occupied:
            self._call()

    def written(self) -> bool:
        """Handle that released outputs are written.  A thread in `mails_only` returns to mails, unless an operator yields.

        Return whether the thread is in `mails_only`.
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
        """Let a thread in `mails_only` write outputs."""
        if self.mails_only and not self._released:
            self._released = True
            self.plane.release(self.task)

    def _next(self) -> Callable[[], None] | None:
        """Remove and return the next mail, or None."""
        position = next((i for i, (_, notifies) in enumerate(self._mails) if notifies or not self.yields), None)
        if position is None:
            return None
        mail, _ = self._mails[position]
        del self._mails[position]
        return mail

    def _call(self) -> None:
        """Make the thread process mails."""
        if not self.mails_only:
            self._interrupt()
        elif not self._at_mails and not self._released:
            self.at_safe_point()

    def _interrupt(self) -> None:
        """Request a safe point: at once, or after one element if a batch of mails has ended."""
        if self._batch == 0:
            self._batch = None
            self.plane.interrupt_after_next_element(self.task)
        else:
            self.plane.interrupt(self.task)


# ---- The slot of a task: the objects that all parts of one attempt use.


@dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """The slot of one attempt of a task: context, thread, TaskManager and JobManager.  All parts of the attempt share it."""

    context: Context
    task: int
    vertex: Vertex
    thread: TaskThread
    manager: TaskManager
    job: JobManagerPort
    checks: Checks = Checks()

    @property
    def now(self) -> int:
        """The current simulated time [ns]."""
        return self.context.env.now

    @property
    def position(self) -> Position:
        """The position of the task now."""
        return self.context.plane.position(self.task)

    @property
    def channels(self) -> list[int]:
        """The input channels of the task, in the order of its `Position`."""
        return channels_in(self.context.layout, self.task)

    def note(self, event_type: EventType, checkpoint: int = -1, number: int = 0, detail: str = "") -> None:
        """Add a journal row about the task at the current time."""
        self.context.journal.note(self.context.env.now, event_type, checkpoint, self.task, number, detail)
