"""Two-phase commits of sinks: committables, writers, committers, and the committer of Iceberg."""

from __future__ import annotations

from collections.abc import Hashable
from operator import attrgetter

from sim.protocol.machine import InvalidTransition, replace, value_class

# ---- Committables, which a writer sends to its committer, and the events and commands of both machines.
#
# Source: SinkWriterOperator, CommitterOperator (Flink 2.x).  `messages` has the rules for events and commands.


@value_class
class Committable:
    """A closed transaction of one writer subtask.  `writer` and `epoch` identify it, also to the external system."""

    writer: int  # task number
    epoch: int  # the checkpoint whose barrier follows it; at the end of input, last checkpoint + 1
    inputs: tuple[tuple[int, int], ...]  # records [from, to) of each input channel
    opened_ns: int  # at or before its first write
    size_bytes: int
    files: tuple[Hashable, ...] = ()  # names, chosen before the files are written

    @property
    def records(self) -> int:
        """The number of records of the transaction, over all input channels."""
        return sum(end - begin for begin, end in self.inputs)


# ---------------------------------------------------------------------------------------------- writer


@value_class
class EpochEnded:
    """The barrier of this checkpoint is about to be forwarded (SinkWriter#prepareCommit)."""

    now: int
    checkpoint: int
    read: tuple[int, ...]  # records read so far on each input channel
    size_bytes: int
    files: tuple[Hashable, ...] = ()


@value_class
class WriterInputEnded:
    """No record follows (endInput).  The open transaction becomes a committable of the next checkpoint."""

    now: int
    read: tuple[int, ...]
    size_bytes: int
    files: tuple[Hashable, ...] = ()


@value_class
class HandOver:
    """Send the committable to the committer as a record, before the barrier."""

    committable: Committable


@value_class
class WriterRestored:
    """The task is restored from this checkpoint, up to which it had written `written` records of each input channel."""

    checkpoint: int
    written: tuple[int, ...]


WriterEvent = EpochEnded | WriterInputEnded | WriterRestored

# ---------------------------------------------------------------------------------------------- committer


@value_class
class CommittablesReceived:
    """Committables reached the committer: before the last barrier of their checkpoint, unless it has overtaken them."""

    now: int
    committables: tuple[Committable, ...]
    behind: bool = False  # they arrived after their barrier, or were restored as in-flight data


@value_class
class SnapshotTaken:
    """The committer takes its snapshot: its state is part of this checkpoint (snapshotState)."""

    now: int
    checkpoint: int


@value_class
class CompletionNotified:
    """The task thread handles notifyCheckpointComplete.  If a notification is lost, the next one covers it."""

    now: int
    checkpoint: int


@value_class
class Restored:
    """The committer is restored from this checkpoint, with these committables (CommitterOperator#initializeState)."""

    now: int
    checkpoint: int
    committables: tuple[Committable, ...]
    newest_commit: int = 0  # the newest checkpoint that is committed in the external system


@value_class
class TaskClosed:
    """The task ends without a final checkpoint, and commits at once (sinks before FLIP-147)."""

    now: int


@value_class
class CommitEpochs:
    """Commit these committables in this order.

    `again` means that this follows a restore: the external system ignores committables that it has committed before.
    """

    checkpoint: int  # 0: no completed checkpoint contains them
    committables: tuple[Committable, ...]
    again: bool = False


@value_class
class ReportLost:
    """The external system has expired these transactions: their records are lost."""

    checkpoint: int
    committables: tuple[Committable, ...]


@value_class
class ReportDropped:
    """The committer drops these without a commit: their records are lost."""

    checkpoint: int  # at which they are dropped
    committables: tuple[Committable, ...]
    why: str


CommitterEvent = CommittablesReceived | SnapshotTaken | CompletionNotified | Restored | TaskClosed
CommitterCommand = CommitEpochs | ReportLost | ReportDropped


# ---- The writer of a transactional sink: a transaction is always open; each barrier closes it and opens the next one.
#
# Source: SinkWriterOperator#prepareSnapshotPreBarrier, #endInput.  If a checkpoint is aborted, the writer does nothing:
# the committer already has the committable and commits it with the next completed checkpoint.


