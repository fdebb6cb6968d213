"""A task's part in a transactional sink: its writer and its committer meet the task thread, the streams and the files.

Decides nothing: what is committed when is `sim.protocol`'s.  A chained committer is in the writer's task; a global one is a
task of its own, and the committables of a barrier reach it with the last of them.
"""

from __future__ import annotations

from collections.abc import Callable

from sim.metrics.commits import CommitStats, CommittedEpoch
from sim.metrics.journal import Happening
from sim.model.sink import Commit as CommitOptions
from sim.protocol.commit.committables import (
    CommitEpochs,
    Committable,
    CommittablesReceived,
    CommitterEvent,
    CompletionNotified,
    EpochEnded,
    ReportLost,
    Restored,
    TaskClosed,
    WriterEvent,
    WriterInputEnded,
    WriterRestored,
)
from sim.protocol.commit.committer import Committer
from sim.protocol.commit.writer import Writer
from sim.runtime.task.slot import Slot
from sim.storage.ledger import Name


class SinkWriter:
    """`committer_of`: the global committer of a vertex."""

    def __init__(self, machine: Writer, vertex: str, chained: SinkCommitter | None, committer_of: Callable[[str], SinkCommitter]) -> None:
        self.vertex = vertex
        self.machine = machine
        self.committer_of = committer_of
        self._committer = chained

    def end_epoch(self, now: int, checkpoint: int, read: tuple[int, ...], size_bytes: int, files: tuple[Name, ...]) -> None:
        """A snapshot begins, having read so far."""
        self._tell(EpochEnded(now, checkpoint, read, size_bytes, files))

    def end_input(self, now: int, read: tuple[int, ...], size_bytes: int, files: tuple[Name, ...]) -> None:
        self._tell(WriterInputEnded(now, read, size_bytes, files))

    def go_on_behind(self, checkpoint: int, written: tuple[int, ...]) -> None:
        """The task was restored from this checkpoint, in which it had written so many records of each input channel."""
        self._tell(WriterRestored(checkpoint, written))

    def _tell(self, event: WriterEvent) -> None:
        self.machine, commands = self.machine.on(event)
        for command in commands:
            if self._committer is None:
                self._committer = self.committer_of(self.vertex)
            self._committer.in_transit.append(command.committable)


class SinkCommitter:
    """`emit`: lets the outputs of records leave whose epochs are committed; `drained`: whether the operators have finished."""

    def __init__(self, slot: Slot, options: CommitOptions, emit: Callable[[int], None], drained: Callable[[], bool]) -> None:
        self.slot = slot
        self.context = slot.context
        self.output = slot.output
        self.emit = emit
        self.drained = drained
        self.machine = Committer(options.transaction_timeout_ns)
        self.in_transit: list[Committable] = []  # the barrier behind them is not here yet
        self._commit_ns = options.time_ns
        self._emits = options.emits == "on-commit"

    def completed(self, checkpoint: int) -> None:
        """The task has heard of a completion."""
        self._tell(CompletionNotified(self.slot.now, checkpoint))

    def take_in(self, checkpoint: int | None = None) -> None:
        """All barriers of a checkpoint (None: all data) are here, and what came before them."""
        arrived = tuple(committable for committable in self.in_transit if checkpoint is None or committable.epoch <= checkpoint)
        if arrived:
            self.in_transit = [committable for committable in self.in_transit if committable not in arrived]
            self._tell(CommittablesReceived(self.slot.now, arrived))

    def restored(self, checkpoint: int, committables: tuple[Committable, ...]) -> None:
        """Start from a checkpoint (call at a safe point): what it held is committed at once, and again."""
        self._tell(Restored(self.slot.now, checkpoint, committables))

    def close(self) -> None:
        """The task ends without waiting for a checkpoint, and commits."""
        self.take_in()
        self._tell(TaskClosed(self.slot.now))

    def _tell(self, event: CommitterEvent) -> None:
        self.machine, commands = self.machine.on(event)
        reported = (committable for command in commands if isinstance(command, ReportLost) for committable in command.committables)
        lost = tuple(committable for committable in reported if not self.output.settled(committable))
        commit = next((command for command in commands if isinstance(command, CommitEpochs)), None)
        if commit is not None:
            if self._commit_ns:
                self.slot.thread.occupy()
            self.context.env.call_in(self._commit_ns, lambda: self._committed(commit, lost))
        elif lost:
            self._note(commands[0].checkpoint, (), lost, again=isinstance(event, Restored))

    def _committed(self, commit: CommitEpochs, lost: tuple[Committable, ...]) -> None:
        if not self.slot.thread.stopped:  # if the task failed meanwhile, the commit is done again after the restore
            fresh = tuple(committable for committable in commit.committables if not self.output.has(committable))
            self.output.commit(fresh)
            self._note(commit.checkpoint, fresh, lost, again=commit.again)
            if self._emits and not self.drained():  # who reads it has finished and drops it (FinishedDataOutput)
                self.emit(max(committable.epoch for committable in commit.committables))
        if self._commit_ns:
            self.slot.thread.vacate()

    def _note(self, checkpoint: int, committed: tuple[Committable, ...], lost: tuple[Committable, ...], *, again: bool) -> None:
        context, now, task = self.context, self.slot.now, self.slot.task
        self.output.throw_away(lost)
        visible, gone = (tuple(self._stats(committable) for committable in committables) for committables in (committed, lost))
        for happening, number in (
            (Happening.TRANSACTION_LOST, sum(epoch.records for epoch in gone)),
            (Happening.COMMITTED, sum(epoch.records for epoch in visible)),
            (Happening.FILE_MISSING, sum(epoch.missing for epoch in visible)),
        ):
            if number:
                context.journal.note(now, happening, checkpoint, task, number)
        trigger_ns = context.stats[checkpoint].trigger_ns if checkpoint in context.stats else -1
        context.commits.append(CommitStats(checkpoint, now, task, trigger_ns, visible, gone, again))

    def _stats(self, row: Committable) -> CommittedEpoch:
        missing = self.output.missing(row.files)
        return CommittedEpoch(row.writer, row.epoch, row.inputs, row.opened_ns, row.size_bytes, row.files, missing)
