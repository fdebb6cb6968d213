"""The writer of a transactional sink: one transaction is always open; the barrier closes it and the next one begins.

Source: SinkWriterOperator#prepareSnapshotPreBarrier, #endInput.  What the writer wrote for a checkpoint that is aborted later needs
no word here: the committable is with the committer already and is committed with the next complete checkpoint.
"""

from __future__ import annotations

from sim.protocol.commit.committables import Committable, EpochEnded, HandOver, WriterEvent, WriterInputEnded, WriterRestored
from sim.protocol.machine import InvalidTransition, changed
from sim.protocol.value_class import value_class


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
            return changed(self, last_checkpoint=event.checkpoint, read=event.written), ()
        if isinstance(event, WriterInputEnded):
            if self.ended:
                raise InvalidTransition("writer", self, event, why="its input has ended before")
            after, commands = self._closed(event, self.last_checkpoint + 1)
            return changed(after, ended=True), commands
        if event.checkpoint <= self.last_checkpoint:
            raise InvalidTransition("writer", self, event, why="checkpoints only increase")
        after, commands = self._closed(event, event.checkpoint)
        return changed(after, last_checkpoint=event.checkpoint), commands

    def _closed(self, event: EpochEnded | WriterInputEnded, epoch: int) -> tuple[Writer, tuple[HandOver, ...]]:
        """An empty transaction makes no committable."""
        if any(now < before for before, now in zip(self.read, event.read, strict=True)):
            raise InvalidTransition("writer", self, event, why="it takes nothing back that it has written")
        after = changed(self, read=event.read, opened_ns=event.now)
        if event.read == self.read:
            return after, ()
        inputs = tuple(zip(self.read, event.read, strict=True))
        return after, (HandOver(Committable(self.task, epoch, inputs, self.opened_ns, event.size_bytes, event.files)),)
