"""The operator of one task: calls its parts in order, and waits for their work on the task thread."""

from __future__ import annotations

from collections.abc import Callable

from sim.plane.seam.interface import Notice, NoticeKind
from sim.protocol.task_vocabulary import RunPreBarrier
from sim.runtime.background import begin
from sim.runtime.contents import TaskSnapshot
from sim.runtime.task.operator.features import FEATURES
from sim.runtime.task.operator.part import P, TaskPart, WaitingBytes
from sim.runtime.task.operator.sink import SinkCommitter
from sim.runtime.task.slot import Slot
from sim.storage.failures import StorageFailed
from sim.storage.work import Work


class Operator:
    """The operator of one task, as a list of parts.

    `committer_of` gives the global committer of a vertex; `drained`: whether the operators have finished.
    """

    def __init__(self, slot: Slot, committer_of: Callable[[str], SinkCommitter], drained: Callable[[], bool]) -> None:
        self.slot = slot
        self.context = slot.context
        self.committer_of = committer_of
        self.drained = drained
        self.parts: list[TaskPart] = []
        for attach in FEATURES:
            if (part := attach(slot, self)) is not None:
                self.parts.append(part)
        self._when_answered: Callable[[], None] = lambda: None
        self._when_written: Callable[[], None] | None = None  # outputs that were let go before a barrier

    def of(self, kind: type[P]) -> P | None:
        """The part of a kind."""
        return next((part for part in self.parts if isinstance(part, kind)), None)

    @property
    def listens(self) -> bool:
        """Whether completed checkpoints matter."""
        return any(part.listens for part in self.parts)

    @property
    def drops(self) -> bool:
        """Whether records wait for a watermark that never comes."""
        return any(part.drops for part in self.parts)

    # ------------------------------------------------------------------------------------------ a snapshot

    def before_barrier(self, command: RunPreBarrier, own_ns: int, done: Callable[[], None]) -> None:
        """The operator's own work and that of its parts, on the task thread; then `done`.  If storage gives up, the task fails."""
        checkpoint = command.checkpoint
        own_ns += sum(part.before_barrier(checkpoint) for part in self.parts)
        works = [work for part in self.parts if (work := part.work_before_barrier(checkpoint, command.work)) is not None]
        then = lambda: self._let_go(done)  # noqa: E731
        if works:
            self._work_on_thread(self._one_by_one(own_ns, works), then)
        else:
            if own_ns:
                self.slot.thread.occupy()
            self.context.env.call_in(own_ns, then)

    def _let_go(self, done: Callable[[], None]) -> None:
        """Outputs that leave before each barrier are written first (LocalSlicingWindowAggOperator, AbstractMapBundleOperator)."""
        waits = False if self.slot.thread.stopped else sum(part.leaves() for part in self.parts) > 0
        if waits:
            self._when_written = done
            self.slot.thread.vacate()
        else:
            done()

    def overtaken(self, checkpoint: int) -> None:
        """The barrier leaves before what lies in the outputs."""
        for part in self.parts:
            part.overtaken(checkpoint)

    def cut(self, checkpoint: int, *, finished: bool) -> None:
        """The barrier has just been forwarded: each part fills its fields of the snapshot."""

        def fill(snapshot: TaskSnapshot) -> None:
            for part in self.parts:
                part.cut(checkpoint, snapshot)

        self.slot.contents.cut(checkpoint, self.slot.task, fill, finished=finished)

    def waiting(self) -> WaitingBytes:
        """Records that are state now, because their outputs wait."""
        waiting = [part.waiting() for part in self.parts]
        return WaitingBytes(sum(part.operator for part in waiting), sum(part.windows for part in waiting))

    def upload(self, checkpoint: int) -> Work[None]:
        """Process, in the asynchronous phase.  Raises StorageFailed."""
        for part in self.parts:
            if (work := part.upload(checkpoint)) is not None:
                yield from work

    def completed(self, checkpoint: int) -> None:
        """The task has heard of a completion."""
        for part in self.parts:
            part.completed(checkpoint)

    def abort(self, checkpoint: int) -> None:
        """The snapshot is cancelled, or the task hears that its checkpoint is aborted."""
        for part in self.parts:
            part.aborted(checkpoint)

    # ------------------------------------------------------------------------------------------ what the plane reports

    def on_notice(self, notice: Notice) -> None:
        """A watermark arrives, or outputs are written."""
        if notice.kind is NoticeKind.NONE_LATE:  # the last request under way is answered, and its output is written
            self._when_answered()
            self.slot.thread.end_yield()
        elif notice.kind is NoticeKind.WRITTEN:
            self._outputs_written()
        else:
            for part in self.parts:
                part.watermark_arrived(notice.channel, notice.number)

    def _outputs_written(self) -> None:
        """Outputs are written: the snapshot or the watermark behind them goes on."""
        at_end = self.slot.thread.written()
        if self._when_written is not None:
            written, self._when_written = self._when_written, None
            written()
        else:
            for part in self.parts:
                part.outputs_written(at_end=at_end)

    def channel_ended(self, channel: int) -> None:
        """The last record of an input channel was processed."""
        for part in self.parts:
            part.channel_ended(channel)

    def limited(self, watermark_ns: int) -> None:
        """The JobManager announces how far the watermark of a source may come."""
        for part in self.parts:
            part.limited(watermark_ns)

    # ------------------------------------------------------------------------------------------ its end and its beginning

    def end_input(self, done: Callable[[], None]) -> None:
        """No record follows: late outputs are waited for, then the last work is done on the task thread.  Then `done`."""
        for part in self.parts:
            part.end_input()
        if self.owes_outputs():  # a barrier met meanwhile would come before them
            self._when_answered = lambda: self.end_input(done)
            self.slot.thread.begin_yield()
            return
        works = [work for part in self.parts if (work := part.work_at_end()) is not None]
        if not works:
            done()
            return

        def written() -> None:
            self.slot.thread.vacate()
            done()

        self._work_on_thread(self._one_by_one(0, works), written)

    def owes_outputs(self) -> bool:
        """Whether the end of the data waits for late outputs now."""
        return any(part.owes_outputs for part in self.parts) and self.context.plane.position(self.slot.task).late > 0

    def quiesce(self) -> None:
        """Timers of processing time fire no more."""
        for part in self.parts:
            part.quiesce()

    def close(self) -> None:
        """The task ends and waits for no checkpoint."""
        for part in self.parts:
            part.close()

    def begin(self) -> None:
        """The task runs."""
        for part in self.parts:
            part.begin()

    def stop(self) -> None:
        """The task is gone."""
        for part in self.parts:
            part.stop()

    def restored(self, snapshot: TaskSnapshot) -> None:
        """The task goes on from its part of a checkpoint."""
        for part in self.parts:
            part.restored(snapshot)

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
