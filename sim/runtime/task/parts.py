"""Parts of a task: the interface of a feature, and the parts of one task in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import NamedTuple, Protocol, TypeVar

import sim.runtime.task
from sim.model.catalog import find_plugins
from sim.plane.interface import Notice, NoticeKind
from sim.protocol.coordinator_messages import Work as Piece
from sim.protocol.task_messages import RunPreBarrier
from sim.runtime.clock import begin
from sim.runtime.context import TaskSnapshot
from sim.runtime.task.sink import SinkCommitter
from sim.runtime.task.slot import Slot
from sim.storage.ledger import StorageFailed
from sim.storage.requests import Work

# ---- A feature of a task: the moments of the task's life at which it may act, and how tasks get it.

P = TypeVar("P", bound="TaskPart")


class WaitingBytes(NamedTuple):
    """State of a part at the cut of a snapshot, by the kind of its file [bytes]."""

    operator: int = 0  # list state: requests under way
    windows: int = 0  # records that wait in windows


class TaskPart:
    """A feature of a task: one method for each moment of the task's life.  A subclass overrides the methods it needs.

    A snapshot calls `before_barrier`, `work_before_barrier`, `leaves`, `overtaken` (if it overtakes), `cut`, `waiting`,
    `upload`, and in the end `completed` or `aborted`.  Barriers that may overtake data call `capture_begun`,
    `input_overtaken` and `capture_ended` besides.  The end of the data calls `end_input`, waits while a part
    `has_pending_outputs`, then calls `work_at_end`, `close`, and last `finished`.  A restore calls `download`,
    `restored`, `begin`.
    """

    @property
    def listens(self) -> bool:
        """Whether notices of completed checkpoints matter to it."""
        return False

    @property
    def has_pending_outputs(self) -> bool:
        """Whether the end of the data waits for late outputs of this part."""
        return False

    @property
    def drops(self) -> bool:
        """Whether it keeps records for ever: they wait for a watermark that never comes."""
        return False

    @property
    def storing(self) -> bool:
        """Whether it keeps buffers until they are in storage."""
        return False

    def begin(self) -> None:
        """The task runs."""

    def download(self, snapshot: TaskSnapshot) -> Work[None] | None:
        """Read what the snapshot holds for it; the task waits.  None: nothing.  It may raise StorageFailed, which fails the task."""
        return None

    def restored(self, snapshot: TaskSnapshot) -> None:
        """The task goes on from its part of a checkpoint."""

    def stop(self) -> None:
        """The task is gone, and what it had on its disk."""

    # ------------------------------------------------------------------------------------------ a snapshot

    def before_barrier(self, checkpoint: int) -> int:
        """All barriers are here, none has left.  Returns the time that the part keeps the task thread [ns]."""
        return 0

    def work_before_barrier(self, checkpoint: int, pieces: tuple[Piece, ...]) -> Work[None] | None:
        """Work that keeps the task thread until it is done; `pieces`: the work that belongs before the barrier.  None: there is none.

        It may raise StorageFailed, which fails the task.
        """
        return None

    def leaves(self) -> bool:
        """Let outputs go before the barrier.  True: the plane reports when they are written, and the barrier waits for it."""
        return False

    def overtaken(self, checkpoint: int, size_bytes: int) -> None:
        """The barrier has just left, before so much that lies in the outputs."""

    def output_converted(self, checkpoint: int, size_bytes: int) -> None:
        """A barrier that lay in the outputs has just moved before so much of them."""

    def cut(self, checkpoint: int, snapshot: TaskSnapshot) -> None:
        """The barrier has just been forwarded: fill the part's own fields of the snapshot."""

    def waiting(self) -> WaitingBytes:
        """The size of the records that are state now, because their outputs wait."""
        return WaitingBytes()

    def upload(self, checkpoint: int) -> Work[None] | None:
        """Work in the asynchronous phase.  It may raise StorageFailed, which fails the checkpoint."""
        return None

    def completed(self, checkpoint: int) -> None:
        """The task has heard of a completion."""

    def aborted(self, checkpoint: int) -> None:
        """The snapshot is cancelled, or the task hears that its checkpoint is aborted."""

    # ------------------------------------------------------------------------------------------ data in flight

    def capture_begun(self, checkpoint: int) -> None:
        """Barriers of this checkpoint may overtake data from now on."""

    def input_overtaken(self, checkpoint: int) -> None:
        """A barrier was taken before the data in the input: what lies before the other barriers is in flight."""

    def barriers_complete(self, checkpoint: int) -> None:
        """The last barrier is here."""

    def capture_ended(self, checkpoint: int, stored: Callable[[], None], failed: Callable[[], None]) -> None:
        """All data in flight is known.  Call `stored` when the part has nothing of it to store any more, or `failed`."""
        stored()

    # ------------------------------------------------------------------------------------------ event time

    def watermark_arrived(self, channel: int, number: int) -> None:
        """A watermark, or a status of it, was processed on an input channel."""

    def channel_ended(self, channel: int) -> None:
        """The last record of a channel was processed."""

    def outputs_written(self, *, at_end: bool) -> None:
        """Outputs that were let go are written.  `at_end`: the data of the task had ended before."""

    # ------------------------------------------------------------------------------------------ the end

    def end_input(self) -> None:
        """No record follows.  Called again when late outputs are written."""

    def work_at_end(self) -> Work[None] | None:
        """Work on the task thread when nothing is owed any more.  None: there is none."""
        return None

    def quiesce(self) -> None:
        """Timers of processing time fire no more: records that wait for them stay in state."""

    def close(self) -> None:
        """The task ends and waits for no checkpoint."""

    def finished(self) -> None:
        """The task is over."""


