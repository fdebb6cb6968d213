"""The parts of a task, such as windows, sinks and channel state: their interface, and the dispatch of events to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import NamedTuple, TypeVar

import sim.runtime.task
from sim.model.catalogs import find_definitions
from sim.plane.interface import Notice, NoticeKind
from sim.protocol.messages import RunPreBarrier
from sim.protocol.messages import Work as Piece
from sim.runtime.clock import begin
from sim.runtime.context import TaskSnapshot
from sim.runtime.task.sink import SinkCommitter
from sim.runtime.task.thread import Slot
from sim.storage.ledger import StorageFailed
from sim.storage.requests import Work

# ---- The interface of a part, with a method for each event in the life of a task.

P = TypeVar("P", bound="TaskPart")


class WaitingBytes(NamedTuple):
    """Size of the records that are part of the state at the cut of a snapshot, by kind of file [bytes]."""

    operator: int = 0  # list state: asynchronous requests in progress
    windows: int = 0  # records in windows


class TaskPart:
    """A part of a task.  Subclasses override the methods of the events that they handle.

    A snapshot calls `before_barrier`, `work_before_barrier`, `release_before_barrier`, `overtaken` (if it overtakes), `cut`, `waiting`,
    `upload`, and in the end `completed` or `aborted`.  Barriers that may overtake data call `capture_begun`,
    `input_overtaken` and `capture_ended` besides.  The end of the data calls `end_input`, waits while a part
    `has_pending_outputs`, then calls `work_at_end`, `close`, and last `finished`.  A restore calls `download`,
    `restored`, `begin`.
    """

    @property
    def listens(self) -> bool:
        """Whether the part needs notifications of completed checkpoints."""
        return False

    @property
    def has_pending_outputs(self) -> bool:
        """Whether the end of data must wait for late outputs of this part."""
        return False

    @property
    def drops(self) -> bool:
        """Whether the part never emits some records, because they wait for a watermark that never arrives."""
        return False

    @property
    def storing(self) -> bool:
        """Whether the part holds buffers that are being written to storage."""
        return False

    def begin(self) -> None:
        """Handle the start of the task."""

    def download(self, snapshot: TaskSnapshot) -> Work[None] | None:
        """Return the process that reads the part's state, for which the task waits, or None.  StorageFailed fails the task."""
        return None

    def restored(self, snapshot: TaskSnapshot) -> None:
        """Continue from a restored snapshot."""

    def stop(self) -> None:
        """Handle that the task was stopped, e.g. cancelled."""

    # ------------------------------------------------------------------------------------------ a snapshot

    def before_barrier(self, checkpoint: int) -> int:
        """Handle the start of a snapshot, before its barrier is forwarded.  Return the time that this takes the task thread [ns]."""
        return 0

    def work_before_barrier(self, checkpoint: int, pieces: tuple[Piece, ...]) -> Work[None] | None:
        """Return a process that holds the task thread before the barrier, or None.

        `pieces` is the work of the pre-barrier phase.

        It may raise StorageFailed, which fails the task.
        """
        return None

    def release_before_barrier(self) -> bool:
        """Release outputs before the barrier.  Return whether the barrier must wait until the plane has written them."""
        return False

    def overtaken(self, checkpoint: int, size_bytes: int) -> None:
        """Handle that the barrier has overtaken `size_bytes` in the output queues."""

    def output_converted(self, checkpoint: int, size_bytes: int) -> None:
        """Handle that a queued barrier was converted, and has overtaken `size_bytes` in the output queues."""

    def cut(self, checkpoint: int, snapshot: TaskSnapshot) -> None:
        """Fill the fields of this part in the snapshot, just after the barrier is forwarded."""

    def waiting(self) -> WaitingBytes:
        """Return the size of the records that are part of the state because their outputs are pending."""
        return WaitingBytes()

    def upload(self, checkpoint: int) -> Work[None] | None:
        """Return the work of the asynchronous phase, or None.  StorageFailed fails the checkpoint."""
        return None

    def completed(self, checkpoint: int) -> None:
        """Handle the notification of a completed checkpoint."""

    def aborted(self, checkpoint: int) -> None:
        """Handle that the snapshot is cancelled or its checkpoint aborted."""

    # ------------------------------------------------------------------------------------------ data in flight

    def capture_begun(self, checkpoint: int) -> None:
        """Prepare for barriers of this checkpoint that may overtake data."""

    def input_overtaken(self, checkpoint: int) -> None:
        """Start to capture in-flight data: a barrier has overtaken the data in the input."""

    def barriers_complete(self, checkpoint: int) -> None:
        """Handle the arrival of the last barrier."""

    def capture_ended(self, checkpoint: int, stored: Callable[[], None], failed: Callable[[], None]) -> None:
        """Handle the end of capturing.  Call `stored` when the part has stored its in-flight data, or `failed`."""
        stored()

    # ------------------------------------------------------------------------------------------ event time

    def watermark_arrived(self, channel: int, number: int) -> None:
        """Handle a watermark or a watermark status of an input channel."""

    def channel_ended(self, channel: int) -> None:
        """Handle the end of data of a channel."""

    def outputs_written(self, *, at_end: bool) -> None:
        """Handle that released outputs are written.  `at_end` is whether the data of the task had ended before."""

    # ------------------------------------------------------------------------------------------ the end

    def end_input(self) -> None:
        """Handle the end of input.  Called again when late outputs are written."""

    def work_at_end(self) -> Work[None] | None:
        """Return work for the task thread after all outputs are written, or None."""
        return None

    def quiesce(self) -> None:
        """Stop processing-time timers.  Records that wait for them stay in state."""

    def close(self) -> None:
        """Handle the end of a task that does not wait for a final checkpoint."""

    def finished(self) -> None:
        """Handle that the task has finished."""


