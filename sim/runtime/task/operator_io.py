"""What the operator of one task does with the outside: its files and its transactions end an epoch together, at the cut of a snapshot."""

from __future__ import annotations

from collections.abc import Callable

from sim.plane.seam.interface import Kind, Notice
from sim.protocol.commit.writer import Writer
from sim.protocol.task_vocabulary import RunPreBarrier
from sim.protocol.vocabulary import Work as Piece
from sim.runtime.background import begin
from sim.runtime.contents import TaskSnapshot, Uncommitted
from sim.runtime.task.operator_files import OperatorFiles
from sim.runtime.task.sink import SinkCommitter, SinkWriter
from sim.runtime.task.slot import Slot
from sim.runtime.task.state_snapshot import Waiting
from sim.runtime.task.windows.event_time import EventTime, EventTimeWindows
from sim.runtime.task.windows.generator import WatermarkGenerator
from sim.runtime.task.windows.processing_time import ProcessingTimeWindows
from sim.storage.failures import StorageFailed
from sim.storage.work import Work

__all__ = ["OperatorIO"]


class OperatorIO:
    """A task's output files and transactions; both optional.

    `committer_of`: the global committer of a vertex; `drained`: whether the operators have finished.
    """

    def __init__(self, slot: Slot, committer_of: Callable[[str], SinkCommitter], drained: Callable[[], bool]) -> None:
        vertex, job = slot.vertex, slot.context.scenario.job
        self.slot = slot
        self.context = slot.context
        self.plane = slot.context.plane
        self.drained = drained
        self.files: OperatorFiles | None = None
        self.writer: SinkWriter | None = None
        self.committer: SinkCommitter | None = None
        self.windows: ProcessingTimeWindows | EventTimeWindows | None = None
        self.event_time: EventTime | None = None
        self._generator: WatermarkGenerator | None = None
        if vertex.window is not None:
            self.windows = (EventTimeWindows if vertex.window.time == "event" else ProcessingTimeWindows)(slot, vertex.window)
        if job.event_time_windows and vertex.source is None:
            self.event_time = EventTime(slot, self.windows if isinstance(self.windows, EventTimeWindows) else None)
        elif vertex.source is not None and (job.event_time_windows or vertex.source.watermark.alignment is not None):
            chained = self.windows if isinstance(self.windows, EventTimeWindows) else None
            self._generator = WatermarkGenerator(slot, vertex.source, chained)
        self._ends_epochs = vertex.flush is not None or vertex.commit is not None
        self._emits_on_commit = vertex.commit is not None and vertex.commit.emits == "on-commit"
        self._makes_requests = vertex.async_io is not None
        self._when_answered: Callable[[], None] = lambda: None
        self._when_written: Callable[[], None] | None = None  # what windows let go before a barrier is written
        self._bytes_at_cut = 0
        self._holds_back = 0
        self._last_checkpoint = 0
        self._served: dict[int, int] = {}  # by epoch whose records wait for their commit: how many were served by its end
        commit = job.vertex(vertex.committer_of).commit if vertex.committer_of else vertex.commit
        if commit is not None and (vertex.committer_of or commit.committer == "chained"):
            self.committer = SinkCommitter(slot, commit, self._emit, drained)
        if self._ends_epochs:
            records, _ = self._read()  # where it stands: after a restart not at the beginning
            if vertex.commit is not None:
                self._holds_back = vertex.commit.holds_back
                self.writer = SinkWriter(Writer(slot.task, records, slot.now), vertex.name, self.committer, committer_of)
        if vertex.flush is not None:
            self.files = OperatorFiles(slot, vertex.flush)

    @property
    def listens(self) -> bool:
        """Whether completed checkpoints matter."""
        return self.files is not None or self.committer is not None

    # ------------------------------------------------------------------------------------------ a snapshot

    def before_barrier(self, command: RunPreBarrier, own_ns: int, done: Callable[[], None]) -> None:
        """What was written since the last snapshot goes to the committer; the operator's own work and its files take their time.

        If storage gives up, the task fails.
        """
        checkpoint = command.checkpoint
        if self.windows is not None:
            own_ns, done = own_ns + self.windows.content.flush_ns(), self._behind_windows(done)
        if self._ends_epochs:
            records, names, size_bytes = self._ended(checkpoint)
            if self.writer is not None:
                written = records if self.drained() else self._written(records, self.writer.machine.read)
                self.writer.end_epoch(self.slot.now, checkpoint, written, size_bytes, names)
        if self.committer is not None:
            self.committer.take_in(checkpoint)
        if self.files is None:
            if own_ns:
                self.slot.thread.occupy()
            self.context.env.call_in(own_ns, done)
        else:
            self._work_on_thread(self._flush(self.files, command.work, own_ns, checkpoint), done)

    def _behind_windows(self, done: Callable[[], None]) -> Callable[[], None]:
        """What windows let go before each barrier is written first (LocalSlicingWindowAggOperator, AbstractMapBundleOperator)."""
        windows = self.windows
        if windows is None or not windows.window.early:
            return done

        def worked() -> None:
            if self.slot.thread.stopped or not windows.content.leave():
                done()
                return
            self._when_written = done
            self.slot.thread.vacate()

        return worked

    def cut(self, checkpoint: int, *, finished: bool) -> None:
        """The barrier has just been forwarded: what the snapshot keeps of the committer, and the records the writer holds back."""
        uncommitted = None if self.committer is None else Uncommitted(checkpoint, self.committer.machine.committables)
        held_back: tuple[int, ...] = ()
        if self.writer is not None:
            read = self.plane.position(self.slot.task).records_out.tolist()
            held_back = tuple(records - written for records, written in zip(read, self.writer.machine.read, strict=True))
        timers, slices = ((), ()) if self.windows is None else (self.windows.cut(), tuple(self.windows.content.slices.ends))
        self.slot.contents.cut(
            checkpoint, self.slot.task, uncommitted, finished=finished, held_back=held_back, timers=timers, slices=slices
        )

    def upload(self, checkpoint: int) -> Work[None]:
        """Process, in the asynchronous phase.  Raises StorageFailed."""
        if self.files is not None:
            yield from self.files.upload(checkpoint)

    def completed(self, checkpoint: int) -> None:
        """The task has heard of a completion: the commit comes first, then its files are published."""
        if self.committer is not None:
            self.committer.completed(checkpoint)
        if self.files is not None:
            self.files.complete(checkpoint)

    def abort(self, checkpoint: int) -> None:
        """The snapshot is cancelled, or the task hears that its checkpoint is aborted."""
        if self.files is not None:
            self.files.abort(checkpoint)

    def requests(self) -> int:
        """Under way now."""
        return self.plane.position(self.slot.task).late if self._makes_requests else 0

    def waiting(self) -> Waiting:
        """Records that are state now, because their outputs wait."""
        return Waiting(self.requests(), 0 if self.windows is None else self.windows.content.records())

    def _emit(self, epoch: int) -> None:
        """Epochs up to this one are committed: the outputs of their records leave."""
        committed = [number for number in self._served if number <= epoch]
        until = max((self._served[number] for number in committed), default=0)
        for number in committed:
            del self._served[number]
        self.slot.thread.let_go(until)

    # ------------------------------------------------------------------------------------------ its end and its beginning

    def end_input(self, done: Callable[[], None]) -> None:
        """No record follows: answers and windows are waited for, then the last files are written on the task thread.

        What is open goes to the committer.  Then `done`.
        """
        if self.windows is not None and not self.drops:
            self.windows.end_input()
        if self._generator is not None and self._generator.aligned is not None:
            self._generator.aligned.end()
        if self.owes_outputs():  # a barrier met meanwhile would come before them
            self._when_answered = lambda: self.end_input(done)
            self.slot.thread.begin_yield()
            return
        if not self._ends_epochs:
            done()
            return
        epoch = self._last_checkpoint + 1
        records, names, size_bytes = self._ended(epoch)
        if self.writer is not None:
            self.writer.end_input(self.slot.now, records, size_bytes, names)
        if self.files is None:
            done()
            return

        def written() -> None:
            self.slot.thread.vacate()
            done()

        options, rule = self.context.scenario.checkpoint, self.slot.job.rule
        later = options.operator_io == "async" and self.context.periodic and rule.waits  # for a checkpoint to upload them
        self._work_on_thread(self._flush(self.files, () if later else (Piece.OPERATOR_FLUSH,), 0, epoch), written)

    def quiesce(self) -> None:
        """Its timers of processing time fire no more: what waits for them stays in its state."""
        if isinstance(self.windows, ProcessingTimeWindows):
            self.windows.quiesce()

    def owes_outputs(self) -> bool:
        """Whether the end of its data waits for outputs now."""
        return self.slot.vertex.owes_outputs and not self.drops and self.plane.position(self.slot.task).late > 0

    @property
    def drops(self) -> bool:
        """Its windows wait for a watermark that never comes: while a stream is idle the last one does not pass either."""
        clock = self._generator if self.event_time is None else self.event_time
        return isinstance(self.windows, EventTimeWindows) and clock is not None and clock.idle

    def on_notice(self, notice: Notice) -> None:
        """A watermark arrives, or outputs are written."""
        if notice.kind is Kind.NONE_LATE:
            self.answered()
        elif notice.kind is Kind.WRITTEN:
            self._outputs_written()
        elif self.event_time is not None:
            self.event_time.arrived(notice.channel, notice.number)

    def _outputs_written(self) -> None:
        """The snapshot or the watermark behind them goes on.  Behind what left when the data of a source had ended there is neither."""
        ended = self.slot.thread.written()
        if self._when_written is not None:
            written, self._when_written = self._when_written, None
            written()
        elif self.event_time is not None:
            self.event_time.forward()
        elif self._generator is not None and not ended:
            self._generator.forward()

    def limit(self, watermark_ns: int) -> None:
        """How far the watermark of a source may come."""
        if self._generator is not None and self._generator.aligned is not None:
            self._generator.aligned.limited(watermark_ns)

    def answered(self) -> None:
        """The last request under way is answered, and its output is written."""
        self._when_answered()
        self.slot.thread.end_yield()

    def commit_at_finish(self) -> None:
        """The task ends and waits for no checkpoint: its committer commits what it holds, whatever becomes of the job."""
        if self.committer is not None:
            self.committer.close()

    def begin(self) -> None:
        """The task runs."""
        if self.windows is not None:
            self.windows.begin()
        if self._generator is not None:
            self._generator.begin()

    def stop(self) -> None:
        """The task is gone, and what it had on its disk."""
        if self.files is not None:
            self.files.stop()

    def restored(self, part: TaskSnapshot) -> None:
        """Timers and epochs go on behind the checkpoint restored: output before the next one belongs to neither it nor an older one."""
        if self.windows is not None:
            self.windows.content.restored(part.slices)
            self.windows.restored(part.timers)
        if not self._ends_epochs and self.committer is None:
            return
        uncommitted = part.committables
        checkpoint = self.slot.job.latest_completed if uncommitted is None else uncommitted.checkpoint
        self._last_checkpoint = checkpoint
        if self._emits_on_commit:
            self._served[checkpoint] = part.position.served
        if self.writer is not None:
            self.writer.go_on_behind(checkpoint, part.written)
        if self.committer is not None and uncommitted is not None:
            self.committer.restored(*uncommitted)

    # ------------------------------------------------------------------------------------------ details

    def _flush(self, files: OperatorFiles, pieces: tuple[Piece, ...], own_ns: int, checkpoint: int) -> Work[None]:
        if own_ns:
            yield self.context.env.timeout(own_ns)
        yield from files.write(checkpoint) if Piece.OPERATOR_FLUSH in pieces else files.stage(checkpoint)

    def _work_on_thread(self, work: Work[None], done: Callable[[], None]) -> None:
        """Hold the thread while the work goes on, then call `done`, which lets it go."""

        def failed(failure: StorageFailed) -> None:
            if self.slot.thread.stopped:
                done()
            else:
                self.slot.job.fail_task(self.slot.task, f"flush: {failure}")
                self.slot.thread.freed()  # the exception ends the work too: nothing holds the restart back

        if begin(self.context.env, work, lambda _: done(), failed) is not None:
            self.slot.thread.occupy()

    def _ended(self, epoch: int) -> tuple[tuple[int, ...], tuple[tuple[str | int, ...], ...], int]:
        """Records read so far per channel, and the files (and bytes) of what was read since the last time."""
        self._last_checkpoint = epoch
        if self._emits_on_commit:
            self._served[epoch] = self.plane.position(self.slot.task).served
        records, since = self._read()
        if self.files is None:
            return records, (), since
        names = self.files.choose(epoch, since)
        return records, names, self.files.volume(epoch)

    def _written(self, records: tuple[int, ...], before: tuple[int, ...]) -> tuple[int, ...]:
        """The records read so far that it does not hold back; what it wrote before stays written."""
        return tuple(max(done, read - self._holds_back) for read, done in zip(records, before, strict=True))

    def _read(self) -> tuple[tuple[int, ...], int]:
        """Records read so far on each channel, and the bytes read since the last time."""
        here = self.plane.position(self.slot.task)
        read_bytes = int(here.consumed.sum())
        since, self._bytes_at_cut = read_bytes - self._bytes_at_cut, read_bytes
        return tuple(here.records_out.tolist()), since
