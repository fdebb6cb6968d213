"""Committables, which a writer hands to its committer, and the events and commands of both machines.

Source: SinkWriterOperator, CommitterOperator (Flink 2.x).  See vocabulary.py for the rules of events and commands.
"""

from __future__ import annotations

from collections.abc import Hashable

from sim.protocol.value_class import value_class


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
