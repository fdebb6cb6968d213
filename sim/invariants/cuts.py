"""Invariants of consistent cuts, files of snapshots, window state, and barriers in output queues."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from sim.invariants.violation import JournalFormatter, Violation, count_is, number_of

# ---- Consistent cut (law 8): data sent before a barrier is, exactly once, in the reader's snapshot or in in-flight data.
#
# Per checkpoint and channel, in bytes::
#
#     written before the barrier = consumed before the reader's snapshot + captured at the reader + captured at the writer
#
# "Captured" is the in-flight data that the checkpoint stores. Aligned checkpoints capture nothing. An at-least-once reader
# may have consumed more (law 12), but never less.

LAW = (
    "what was sent before a barrier is in the reader's snapshot or in the stored in-flight data, once (consistent cut)"
)
UNKNOWN = -1

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass(slots=True)
class Cut:
    """The cut of one checkpoint, by channel [bytes].

    A value is `UNKNOWN` if the task at that end of the channel has not taken its snapshot.
    """

    written: Numbers
    consumed: Numbers
    captured_input: Numbers
    captured_output: Numbers

    @classmethod
    def empty(cls, channels: int) -> Cut:
        """Return a cut in which no task has taken its snapshot."""
        return cls(
            np.full(channels, UNKNOWN),
            np.full(channels, UNKNOWN),
            np.zeros(channels, np.int64),
            np.zeros(channels, np.int64),
        )

    @property
    def captured(self) -> Numbers:
        """Return the in-flight data that the checkpoint stores."""
        return self.captured_input + self.captured_output

    @property
    def surplus(self) -> Numbers:
        """Return the bytes in the checkpoint minus those sent before the barrier: positive if duplicated, negative if lost."""
        return self.consumed + self.captured - self.written

    def __eq__(self, other: object) -> bool:
        columns = ("written", "consumed", "captured_input", "captured_output")
        return isinstance(other, Cut) and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in columns
        )

    __hash__ = None  # type: ignore[assignment]


@dataclass(slots=True)
class Cuts:
    """The cuts of all checkpoints, which are recorded during a run.  `writer`, `reader`: tasks at the ends of each channel."""

    writer: Sequence[int]
    reader: Sequence[int]
    of_checkpoint: dict[int, Cut] = field(default_factory=dict)

    def ends(self, channel: int) -> tuple[int, int]:
        """Return (writer, reader) of a channel."""
        return self.writer[channel], self.reader[channel]

    def of(self, checkpoint: int) -> Cut:
        """Return the cut of a checkpoint, which is added if there is none."""
        cut = self.of_checkpoint.get(checkpoint)
        if cut is None:
            cut = self.of_checkpoint[checkpoint] = Cut.empty(len(self.writer))
        return cut

    def forget(self, gone: Callable[[int], bool]) -> None:
        """Drop checkpoints that can neither complete nor be restored any more."""
        for checkpoint in [number for number in self.of_checkpoint if gone(number)]:
            del self.of_checkpoint[checkpoint]

    def worst(self, checkpoint: int) -> tuple[int, int, int, str] | None:
        """Return (bytes duplicated, bytes lost, channel with the largest error, its byte counts), or None if the cut is exact."""
        cut = self.of(checkpoint)
        surplus = cut.surplus
        if not surplus.any():
            return None
        channel = int(np.argmax(np.abs(surplus)))
        return int(surplus[surplus > 0].sum()), -int(surplus[surplus < 0].sum()), channel, _account(cut, channel)

    def violation(
        self,
        checkpoint: int,
        time_ns: int,
        formatter: JournalFormatter,
        *,
        exactly_once: bool,
    ) -> Violation | None:
        """Return the violation if the cut of a completed checkpoint is inconsistent, else None.

        It describes the channel with the largest error, and counts the others.  `exactly_once`: duplicated bytes are
        errors, too.
        """
        cut = self.of(checkpoint)
        unknown = (cut.written == UNKNOWN) | (cut.consumed == UNKNOWN)
        surplus = cut.surplus
        wrong = unknown | (surplus < 0) | ((surplus > 0) & exactly_once)
        if not wrong.any():
            return None
        bad = np.flatnonzero(wrong)
        lost = bad[surplus[bad] < 0]
        worst = next(channels for channels in (bad[unknown[bad]], lost, bad) if len(channels))
        channel = int(worst[np.argmax(np.abs(surplus[worst]))])
        writer, reader = self.ends(channel)
        where = f"checkpoint {checkpoint}, channel {formatter.task(writer)} -> {formatter.task(reader)}"
        others = f" (and {number_of(len(bad) - 1, 'more channel')})" if len(bad) > 1 else ""
        story = (*formatter.cut(checkpoint, {writer, reader}), _account(cut, channel))
        return Violation(LAW, time_ns, where, _fact(cut, channel) + others, story)


def _fact(cut: Cut, channel: int) -> str:
    """Return the fact of a violation on this channel."""
    if cut.written[channel] == UNKNOWN or cut.consumed[channel] == UNKNOWN:
        missing = "writer" if cut.written[channel] == UNKNOWN else "reader"
        return f"it completed although the {missing} took no part"
    surplus = int(cut.surplus[channel])
    return f"{count_is(-surplus, 'byte')} lost" if surplus < 0 else f"{count_is(surplus, 'byte')} held twice"


def _account(cut: Cut, channel: int) -> str:
    """Return the byte counts of a channel, for the evidence."""
    sent, consumed = (_known(int(column[channel])) for column in (cut.written, cut.consumed))
    captured = (
        f"captured at the reader {cut.captured_input[channel]}, captured at the writer {cut.captured_output[channel]}"
    )
    return f"bytes sent before the barrier: {sent}; consumed before the reader's snapshot {consumed}, {captured}"


def _known(number: int) -> str:
    return "not known" if number == UNKNOWN else str(number)


# ---- The files of a snapshot contain all of its state, and are complete before the checkpoint completes.
#
# Laws 85, 86 and 117. A changelog must continue from its materialisation to the cut without a gap.

COVERED = "the files that a snapshot names hold all of its state"
WRITTEN_FIRST = "a completed checkpoint names files that are there in full, and nothing less than was frozen"
CLOSED = "operators that had finished at their snapshot are not opened again: they have no state"

_EXPECTED_PERCENT = 90
"""Minimum size of files in percent of the state.  It is below 100, because sizes of compacted files are expected values."""


def gap(files: Sequence[tuple[int, int]], begin: int, end: int) -> tuple[int, int] | None:
    """Return the first gap (begin, end) of a log between two positions, or None.

    `files`: (end position, size in bytes) of each file of the log.
    """
    reached = begin
    for ends, size_bytes in sorted(files):
        if ends - size_bytes > reached:
            return reached, min(ends - size_bytes, end)
        reached = max(reached, ends)
        if reached >= end:
            return None
    return (reached, end) if reached < end else None


def missing_state_error(held_bytes: int, live_bytes: int, entry_bytes: int) -> str | None:
    """Return what is wrong if files are too small for the state, else None.

    Files may be larger than the state.  They may lack up to two entries, which are rounding errors.
    """
    if held_bytes >= live_bytes * _EXPECTED_PERCENT // 100 - 2 * entry_bytes:
        return None
    return f"its files hold {number_of(held_bytes, 'byte')} for {live_bytes} of state"


def missing_log_error(missing: tuple[int, int], materialised: int) -> str:
    """Return the fact of a violation for a gap of the changelog.

    `missing`: (begin, end) of the gap.  `materialised`: end position of the materialisation that the snapshot refers to.
    """
    begin, end = missing
    return (
        f"{number_of(end - begin, 'byte')} of its changelog are in no file: the positions {begin} to {end} "
        f"(the materialisation holds everything before {materialised})"
    )


# ---- Records of sliding windows stay in state until their last window has ended, also after a restore (law 123).
#
# Source: SliceAssigners (SQL, which stores a record once), WindowOperator (which stores a copy per window).

WINDOW_STATE_LAW = "a record stays in state until the last window it belongs to has ended"


def records_in_state(open_records: int, ends: Sequence[int], windows: int, *, copies: bool) -> int:
    """Return the number of records that must be in state, including copies.

    `open_records`: number of records that no window has emitted yet.  `ends`: number of records emitted up to each window
    end, oldest first.  `windows`: number of windows that a record belongs to.  `copies`: state has a copy per window.
    """
    total = open_records * (windows if copies else 1)
    for ended in range(1, min(windows - 1, len(ends)) + 1):
        begin = ends[-ended - 1] if ended < len(ends) else 0
        total += (ends[-ended] - begin) * (windows - ended if copies else 1)
    return total


def redistribute_ends(ends: Sequence[Sequence[int]], emitted: Sequence[int], tasks: int) -> list[tuple[int, ...]]:
    """Return `ends` (see `records_in_state`) for each task of a rescaled vertex.  The sums over the old tasks are split evenly.

    `ends`: those of each old task.  `emitted`: number of records that each old task has emitted, used if it has no ends.
    """
    longest = max(map(len, ends), default=0)
    at_ends = [
        (*[task_ends[0] if task_ends else gone] * (longest - len(task_ends)), *task_ends)
        for task_ends, gone in zip(ends, emitted, strict=True)
    ]
    totals = [sum(column) for column in zip(*at_ends, strict=True)]
    return [tuple(total // tasks + (task < total % tasks) for total in totals) for task in range(tasks)]


def missing_records_error(held_bytes: int, records: int, record_bytes: int) -> str | None:
    """Return what is wrong if state is too small for this number of records (including copies), else None."""
    if held_bytes >= records * record_bytes:
        return None
    return f"it has {number_of(held_bytes, 'byte')} for {number_of(records, 'record')} whose last window has not ended, {record_bytes} each"


# ---- Barriers leave output queues before the alignment timeout of their checkpoint, or become unaligned (law 120).
#
# Source: SubtaskCheckpointCoordinatorImpl#registerAlignmentTimer, PipelinedSubpartition#alignedBarrierTimeout
# (FLINK-27251).

LEFT_OR_CONVERTED = (
    "a barrier that still waits in an output at the deadline of its checkpoint overtakes what is in front of it"
)


def unconverted_barriers(
    time_ns: int, checkpoint: int, late: Collection[int], formatter: JournalFormatter
) -> Violation | None:
    """Return the violation if a completed checkpoint has barriers that were not converted at the alignment timeout, else None.

    `late`: tasks that handled the timeout while a barrier was in an output queue, and did not convert it.
    """
    if not late:
        return None
    task = min(late)
    others = f" (and {len(late) - 1} more)" if len(late) > 1 else ""
    fact = f"the deadline has passed while its barrier waited in an output, and the barrier was not converted{others}"
    return Violation(
        LEFT_OR_CONVERTED,
        time_ns,
        f"{formatter.task(task)}, checkpoint {checkpoint}",
        fact,
        formatter.cut(checkpoint, {task}),
    )
