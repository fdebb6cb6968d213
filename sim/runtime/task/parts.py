"""The parts of one task, in order: they are found, attached, and waited for where their work keeps the task thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import sim.runtime.task.operator.windows
from sim.model.catalogs.catalog import pages
from sim.plane.seam.interface import Notice, NoticeKind
from sim.protocol.task_vocabulary import RunPreBarrier
from sim.runtime.background import begin
from sim.runtime.contents import TaskSnapshot
from sim.runtime.task.operator.sink import SinkCommitter
from sim.runtime.task.part import P, TaskFeature, TaskPart, WaitingBytes
from sim.runtime.task.slot import Slot
from sim.storage.failures import StorageFailed
from sim.storage.work import Work

_NOTHING_WAITS = WaitingBytes()


@cache
def task_features() -> tuple[TaskFeature, ...]:
    """All features that the files of these folders define, in the order of their stages: a file that is added counts."""
    folders = sim.runtime.task, sim.runtime.task.operator, sim.runtime.task.operator.windows
    found = (feature for folder in folders for feature in pages(folder, TaskFeature))
    return tuple(sorted(found, key=lambda feature: feature.stage))


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
        self._before_barrier, self._work_before_barrier = self._acting(TaskPart.before_barrier), self._acting(TaskPart.work_before_barrier)
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
        works = [work for part in self._work_before_barrier if (work := part.work_before_barrier(checkpoint, command.work)) is not None]
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
        if self.owes_outputs():  # a barrier met meanwhile would come before them
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

    def owes_outputs(self) -> bool:
        """Whether the end of the data waits for late outputs now."""
        return any(part.owes_outputs for part in self) and self.context.plane.position(self.slot.task).late > 0

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
