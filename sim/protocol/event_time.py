"""Event time of a task: the least watermark of its channels, and which records belong to windows that it has passed.

Flink: StatusWatermarkValve, BoundedOutOfOrdernessWatermarks.  Channels are never idle here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from itertools import pairwise

__all__ = ["Slices", "Valve", "WindowContents", "last_end", "next_end"]


def last_end(size_ns: int, phase_ns: int, time_ns: int) -> int:
    """The latest end of a window up to this time; 0: none has ended."""
    return max(0, time_ns - (time_ns - phase_ns) % size_ns)


def next_end(size_ns: int, phase_ns: int, time_ns: int) -> int:
    """The first end of a window after this time."""
    return time_ns + size_ns - (time_ns - phase_ns) % size_ns


class Valve:
    """The watermark of each channel, and the least of them."""

    def __init__(self, channels: Iterable[int]) -> None:
        self.time_ns = 0  # 0: not all channels had one
        self._reached = dict.fromkeys(channels, 0)

    def advance(self, channel: int, time_ns: int) -> bool:
        """A watermark arrives; True: the least one has risen."""
        if time_ns <= self._reached[channel]:
            return False
        self._reached[channel] = time_ns
        before, self.time_ns = self.time_ns, min(self._reached.values())
        return self.time_ns > before


class WindowContents:
    """How many records of each channel came before its watermarks: those belong to windows that have ended.

    `size_ns`: from one end to the next one; `hold_ns`: a record waits so long behind its watermark.

    """

    def __init__(self, size_ns: int, phase_ns: int, channels: Iterable[int], hold_ns: int = 0) -> None:
        self.size_ns = size_ns
        self.phase_ns = phase_ns
        self.hold_ns = hold_ns
        self.fired_ns = 0  # the end of the last window fired
        self._read: dict[int, list[tuple[int, int]]] = {channel: [] for channel in channels}  # (end, records read before it), oldest first

    def note(self, channel: int, time_ns: int, records: int) -> None:
        """A channel's watermark arrives behind so many of its records."""
        end_ns = last_end(self.size_ns, self.phase_ns, time_ns)
        ends = self._read[channel]
        if end_ns > (ends[-1][0] if ends else 0):
            ends.append((end_ns, records))

    def fire(self, time_ns: int, records: Mapping[int, int]) -> int | None:
        """The records read by now that belong to windows still open, at this event time; None: no window has ended."""
        end_ns = last_end(self.size_ns, self.phase_ns, time_ns - self.hold_ns)
        if end_ns <= self.fired_ns:
            return None
        if self.hold_ns and any(ends[0][0] > end_ns for ends in self._read.values()):
            return None  # nobody knows since when the records before the first watermark of a channel have waited
        self.fired_ns = end_ns
        later = 0
        for channel, ends in self._read.items():
            while ends[0][0] < end_ns and not (self.hold_ns and (len(ends) == 1 or ends[1][0] > end_ns)):
                del ends[0]
            later += records[channel] - ends[0][1]
        return later


class Slices:
    """The state of sliding windows: a record that has left stays in the windows of it that go on.

    SQL keeps a record once, in a slice, until its last window has ended; the WindowOperator keeps a copy for each of its windows.
    """

    def __init__(self, windows: int, *, copies: bool, ends: Iterable[int] = ()) -> None:
        self.copies = copies
        self.ends: deque[int] = deque(ends, maxlen=windows)  # records that had left at each end, oldest first

    def end(self, records: int) -> None:
        """At the end of a window so many records have left, since the job began."""
        self.ends.append(records)

    def records(self, open_records: int) -> int:
        """Records in state, by copy; `open_records`: those that have not left at any end."""
        windows = self.ends.maxlen or 1
        begins = [*(() if len(self.ends) == windows else (0,)), *self.ends]
        kept = open_records * (windows if self.copies else 1)
        for age, (before, after) in enumerate(reversed([*pairwise(begins)]), 1):
            kept += (after - before) * (windows - age if self.copies else 1)
        return kept
