"""Two-phase commits: committables, writers, committers, the committer of Iceberg."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from sim.protocol.machine import InvalidTransition, value_class

# ---- Committables, which a writer hands to its committer, and the events and commands of both machines.
#
# Source: SinkWriterOperator, CommitterOperator (Flink 2.x).  See vocabulary.py for the rules of events and commands.


@value_class
class Committable:
    """One closed transaction of one writer subtask: `writer` and `epoch` name it, for the external system too."""

    writer: int  # task number
    epoch: int  # the checkpoint whose barrier it precedes; end of input: the one after the last
    inputs: tuple[tuple[int, int], ...]  # per input channel: the records [from, to) it holds
    opened_ns: int  # not later than its first write
    size_bytes: int
    files: tuple[Hashable, ...] = ()  # their names, chosen before they are written

    @property
    def records(self) -> int:
        return sum(end - begin for begin, end in self.inputs)


# ---------------------------------------------------------------------------------------------- writer


@value_class
class EpochEnded:
    """The writer prepares its commit before the barrier of this checkpoint leaves (prepareCommit)."""

    now: int
    checkpoint: int
    read: tuple[int, ...]  # per input channel: records read so far
    size_bytes: int
    files: tuple[Hashable, ...] = ()


@value_class
class WriterInputEnded:
    """No record follows (endInput): what is open becomes a committable of the next checkpoint, whichever that is."""

    now: int
    read: tuple[int, ...]
    size_bytes: int
    files: tuple[Hashable, ...] = ()


@value_class
class HandOver:
    """Send the committable to the committer, in band, before the barrier (an edge that is never unaligned)."""

    committable: Committable


@value_class
class WriterRestored:
    """The task begins from this checkpoint, in which it had written so many records of each input channel."""

    checkpoint: int
    written: tuple[int, ...]


WriterEvent = EpochEnded | WriterInputEnded | WriterRestored

# ---------------------------------------------------------------------------------------------- committer


@value_class
class CommittablesReceived:
    """Committables reached the committer: all of a checkpoint's before its last barrier, unless the barrier has overtaken them."""

    now: int
    committables: tuple[Committable, ...]
    behind: bool = False  # their own barrier came first, or they are in-flight data that a restore brings back


@value_class
class SnapshotTaken:
    """The committer's part of this checkpoint is what it holds now (snapshotState)."""

    now: int
    checkpoint: int


@value_class
class CompletionNotified:
    """The task thread hears that a checkpoint is complete; the call may be lost, and the next one covers it."""

    now: int
    checkpoint: int


@value_class
class Restored:
    """The committer starts from this checkpoint, which holds these (CommitterOperator#initializeState)."""

    now: int
    checkpoint: int
    committables: tuple[Committable, ...]
    newest_commit: int = 0  # the newest checkpoint that the external system has a commit of


@value_class
class TaskClosed:
    """The committer's task ends and waits for no checkpoint: what it holds is committed on the spot (sinks before FLIP-147)."""

    now: int


@value_class
class CommitEpochs:
    """Make these committables visible, in this order.  `again`: after a restore; the external system ignores those that it has."""

    checkpoint: int  # 0: none is complete that holds them
    committables: tuple[Committable, ...]
    again: bool = False


@value_class
class ReportLost:
    """These transactions were open for longer than the external system keeps them: their records are lost."""

    checkpoint: int
    committables: tuple[Committable, ...]


@value_class
class ReportDropped:
    """The committer forgets these, and commits them never: their records are lost, whatever it was meant to do."""

    checkpoint: int  # at which it does so
    committables: tuple[Committable, ...]
    why: str


CommitterEvent = CommittablesReceived | SnapshotTaken | CompletionNotified | Restored | TaskClosed
CommitterCommand = CommitEpochs | ReportLost | ReportDropped


# ---- The writer of a transactional sink: one transaction is always open; the barrier closes it and the next one begins.
#
# Source:  SinkWriterOperator#prepareSnapshotPreBarrier, #endInput.  What the writer wrote for a checkpoint that is
# aborted later needs no word here: the committable is with the committer already and is committed with the next
# complete checkpoint.


