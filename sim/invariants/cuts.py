"""Cuts: each record is before or behind each checkpoint, once; in-flight data belongs to one side."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from sim.invariants.violation import JournalFormatter, Violation, count_is, number_of

# ---- Consistent cut (law 8): what was sent before a barrier is in the reader's snapshot or in the stored in-flight data, once.
#
# Per checkpoint and channel, as offsets of the channel's byte stream::
#
#     written before the barrier = consumed before the reader's snapshot + captured at the reader + captured at the writer
#
# Aligned snapshots capture nothing; an at-least-once reader may have consumed more (law 12), never less.

LAW = (
    "what was sent before a barrier is in the reader's snapshot or in the stored in-flight data, once (consistent cut)"
)
UNKNOWN = -1

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass(slots=True)
class Cut:
    """The cut of one checkpoint, by channel [bytes].  `UNKNOWN`: that end has not taken part."""

    written: Numbers
    consumed: Numbers
    captured_input: Numbers
    captured_output: Numbers

    @classmethod
    def empty(cls, channels: int) -> Cut:
        return cls(
            np.full(channels, UNKNOWN),
            np.full(channels, UNKNOWN),
            np.zeros(channels, np.int64),
            np.zeros(channels, np.int64),
        )

    @property
    def captured(self) -> Numbers:
        return self.captured_input + self.captured_output

    @property
    def surplus(self) -> Numbers:
        """Bytes the snapshot holds beyond (lost: below) what was sent before the barrier."""
        return self.consumed + self.captured - self.written

    def __eq__(self, other: object) -> bool:
        columns = ("written", "consumed", "captured_input", "captured_output")
        return isinstance(other, Cut) and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in columns
        )

    __hash__ = None  # type: ignore[assignment]


@dataclass(slots=True)
class Cuts:
    """The cuts of all checkpoints, filled during a run.  `writer`, `reader`: the tasks at the ends of each channel."""

    writer: Sequence[int]
    reader: Sequence[int]
    of_checkpoint: dict[int, Cut] = field(default_factory=dict)

    def ends(self, channel: int) -> tuple[int, int]:
        """The writer and the reader of a channel."""
        return self.writer[channel], self.reader[channel]

    def of(self, checkpoint: int) -> Cut:
        cut = self.of_checkpoint.get(checkpoint)
        if cut is None:
            cut = self.of_checkpoint[checkpoint] = Cut.empty(len(self.writer))
        return cut

    def forget(self, gone: Callable[[int], bool]) -> None:
        """Checkpoints that can neither complete nor be restored any more."""
        for checkpoint in [number for number in self.of_checkpoint if gone(number)]:
            del self.of_checkpoint[checkpoint]

    def worst(self, checkpoint: int) -> tuple[int, int, int, str] | None:
        """(bytes held twice, bytes lost, worst channel, its account) of a cut that is not exact."""
        cut = self.of(checkpoint)
        surplus = cut.surplus
        if not surplus.any():
            return None
        channel = int(np.argmax(np.abs(surplus)))
        return int(surplus[surplus > 0].sum()), -int(surplus[surplus < 0].sum()), channel, _account(cut, channel)

    def judged(
        self,
        checkpoint: int,
        time_ns: int,
        teller: JournalFormatter,
        *,
        exactly_once: bool,
        judged: Numbers | None = None,
    ) -> Violation | None:
        """A complete checkpoint whose cut does not add up: the worst channel is told, the others are counted.

        `judged` are the channels to look at (those of finished tasks take no part); all of them by default.
        """
        cut = self.of(checkpoint)
        unknown = (cut.written == UNKNOWN) | (cut.consumed == UNKNOWN)
        surplus = cut.surplus
        wrong = unknown | (surplus < 0) | ((surplus > 0) & exactly_once)
        if judged is not None:
            only = np.zeros(len(wrong), bool)
            only[judged] = True
            wrong &= only
        if not wrong.any():
            return None
        bad = np.flatnonzero(wrong)
        lost = bad[surplus[bad] < 0]
        worst = next(channels for channels in (bad[unknown[bad]], lost, bad) if len(channels))
        channel = int(worst[np.argmax(np.abs(surplus[worst]))])
        writer, reader = self.ends(channel)
        where = f"checkpoint {checkpoint}, channel {teller.task(writer)} -> {teller.task(reader)}"
        others = f" (and {number_of(len(bad) - 1, 'more channel')})" if len(bad) > 1 else ""
        story = (*teller.cut(checkpoint, {writer, reader}), _account(cut, channel))
        return Violation(LAW, time_ns, where, _fact(cut, channel) + others, story)


def _fact(cut: Cut, channel: int) -> str:
    if cut.written[channel] == UNKNOWN or cut.consumed[channel] == UNKNOWN:
        missing = "writer" if cut.written[channel] == UNKNOWN else "reader"
        return f"it completed although the {missing} took no part"
    surplus = int(cut.surplus[channel])
    return f"{count_is(-surplus, 'byte')} lost" if surplus < 0 else f"{count_is(surplus, 'byte')} held twice"


def _account(cut: Cut, channel: int) -> str:
    sent, consumed = (_known(int(column[channel])) for column in (cut.written, cut.consumed))
    captured = (
        f"captured at the reader {cut.captured_input[channel]}, captured at the writer {cut.captured_output[channel]}"
    )
    return f"bytes sent before the barrier: {sent}; consumed before the reader's snapshot {consumed}, {captured}"


def _known(number: int) -> str:
    return "not known" if number == UNKNOWN else str(number)


# ---- The files that a snapshot names hold all of its state, and are there before a completed checkpoint names them.
#
# Laws 85, 86 and 117.  A log must go on where the materialisation begins, without a gap, up to the cut.

COVERED = "the files that a snapshot names hold all of its state"
WRITTEN_FIRST = "a completed checkpoint names files that are there in full, and nothing less than was frozen"
CLOSED = "operators that had finished at their snapshot are not opened again: they have no state"

_EXPECTED_PERCENT = 90
"""The sizes of merged tables are expected values: so much of the live bytes they hold at least."""


def gap(files: Sequence[tuple[int, int]], begin: int, end: int) -> tuple[int, int] | None:
    """The first positions of a log, from `begin` to `end`, that no file holds.  `files`: (where it ends, size in bytes)."""
    reached = begin
    for ends, size_bytes in sorted(files):
        if ends - size_bytes > reached:
            return reached, min(ends - size_bytes, end)
        reached = max(reached, ends)
        if reached >= end:
            return None
    return (reached, end) if reached < end else None


def too_little(held_bytes: int, live_bytes: int, entry_bytes: int) -> str | None:
    """What is wrong with files of so many bytes for so much state: they may hold entries twice, and round off the last ones."""
    if held_bytes >= live_bytes * _EXPECTED_PERCENT // 100 - 2 * entry_bytes:
        return None
    return f"its files hold {number_of(held_bytes, 'byte')} for {live_bytes} of state"


def without_log(missing: tuple[int, int], materialised: int) -> str:
    """The fact of a gap; `materialised`: where the materialisation ends that the snapshot refers to."""
    begin, end = missing
    return (
        f"{number_of(end - begin, 'byte')} of its changelog are in no file: the positions {begin} to {end} "
        f"(the materialisation holds everything before {materialised})"
    )


# ---- Records of sliding windows stay in state until their last window has ended, also behind a restore.  Law 123.
#
# Flink: SliceAssigners (SQL keeps a record once), WindowOperator (a copy for each window).

WINDOW_STATE_LAW = "a record stays in state until the last window it belongs to has ended"


def kept(open_records: int, ends: Sequence[int], windows: int, *, copies: bool) -> int:
    """Records that must be in state, by copy.

    `open_records`: those that have left at no end yet; `ends`: how many had left at each end, oldest first;
    `windows`: how many a record belongs to.
    """
    total = open_records * (windows if copies else 1)
    for ended in range(1, min(windows - 1, len(ends)) + 1):
        begin = ends[-ended - 1] if ended < len(ends) else 0
        total += (ends[-ended] - begin) * (windows - ended if copies else 1)
    return total


def redistributed_ends(ends: Sequence[Sequence[int]], left: Sequence[int], tasks: int) -> list[tuple[int, ...]]:
    """The ends of each of so many tasks of a vertex that is rescaled: all have equal parts.

    `ends`: those of each former task; `left`: records that had left it, which stand for ends that it has not heard of.
    """
    longest = max(map(len, ends), default=0)
    at_ends = [(*[own[0] if own else gone] * (longest - len(own)), *own) for own, gone in zip(ends, left, strict=True)]
    totals = [sum(column) for column in zip(*at_ends, strict=True)]
    return [tuple(total // tasks + (task < total % tasks) for total in totals) for task in range(tasks)]


def too_few(held_bytes: int, records: int, record_bytes: int) -> str | None:
    """What is wrong with so many bytes for so many records, by copy."""
    if held_bytes >= records * record_bytes:
        return None
    return f"it has {number_of(held_bytes, 'byte')} for {number_of(records, 'record')} whose last window has not ended, {record_bytes} each"


# ---- Barriers that wait in outputs: they leave before the deadline of their checkpoint, or overtake.  Law 120.
#
# Flink: SubtaskCheckpointCoordinatorImpl#registerAlignmentTimer, PipelinedSubpartition#alignedBarrierTimeout
# (FLINK-27251).

LEFT_OR_CONVERTED = (
    "a barrier that still waits in an output at the deadline of its checkpoint overtakes what is in front of it"
)


def left_behind(time_ns: int, checkpoint: int, late: Collection[int], teller: JournalFormatter) -> Violation | None:
    """When a checkpoint completes; `late`: tasks that heard of the deadline while a barrier waited, and converted none."""
    if not late:
        return None
    task = min(late)
    others = f" (and {len(late) - 1} more)" if len(late) > 1 else ""
    fact = f"the deadline has passed while its barrier waited in an output, and the barrier was not converted{others}"
    return Violation(
        LEFT_OR_CONVERTED,
        time_ns,
        f"{teller.task(task)}, checkpoint {checkpoint}",
        fact,
        teller.cut(checkpoint, {task}),
    )