class Stage(IntEnum):
    """The order in which the parts of a task are called: later parts handle the outputs of earlier ones."""

    WINDOWS = 1
    WATERMARKS = 2  # advance event time, which ends windows
    OPERATOR = 3
    OUTPUT = 4  # sinks: outputs of the other parts belong to the epoch that ends
    CHANNELS = 5


@dataclass(frozen=True)
class TaskFeature:
    """A feature that tasks may have.  Each module of `sim.runtime.task` may define one.

    `attach` creates the part of a task, or returns None if the task does not have the feature.
    """

    attach: Callable[[Slot, TaskParts], TaskPart | None]
    stage: Stage = Stage.OPERATOR


# ---- The parts of one task, in the order of their stages.

_NOTHING_WAITS = WaitingBytes()


@cache
def task_features() -> tuple[TaskFeature, ...]:
    """Return the features that the modules of this package define, in the order of their stages."""
    return tuple(sorted(find_definitions(sim.runtime.task, TaskFeature), key=lambda feature: feature.stage))


class TaskParts:
    """The parts of one task.

    `committer_of` returns the global committer of a vertex; `drained` returns whether the operators have finished.
    """

    def __init__(self, slot: Slot, committer_of: Callable[[str], SinkCommitter], drained: Callable[[], bool]) -> None:
        self.slot = slot
        self.context = slot.context
        self.committer_of = committer_of
        self.drained = drained
        self._parts: tuple[TaskPart, ...] = ()
        for feature in task_features():
            if (part := feature.attach(slot, self)) is not None:
                self._parts += (part,)  # later parts may look it up
        self._before_barrier, self._work_before_barrier = (
            self._acting(TaskPart.before_barrier),
            self._acting(TaskPart.work_before_barrier),
        )
        self._releasing, self._cutting = self._acting(TaskPart.release_before_barrier), self._acting(TaskPart.cut)
        self._keeping = self._acting(TaskPart.waiting)
        self._when_answered: Callable[[], None] = lambda: None
        # called when outputs released before a barrier are written
        self._when_written: Callable[[], None] | None = None

    def _acting(self, moment: Callable[..., object]) -> tuple[TaskPart, ...]:
        """Return the parts that override a method of `TaskPart`."""
        return tuple(part for part in self._parts if getattr(type(part), moment.__name__) is not moment)

    def __iter__(self) -> Iterator[TaskPart]:
        return iter(self._parts)

    def of(self, kind: type[P]) -> P | None:
        """Return the part that is an instance of `kind`, or None."""
        return next((part for part in self if isinstance(part, kind)), None)

    @property
    def listens(self) -> bool:
        """Whether some part needs notifications of completed checkpoints."""
        return any(part.listens for part in self)

    @property
    def drops(self) -> bool:
        """Whether some records wait for a watermark that never arrives."""
        return any(part.drops for part in self)

    # ------------------------------------------------------------------------------------------ a snapshot

    def before_barrier(self, command: RunPreBarrier, own_ns: int, done: Callable[[], None]) -> None:
        """Do the pre-barrier work of the operator and of all parts on the task thread, then call `done`.

        `own_ns` is the time of the operator's own work.  If a part raises StorageFailed, the task fails.
        """
        checkpoint = command.checkpoint
        for part in self._before_barrier:
            own_ns += part.before_barrier(checkpoint)
        works = [
            work
            for part in self._work_before_barrier
            if (work := part.work_before_barrier(checkpoint, command.work)) is not None
        ]
        release = lambda: self._release_outputs(done)  # noqa: E731
        if works:
            self._work_on_thread(self._one_by_one(own_ns, works), release)
        else:
            if own_ns:
                self.slot.thread.occupy()
            self.context.env.call_in(own_ns, release)

    def _release_outputs(self, done: Callable[[], None]) -> None:
        """Release outputs before the barrier, wait until they are written, then call `done` (AbstractMapBundleOperator)."""
        waits = (
            False if self.slot.thread.stopped else sum([part.release_before_barrier() for part in self._releasing]) > 0
        )
        if waits:
            self._when_written = done
            self.slot.thread.vacate()
        else:
            done()

    def cut(self, checkpoint: int, *, finished: bool) -> None:
        """Create the snapshot of the task after the barrier is forwarded; each part fills its fields."""

        def fill(snapshot: TaskSnapshot) -> None:
            for part in self._cutting:
                part.cut(checkpoint, snapshot)

        self.context.contents.cut(checkpoint, self.slot.task, fill, finished=finished)

    def waiting(self) -> WaitingBytes:
        """Return the size of the records that are part of the state."""
        if not self._keeping:
            return _NOTHING_WAITS
        waiting = [part.waiting() for part in self._keeping]
        return WaitingBytes(sum(part.operator for part in waiting), sum(part.windows for part in waiting))

    def capture_ended(self, checkpoint: int, stored: Callable[[], None], failed: Callable[[], None]) -> None:
        """End capturing.  Call `stored` when all parts have stored their in-flight data, or `failed`."""
        left = len(self._parts)

        def one_stored() -> None:
            nonlocal left
            left -= 1
            if not left:
                stored()

        for part in self:
            part.capture_ended(checkpoint, one_stored, failed)

    def upload(self, checkpoint: int) -> Work[None]:
        """Process: do the work of all parts in the asynchronous phase, one by one.  Raises StorageFailed."""
        for part in self:
            if (work := part.upload(checkpoint)) is not None:
                yield from work

    # ------------------------------------------------------------------------------------------ notices of the plane

    def on_notice(self, notice: Notice) -> None:
        """Handle a watermark, or the writing of late or released outputs."""
        if notice.kind is NoticeKind.DELAYED_OUTPUTS_WRITTEN:  # the output of the last pending request is written
            self._when_answered()
            self.slot.thread.end_yield()
        elif notice.kind is NoticeKind.WRITTEN:
            self._outputs_written()
        else:
            for part in self:
                part.watermark_arrived(notice.channel, notice.number)

    def _outputs_written(self) -> None:
        """Continue the snapshot, or the watermark, that waited for released outputs."""
        at_end = self.slot.thread.written()
        if self._when_written is not None:
            written, self._when_written = self._when_written, None
            written()
        else:
            for part in self:
                part.outputs_written(at_end=at_end)

    # ------------------------------------------------------------------------------------------ the end of the data

    def end_input(self, done: Callable[[], None]) -> None:
        """End the input: wait for late outputs, do the last work on the task thread, then call `done`."""
        self.slot.checks.input_ended(self.slot.task)
        for part in self:
            part.end_input()
        if self.has_pending_outputs():  # the thread yields: barriers may be processed before them
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
        """Return whether late outputs are pending."""
        return any(part.has_pending_outputs for part in self) and self.slot.position.late > 0

    # ------------------------------------------------------------------------------------------ work on the task thread

    def _one_by_one(self, own_ns: int, works: list[Work[None]]) -> Work[None]:
        """Process: spend `own_ns`, then do the works in order."""
        if own_ns:
            yield self.context.env.timeout(own_ns)
        for work in works:
            yield from work

    def _work_on_thread(self, work: Work[None], done: Callable[[], None]) -> None:
        """Hold the thread during the work, then call `done`, which releases it."""

        def failed(failure: StorageFailed) -> None:
            if self.slot.thread.stopped:
                done()
            else:
                self.slot.job.fail_task(self.slot.task, f"flush: {failure}")
                self.slot.thread.free()  # the exception also ends the work, so the restart need not wait for it

        if begin(self.context.env, work, lambda _: done(), failed) is not None:
            self.slot.thread.occupy()
