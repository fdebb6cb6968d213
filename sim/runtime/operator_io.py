"""What an operator of one task does with the outside: its files and its transactions end an epoch together, at the cut of a snapshot."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sim.protocol.vocabulary import Work as Piece
from sim.protocol.writer import Writer
from sim.runtime.background import begin
from sim.runtime.operator_files import OperatorFiles
from sim.runtime.sink import SinkCommitter, SinkWriter
from sim.runtime.staging import StagingSpace
from sim.storage.failures import StorageFailed
from sim.storage.work import Work

if TYPE_CHECKING:
    from sim.model.job import Vertex
    from sim.protocol.committables import Committable
    from sim.runtime.task_host import TaskHost
    from sim.runtime.world import World

__all__ = ["OperatorIO", "operator_io"]


def operator_io(world: World, host: TaskHost, vertex: Vertex) -> OperatorIO | None:
    """Of a task that writes files or transactions, or commits them; most do neither."""
    return OperatorIO(world, host, vertex) if vertex.flush or vertex.commit or vertex.committer_of else None


class OperatorIO:
    def __init__(self, world: World, host: TaskHost, vertex: Vertex) -> None:
        self.world = world
        self.host = host
        self.files: OperatorFiles | None = None
        self.writer: SinkWriter | None = None
        self.committer: SinkCommitter | None = None
        self._channels = [c for gate in world.layout.task_gates[host.task] for c in world.layout.gates[gate][2]]
        self._bytes_at_cut = 0
        self._last_checkpoint = 0
        records, _ = self._read()  # where it stands: after a restart not at the beginning
        if vertex.flush is not None:
            self.files = OperatorFiles(world, host.task, vertex.flush, _space(world, world.hosts[host.task]))
            host.on_abort.append(self.files.abort)
        commit = world.scenario.job.vertex(vertex.committer_of).commit if vertex.committer_of else vertex.commit
        if commit is not None:
            if vertex.committer_of or commit.committer == "chained":
                self.committer = SinkCommitter(world, host, commit)
            if not vertex.committer_of:
                self.writer = SinkWriter(world, Writer(host.task, records, host.env.now), vertex.name, self.committer)
        if self.files is not None:
            host.on_complete.append(self.files.complete)  # after the commit

    def cut(self, checkpoint: int) -> None:
        """The task's snapshot begins: what was written since the last goes to the committer, before the barrier."""
        records, names, size_bytes = self._ended(checkpoint)
        if self.writer is not None:
            self.writer.end_epoch(self.host.env.now, checkpoint, records, size_bytes, names)
        if self.committer is not None:
            self.committer.take_in(checkpoint)

    def before_barrier(self, pieces: tuple[Piece, ...], own_ns: int, checkpoint: int) -> Work[None]:
        """Process, on the task thread: the operator's own work, then its files.  Raises StorageFailed."""
        if own_ns:
            yield self.host.env.timeout(own_ns)
        if self.files is not None:
            yield from self.files.write(checkpoint) if Piece.OPERATOR_FLUSH in pieces else self.files.stage(checkpoint)

    def upload(self, checkpoint: int) -> Work[None]:
        """Process, in the asynchronous phase.  Raises StorageFailed."""
        if self.files is not None:
            yield from self.files.upload(checkpoint)

    def abort(self, checkpoint: int) -> None:
        if self.files is not None:
            self.files.abort(checkpoint)

    def end_input(self, done: Callable[[], None]) -> None:
        """No record follows: the last files are written on the task thread, and what is open goes to the committer.  Then `done`."""
        epoch = self._last_checkpoint + 1
        records, names, size_bytes = self._ended(epoch)
        if self.writer is not None:
            self.writer.end_input(self.host.env.now, records, size_bytes, names)

        def written() -> None:
            self.host.thread.vacate()
            done()

        how = Piece.OPERATOR_STAGE if self.world.scenario.checkpoint.operator_io == "async" else Piece.OPERATOR_FLUSH
        self.work_on_thread(self.before_barrier((how,), 0, epoch), written)

    def work_on_thread(self, work: Work[None], done: Callable[[], None]) -> None:
        """Hold the thread while the work goes on, then call `done`, which lets it go; if storage gives up, the task fails."""

        def failed(failure: StorageFailed) -> None:
            self.world.recovery.fail_task(self.host.task, f"flush: {failure}")

        if begin(self.host.env, work, lambda _: done(), failed) is not None:
            self.host.thread.occupy()

    @property
    def held(self) -> tuple[Committable, ...]:
        """The committables a snapshot taken now keeps."""
        return () if self.committer is None else self.committer.machine.held

    def restored(self, checkpoint: int, committables: tuple[Committable, ...]) -> None:
        """The task starts from a checkpoint (call at a safe point): what its committer held is committed again."""
        if self.committer is not None:
            self.committer.restored(checkpoint, committables)

    def stop(self) -> None:
        """The task is gone, and what it had on its disk."""
        if self.files is not None:
            self.files.stop()

    def _ended(self, epoch: int) -> tuple[tuple[int, ...], tuple[tuple[str | int, ...], ...], int]:
        """Records read so far per channel, and the files (and bytes) of what was read since the last time."""
        self._last_checkpoint = epoch
        records, since = self._read()
        if self.files is None:
            return records, (), since
        names = self.files.choose(epoch, since)
        return records, names, self.files.volume(epoch)

    def _read(self) -> tuple[tuple[int, ...], int]:
        """Records read so far on each channel, and the bytes read since the last time."""
        rows = self.world.plane.channels()
        read_bytes = int(rows["consumed"][self._channels].sum())
        since, self._bytes_at_cut = read_bytes - self._bytes_at_cut, read_bytes
        return tuple(rows["records_out"][self._channels].tolist()), since


def _space(world: World, host: int) -> StagingSpace:
    """All tasks of a task manager share its disk."""
    options = world.scenario.checkpoint
    if host not in world.staging:
        world.staging[host] = StagingSpace(world.env, options.staging_bytes, waits=options.staging_full == "block")
    return world.staging[host]
