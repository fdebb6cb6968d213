"""A task's part in a transactional sink: its writer and its committer meet the task thread, the streams and the files.

Decides nothing: what is committed when is `sim.protocol`'s.  A chained committer is in the writer's task; a global one is a
task of its own, and the committables of a barrier reach it with the last of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.metrics.commits import CommitStats, CommittedEpoch
from sim.metrics.journal import Happening
from sim.protocol.committables import (
    Commit,
    Committable,
    CommittablesReceived,
    CommitterEvent,
    CompletionNotified,
    EpochEnded,
    InputEnded,
    ReportLost,
    Restored,
    WriterEvent,
)
from sim.protocol.committer import Committer
from sim.protocol.writer import Writer

if TYPE_CHECKING:
    from sim.model.job import Vertex
    from sim.model.sink import Commit as CommitOptions
    from sim.runtime.task_host import TaskHost
    from sim.runtime.world import World

__all__ = ["Sink", "SinkCommitter", "SinkWriter"]


class Sink:
    """Of one task: a writer, a committer or both."""

    def __init__(self, world: World, host: TaskHost, vertex: Vertex) -> None:
        self.writer: SinkWriter | None = None
        self.committer: SinkCommitter | None = None
        if vertex.committer_of and (options := world.scenario.job.vertex(vertex.committer_of).commit) is not None:
            self.committer = SinkCommitter(world, host, options)
        if vertex.commit is not None:
            if vertex.commit.committer == "chained":
                self.committer = SinkCommitter(world, host, vertex.commit)
            self.writer = SinkWriter(world, host, vertex.name, self.committer)

    def cut(self, checkpoint: int) -> None:
        """The task's snapshot begins: what was written so far goes to the committer, before the barrier."""
        if self.writer is not None:
            self.writer.end_epoch(checkpoint)
        if self.committer is not None:
            self.committer.take_in(checkpoint)

    def end_input(self) -> None:
        """No record follows: what is open goes to the committer before the end of data does."""
        if self.writer is not None:
            self.writer.end_input()

    @property
    def held(self) -> tuple[Committable, ...]:
        """What a snapshot taken now keeps."""
        return () if self.committer is None else self.committer.machine.held


class SinkWriter:
    def __init__(self, world: World, host: TaskHost, vertex: str, chained: SinkCommitter | None) -> None:
        self.world = world
        self.host = host
        self.vertex = vertex
        self._committer = chained
        self._channels = [c for gate in world.layout.task_gates[host.task] for c in world.layout.gates[gate][2]]
        self.machine = Writer(host.task, (0,) * len(self._channels))
        self._bytes_at_cut = 0

    def end_epoch(self, checkpoint: int) -> None:
        records, size_bytes = self._read()
        self._tell(EpochEnded(self.host.env.now, checkpoint, records, size_bytes))

    def end_input(self) -> None:
        records, size_bytes = self._read()
        self._tell(InputEnded(self.host.env.now, records, size_bytes))

    def _tell(self, event: WriterEvent) -> None:
        self.machine, commands = self.machine.on(event)
        for command in commands:
            self._behind().in_transit.append(command.committable)

    def _read(self) -> tuple[tuple[int, ...], int]:
        """Records read so far, per channel, and bytes since the last time."""
        rows = self.world.plane.channels()
        size_bytes = int(rows["consumed"][self._channels].sum())
        since, self._bytes_at_cut = size_bytes - self._bytes_at_cut, size_bytes
        return tuple(rows["records_out"][self._channels].tolist()), since

    def _behind(self) -> SinkCommitter:
        if self._committer is None:
            vertices = self.world.scenario.job.vertices
            name = next(vertex.name for vertex in vertices if vertex.committer_of == self.vertex)
            sink = self.world.tasks[self.world.names().index((name, 0))].sink
            self._committer = None if sink is None else sink.committer
        if self._committer is None:
            raise LookupError(f"nobody commits what {self.vertex} writes")
        return self._committer


class SinkCommitter:
    def __init__(self, world: World, host: TaskHost, options: CommitOptions) -> None:
        self.world = world
        self.host = host
        self.machine = Committer(options.transaction_timeout_ns)
        self.in_transit: list[Committable] = []  # the barrier behind them is not here yet
        self._commit_ns = options.time_ns
        host.on_complete.append(lambda checkpoint: self._tell(CompletionNotified(host.env.now, checkpoint)))

    def take_in(self, checkpoint: int) -> None:
        """All barriers of a checkpoint are here, and what came before them."""
        arrived = tuple(one for one in self.in_transit if one.epoch <= checkpoint)
        if arrived:
            self.in_transit = [one for one in self.in_transit if one.epoch > checkpoint]
            self._tell(CommittablesReceived(self.host.env.now, arrived))

    def restored(self, checkpoint: int, committables: tuple[Committable, ...]) -> None:
        """Start from a checkpoint (call at a safe point): what it held is committed at once, and again."""
        self._tell(Restored(self.host.env.now, checkpoint, committables))

    def _tell(self, event: CommitterEvent) -> None:
        self.machine, commands = self.machine.on(event)
        lost = tuple(one for command in commands if isinstance(command, ReportLost) for one in command.committables)
        commit = next((command for command in commands if isinstance(command, Commit)), None)
        if commit is not None:
            if self._commit_ns:
                self.host.thread.occupy()
            self.host.env.call_in(self._commit_ns, lambda: self._committed(commit, lost))
        elif lost:
            self._note(commands[0].checkpoint, (), lost, again=isinstance(event, Restored))

    def _committed(self, commit: Commit, lost: tuple[Committable, ...]) -> None:
        fresh = tuple(one for one in commit.committables if (one.writer, one.epoch) not in self.world.visible)
        self.world.visible.update((one.writer, one.epoch) for one in fresh)
        self._note(commit.checkpoint, fresh, lost, again=commit.again)
        if self._commit_ns:
            self.host.thread.vacate()

    def _note(self, checkpoint: int, committed: tuple[Committable, ...], lost: tuple[Committable, ...], *, again: bool) -> None:
        world, now, task = self.world, self.host.env.now, self.host.task
        shown, gone = (tuple(self._stats(one) for one in some) for some in (committed, lost))
        for happening, number in (
            (Happening.TRANSACTION_LOST, sum(one.records for one in gone)),
            (Happening.COMMITTED, sum(one.records for one in shown)),
            (Happening.FILE_MISSING, sum(one.missing for one in shown)),
        ):
            if number:
                world.journal.note(now, happening, checkpoint, task, number)
        world.commits.append(CommitStats(checkpoint, now, task, world.stats[checkpoint].trigger_ns, shown, gone, again))

    def _stats(self, one: Committable) -> CommittedEpoch:
        return CommittedEpoch(one.writer, one.epoch, one.inputs, one.opened_ns, one.size_bytes, one.files)
