"""Consistent cut (law 8): what was sent before a barrier is in the reader's snapshot or in the stored in-flight data, once.

Per checkpoint and channel, as offsets of the channel's byte stream::

    written before the barrier = consumed before the reader's snapshot + captured at the reader + captured at the writer

Aligned snapshots capture nothing; an at-least-once reader may have consumed more (law 12), never less.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

__all__ = ["ChannelCut", "Cuts"]


@dataclass(slots=True)
class ChannelCut:
    """One channel in one checkpoint [bytes]; None: not known (yet)."""

    written: int | None = None
    consumed: int | None = None
    captured_input: int = 0
    captured_output: int = 0

    @property
    def surplus(self) -> int | None:
        """Bytes the snapshot holds beyond (lost: below) what was sent before the barrier."""
        if self.written is None or self.consumed is None:
            return None
        return self.consumed + self.captured_input + self.captured_output - self.written


@dataclass(slots=True)
class Cuts:
    """Filled while a run goes on, one entry per checkpoint and channel."""

    channels: dict[tuple[int, int], ChannelCut] = field(default_factory=dict)

    def of(self, checkpoint: int, channel: int) -> ChannelCut:
        return self.channels.setdefault((checkpoint, channel), ChannelCut())

    def violations(self, completed: set[int], *, exactly_once: bool) -> Iterator[str]:
        """One sentence per channel of a completed checkpoint whose cut does not add up."""
        for (checkpoint, channel), cut in self.channels.items():
            if checkpoint not in completed:
                continue
            surplus = cut.surplus
            if surplus is None:
                yield f"checkpoint {checkpoint} completed without a cut of channel {channel}: {cut}"
            elif surplus < 0:
                yield f"checkpoint {checkpoint} loses {-surplus} bytes of channel {channel}: {cut}"
            elif surplus > 0 and exactly_once:
                yield f"checkpoint {checkpoint} holds {surplus} bytes of channel {channel} twice: {cut}"