class PartsPort(Protocol):
    """All parts of a task, as each of them sees the others."""

    def of(self, kind: type[P]) -> P | None:
        """The part of a kind, of those attached so far."""

    def drained(self) -> bool:
        """Whether the operators have finished."""

    def committer_of(self, vertex: str) -> SinkCommitter:
        """The global committer of what a vertex writes."""


class Stage(IntEnum):
    """The order in which the parts of a task are called: what one lets go, a later one takes in."""

    WINDOWS = 1
    EVENT_TIME = 2  # ends windows
    WATERMARKS = 3  # are made behind those of the same chain
    OPERATOR = 4
    OUTPUT = 5  # what the others let go belongs to the epoch that ends
    CHANNELS = 6


@dataclass(frozen=True)
class TaskFeature:
    """A feature that tasks may have.  Each file of `sim/runtime/task` that defines one adds it.

    `attach` makes the part of one task, or returns None: the task does not have the feature.
    """

    attach: Callable[[Slot, PartsPort], TaskPart | None]
    stage: Stage = Stage.OPERATOR


# ---- The parts of one task, in order: they are found, attached, and waited for where their work keeps the task thread.

_NOTHING_WAITS = WaitingBytes()


@cache
def task_features() -> tuple[TaskFeature, ...]:
    """All features that the modules of this package define, in the order of their stages: one that is added counts."""
    return tuple(sorted(find_plugins(sim.runtime.task, TaskFeature), key=lambda feature: feature.stage))


