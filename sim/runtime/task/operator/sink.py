"""A task's part in a transactional sink: its writer and its committer meet the task thread, the streams and the files.

Decides nothing: what is committed when is `sim.protocol`'s.  A chained committer is in the writer's task; a global one is a
task of its own, and the committables of a barrier reach it with the last of them.  A barrier that overtakes (`exchange: as-job`)
leaves them behind: they are in-flight data of its checkpoint, and reach the committer when it has taken its snapshot.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sim.metrics.commits import TIMED_OUT, CommitStats, CommittedEpoch
from sim.metrics.journal import Happening
from sim.model.sink import Commit as CommitOptions
from sim.protocol.commit.committables import (
    CommitEpochs,
    Committable,
    CommittablesReceived,
    CommitterEvent,
    CompletionNotified,
    EpochEnded,
    ReportDropped,
    ReportLost,
    Restored,
    SnapshotTaken,
    TaskClosed,
    WriterEvent,
    WriterInputEnded,
    WriterRestored,
)
from sim.protocol.commit.committer import Committer
from sim.protocol.commit.iceberg_committer import IcebergCommitter
from sim.protocol.commit.writer import Writer
from sim.protocol.machine import changed
from sim.runtime.contents import Uncommitted
from sim.runtime.task.slot import Slot
from sim.storage.ledger import Name
from sim.units import SECOND


class SinkWriter:
    """The writer of a transactional sink in one task.  `committer_of` gives the global committer of a vertex."""

    def __init__(self, machine: Writer, vertex: str, chained: SinkCommitter | None, committer_of: Callable[[str], SinkCommitter]) -> None:
        self.vertex = vertex
        self.machine = machine
        self.committer_of = committer_of
        self._committer = chained

    def end_epoch(self, now: int, checkpoint: int, read: tuple[int, ...], size_bytes: int, files: tuple[Name, ...]) -> None:
        """A snapshot begins: the epoch ends with the records read so far."""
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
            self._committer.receive(command.committable)

    def overtaken(self) -> None:
        """The barrier has overtaken what lies in the outputs."""
        if self._committer is not None:
            self._committer.overtake(self.machine.task)


@dataclass(slots=True, eq=False)
class _Sent:
    """A committable on its way to the committer."""

    committable: Committable
    overtaken: bool = False  # by its own barrier
    arrived: bool = False  # the committer's thread has got to it


class SinkCommitter:
    """The committer of a transactional sink in one task.

    `emit` lets the outputs of committed records leave; `drained`: whether the operators have finished.
    """

    def __init__(self, slot: Slot, options: CommitOptions, emit: Callable[[int], None], drained: Callable[[], bool]) -> None:
        self.slot = slot
        self.context = slot.context
        self.output = slot.output
        self.emit = emit
        self.drained = drained
        machine = IcebergCommitter if options.late == "replaces" else Committer
        self.machine: Committer | IcebergCommitter = machine(options.transaction_timeout_ns)
        self._in_transit: list[_Sent] = []  # not in the hands of the machine
        self._in_flight: dict[int, list[Committable]] = {}  # by checkpoint that is under way: what its barrier has overtaken
        self._cut = 0  # the newest checkpoint it has taken its snapshot for
        self._overtaken = options.exchange == "as-job"
        self._commit_ns = options.time_ns
        self._emits = options.emits == "on-commit"
        is_modern = self.context.scenario.cluster.profile == "2.x"  # FLINK-36455: at once, and a limit; before, a timer each second
        self._retry_ns = 0 if is_modern else SECOND
        self._retries = options.retries if is_modern or not options.retries or options.gives_up == "drop" else None
        self._drops = options.gives_up == "drop"
        self._waiting: tuple[Committable, ...] = ()  # for another attempt

    def completed(self, checkpoint: int) -> None:
        """The task has heard of a completion."""
        self._tell(CompletionNotified(self.slot.now, checkpoint))
        self._ended(checkpoint)

    def aborted(self, checkpoint: int) -> None:
        self._ended(checkpoint)

    def receive(self, committable: Committable) -> None:
        """A writer hands it over, before its barrier leaves."""
        sent = _Sent(committable)
        self._in_transit.append(sent)
        for checkpoint, behind in self._in_flight.items():
            if committable.epoch <= checkpoint:  # the snapshot was taken at the barrier of another channel
                behind.append(committable)
        if self._overtaken:
            latency_ns = self.context.scenario.cluster.latency_ns
            self.context.env.call_in(latency_ns, lambda: self.slot.thread.post(lambda: self._arrived(sent)))

    def overtake(self, writer: int) -> None:
        """A barrier of this writer leaves before what it has handed over and is not here."""
        if self._overtaken:
            for sent in self._in_transit:
                sent.overtaken = sent.overtaken or (sent.committable.writer == writer and not sent.arrived)

    def take_in(self, checkpoint: int) -> None:
        """All barriers of a checkpoint are here that are waited for, and what came before them."""
        before = [sent for sent in self._in_transit if sent.committable.epoch <= checkpoint and not sent.overtaken]
        self._receive(before, behind=False)

    def take_in_all(self) -> None:
        """All data are here."""
        self._receive(list(self._in_transit), behind=self._overtaken)

    def cut(self, checkpoint: int) -> Uncommitted:
        """What it holds is its part of the checkpoint; what the barrier has overtaken follows."""
        self._tell(SnapshotTaken(self.slot.now, checkpoint))
        self._cut = checkpoint
        behind = [sent.committable for sent in self._in_transit if sent.committable.epoch <= checkpoint]
        if self._overtaken:
            self._in_flight[checkpoint] = behind
            self.slot.thread.post(self._take_in_late)
        return Uncommitted(checkpoint, (*self._waiting, *self.machine.committables), behind)

    def restored(self, content: Uncommitted) -> None:
        """Start from a checkpoint (call at a safe point): what it had is committed at once, and again; in-flight data follow."""
        self._cut = content.checkpoint
        newest = self.output.newest_commit(self.slot.vertex.committer_of or self.slot.vertex.name)
        self._tell(Restored(self.slot.now, content.checkpoint, content.committables, newest))
        if content.in_flight:
            self._tell(CommittablesReceived(self.slot.now, tuple(content.in_flight), behind=True))

    def close(self) -> None:
        """The task ends without waiting for a checkpoint, and commits."""
        self.take_in_all()
        self._tell(TaskClosed(self.slot.now))

    def _arrived(self, sent: _Sent) -> None:
        """A barrier that is waited for comes behind it; one that has overtaken it has to be here first."""
        sent.arrived = True
        self._take_in_late()

    def _take_in_late(self) -> None:
        late = [sent for sent in self._in_transit if sent.arrived and sent.committable.epoch <= self._cut]
        self._receive(late, behind=True)

    def _receive(self, sent: list[_Sent], *, behind: bool) -> None:
        if sent:
            self._in_transit = [other for other in self._in_transit if other not in sent]
            self._tell(CommittablesReceived(self.slot.now, tuple(row.committable for row in sent), behind))

    def _ended(self, checkpoint: int) -> None:
        """Nothing belongs to the in-flight data of checkpoints up to this one any more."""
        for number in [number for number in self._in_flight if number <= checkpoint]:
            del self._in_flight[number]

    def _tell(self, event: CommitterEvent) -> None:
        self.machine, commands = self.machine.on(event)
        reported = (committable for command in commands if isinstance(command, ReportLost) for committable in command.committables)
        lost = tuple(committable for committable in reported if not self.output.settled(committable))
        for command in commands:
            if isinstance(command, ReportDropped):
                self._note_dropped(command)
        commit = next((command for command in commands if isinstance(command, CommitEpochs)), None)
        if commit is not None:
            commit = changed(commit, committables=(*self._waiting, *commit.committables))
            self._waiting = ()
            self._begin(commit, lost)
        elif lost:
            self._note(commands[0].checkpoint, (), lost, again=isinstance(event, Restored))

    def _begin(self, commit: CommitEpochs, lost: tuple[Committable, ...], attempt: int = 0) -> None:
        if self._commit_ns:
            self.slot.thread.occupy()
        self.context.env.call_in(self._commit_ns, lambda: self._committed(commit, lost, attempt))

    def _committed(self, commit: CommitEpochs, lost: tuple[Committable, ...], attempt: int) -> None:
        if self.slot.thread.stopped:  # if the task failed meanwhile, the commit is done again after the restore
            pass
        elif self._is_failing():
            self._on_commit_failed(commit, lost, attempt)
        else:
            fresh = tuple(committable for committable in commit.committables if not self.output.has(committable))
            self.output.commit(fresh, commit.checkpoint)
            self._note(commit.checkpoint, fresh, lost, again=commit.again)
            if self._emits and not self.drained():  # a reader that has finished drops them (FinishedDataOutput)
                self.emit(max(committable.epoch for committable in commit.committables))
        if self._commit_ns:
            self.slot.thread.vacate()

    def _is_failing(self) -> bool:
        """Whether a fault fails a commit that ends now."""
        failing, vertex = self.context.failing_commits, self.slot.vertex.committer_of or self.slot.vertex.name
        until_ns = failing.get(vertex, 0)
        if until_ns is None:  # the next one alone
            del failing[vertex]
        return until_ns is None or self.slot.now < until_ns

    def _on_commit_failed(self, commit: CommitEpochs, lost: tuple[Committable, ...], attempt: int) -> None:
        """Try again, give up, or restart the job, which commits again what its checkpoint holds."""
        retries = self._retries is None or attempt < self._retries
        follows = "tried again" if retries else "its records are lost" if self._drops else "the job restarts"
        records = sum(committable.records for committable in commit.committables)
        self.slot.note(Happening.COMMIT_FAILED, commit.checkpoint, records, follows)
        if retries:
            self._waiting = commit.committables
            self.context.env.call_in(self._retry_ns, lambda: self._retry(commit, lost, attempt + 1))
        elif self._drops:
            lost = (*lost, *commit.committables)
            self._note(commit.checkpoint, (), lost, again=commit.again, why="its commit failed, and the sink gave up")
        else:
            self.slot.job.fail_task(self.slot.task, "a commit failed")

    def _retry(self, commit: CommitEpochs, lost: tuple[Committable, ...], attempt: int) -> None:
        if self._waiting is commit.committables and not self.slot.thread.stopped:  # else it goes with a later commit
            self._waiting = ()
            self._begin(commit, lost, attempt)

    def _note(
        self, checkpoint: int, committed: tuple[Committable, ...], lost: tuple[Committable, ...], *, again: bool, why: str = TIMED_OUT
    ) -> None:
        context, now, task = self.context, self.slot.now, self.slot.task
        self.output.throw_away(lost)
        visible, gone = (tuple(self._stats(committable) for committable in committables) for committables in (committed, lost))
        for happening, number in (
            (Happening.TRANSACTION_LOST, sum(epoch.records for epoch in gone)),
            (Happening.COMMITTED, sum(epoch.records for epoch in visible)),
            (Happening.FILE_MISSING, sum(epoch.missing for epoch in visible)),
        ):
            if number:
                self.slot.note(happening, checkpoint, number)
        trigger_ns = context.stats[checkpoint].trigger_ns if checkpoint in context.stats else -1
        context.commits.append(CommitStats(checkpoint, now, task, trigger_ns, visible, gone, again, why))

    def _note_dropped(self, command: ReportDropped) -> None:
        records = sum(committable.records for committable in command.committables if not self.output.settled(committable))
        if records:
            self.slot.note(Happening.OUTPUT_DROPPED, command.checkpoint, records, command.why)

    def _stats(self, row: Committable) -> CommittedEpoch:
        missing = self.output.missing(row.files)
        return CommittedEpoch(row.writer, row.epoch, row.inputs, row.opened_ns, row.size_bytes, row.files, missing)
