"""Sinks: files, uploads, commits."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

import simpy

from sim.model.sinks import Commit as CommitOptions
from sim.model.sinks import Flush
from sim.model.units import SECOND
from sim.protocol.commit import (
    CommitEpochs,
    Committable,
    CommittablesReceived,
    Committer,
    CommitterEvent,
    CompletionNotified,
    EpochEnded,
    IcebergCommitter,
    ReportDropped,
    ReportLost,
    Restored,
    SnapshotTaken,
    TaskClosed,
    Writer,
    WriterEvent,
    WriterInputEnded,
    WriterRestored,
)
from sim.results.journal import Happening
from sim.results.tables import TIMED_OUT, CommitStats, CommittedEpoch
from sim.runtime.clock import begin
from sim.runtime.context import Uncommitted
from sim.runtime.task.slot import Slot
from sim.storage.ledger import FileId, Name, StorageFailed
from sim.storage.requests import Work

# ---- Files on their way from the local disk to storage: a few threads take them in turn, each file knows how far it is.


@dataclass(slots=True, eq=False)
class StagedFile:
    """A file on the local disk that is to be uploaded."""

    name: Name  # its final one
    size_bytes: int
    local: FileId | None = None
    attempts: int = 0  # uploads begun
    under_way: bool = False  # or waiting for a thread
    stored: FileId | None = None  # durable
    dropped: bool = False  # it will not be uploaded
    failure: StorageFailed | None = None  # of the last attempt
    working: simpy.Process | None = None


class Uploads:
    """The uploads of one task.  `write` uploads one file; `ended` is called with each file that is durable."""

    def __init__(
        self,
        env: simpy.Environment,
        threads: int,
        write: Callable[[StagedFile], Work[FileId]],
        ended: Callable[[StagedFile], None],
    ) -> None:
        self.env = env
        self.threads = threads
        self.write = write
        self.ended = ended
        self._waiting: deque[StagedFile] = deque()
        self._working: list[StagedFile] = []
        self._listening: simpy.Event | None = None

    def submit(self, file: StagedFile) -> None:
        """Upload it when a thread is free; nothing to do if it is durable or its turn comes anyway."""
        if file.stored is None and not file.under_way:
            file.under_way, file.failure = True, None
            self._waiting.append(file)
            self._next()

    def cancel(self, file: StagedFile) -> None:
        """Stop; what was written of it stays half-written."""
        if not file.under_way:
            return
        if file in self._waiting:
            file.under_way = False
            self._waiting.remove(file)
            self._tell()
            return
        if file.working is not None:
            file.working.interrupt()
        self._over(file)

    def change(self) -> simpy.Event:
        """The next time an upload ends, well or not, or is cancelled."""
        if self._listening is None:
            self._listening = self.env.event()
        return self._listening

    def _next(self) -> None:
        while self._waiting and len(self._working) < self.threads:
            file = self._waiting.popleft()
            self._working.append(file)
            file.attempts += 1
            self._begin(file)

    def _begin(self, file: StagedFile) -> None:
        attempt = file.attempts

        def cancelled() -> bool:
            """Whether an upload was cancelled in the instant in which it ended.  It may have begun anew since."""
            return not file.under_way or file.attempts != attempt

        def done(stored: FileId) -> None:
            if not cancelled():
                file.stored = stored
                self.ended(file)
                self._over(file)

        def failed(failure: StorageFailed) -> None:
            if not cancelled():
                file.failure = failure
                self._over(file)

        file.working = begin(self.env, self.write(file), done, failed)

    def _over(self, file: StagedFile) -> None:
        file.under_way, file.working = False, None
        self._working.remove(file)
        self._tell()
        self._next()

    def _tell(self) -> None:
        if self._listening is not None:
            listening, self._listening = self._listening, None
            listening.succeed()


# ---- Files an operator of one task writes per snapshot: straight to storage before the barrier, or to the local disk and uploaded later.
#
# The second way is FLINK-37375.  Its hazard: the names of the files are with the committer already when their
# checkpoint is aborted, and the next complete checkpoint publishes them (`abort_policy`):
#
# survive     the uploads go on, and the next acknowledgement waits for them
# reupload    they are stopped and done again within the next snapshot
# drop        they are stopped and their files deleted: what is published then leads nowhere (known to be wrong)


@dataclass(slots=True)
class _Flush:
    """The files of one snapshot."""

    checkpoint: int
    files: list[StagedFile]


class OperatorFiles:
    """The files that an operator writes per snapshot."""

    def __init__(self, slot: Slot, options: Flush) -> None:
        context, task = slot.context, slot.task
        self.context = context
        self.output = slot.output
        self.options = options
        self.space = slot.manager.staging
        self.host = slot.manager.number
        self._name = context.names[task]
        self._disk = context.storage.disk(self.host)
        self._policy = context.scenario.checkpoint.abort_policy
        self._uploads = Uploads(context.env, context.scenario.checkpoint.upload_threads, self._upload, self._uploaded)
        self._flushes: list[_Flush] = []  # not known to be in a complete checkpoint, oldest first
        self._stopped = False
        self.space.when_short.append(self._submit_all)

    def choose(self, checkpoint: int, read_bytes: int) -> tuple[Name, ...]:
        """The files of this snapshot, by their final names; none if the operator read nothing since the last."""
        total = self.options.bytes + int(self.options.share * read_bytes)
        count = self.options.files if read_bytes and total else 0
        sizes = [total * (i + 1) // count - total * i // count for i in range(count)]
        files = [StagedFile(("flush", *self._name, checkpoint, i), size) for i, size in enumerate(sizes)]
        if files:
            self._flushes.append(_Flush(checkpoint, files))
        return tuple(file.name for file in files)

    def volume(self, checkpoint: int) -> int:
        """Bytes of the files of this snapshot."""
        return sum(file.size_bytes for file in self._of(checkpoint))

    def write(self, checkpoint: int) -> Work[None]:
        """Process, on the task thread: one file after the other, straight to storage.  Raises StorageFailed."""
        for file in self._unwritten(checkpoint):
            file.stored = yield from self._upload(file)
            self.output.stored(file.name, file.stored)

    def stage(self, checkpoint: int) -> Work[None]:
        """Process, on the task thread: one file after the other to the local disk, when there is room.  Raises StorageFailed."""
        for file in self._unwritten(checkpoint):
            yield from self.space.reserve(file.size_bytes)
            try:
                file.local = yield from self._disk.write(file.size_bytes, *file.name, host=self.host)
            except BaseException:
                self.space.release(file.size_bytes)
                raise
            if self._stopped:
                self._forget_local(file)

    def upload(self, checkpoint: int) -> Work[None]:
        """Process: until all files up to this snapshot's are durable, those of aborted ones too.  Raises StorageFailed."""
        due = [file for flush in self._flushes if flush.checkpoint <= checkpoint for file in flush.files]
        for file in due:
            self._uploads.submit(file)
        while missing := [file for file in due if file.stored is None and not file.dropped]:
            yield self._uploads.change()
            for file in missing:
                if file.failure is not None:
                    raise file.failure
                if not file.dropped:  # it may have been stopped by an abort
                    self._uploads.submit(file)

    def abort(self, checkpoint: int) -> None:
        """The task hears, perhaps again, that the checkpoint is aborted.  Its own part may be complete."""
        for file in self._of(checkpoint):
            if self._policy == "survive":
                if file.attempts == 0 and file.local is not None:
                    self._uploads.submit(file)
            else:
                self._uploads.cancel(file)
                if self._policy == "drop":
                    self._drop(file)
        if self._policy == "drop":
            self._flushes = [flush for flush in self._flushes if flush.checkpoint != checkpoint]

    def complete(self, checkpoint: int) -> None:
        """The files of this checkpoint and of those before it are published, and stay."""
        self._flushes = [flush for flush in self._flushes if flush.checkpoint > checkpoint]

    def stop(self) -> None:
        """The task has stopped: its files on the local disk are gone, and the file being written is not used."""
        self._stopped = True
        for flush in self._flushes:
            for file in flush.files:
                self._uploads.cancel(file)
                self._forget_local(file)
        self.space.when_short.remove(self._submit_all)

    def _unwritten(self, checkpoint: int) -> list[StagedFile]:
        """The end of the input may have written those of the snapshot after it."""
        return [file for file in self._of(checkpoint) if file.stored is None and file.local is None]

    def _of(self, checkpoint: int) -> list[StagedFile]:
        return next((flush.files for flush in self._flushes if flush.checkpoint == checkpoint), [])

    def _upload(self, file: StagedFile) -> Work[FileId]:
        again = (file.attempts,) if file.attempts > 1 else ()  # an upload that is repeated meets other nodes
        return self.context.storage.write(file.size_bytes, *file.name, *again, host=self.host)

    def _uploaded(self, file: StagedFile) -> None:
        if file.stored is not None:
            self.output.stored(file.name, file.stored)
        self._forget_local(file)

    def _submit_all(self) -> None:
        for flush in self._flushes:
            for file in flush.files:
                if file.local is not None:
                    self._uploads.submit(file)

    def _forget_local(self, file: StagedFile) -> None:
        if file.local is not None:
            begin(self.context.env, self._disk.delete([file.local]), lambda _: None)
            self.space.release(file.size_bytes)
            file.local = None

    def _drop(self, file: StagedFile) -> None:
        file.dropped = True
        if file.stored is not None:
            begin(self.context.env, self.context.storage.delete([file.stored], host=self.host), lambda _: None)
        self._forget_local(file)


