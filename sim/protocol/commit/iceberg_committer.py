"""The committer of Iceberg's FlinkSink (v1): one list of files per checkpoint, and each snapshot sets lists anew.

Source: IcebergFilesCommitter; apache/iceberg#15846 and #15913.  Two of its rules lose files that arrive behind their own barrier.
A list that a snapshot sets replaces the older list of the same checkpoint.  A restore forgets the lists of checkpoints up to the
newest commit of the table.  Neither matters as long as barriers are aligned.  Not modelled: its commit at the end of the input.
"""

from __future__ import annotations

from sim.protocol.commit.committables import (
    CommitEpochs,
    Committable,
    CommittablesReceived,
    CommitterCommand,
    CommitterEvent,
    CompletionNotified,
    ReportDropped,
    Restored,
    SnapshotTaken,
    TaskClosed,
)
from sim.protocol.commit.committer import committed, ordered
from sim.protocol.machine import changed
from sim.protocol.value_class import value_class

_Answer = tuple["IcebergCommitter", tuple[CommitterCommand, ...]]


@value_class
class IcebergCommitter:
    """The committer of Iceberg's FlinkSink."""

    transaction_timeout_ns: int | None = None
    committables: tuple[Committable, ...] = ()  # dataFilesPerCheckpoint, its state: by epoch, then writer
    since_snapshot: tuple[Committable, ...] = ()  # writeResultsSinceLastSnapshot
    newest_commit: int = 0  # maxCommittedCheckpointId

    def on(self, event: CommitterEvent) -> _Answer:
        match event:
            case CommittablesReceived():
                return changed(self, since_snapshot=(*self.since_snapshot, *event.committables)), ()
            case SnapshotTaken():
                return self._lists_set(event.checkpoint)
            case CompletionNotified():
                return self._completed(event)
            case Restored():
                return self._restored(event)
            case TaskClosed():
                left = ordered((*self.committables, *self.since_snapshot))
                return changed(self, committables=(), since_snapshot=()), (CommitEpochs(0, left),) if left else ()

    def _lists_set(self, checkpoint: int) -> _Answer:
        """What has arrived since the last snapshot, by the checkpoint that each file names (writeToManifestUptoLatestCheckpoint)."""
        anew = {checkpoint, *(committable.epoch for committable in self.since_snapshot)}
        replaced = tuple(committable for committable in self.committables if committable.epoch in anew)
        kept = tuple(committable for committable in self.committables if committable.epoch not in anew)
        after = changed(self, committables=ordered((*kept, *self.since_snapshot)), since_snapshot=())
        return after, (ReportDropped(checkpoint, replaced, "files that came behind the barrier take their place"),) if replaced else ()

    def _completed(self, event: CompletionNotified) -> _Answer:
        """All lists up to this checkpoint are one commit, which bears its number."""
        if event.checkpoint <= self.newest_commit:
            return self, ()
        ready, waiting = _divided(self.committables, event.checkpoint)
        after = changed(self, committables=waiting, newest_commit=event.checkpoint)
        return after, committed(ready, event.checkpoint, event.now, self.transaction_timeout_ns, again=False)

    def _restored(self, event: Restored) -> _Answer:
        """Lists behind the table's newest commit are committed, older ones are taken for committed."""
        old, ready = _divided(event.committables, event.newest_commit)
        after = changed(self, committables=(), since_snapshot=(), newest_commit=event.newest_commit)
        why = f"the table's newest commit is of checkpoint {event.newest_commit}"
        forgotten = (ReportDropped(event.checkpoint, old, why),) if old else ()
        return after, (*forgotten, *committed(ready, event.checkpoint, event.now, self.transaction_timeout_ns, again=True))


def _divided(committables: tuple[Committable, ...], checkpoint: int) -> tuple[tuple[Committable, ...], tuple[Committable, ...]]:
    """Up to this checkpoint, and behind it."""
    until = tuple(committable for committable in committables if committable.epoch <= checkpoint)
    return until, tuple(committable for committable in committables if committable.epoch > checkpoint)
