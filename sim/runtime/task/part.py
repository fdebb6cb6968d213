"""A feature of a task: the moments of the task's life at which it may act, and how tasks get it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, Protocol, TypeVar

from sim.protocol.vocabulary import Work as Piece
from sim.runtime.contents import TaskSnapshot
from sim.runtime.task.operator.sink import SinkCommitter
from sim.runtime.task.slot import Slot
from sim.storage.work import Work

P = TypeVar("P", bound="TaskPart")


class WaitingBytes(NamedTuple):
    """State of a part at the cut of a snapshot, by the kind of its file [bytes]."""

    operator: int = 0  # list state: requests under way
    windows: int = 0  # records that wait in windows


class TaskPart:
    """A feature of a task: one method for each moment of the task's life.  A subclass overrides the methods it needs.

    A snapshot calls `before_barrier`, `work_before_barrier`, `leaves`, `overtaken` (if it overtakes), `cut`, `waiting`, `upload`, and in
    the end `completed` or `aborted`.  Barriers that may overtake data call `capture_begun`, `input_overtaken` and `capture_ended` besides.
    The end of the data calls `end_input`, waits while a part `owes_outputs`, then calls `work_at_end`, `close`, and last `finished`.
    A restore calls `download`, `restored`, `begin`.
    """

    @property
    def listens(self) -> bool:
        """Whether notices of completed checkpoints matter to it."""
        return False

    @property
    def owes_outputs(self) -> bool:
        """Whether the end of the data waits for late outputs of this part."""
        return False

    @property
    def drops(self) -> bool:
        """Whether it keeps records for ever: they wait for a watermark that never comes."""
        return False

    @property
    def storing(self) -> bool:
        """Whether it keeps buffers until they are in storage."""
        return False

    def begin(self) -> None:
        """The task runs."""

    def download(self, snapshot: TaskSnapshot) -> Work[None] | None:
        """Read what the snapshot holds for it; the task waits.  None: nothing.  It may raise StorageFailed, which fails the task."""
        return None

    def restored(self, snapshot: TaskSnapshot) -> None:
        """The task goes on from its part of a checkpoint."""

    def stop(self) -> None:
        """The task is gone, and what it had on its disk."""

    # ------------------------------------------------------------------------------------------ a snapshot

    def before_barrier(self, checkpoint: int) -> int:
        """All barriers are here, none has left.  Returns the time that the part keeps the task thread [ns]."""
        return 0

    def work_before_barrier(self, checkpoint: int, pieces: tuple[Piece, ...]) -> Work[None] | None:
        """Work that keeps the task thread until it is done; `pieces`: the work that belongs before the barrier.  None: there is none.

        It may raise StorageFailed, which fails the task.
        """
        return None

    def leaves(self) -> bool:
        """Let outputs go before the barrier.  True: the plane reports when they are written, and the barrier waits for it."""
        return False

    def overtaken(self, checkpoint: int, size_bytes: int) -> None:
        """The barrier has just left, before so much that lies in the outputs."""

    def output_converted(self, checkpoint: int, size_bytes: int) -> None:
        """A barrier that lay in the outputs has just moved before so much of them."""

    def cut(self, checkpoint: int, snapshot: TaskSnapshot) -> None:
        """The barrier has just been forwarded: fill the part's own fields of the snapshot."""

    def waiting(self) -> WaitingBytes:
        """The size of the records that are state now, because their outputs wait."""
        return WaitingBytes()

    def upload(self, checkpoint: int) -> Work[None] | None:
        """Work in the asynchronous phase.  It may raise StorageFailed, which fails the checkpoint."""
        return None

    def completed(self, checkpoint: int) -> None:
        """The task has heard of a completion."""

    def aborted(self, checkpoint: int) -> None:
        """The snapshot is cancelled, or the task hears that its checkpoint is aborted."""

    # ------------------------------------------------------------------------------------------ data in flight

    def capture_begun(self, checkpoint: int) -> None:
        """Barriers of this checkpoint may overtake data from now on."""

    def input_overtaken(self, checkpoint: int) -> None:
        """A barrier was taken before the data in the input: what lies before the other barriers is in flight."""

    def barriers_complete(self, checkpoint: int) -> None:
        """The last barrier is here."""

    def capture_ended(self, checkpoint: int, stored: Callable[[], None], failed: Callable[[], None]) -> None:
        """All data in flight is known.  Call `stored` when the part has nothing of it to store any more, or `failed`."""
        stored()

    # ------------------------------------------------------------------------------------------ event time

    def watermark_arrived(self, channel: int, number: int) -> None:
        """A watermark, or a status of it, was processed on an input channel."""

    def channel_ended(self, channel: int) -> None:
        """The last record of a channel was processed."""

    def limited(self, watermark_ns: int) -> None:
        """The JobManager announces how far the watermark of a source may come."""

    def outputs_written(self, *, at_end: bool) -> None:
        """Outputs that were let go are written.  `at_end`: the data of the task had ended before."""

    # ------------------------------------------------------------------------------------------ the end

    def end_input(self) -> None:
        """No record follows.  Called again when late outputs are written."""

    def work_at_end(self) -> Work[None] | None:
        """Work on the task thread when nothing is owed any more.  None: there is none."""
        return None

    def quiesce(self) -> None:
        """Timers of processing time fire no more: records that wait for them stay in state."""

    def close(self) -> None:
        """The task ends and waits for no checkpoint."""

    def finished(self) -> None:
        """The task is over."""


class PartsPort(Protocol):
    """All parts of a task, as each of them sees the others."""

    def of(self, kind: type[P]) -> P | None:
        """The part of a kind, of those attached so far."""

    def drained(self) -> bool:
        """Whether the operators have finished."""

    def committer_of(self, vertex: str) -> SinkCommitter:
        """The global committer of what a vertex writes."""


class Stage(IntEnum):
    """The order in which the parts of a task are called: what one lets go, a later one takes in."""

    WINDOWS = 1
    EVENT_TIME = 2  # ends windows
    WATERMARKS = 3  # are made behind those of the same chain
    OPERATOR = 4
    OUTPUT = 5  # what the others let go belongs to the epoch that ends
    CHANNELS = 6


@dataclass(frozen=True)
class TaskFeature:
    """A feature that tasks may have.  Each file of `sim/runtime/task` that defines one adds it.

    `attach` makes the part of one task, or returns None: the task does not have the feature.
    """

    attach: Callable[[Slot, PartsPort], TaskPart | None]
    stage: Stage = Stage.OPERATOR