# ---- A task's part in a transactional sink: its writer and its committer meet the task thread, the streams and the files.
#
# Decides nothing: what is committed when is `sim.protocol`'s.  A chained committer is in the writer's task; a global
# one is a task of its own, and the committables of a barrier reach it with the last of them.  A barrier that overtakes
# (`exchange: as-job`) leaves them behind: they are in-flight data of its checkpoint, and reach the committer when it
# has taken its snapshot.


class SinkWriter:
    """The writer of a transactional sink in one task.  `committer_of` gives the global committer of a vertex."""

    def __init__(
        self, machine: Writer, vertex: str, chained: SinkCommitter | None, committer_of: Callable[[str], SinkCommitter]
    ) -> None:
        self.vertex = vertex
        self.machine = machine
        self.committer_of = committer_of
        self._committer = chained

    def end_epoch(
        self, now: int, checkpoint: int, read: tuple[int, ...], size_bytes: int, files: tuple[Name, ...]
    ) -> None:
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

    def __init__(
        self, slot: Slot, options: CommitOptions, emit: Callable[[int], None], drained: Callable[[], bool]
    ) -> None:
        self.slot = slot
        self.context = slot.context
        self.output = slot.output
        self.emit = emit
        self.drained = drained
        machine = IcebergCommitter if options.late == "replaces" else Committer
        self.machine: Committer | IcebergCommitter = machine(options.transaction_timeout_ns)
        self._in_transit: list[_Sent] = []  # not in the hands of the machine
        # by checkpoint that is under way: what its barrier has overtaken
        self._in_flight: dict[int, list[Committable]] = {}
        self._cut = 0  # the newest checkpoint it has taken its snapshot for
        self._overtaken = options.exchange == "as-job"
        self._commit_ns = options.time_ns
        self._emits = options.emits == "on-commit"
        # FLINK-36455: at once, and a limit; before, a timer each second
        is_modern = self.context.scenario.cluster.profile == "2.x"
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
        reported = (
            committable
            for command in commands
            if isinstance(command, ReportLost)
            for committable in command.committables
        )
        lost = tuple(committable for committable in reported if not self.output.settled(committable))
        for command in commands:
            if isinstance(command, ReportDropped):
                self._note_dropped(command)
        commit = next((command for command in commands if isinstance(command, CommitEpochs)), None)
        if commit is not None:
            commit = replace(commit, committables=(*self._waiting, *commit.committables))
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
        self,
        checkpoint: int,
        committed: tuple[Committable, ...],
        lost: tuple[Committable, ...],
        *,
        again: bool,
        why: str = TIMED_OUT,
    ) -> None:
        context, now, task = self.context, self.slot.now, self.slot.task
        self.output.throw_away(lost)
        visible, gone = (
            tuple(self._stats(committable) for committable in committables) for committables in (committed, lost)
        )
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
        records = sum(
            committable.records for committable in command.committables if not self.output.settled(committable)
        )
        if records:
            self.slot.note(Happening.OUTPUT_DROPPED, command.checkpoint, records, command.why)

    def _stats(self, row: Committable) -> CommittedEpoch:
        missing = self.output.missing(row.files)
        return CommittedEpoch(row.writer, row.epoch, row.inputs, row.opened_ns, row.size_bytes, row.files, missing)
