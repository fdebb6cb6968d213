"""The committer of a transactional sink: holds what the writers closed, commits it when its checkpoint is complete.

Source: CommitterOperator.  Commits coalesce: a completion covers every epoch up to it, so a lost notification and an aborted
checkpoint cost time and nothing else.  What it holds is its state: a snapshot keeps it, a restore brings it back, and committing
again is the external system's to ignore.
"""

from __future__ import annotations

from dataclasses import dataclass

from sim.protocol.committables import (
    Commit,
    Committable,
    CommittablesReceived,
    CommitterCommand,
    CommitterEvent,
    CompletionNotified,
    ReportLost,
    Restored,
    TaskClosed,
)
from sim.protocol.machine import InvalidTransition, changed

__all__ = ["Committer"]

_Answer = tuple["Committer", tuple[CommitterCommand, ...]]


@dataclass(frozen=True, slots=True)
class Committer:
    transaction_timeout_ns: int | None = None  # of the external system; None: it keeps transactions for ever
    held: tuple[Committable, ...] = ()  # by epoch, then writer: its state
    last_completed: int = 0

    def on(self, event: CommitterEvent) -> _Answer:
        match event:
            case CommittablesReceived():
                late = [one for one in event.committables if one.epoch <= self.last_completed]
                if late:
                    raise InvalidTransition("committer", self, event, why="a complete checkpoint has no more committables")
                return changed(self, held=_ordered((*self.held, *event.committables))), ()
            case CompletionNotified():
                if event.checkpoint <= self.last_completed:  # told before, or told late
                    return self, ()
                return _committed(self, event.now, event.checkpoint, again=False)
            case Restored():
                return _committed(changed(self, held=_ordered(event.committables)), event.now, event.checkpoint, again=True)
            case TaskClosed():
                return changed(self, held=()), (Commit(0, self.held),) if self.held else ()


def _committed(committer: Committer, now: int, checkpoint: int, *, again: bool) -> _Answer:
    """Everything up to this checkpoint, aborted ones included: their files were handed over all the same (FLINK-37375)."""
    timeout_ns = committer.transaction_timeout_ns
    ready = [one for one in committer.held if one.epoch <= checkpoint]
    lost = tuple(one for one in ready if timeout_ns is not None and now - one.opened_ns > timeout_ns)
    kept = tuple(one for one in ready if one not in lost)
    after = changed(committer, held=tuple(one for one in committer.held if one.epoch > checkpoint), last_completed=checkpoint)
    report = (ReportLost(checkpoint, lost),) if lost else ()
    return after, (*report, Commit(checkpoint, kept, again)) if kept else report


def _ordered(committables: tuple[Committable, ...]) -> tuple[Committable, ...]:
    return tuple(sorted(committables, key=lambda one: (one.epoch, one.writer)))