@value_class
class Writer:
    """The writer of one sink subtask, with its open transaction."""

    task: int
    read: tuple[int, ...]  # records of each input channel written before the transaction was opened
    opened_ns: int = 0
    last_checkpoint: int = 0
    ended: bool = False

    def on(self, event: WriterEvent) -> tuple[Writer, tuple[HandOver, ...]]:
        """Return the next writer and its commands."""
        if isinstance(event, WriterRestored):
            return replace(self, last_checkpoint=event.checkpoint, read=event.written), ()
        if isinstance(event, WriterInputEnded):
            if self.ended:
                raise InvalidTransition(self, event, "its input has ended already")
            after, commands = self._closed(event, self.last_checkpoint + 1)
            return replace(after, ended=True), commands
        if event.checkpoint <= self.last_checkpoint:
            raise InvalidTransition(self, event, "checkpoint ids must increase")
        after, commands = self._closed(event, event.checkpoint)
        return replace(after, last_checkpoint=event.checkpoint), commands

    def _closed(self, event: EpochEnded | WriterInputEnded, epoch: int) -> tuple[Writer, tuple[HandOver, ...]]:
        """Close the transaction, and send its committable unless it is empty."""
        if any(now < before for before, now in zip(self.read, event.read, strict=True)):
            raise InvalidTransition(self, event, "record counts must not decrease")
        after = replace(self, read=event.read, opened_ns=event.now)
        if event.read == self.read:
            return after, ()
        inputs = tuple(zip(self.read, event.read, strict=True))
        return after, (HandOver(Committable(self.task, epoch, inputs, self.opened_ns, event.size_bytes, event.files)),)


# ---- The committer of a transactional sink: keeps committables and commits them when their checkpoint is complete.
#
# Source: CommitterOperator.  A completion covers all epochs up to it, so lost notifications and aborted checkpoints only
# delay commits.  Its state are the committables: snapshots contain them, and after a restore they are committed again,
# which the external system ignores.  A committable that its barrier has overtaken may arrive after its checkpoint is
# complete: it is committed at once (before FLINK-36379; since FLINK-36287 barriers do not overtake committables).

_Answer = tuple["Committer", tuple[CommitterCommand, ...]]


@value_class
class Committer:
    """The committer of one sink."""

    transaction_timeout_ns: int | None = None  # of the external system; None: transactions do not expire
    committables: tuple[Committable, ...] = ()  # its state, sorted by epoch and writer
    last_completed: int = 0
    restored_from: int = 0  # 0: not restored

    def on(self, event: CommitterEvent) -> _Answer:
        """Return the next committer and its commands."""
        match event:
            case CommittablesReceived():
                late = [committable for committable in event.committables if committable.epoch <= self.last_completed]
                if late and not event.behind:
                    raise InvalidTransition(self, event, "the checkpoint of these committables is complete already")
                after = replace(self, committables=sort_committables((*self.committables, *event.committables)))
                again = self.last_completed == self.restored_from  # restored in-flight data
                return _commit_up_to(after, event.now, self.last_completed, again=again) if late else (after, ())
            case SnapshotTaken():
                return self, ()
            case CompletionNotified():
                if event.checkpoint <= self.last_completed:  # a repeated or late notification
                    return self, ()
                return _commit_up_to(self, event.now, event.checkpoint, again=False)
            case Restored():
                restored = replace(
                    self, committables=sort_committables(event.committables), restored_from=event.checkpoint
                )
                return _commit_up_to(restored, event.now, event.checkpoint, again=True)
            case TaskClosed():
                return replace(self, committables=()), (
                    CommitEpochs(0, self.committables),
                ) if self.committables else ()


def _commit_up_to(committer: Committer, now: int, checkpoint: int, *, again: bool) -> _Answer:
    """Commit all epochs up to this checkpoint, also those of aborted checkpoints (FLINK-37375)."""
    ready, waiting = _split_at(committer.committables, checkpoint)
    after = replace(committer, committables=waiting, last_completed=checkpoint)
    return after, commit_unexpired(ready, checkpoint, now, committer.transaction_timeout_ns, again=again)


def commit_unexpired(
    ready: tuple[Committable, ...], checkpoint: int, now: int, timeout_ns: int | None, *, again: bool
) -> tuple[CommitterCommand, ...]:
    """Return the commands that commit `ready` and report as lost the transactions that the external system has expired.

    `timeout_ns` is the transaction timeout of the external system, or None if transactions do not expire.
    """
    lost = tuple(
        committable for committable in ready if timeout_ns is not None and now - committable.opened_ns > timeout_ns
    )
    kept = tuple(committable for committable in ready if committable not in lost)
    report = (ReportLost(checkpoint, lost),) if lost else ()
    return (*report, CommitEpochs(checkpoint, kept, again)) if kept else report