@value_class
class Writer:
    """The writer of one sink subtask, with its open transaction."""

    task: int
    read: tuple[int, ...]  # per input channel: records written when the transaction was opened
    opened_ns: int = 0
    last_checkpoint: int = 0
    ended: bool = False

    def on(self, event: WriterEvent) -> tuple[Writer, tuple[HandOver, ...]]:
        if isinstance(event, WriterRestored):
            return replace(self, last_checkpoint=event.checkpoint, read=event.written), ()
        if isinstance(event, WriterInputEnded):
            if self.ended:
                raise InvalidTransition("writer", self, event, why="its input has ended before")
            after, commands = self._closed(event, self.last_checkpoint + 1)
            return replace(after, ended=True), commands
        if event.checkpoint <= self.last_checkpoint:
            raise InvalidTransition("writer", self, event, why="checkpoints only increase")
        after, commands = self._closed(event, event.checkpoint)
        return replace(after, last_checkpoint=event.checkpoint), commands

    def _closed(self, event: EpochEnded | WriterInputEnded, epoch: int) -> tuple[Writer, tuple[HandOver, ...]]:
        """An empty transaction makes no committable."""
        if any(now < before for before, now in zip(self.read, event.read, strict=True)):
            raise InvalidTransition("writer", self, event, why="it takes nothing back that it has written")
        after = replace(self, read=event.read, opened_ns=event.now)
        if event.read == self.read:
            return after, ()
        inputs = tuple(zip(self.read, event.read, strict=True))
        return after, (HandOver(Committable(self.task, epoch, inputs, self.opened_ns, event.size_bytes, event.files)),)


# ---- The committer of a transactional sink: holds what the writers closed, commits it when its checkpoint is complete.
#
# Source:  CommitterOperator.  Commits coalesce: a completion covers every epoch up to it, so a lost notification and an
# aborted checkpoint cost time and nothing else.  What it holds is its state: a snapshot keeps it, a restore brings it
# back, and committing again is the external system's to ignore.  A committable that its barrier has overtaken may come
# when its checkpoint is complete: it is committed at once (before FLINK-36379; since FLINK-36287 no barrier overtakes
# any).

_Answer = tuple["Committer", tuple[CommitterCommand, ...]]


@value_class
class Committer:
    """The committer of one sink."""

    transaction_timeout_ns: int | None = None  # of the external system; None: it keeps transactions for ever
    committables: tuple[Committable, ...] = ()  # by epoch, then writer: its state
    last_completed: int = 0
    begun_from: int = 0  # the checkpoint it was restored from; 0: none

    def on(self, event: CommitterEvent) -> _Answer:
        match event:
            case CommittablesReceived():
                late = [committable for committable in event.committables if committable.epoch <= self.last_completed]
                if late and not event.behind:
                    raise InvalidTransition(
                        "committer", self, event, why="a complete checkpoint has no more committables"
                    )
                after = replace(self, committables=ordered((*self.committables, *event.committables)))
                again = self.last_completed == self.begun_from  # in-flight data of the checkpoint restored
                return _committed(after, event.now, self.last_completed, again=again) if late else (after, ())
            case SnapshotTaken():
                return self, ()
            case CompletionNotified():
                if event.checkpoint <= self.last_completed:  # a repeated notice, or a late one
                    return self, ()
                return _committed(self, event.now, event.checkpoint, again=False)
            case Restored():
                restored = replace(self, committables=ordered(event.committables), begun_from=event.checkpoint)
                return _committed(restored, event.now, event.checkpoint, again=True)
            case TaskClosed():
                return replace(self, committables=()), (
                    CommitEpochs(0, self.committables),
                ) if self.committables else ()


def _committed(committer: Committer, now: int, checkpoint: int, *, again: bool) -> _Answer:
    """Everything up to this checkpoint, aborted ones included: their files were handed over all the same (FLINK-37375)."""
    timeout_ns = committer.transaction_timeout_ns
    ready = tuple(committable for committable in committer.committables if committable.epoch <= checkpoint)
    waiting = tuple(committable for committable in committer.committables if committable.epoch > checkpoint)
    after = replace(committer, committables=waiting, last_completed=checkpoint)
    return after, committed(ready, checkpoint, now, timeout_ns, again=again)


