"""Consistent cut (law 8): what was sent before a barrier is in the reader's snapshot or in the stored in-flight data, once.

Per checkpoint and channel, as offsets of the channel's byte stream::

    written before the barrier = consumed before the reader's snapshot + captured at the reader + captured at the writer

Aligned snapshots capture nothing; an at-least-once reader may have consumed more (law 12), never less.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from sim.checkers.story import Teller
from sim.checkers.violation import Violation, count_is, number_of

LAW = "what was sent before a barrier is in the reader's snapshot or in the stored in-flight data, once (consistent cut)"
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
        return cls(np.full(channels, UNKNOWN), np.full(channels, UNKNOWN), np.zeros(channels, np.int64), np.zeros(channels, np.int64))

    @property
    def captured(self) -> Numbers:
        return self.captured_input + self.captured_output

    @property
    def surplus(self) -> Numbers:
        """Bytes the snapshot holds beyond (lost: below) what was sent before the barrier."""
        return self.consumed + self.captured - self.written

    def __eq__(self, other: object) -> bool:
        columns = ("written", "consumed", "captured_input", "captured_output")
        return isinstance(other, Cut) and all(np.array_equal(getattr(self, name), getattr(other, name)) for name in columns)

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
        self, checkpoint: int, time_ns: int, teller: Teller, *, exactly_once: bool, judged: Numbers | None = None
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
    captured = f"captured at the reader {cut.captured_input[channel]}, captured at the writer {cut.captured_output[channel]}"
    return f"bytes sent before the barrier: {sent}; consumed before the reader's snapshot {consumed}, {captured}"


def _known(number: int) -> str:
    return "not known" if number == UNKNOWN else str(number)