def sort_committables(committables: tuple[Committable, ...]) -> tuple[Committable, ...]:
    """Return the committables sorted by epoch, then by writer."""
    return tuple(sorted(committables, key=attrgetter("epoch", "writer")))


# ---- The committer of Iceberg's FlinkSink (v1): one manifest (list of files) per checkpoint.
#
# Source: IcebergFilesCommitter; apache/iceberg#15846 and #15913.  With unaligned barriers it loses files that arrive
# after their barrier: a snapshot replaces an older manifest of the same checkpoint, and a restore drops the manifests of
# checkpoints up to the table's newest commit.  Its commit at the end of input is not modelled.

_IcebergCommitterAnswer = tuple["IcebergCommitter", tuple[CommitterCommand, ...]]


@value_class
class IcebergCommitter:
    """The committer of Iceberg's FlinkSink."""

    transaction_timeout_ns: int | None = None
    committables: tuple[Committable, ...] = ()  # dataFilesPerCheckpoint, its state: sorted by epoch and writer
    since_snapshot: tuple[Committable, ...] = ()  # writeResultsSinceLastSnapshot
    newest_commit: int = 0  # maxCommittedCheckpointId

    def on(self, event: CommitterEvent) -> _IcebergCommitterAnswer:
        """Return the next committer and its commands."""
        match event:
            case CommittablesReceived():
                return replace(self, since_snapshot=(*self.since_snapshot, *event.committables)), ()
            case SnapshotTaken():
                return self._write_manifests(event.checkpoint)
            case CompletionNotified():
                return self._complete_checkpoint(event)
            case Restored():
                return self._restore(event)
            case TaskClosed():
                left = sort_committables((*self.committables, *self.since_snapshot))
                return replace(self, committables=(), since_snapshot=()), (CommitEpochs(0, left),) if left else ()

    def _write_manifests(self, checkpoint: int) -> _IcebergCommitterAnswer:
        """Replace the manifest of each epoch that has new files (writeToManifestUptoLatestCheckpoint)."""
        rewritten = {checkpoint, *(committable.epoch for committable in self.since_snapshot)}
        replaced = tuple(committable for committable in self.committables if committable.epoch in rewritten)
        kept = tuple(committable for committable in self.committables if committable.epoch not in rewritten)
        after = replace(self, committables=sort_committables((*kept, *self.since_snapshot)), since_snapshot=())
        return after, (
            ReportDropped(
                checkpoint, replaced, "their manifest was replaced by one of files that arrived after the barrier"
            ),
        ) if replaced else ()

    def _complete_checkpoint(self, event: CompletionNotified) -> _IcebergCommitterAnswer:
        """Commit all manifests up to this checkpoint as one table commit with its id."""
        if event.checkpoint <= self.newest_commit:
            return self, ()
        ready, waiting = _split_at(self.committables, event.checkpoint)
        after = replace(self, committables=waiting, newest_commit=event.checkpoint)
        return after, commit_unexpired(ready, event.checkpoint, event.now, self.transaction_timeout_ns, again=False)

    def _restore(self, event: Restored) -> _IcebergCommitterAnswer:
        """Commit manifests newer than the table's newest commit; assume that older ones are committed already."""
        old, ready = _split_at(event.committables, event.newest_commit)
        after = replace(self, committables=(), since_snapshot=(), newest_commit=event.newest_commit)
        why = f"the table's newest commit is of checkpoint {event.newest_commit}"
        dropped = (ReportDropped(event.checkpoint, old, why),) if old else ()
        return after, (
            *dropped,
            *commit_unexpired(ready, event.checkpoint, event.now, self.transaction_timeout_ns, again=True),
        )


def _split_at(
    committables: tuple[Committable, ...], checkpoint: int
) -> tuple[tuple[Committable, ...], tuple[Committable, ...]]:
    """Return the committables of epochs up to this checkpoint, and the newer ones."""
    until = tuple(committable for committable in committables if committable.epoch <= checkpoint)
    return until, tuple(committable for committable in committables if committable.epoch > checkpoint)