def committed(
    ready: tuple[Committable, ...], checkpoint: int, now: int, timeout_ns: int | None, *, again: bool
) -> tuple[CommitterCommand, ...]:
    """Commit these, but for those whose transactions the external system has forgotten."""
    lost = tuple(
        committable for committable in ready if timeout_ns is not None and now - committable.opened_ns > timeout_ns
    )
    kept = tuple(committable for committable in ready if committable not in lost)
    report = (ReportLost(checkpoint, lost),) if lost else ()
    return (*report, CommitEpochs(checkpoint, kept, again)) if kept else report


def ordered(committables: tuple[Committable, ...]) -> tuple[Committable, ...]:
    return tuple(sorted(committables, key=lambda committable: (committable.epoch, committable.writer)))


# ---- The committer of Iceberg's FlinkSink (v1): one list of files per checkpoint, and each snapshot sets lists anew.
#
# Source:  IcebergFilesCommitter; apache/iceberg#15846 and #15913.  Two of its rules lose files that arrive behind their
# own barrier.  A list that a snapshot sets replaces the older list of the same checkpoint.  A restore forgets the lists
# of checkpoints up to the newest commit of the table.  Neither matters as long as barriers are aligned.  Not modelled:
# its commit at the end of the input.

_IcebergCommitterAnswer = tuple["IcebergCommitter", tuple[CommitterCommand, ...]]


@value_class
class IcebergCommitter:
    """The committer of Iceberg's FlinkSink."""

    transaction_timeout_ns: int | None = None
    committables: tuple[Committable, ...] = ()  # dataFilesPerCheckpoint, its state: by epoch, then writer
    since_snapshot: tuple[Committable, ...] = ()  # writeResultsSinceLastSnapshot
    newest_commit: int = 0  # maxCommittedCheckpointId

    def on(self, event: CommitterEvent) -> _IcebergCommitterAnswer:
        match event:
            case CommittablesReceived():
                return replace(self, since_snapshot=(*self.since_snapshot, *event.committables)), ()
            case SnapshotTaken():
                return self._lists_set(event.checkpoint)
            case CompletionNotified():
                return self._complete_checkpoint(event)
            case Restored():
                return self._restored(event)
            case TaskClosed():
                left = ordered((*self.committables, *self.since_snapshot))
                return replace(self, committables=(), since_snapshot=()), (CommitEpochs(0, left),) if left else ()

    def _lists_set(self, checkpoint: int) -> _IcebergCommitterAnswer:
        """What has arrived since the last snapshot, by the checkpoint that each file names (writeToManifestUptoLatestCheckpoint)."""
        anew = {checkpoint, *(committable.epoch for committable in self.since_snapshot)}
        replaced = tuple(committable for committable in self.committables if committable.epoch in anew)
        kept = tuple(committable for committable in self.committables if committable.epoch not in anew)
        after = replace(self, committables=ordered((*kept, *self.since_snapshot)), since_snapshot=())
        return after, (
            ReportDropped(checkpoint, replaced, "files that came behind the barrier take their place"),
        ) if replaced else ()

    def _complete_checkpoint(self, event: CompletionNotified) -> _IcebergCommitterAnswer:
        """All lists up to this checkpoint are one commit, which bears its number."""
        if event.checkpoint <= self.newest_commit:
            return self, ()
        ready, waiting = _divided(self.committables, event.checkpoint)
        after = replace(self, committables=waiting, newest_commit=event.checkpoint)
        return after, committed(ready, event.checkpoint, event.now, self.transaction_timeout_ns, again=False)

    def _restored(self, event: Restored) -> _IcebergCommitterAnswer:
        """Lists behind the table's newest commit are committed, older ones are taken for committed."""
        old, ready = _divided(event.committables, event.newest_commit)
        after = replace(self, committables=(), since_snapshot=(), newest_commit=event.newest_commit)
        why = f"the table's newest commit is of checkpoint {event.newest_commit}"
        forgotten = (ReportDropped(event.checkpoint, old, why),) if old else ()
        return after, (
            *forgotten,
            *committed(ready, event.checkpoint, event.now, self.transaction_timeout_ns, again=True),
        )


def _divided(
    committables: tuple[Committable, ...], checkpoint: int
) -> tuple[tuple[Committable, ...], tuple[Committable, ...]]:
    """Up to this checkpoint, and behind it."""
    until = tuple(committable for committable in committables if committable.epoch <= checkpoint)
    return until, tuple(committable for committable in committables if committable.epoch > checkpoint)
