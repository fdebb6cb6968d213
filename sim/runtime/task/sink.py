"""The sink of a task: uploads of its files, and the two-phase commit of its transactions in simulated time.

`sim.protocol.commit` decides what is committed when.  This module connects it to the task thread, the channels and the
storage.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

import simpy

from sim.model.sinks import SINKS, Flush
from sim.model.sinks import Commit as CommitOptions
from sim.model.units import SECOND
from sim.protocol.commit import (
    CommitEpochs,
    Committable,
    CommittablesReceived,
    Committer,
    CommitterEvent,
    CompletionNotified,
    IcebergCommitter,
    ReportDropped,
    ReportLost,
    Restored,
    SnapshotTaken,
    TaskClosed,
)
from sim.results.journal import EventType
from sim.results.tables import TIMED_OUT, CommitStats, CommittedEpoch
from sim.runtime.clock import begin
from sim.runtime.context import Uncommitted
from sim.runtime.task.thread import Slot
from sim.storage.ledger import FileId, Name, StorageFailed
from sim.storage.requests import Work

# ---- The files that an operator writes per snapshot: to storage before the barrier, or to the local disk and uploaded later.
#
# The upload in the asynchronous phase is FLINK-37375.  Its hazard: the committer has the names of the files already when
# their checkpoint is aborted, and the next completed checkpoint publishes them.  `abort_policy` says what an abort does:
#
# survive     the uploads continue, and the next acknowledgement waits for them
# reupload    the uploads are cancelled, and repeated in the next snapshot
# drop        the uploads are cancelled and the files deleted: published names refer to missing files (known to be wrong)
#
# A few threads upload the files, in the order in which they were submitted.


@dataclass(slots=True, eq=False)
class StagedFile:
    """A file on the local disk that is to be uploaded."""

    name: Name  # final name in storage
    size_bytes: int
    local: FileId | None = None  # its copy on the local disk
    attempts: int = 0  # uploads started
    under_way: bool = False  # whether an upload is in progress or waits for a thread
    stored: FileId | None = None  # the file in storage, once it is durable
    dropped: bool = False  # it will not be uploaded
    failure: StorageFailed | None = None  # of the last upload
    working: simpy.Process | None = None  # the upload in progress; None if it takes no time


class OperatorFiles:
    """The files that the operator of one task writes per snapshot."""

    def __init__(self, slot: Slot, options: Flush) -> None:
        context, task = slot.context, slot.task
        self.context = context
        self.output = context.output
        self.options = options
        self.space = slot.manager.staging
        self.host = slot.manager.number
        self._name = context.names[task]
        self._disk = context.storage.disk(self.host)
        self._policy = context.scenario.checkpoint.abort_policy
        self._threads = context.scenario.checkpoint.upload_threads
        self._waiting: deque[StagedFile] = deque()  # for a thread
        self._uploading: list[StagedFile] = []
        self._change: simpy.Event | None = None  # fires when the next upload succeeds, fails or is cancelled
        # snapshot without a completed checkpoint so far -> its files, oldest first
        self._flushes: dict[int, list[StagedFile]] = {}
        self._stopped = False
        self.space.when_short.append(self._submit_all)

    def choose(self, checkpoint: int, read_bytes: int) -> tuple[tuple[Name, ...], int]:
        """Create the files of a snapshot.  Return their final names and their total size [bytes].

        `read_bytes` is what the operator has read since the last snapshot.  If it is 0, there are no files.
        """
        total = self.options.bytes + int(self.options.share * read_bytes)
        count = self.options.files if read_bytes and total else 0
        sizes = [total * (i + 1) // count - total * i // count for i in range(count)]
        files = [StagedFile(("flush", *self._name, checkpoint, i), size) for i, size in enumerate(sizes)]
        if files:
            self._flushes[checkpoint] = files
        return tuple(file.name for file in files), sum(sizes)

    def write(self, checkpoint: int) -> Work[None]:
        """Process, on the task thread: write the files of a snapshot to storage, one by one.  Raises StorageFailed."""
        for file in self._unwritten(checkpoint):
            file.stored = yield from self._upload(file)
            self.output.stored(file.name, file.stored)

    def stage(self, checkpoint: int) -> Work[None]:
        """Process, on the task thread: write the files of a snapshot to the local disk, one by one, and wait for space.

        Raises StorageFailed.
        """
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
        """Process: upload the files of this and earlier snapshots, also of aborted ones, until they are durable.

        Raises StorageFailed.
        """
        due = [file for number, files in self._flushes.items() if number <= checkpoint for file in files]
        for file in due:
            self._submit(file)
        while missing := [file for file in due if file.stored is None and not file.dropped]:
            self._change = self._change or self.context.env.event()
            yield self._change
            for file in missing:
                if file.failure is not None:
                    raise file.failure
                if not file.dropped:  # an abort may have cancelled the upload
                    self._submit(file)

    def abort(self, checkpoint: int) -> None:
        """Apply the abort policy to the files of an aborted checkpoint.

        May be called repeatedly, and also after the task has acknowledged the checkpoint.
        """
        for file in self._flushes.get(checkpoint, []):
            if self._policy == "survive":
                if file.attempts == 0 and file.local is not None:
                    self._submit(file)
            else:
                self._cancel(file)
                if self._policy == "drop":
                    self._drop(file)
        if self._policy == "drop":
            self._flushes.pop(checkpoint, None)

    def complete(self, checkpoint: int) -> None:
        """Handle a completed checkpoint: its files and those of earlier ones are published, and kept."""
        self._flushes = {number: files for number, files in self._flushes.items() if number > checkpoint}

    def stop(self) -> None:
        """Handle that the task has stopped: delete its files on the local disk and cancel their uploads."""
        self._stopped = True
        for file in self._all_files():
            self._cancel(file)
            self._forget_local(file)
        self.space.when_short.remove(self._submit_all)

    def _unwritten(self, checkpoint: int) -> list[StagedFile]:
        """Return the files of a snapshot that are not written yet.  The end of input may have written them before."""
        return [file for file in self._flushes.get(checkpoint, []) if file.stored is None and file.local is None]

    def _all_files(self) -> Iterator[StagedFile]:
        """Return the files of all snapshots without a completed checkpoint."""
        return chain.from_iterable(self._flushes.values())

    def _upload(self, file: StagedFile) -> Work[FileId]:
        """Return the process that writes a file to storage."""
        again = (file.attempts,) if file.attempts > 1 else ()  # a repeated upload is served by other storage nodes
        return self.context.storage.write(file.size_bytes, *file.name, *again, host=self.host)

    def _submit(self, file: StagedFile) -> None:
        """Queue a file for upload, unless it is durable or queued already."""
        if file.stored is None and not file.under_way:
            file.under_way, file.failure = True, None
            self._waiting.append(file)
            self._start_uploads()

    def _cancel(self, file: StagedFile) -> None:
        """Cancel the upload of a file.  A partly written file stays incomplete."""
        if file in self._waiting:
            file.under_way = False
            self._waiting.remove(file)
            self._report_change()
        elif file.under_way:
            if file.working is not None:
                file.working.interrupt()
            self._end_upload(file)

    def _start_uploads(self) -> None:
        """Start queued uploads while threads are free."""
        while self._waiting and len(self._uploading) < self._threads:
            file = self._waiting.popleft()
            self._uploading.append(file)
            file.attempts += 1
            self._start_upload(file)

    def _start_upload(self, file: StagedFile) -> None:
        """Start the upload of a file."""
        attempt = file.attempts

        def cancelled() -> bool:
            """Return whether the upload was cancelled at the time at which it ended; it may have been restarted since."""
            return not file.under_way or file.attempts != attempt

        def done(stored: FileId) -> None:
            if not cancelled():
                file.stored = stored
                self.output.stored(file.name, stored)
                self._forget_local(file)
                self._end_upload(file)

        def failed(failure: StorageFailed) -> None:
            if not cancelled():
                file.failure = failure
                self._end_upload(file)

        file.working = begin(self.context.env, self._upload(file), done, failed)

    def _end_upload(self, file: StagedFile) -> None:
        """Release the thread of a file, and start the next upload."""
        file.under_way, file.working = False, None
        self._uploading.remove(file)
        self._report_change()
        self._start_uploads()

    def _report_change(self) -> None:
        """Fire the event that `upload` waits for."""
        if self._change is not None:
            change, self._change = self._change, None
            change.succeed()

    def _submit_all(self) -> None:
        """Upload all files that are on the local disk, because its space runs short."""
        for file in self._all_files():
            if file.local is not None:
                self._submit(file)

    def _forget_local(self, file: StagedFile) -> None:
        """Delete a file from the local disk."""
        if file.local is not None:
            begin(self.context.env, self._disk.delete([file.local]), lambda _: None)
            self.space.release(file.size_bytes)
            file.local = None

    def _drop(self, file: StagedFile) -> None:
        """Delete a file from storage and from the local disk, and never upload it again."""
        file.dropped = True
        if file.stored is not None:
            begin(self.context.env, self.context.storage.delete([file.stored], host=self.host), lambda _: None)
        self._forget_local(file)


# ---- The committer of a transactional sink in one task.
#
# A chained committer is in the task of its writer.  A global committer is a task of its own: it receives the
# committables of a checkpoint with the last barrier.  If barriers may overtake committables (`exchange: as-job`), those
# that are overtaken are in-flight data of the checkpoint, and reach the committer after its snapshot.


@dataclass(slots=True, eq=False)
class _Sent:
    """A committable that the writer has sent and the committer has not received."""

    committable: Committable
    overtaken: bool = False  # by the barrier of its checkpoint
    arrived: bool = False  # the thread of the committer can process it


@dataclass(slots=True, eq=False)
class _RunningCommit:
    """A commit until it succeeds or is given up."""

    commit: CommitEpochs
    lost: tuple[Committable, ...]  # expired transactions, reported when it ends
    duration_ns: int = 0  # of each attempt
    retries: int = 0


class SinkCommitter:
    """The committer of a transactional sink in one task.

    `emit` is called with an epoch and releases the outputs of the records committed up to it.  `drained` returns whether
    the operators of the task have finished.
    """

    def __init__(
        self, slot: Slot, options: CommitOptions, emit: Callable[[int], None], drained: Callable[[], bool]
    ) -> None:
        self.slot = slot
        self.context = slot.context
        self.output = slot.context.output
        self.emit = emit
        self.drained = drained
        machine = IcebergCommitter if options.late == "replaces" else Committer
        self.machine: Committer | IcebergCommitter = machine(options.transaction_timeout_ns)
        self._in_transit: list[_Sent] = []  # not yet passed to the machine
        # pending checkpoint -> committables that its barriers have overtaken, i.e. its in-flight data
        self._in_flight: dict[int, list[Committable]] = {}
        self._cut = 0  # the newest checkpoint that the committer has taken a snapshot for
        self._overtaken = options.exchange == "as-job"  # whether barriers may overtake committables
        self._commit_ns = options.time_ns
        self._emits = options.emits == "on-commit"
        # since FLINK-36455 a failed commit is retried at once, up to a limit; before, every second and without a limit
        is_modern = self.context.scenario.cluster.profile == "2.x"
        self._retry_ns = 0 if is_modern else SECOND
        self._retries = options.retries if is_modern or not options.retries or options.gives_up == "drop" else None
        self._drops = options.gives_up == "drop"
        self._sink = slot.vertex.committer_of or slot.vertex.name  # vertex of the writers
        connector = self.context.scenario.job.vertex(self._sink).connector
        self._fails_after_restore = connector in SINKS and SINKS[connector].fails_after_restore
        self._waiting: tuple[Committable, ...] = ()  # committables of a failed commit, to be retried

    def completed(self, checkpoint: int) -> None:
        """Handle the notification of a completed checkpoint."""
        self._dispatch(CompletionNotified(self.slot.now, checkpoint))
        self._ended(checkpoint)

    def aborted(self, checkpoint: int) -> None:
        """Handle an aborted checkpoint.  Its committables are committed with the next completed one."""
        self._ended(checkpoint)

    def receive(self, committable: Committable) -> None:
        """Accept a committable from a writer, which sends it before its barrier."""
        sent = _Sent(committable)
        self._in_transit.append(sent)
        for checkpoint, behind in self._in_flight.items():
            if committable.epoch <= checkpoint:  # another channel's barrier triggered the snapshot before
                behind.append(committable)
        if self._overtaken:
            latency_ns = self.context.scenario.cluster.latency_ns
            self.context.env.call_in(latency_ns, lambda: self.slot.thread.post(lambda: self._arrived(sent)))

    def overtake(self, writer: int) -> None:
        """Handle that a barrier of this writer overtakes its committables that have not arrived."""
        if self._overtaken:
            for sent in self._in_transit:
                sent.overtaken = sent.overtaken or (sent.committable.writer == writer and not sent.arrived)

    def receive_committable(self, checkpoint: int) -> None:
        """Receive the committables that precede the barriers of a checkpoint, just before its snapshot."""
        before = [sent for sent in self._in_transit if sent.committable.epoch <= checkpoint and not sent.overtaken]
        self._receive(before, behind=False)

    def receive_committables(self) -> None:
        """Receive all committables in transit: the input has ended."""
        self._receive(list(self._in_transit), behind=self._overtaken)

    def cut(self, checkpoint: int) -> Uncommitted:
        """Take the snapshot of the committer and return its content.

        The in-flight committables of the result grow until the last barrier has arrived.
        """
        self._dispatch(SnapshotTaken(self.slot.now, checkpoint))
        self._cut = checkpoint
        behind = [sent.committable for sent in self._in_transit if sent.committable.epoch <= checkpoint]
        if self._overtaken:
            self._in_flight[checkpoint] = behind
            self.slot.thread.post(self._receive_late_committable)
        return Uncommitted(checkpoint, (*self._waiting, *self.machine.committables), behind)

    def restored(self, content: Uncommitted) -> None:
        """Start from a restored checkpoint: commit its committables again, and then its in-flight committables.

        To be called at a safe point of the task thread.
        """
        self._cut = content.checkpoint
        newest = self.output.newest_commit(self._sink)
        self._dispatch(Restored(self.slot.now, content.checkpoint, content.committables, newest))
        if content.in_flight:
            self._dispatch(CommittablesReceived(self.slot.now, tuple(content.in_flight), behind=True))

    def close(self) -> None:
        """Commit everything: the task ends without waiting for a final checkpoint."""
        self.receive_committables()
        self._dispatch(TaskClosed(self.slot.now))

    def _arrived(self, sent: _Sent) -> None:
        """Handle that a committable has arrived.

        It is received now if the snapshot of its checkpoint is taken, otherwise with the barriers of that checkpoint.
        """
        sent.arrived = True
        self._receive_late_committable()

    def _receive_late_committable(self) -> None:
        """Receive the committables that have arrived after the snapshot of their checkpoint."""
        late = [sent for sent in self._in_transit if sent.arrived and sent.committable.epoch <= self._cut]
        self._receive(late, behind=True)

    def _receive(self, sent: list[_Sent], *, behind: bool) -> None:
        """Pass committables to the machine.  `behind` means that they arrived after their barrier."""
        if sent:
            self._in_transit = [other for other in self._in_transit if other not in sent]
            self._dispatch(CommittablesReceived(self.slot.now, tuple(row.committable for row in sent), behind))

    def _ended(self, checkpoint: int) -> None:
        """Forget the in-flight committables of checkpoints up to this one, which have ended."""
        for number in [number for number in self._in_flight if number <= checkpoint]:
            del self._in_flight[number]

    def _dispatch(self, event: CommitterEvent) -> None:
        """Pass an event to the committer machine and execute its commands."""
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
            self._begin(_RunningCommit(commit, lost))
        elif lost:
            self._note(commands[0].checkpoint, (), lost, again=isinstance(event, Restored))

    def _begin(self, running: _RunningCommit) -> None:
        """Start a commit on the task thread.

        Transactions that are committed already take no time: the external system or the sink knows them (e.g.
        IcebergCommitter#commit and Paimon's filterAndCommit look up the last commit, XA answers XAER_NOTA).
        """
        running.duration_ns = 0 if all(map(self.output.has, running.commit.committables)) else self._commit_ns
        if running.duration_ns:
            self.slot.thread.occupy()
            self.slot.thread.commits = True
        self._attempt(running)

    def _attempt(self, running: _RunningCommit) -> None:
        self.context.env.call_in(running.duration_ns, lambda: self._end(running))

    def _end(self, running: _RunningCommit) -> None:
        """Handle the end of an attempt: publish its transactions, or retry if a fault fails it.

        A cancelled task waits for its commit, which takes effect.  A task that fails, or whose process is lost, does not
        end it: it is repeated after the restore.
        """
        thread, commit = self.slot.thread, running.commit
        if thread.stopped and not (thread.occupied and running.duration_ns):
            pass
        elif self._take_fault():
            if not thread.stopped and self._on_commit_failed(running):
                return  # the thread stays at work
        else:
            fresh = tuple(committable for committable in commit.committables if not self.output.has(committable))
            self.output.commit(fresh, commit.checkpoint)
            self._note(commit.checkpoint, fresh, running.lost, again=commit.again and not fresh)
            # finished operators drop these outputs (FinishedDataOutput), and a cancelled task has none
            if self._emits and not (thread.stopped or self.drained()):
                self.emit(max(committable.epoch for committable in commit.committables))
            if commit.again and fresh and self._fails_after_restore:
                self.slot.job.fail_task(self.slot.task, "on purpose, after restored commits")
        if running.duration_ns:
            thread.commits = False
            thread.vacate()

    def _take_fault(self) -> bool:
        """Return whether a fault fails a commit that ends now.  A fault without a duration fails one commit: it is over then."""
        failing = self.context.failing_commits
        until_ns = failing.get(self._sink, 0)
        if until_ns is None:
            del failing[self._sink]
        return until_ns is None or self.slot.now < until_ns

    def _on_commit_failed(self, running: _RunningCommit) -> bool:
        """Retry the commit, drop its transactions, or fail the task, depending on the options of the sink.

        A failed task is restored, and then commits the committables of its checkpoint again.  Return whether the next
        attempt has begun in the same mail (CommitterOperator since FLINK-36455); before, a timer begins it.
        """
        commit, retries = running.commit, self._retries is None or running.retries < self._retries
        follows = "tried again" if retries else "its records are lost" if self._drops else "the job restarts"
        records = sum(committable.records for committable in commit.committables)
        self.slot.note(EventType.COMMIT_FAILED, commit.checkpoint, records, follows)
        running.retries += 1
        if retries and not self._retry_ns:
            self._attempt(running)
            return True
        if retries:
            self._waiting = commit.committables
            retry = partial(self.slot.thread.post, lambda: self._retry(running))
            self.context.env.call_in(self._retry_ns, retry)
        elif self._drops:
            lost = (*running.lost, *commit.committables)
            self._note(commit.checkpoint, (), lost, again=commit.again, why="its commit failed, and the sink gave up")
        else:
            self.slot.job.fail_task(self.slot.task, "a commit failed")
        return False

    def _retry(self, running: _RunningCommit) -> None:
        """Retry a commit, unless a later one includes its committables by now."""
        if self._waiting is running.commit.committables:
            self._waiting = ()
            self._begin(running)

    def _note(
        self,
        checkpoint: int,
        committed: tuple[Committable, ...],
        lost: tuple[Committable, ...],
        *,
        again: bool,
        why: str = TIMED_OUT,
    ) -> None:
        """Record the committed and the lost transactions in the journal and in the results.

        `why` is the reason for the loss; `again` means that the commit follows a restore and makes nothing visible.
        """
        context, now, task = self.context, self.slot.now, self.slot.task
        self.output.discard_uncommitted(lost)
        visible, gone = (
            tuple(self._stats(committable) for committable in committables) for committables in (committed, lost)
        )
        for event_type, number in (
            (EventType.TRANSACTION_LOST, sum(epoch.records for epoch in gone)),
            (EventType.COMMITTED, sum(epoch.records for epoch in visible)),
            (EventType.FILE_MISSING, sum(epoch.missing for epoch in visible)),
        ):
            if number:
                self.slot.note(event_type, checkpoint, number)
        trigger_ns = context.stats[checkpoint].trigger_ns if checkpoint in context.stats else -1
        context.commits.append(CommitStats(checkpoint, now, task, trigger_ns, visible, gone, again, why))

    def _note_dropped(self, command: ReportDropped) -> None:
        """Record transactions that the committer drops, except those committed or lost before."""
        records = sum(
            committable.records for committable in command.committables if not self.output.settled(committable)
        )
        if records:
            self.slot.note(EventType.OUTPUT_DROPPED, command.checkpoint, records, command.why)

    def _stats(self, row: Committable) -> CommittedEpoch:
        """Return the row of results about a transaction."""
        missing = self.output.missing(row.files)
        return CommittedEpoch(row.writer, row.epoch, row.inputs, row.opened_ns, row.size_bytes, row.files, missing)
