"""The committer of a transactional sink: holds what the writers closed, commits it when its checkpoint is complete.

Source: CommitterOperator.  Commits coalesce: a completion covers every epoch up to it, so a lost notification and an aborted
checkpoint cost time and nothing else.  What it holds is its state: a snapshot keeps it, a restore brings it back, and committing
again is the external system's to ignore.  A committable that its barrier has overtaken may come when its checkpoint is complete: it is
committed at once (before FLINK-36379; since FLINK-36287 no barrier overtakes any).
"""

from __future__ import annotations

from sim.protocol.commit.committables import (
    CommitEpochs,
    Committable,
    CommittablesReceived,
    CommitterCommand,
    CommitterEvent,
    CompletionNotified,
    ReportLost,
    Restored,
    SnapshotTaken,
    TaskClosed,
)
from sim.protocol.machine import InvalidTransition, changed
from sim.protocol.value_class import value_class

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
                    raise InvalidTransition("committer", self, event, why="a complete checkpoint has no more committables")
                after = changed(self, committables=ordered((*self.committables, *event.committables)))
                again = self.last_completed == self.begun_from  # in-flight data of the checkpoint restored
                return _committed(after, event.now, self.last_completed, again=again) if late else (after, ())
            case SnapshotTaken():
                return self, ()
            case CompletionNotified():
                if event.checkpoint <= self.last_completed:  # a repeated notice, or a late one
                    return self, ()
                return _committed(self, event.now, event.checkpoint, again=False)
            case Restored():
                restored = changed(self, committables=ordered(event.committables), begun_from=event.checkpoint)
                return _committed(restored, event.now, event.checkpoint, again=True)
            case TaskClosed():
                return changed(self, committables=()), (CommitEpochs(0, self.committables),) if self.committables else ()


def _committed(committer: Committer, now: int, checkpoint: int, *, again: bool) -> _Answer:
    """Everything up to this checkpoint, aborted ones included: their files were handed over all the same (FLINK-37375)."""
    timeout_ns = committer.transaction_timeout_ns
    ready = tuple(committable for committable in committer.committables if committable.epoch <= checkpoint)
    waiting = tuple(committable for committable in committer.committables if committable.epoch > checkpoint)
    after = changed(committer, committables=waiting, last_completed=checkpoint)
    return after, committed(ready, checkpoint, now, timeout_ns, again=again)


def committed(
    ready: tuple[Committable, ...], checkpoint: int, now: int, timeout_ns: int | None, *, again: bool
) -> tuple[CommitterCommand, ...]:
    """Commit these, but for those whose transactions the external system has forgotten."""
    lost = tuple(committable for committable in ready if timeout_ns is not None and now - committable.opened_ns > timeout_ns)
    kept = tuple(committable for committable in ready if committable not in lost)
    report = (ReportLost(checkpoint, lost),) if lost else ()
    return (*report, CommitEpochs(checkpoint, kept, again)) if kept else report


def ordered(committables: tuple[Committable, ...]) -> tuple[Committable, ...]:
    return tuple(sorted(committables, key=lambda committable: (committable.epoch, committable.writer)))