class TaskParts:
    """The parts of one task.

    `committer_of` gives the global committer of a vertex; `drained`: whether the operators have finished.
    """

    def __init__(self, slot: Slot, committer_of: Callable[[str], SinkCommitter], drained: Callable[[], bool]) -> None:
        self.slot = slot
        self.context = slot.context
        self.committer_of = committer_of
        self.drained = drained
        self._parts: tuple[TaskPart, ...] = ()
        for feature in task_features():
            if (part := feature.attach(slot, self)) is not None:
                self._parts += (part,)  # a later one may ask for it
        self._before_barrier, self._work_before_barrier = (
            self._acting(TaskPart.before_barrier),
            self._acting(TaskPart.work_before_barrier),
        )
        self._leaving, self._cutting = self._acting(TaskPart.leaves), self._acting(TaskPart.cut)
        self._keeping = self._acting(TaskPart.waiting)
        self._when_answered: Callable[[], None] = lambda: None
        self._when_written: Callable[[], None] | None = None  # outputs that were let go before a barrier

    def _acting(self, moment: Callable[..., object]) -> tuple[TaskPart, ...]:
        """The parts that do anything at a moment of every snapshot, which is a method of `TaskPart`: most do nothing."""
        return tuple(part for part in self._parts if getattr(type(part), moment.__name__) is not moment)

    def __iter__(self) -> Iterator[TaskPart]:
        return iter(self._parts)

    def of(self, kind: type[P]) -> P | None:
        """The part of a kind."""
        return next((part for part in self if isinstance(part, kind)), None)

    @property
    def listens(self) -> bool:
        """Whether completed checkpoints matter."""
        return any(part.listens for part in self)

    @property
    def drops(self) -> bool:
        """Whether records wait for a watermark that never comes."""
        return any(part.drops for part in self)

    # ------------------------------------------------------------------------------------------ a snapshot

    def before_barrier(self, command: RunPreBarrier, own_ns: int, done: Callable[[], None]) -> None:
        """The operator's own work and that of all parts, on the task thread; then `done`.  If storage gives up, the task fails."""
        checkpoint = command.checkpoint
        for part in self._before_barrier:
            own_ns += part.before_barrier(checkpoint)
        works = [
            work
            for part in self._work_before_barrier
            if (work := part.work_before_barrier(checkpoint, command.work)) is not None
        ]
        then = lambda: self._let_go(done)  # noqa: E731
        if works:
            self._work_on_thread(self._one_by_one(own_ns, works), then)
        else:
            if own_ns:
                self.slot.thread.occupy()
            self.context.env.call_in(own_ns, then)

    def _let_go(self, done: Callable[[], None]) -> None:
        """Outputs that leave before each barrier are written first (LocalSlicingWindowAggOperator, AbstractMapBundleOperator)."""
        waits = False if self.slot.thread.stopped else sum([part.leaves() for part in self._leaving]) > 0
        if waits:
            self._when_written = done
            self.slot.thread.vacate()
        else:
            done()

    def cut(self, checkpoint: int, *, finished: bool) -> None:
        """The barrier has just been forwarded: each part fills its fields of the snapshot."""

        def fill(snapshot: TaskSnapshot) -> None:
            for part in self._cutting:
                part.cut(checkpoint, snapshot)

        self.slot.contents.cut(checkpoint, self.slot.task, fill, finished=finished)

    def waiting(self) -> WaitingBytes:
        """Records that are state now, because their outputs wait."""
        if not self._keeping:
            return _NOTHING_WAITS
        waiting = [part.waiting() for part in self._keeping]
        return WaitingBytes(sum(part.operator for part in waiting), sum(part.windows for part in waiting))

    def capture_ended(self, checkpoint: int, stored: Callable[[], None], failed: Callable[[], None]) -> None:
        """All data in flight is known: `stored` when every part has stored its share of it, or `failed`."""
        left = len(self._parts)

        def one_stored() -> None:
            nonlocal left
            left -= 1
            if not left:
                stored()

        for part in self:
            part.capture_ended(checkpoint, one_stored, failed)

    def upload(self, checkpoint: int) -> Work[None]:
        """Process, in the asynchronous phase.  Raises StorageFailed."""
        for part in self:
            if (work := part.upload(checkpoint)) is not None:
                yield from work

    # ------------------------------------------------------------------------------------------ what the plane reports

    def on_notice(self, notice: Notice) -> None:
        """A watermark arrives, or outputs are written."""
        if notice.kind is NoticeKind.NONE_LATE:  # the last request under way is answered, and its output is written
            self._when_answered()
            self.slot.thread.end_yield()
        elif notice.kind is NoticeKind.WRITTEN:
            self._outputs_written()
        else:
            for part in self:
                part.watermark_arrived(notice.channel, notice.number)

    def _outputs_written(self) -> None:
        """Outputs are written: the snapshot or the watermark behind them goes on."""
        at_end = self.slot.thread.written()
        if self._when_written is not None:
            written, self._when_written = self._when_written, None
            written()
        else:
            for part in self:
                part.outputs_written(at_end=at_end)

    # ------------------------------------------------------------------------------------------ the end of the data

    def end_input(self, done: Callable[[], None]) -> None:
        """No record follows: late outputs are waited for, then the last work is done on the task thread.  Then `done`."""
        self.slot.checks.input_ended(self.slot.task)
        for part in self:
            part.end_input()
        if self.has_pending_outputs():  # a barrier met meanwhile would come before them
            self._when_answered = lambda: self.end_input(done)
            self.slot.thread.begin_yield()
            return
        works = [work for part in self if (work := part.work_at_end()) is not None]
        if not works:
            done()
            return

        def written() -> None:
            self.slot.thread.vacate()
            done()

        self._work_on_thread(self._one_by_one(0, works), written)

    def has_pending_outputs(self) -> bool:
        """Whether the end of the data waits for late outputs now."""
        return any(part.has_pending_outputs for part in self) and self.context.plane.position(self.slot.task).late > 0

    # ------------------------------------------------------------------------------------------ work on the task thread

    def _one_by_one(self, own_ns: int, works: list[Work[None]]) -> Work[None]:
        if own_ns:
            yield self.context.env.timeout(own_ns)
        for work in works:
            yield from work

    def _work_on_thread(self, work: Work[None], done: Callable[[], None]) -> None:
        """Hold the thread while the work goes on, then call `done`, which lets it go."""

        def failed(failure: StorageFailed) -> None:
            if self.slot.thread.stopped:
                done()
            else:
                self.slot.job.fail_task(self.slot.task, f"flush: {failure}")
                self.slot.thread.freed()  # the exception ends the work, too: the restart need not wait for it

        if begin(self.context.env, work, lambda _: done(), failed) is not None:
            self.slot.thread.occupy()
