"""What the operator of one task does with the outside: its files and its transactions end an epoch together, at the cut of a snapshot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from sim.protocol.vocabulary import Work as Piece
from sim.protocol.writer import Writer
from sim.runtime.background import begin
from sim.runtime.task.operator_files import OperatorFiles
from sim.runtime.task.sink import SinkCommitter, SinkWriter
from sim.runtime.task.staging import StagingSpace
from sim.storage.failures import StorageFailed
from sim.storage.work import Work

if TYPE_CHECKING:
    from sim.protocol.committables import Committable
    from sim.protocol.task_vocabulary import RunPreBarrier
    from sim.runtime.contents import Held
    from sim.runtime.run.world import World
    from sim.runtime.task.host import TaskHost

__all__ = ["OperatorIO", "Uncommitted"]


class Uncommitted(NamedTuple):
    """What a checkpoint holds of a committer."""

    checkpoint: int
    committables: tuple[Committable, ...]

    def renumbered(self, before: Sequence[tuple[str, int]], after: Sequence[tuple[str, int]]) -> Uncommitted:
        """The same for a job whose tasks (vertex, index) have other numbers."""
        if list(before) == list(after):
            return self
        number = {name: task for task, name in enumerate(after)}
        return self._replace(committables=tuple(replace(one, writer=number[before[one.writer]]) for one in self.committables))


class OperatorIO:
    """Of every task; most write no files and no transactions."""

    def __init__(self, world: World, host: TaskHost) -> None:
        vertex = world.scenario.job.vertices[world.layout.vertex[host.task]]
        self.world = world
        self.host = host
        self.files: OperatorFiles | None = None
        self.writer: SinkWriter | None = None
        self.committer: SinkCommitter | None = None
        self._ends_epochs = vertex.flush is not None or vertex.commit is not None
        self._emits_on_commit = vertex.commit is not None and vertex.commit.emits == "on-commit"
        self._makes_requests = vertex.async_io is not None
        self._when_answered: Callable[[], None] = lambda: None
        self._bytes_at_cut = 0
        self._holds_back = 0
        self._last_checkpoint = 0
        self._served: dict[int, int] = {}  # by epoch whose records wait for their commit: how many were served by its end
        commit = world.scenario.job.vertex(vertex.committer_of).commit if vertex.committer_of else vertex.commit
        if commit is not None and (vertex.committer_of or commit.committer == "chained"):
            self.committer = SinkCommitter(world, host, commit)
        if self._ends_epochs:
            records, _ = self._read()  # where it stands: after a restart not at the beginning
            if vertex.commit is not None:
                self._holds_back = vertex.commit.holds_back
                self.writer = SinkWriter(world, Writer(host.task, records, host.env.now), vertex.name, self.committer)
        if self._ends_epochs or self.committer is not None:
            host.on_restore.append(self._restored)
        if vertex.flush is not None:
            self.files = OperatorFiles(world, host.task, vertex.flush, _space(world, world.hosts[host.task]))
            host.on_complete.append(self.files.complete)  # after the commit
            host.on_abort.append(self.files.abort)

    # ------------------------------------------------------------------------------------------ a snapshot

    def before_barrier(self, command: RunPreBarrier, own_ns: int, done: Callable[[], None]) -> None:
        """What was written since the last snapshot goes to the committer; the operator's own work and its files take their time.

        If storage gives up, the task fails.
        """
        checkpoint = command.checkpoint
        if self._ends_epochs:
            records, names, size_bytes = self._ended(checkpoint)
            if self.writer is not None:
                written = records if self.host.ending.machine.drained else self._written(records, self.writer.machine.read)
                self.writer.end_epoch(self.host.env.now, checkpoint, written, size_bytes, names)
        if self.committer is not None:
            self.committer.take_in(checkpoint)
        if self.files is None:
            if own_ns:
                self.host.thread.occupy()
            self.host.env.call_in(own_ns, done)
        else:
            self._work_on_thread(self._flush(self.files, command.work, own_ns, checkpoint), done)

    def cut(self, checkpoint: int, *, finished: bool) -> None:
        """The barrier has just been forwarded: what the snapshot keeps of the committer, and the records the writer holds back."""
        uncommitted = None if self.committer is None else Uncommitted(checkpoint, self.committer.machine.committables)
        held_back: tuple[int, ...] = ()
        if self.writer is not None:
            read = self.world.plane.position(self.host.task).records_out.tolist()
            held_back = tuple(records - written for records, written in zip(read, self.writer.machine.read, strict=True))
        self.world.contents.cut(checkpoint, self.host.task, uncommitted, finished=finished, held_back=held_back)

    def upload(self, checkpoint: int) -> Work[None]:
        """Process, in the asynchronous phase.  Raises StorageFailed."""
        if self.files is not None:
            yield from self.files.upload(checkpoint)

    def abort(self, checkpoint: int) -> None:
        """The snapshot is cancelled."""
        if self.files is not None:
            self.files.abort(checkpoint)

    def requests(self) -> int:
        """Under way now."""
        return self.world.plane.position(self.host.task).late if self._makes_requests else 0

    def served_until(self, epoch: int) -> int:
        """Records served by the end of an epoch, which is committed."""
        ended = [number for number in self._served if number <= epoch]
        return max((self._served.pop(number) for number in ended), default=0)

    # ------------------------------------------------------------------------------------------ its end and its beginning

    def end_input(self, done: Callable[[], None]) -> None:
        """No record follows: what is asked for is waited for, the last files are written on the task thread, and what is open goes to the

        committer.  Then `done`.
        """
        if self.requests():  # AsyncWaitOperator#endInput: a barrier met meanwhile would come before the answers
            self._when_answered = lambda: self.end_input(done)
            self.host.thread.begin_yield()
            return
        if not self._ends_epochs:
            done()
            return
        epoch = self._last_checkpoint + 1
        records, names, size_bytes = self._ended(epoch)
        if self.writer is not None:
            self.writer.end_input(self.host.env.now, records, size_bytes, names)
        if self.files is None:
            done()
            return

        def written() -> None:
            self.host.thread.vacate()
            done()

        options, rule = self.world.scenario.checkpoint, self.world.job_end.rule
        later = options.operator_io == "async" and options.interval_ns is not None and rule.waits  # for a checkpoint to upload them
        self._work_on_thread(self._flush(self.files, () if later else (Piece.OPERATOR_FLUSH,), 0, epoch), written)

    def answered(self) -> None:
        """The last request under way is answered, and its output is written."""
        self._when_answered()
        self.host.thread.end_yield()

    def commit_at_finish(self) -> None:
        """The task ends and waits for no checkpoint: its committer commits what it holds, whatever becomes of the job."""
        if self.committer is not None:
            self.committer.close()

    def stop(self) -> None:
        """The task is gone, and what it had on its disk."""
        if self.files is not None:
            self.files.stop()

    def _restored(self, held: Held) -> None:
        """Epochs go on behind the checkpoint restored: output that ends before the next one belongs to neither it nor an older one."""
        uncommitted = held.committables if isinstance(held.committables, Uncommitted) else None
        checkpoint = self.world.coordinator.machine.latest_completed if uncommitted is None else uncommitted.checkpoint
        self._last_checkpoint = checkpoint
        if self._emits_on_commit:
            self._served[checkpoint] = held.position.served
        if self.writer is not None:
            self.writer.go_on_behind(checkpoint, held.written)
        if self.committer is not None and uncommitted is not None:
            self.committer.restored(*uncommitted)

    # ------------------------------------------------------------------------------------------ details

    def _flush(self, files: OperatorFiles, pieces: tuple[Piece, ...], own_ns: int, checkpoint: int) -> Work[None]:
        if own_ns:
            yield self.host.env.timeout(own_ns)
        yield from files.write(checkpoint) if Piece.OPERATOR_FLUSH in pieces else files.stage(checkpoint)

    def _work_on_thread(self, work: Work[None], done: Callable[[], None]) -> None:
        """Hold the thread while the work goes on, then call `done`, which lets it go."""

        def failed(failure: StorageFailed) -> None:
            if self.host.stopped:
                done()
            else:
                self.world.fail_task(self.host.task, f"flush: {failure}")
                self.host.free()  # the exception ends the work too: nothing holds the restart back

        if begin(self.host.env, work, lambda _: done(), failed) is not None:
            self.host.thread.occupy()

    def _ended(self, epoch: int) -> tuple[tuple[int, ...], tuple[tuple[str | int, ...], ...], int]:
        """Records read so far per channel, and the files (and bytes) of what was read since the last time."""
        self._last_checkpoint = epoch
        if self._emits_on_commit:
            self._served[epoch] = self.world.plane.position(self.host.task).served
        records, since = self._read()
        if self.files is None:
            return records, (), since
        names = self.files.choose(epoch, since)
        return records, names, self.files.volume(epoch)

    def _written(self, records: tuple[int, ...], before: tuple[int, ...]) -> tuple[int, ...]:
        """Of the records read so far, those it does not hold back; what it wrote before stays written."""
        return tuple(max(done, read - self._holds_back) for read, done in zip(records, before, strict=True))

    def _read(self) -> tuple[tuple[int, ...], int]:
        """Records read so far on each channel, and the bytes read since the last time."""
        here = self.world.plane.position(self.host.task)
        read_bytes = int(here.consumed.sum())
        since, self._bytes_at_cut = read_bytes - self._bytes_at_cut, read_bytes
        return tuple(here.records_out.tolist()), since

def _space(world: World, host: int) -> StagingSpace:
    """All tasks of a task manager share its disk."""
    options = world.scenario.checkpoint
    if host not in world.staging:
        world.staging[host] = StagingSpace(world.env, options.staging_bytes, waits=options.staging_full == "block")
    return world.staging[host]
