"""Watermarks of a task, and the alignment of sources by watermarks."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from itertools import pairwise

# ---- Event time of a task: the least watermark of its channels, and which records belong to windows that it has passed.
#
# Flink: StatusWatermarkValve, WatermarksWithIdleness, BoundedOutOfOrdernessWatermarks.


def last_end(size_ns: int, phase_ns: int, time_ns: int) -> int:
    """The latest end of a window up to this time; 0: none has ended."""
    return max(0, time_ns - (time_ns - phase_ns) % size_ns)


def next_end(size_ns: int, phase_ns: int, time_ns: int) -> int:
    """The first end of a window after this time."""
    return time_ns + size_ns - (time_ns - phase_ns) % size_ns


class Idleness:
    """The clock of an idle source: it has had no record for a timeout (WatermarksWithIdleness).

    The source is looked at in intervals.  The first look without a new record starts the clock, which stands still
    under back-pressure.
    """

    def __init__(self, timeout_ns: int, records: int) -> None:
        self.timeout_ns = timeout_ns
        self._records = records
        self._since_ns: int | None = None

    def look(self, records: int, clock_ns: int) -> bool:
        """True: it is idle."""
        if records != self._records:
            self._records, self._since_ns = records, None
            return False
        if self._since_ns is None:
            self._since_ns = clock_ns
            return False
        return clock_ns - self._since_ns > self.timeout_ns


class StatusWatermarkValve:
    """The watermarks of all channels of a task, and their minimum.

    A channel that is idle does not count.  When it is active again it counts as soon as its watermark is not behind.
    """

    def __init__(self, channels: Iterable[int]) -> None:
        self.time_ns = 0  # 0: not all channels had one
        self.idle = False  # all channels are
        self._reached = dict.fromkeys(channels, 0)
        self._idle: set[int] = set()
        self._uncounted: set[int] = set()  # idle, or active again and behind

    def advance(self, channel: int, time_ns: int) -> bool:
        """A watermark arrives; True: the least one has risen."""
        if time_ns <= self._reached[channel] or channel in self._idle:
            return False
        self._reached[channel] = time_ns
        if time_ns >= self.time_ns:
            self._uncounted.discard(channel)
        return self._rise()

    def fall_idle(self, channel: int) -> bool:
        """A channel is idle; True: the least watermark has risen.  With the last channel all watermarks count."""
        self._idle.add(channel)
        self._uncounted.add(channel)
        self.idle = len(self._idle) == len(self._reached)
        if self._reached[channel] != self.time_ns:
            return False
        return self._reach(max(self._reached.values())) if self.idle else self._rise()

    def wake(self, channel: int) -> None:
        """A channel is active again."""
        self.idle = False
        self._idle.discard(channel)
        if self._reached[channel] >= self.time_ns:
            self._uncounted.discard(channel)

    def is_idle(self, channel: int) -> bool:
        return channel in self._idle

    def _rise(self) -> bool:
        if not self._uncounted:
            return self._reach(min(self._reached.values()))
        return self._reach(
            min((time for channel, time in self._reached.items() if channel not in self._uncounted), default=0)
        )

    def _reach(self, time_ns: int) -> bool:
        before, self.time_ns = self.time_ns, max(self.time_ns, time_ns)
        return self.time_ns > before


class WindowContents:
    """The records of each channel that came before its watermarks: they belong to windows that have ended.

    `size_ns`: from one end to the next one; `hold_ns`: a record waits so long behind its watermark.
    """

    def __init__(self, size_ns: int, phase_ns: int, channels: Iterable[int], hold_ns: int = 0) -> None:
        self.size_ns = size_ns
        self.phase_ns = phase_ns
        self.hold_ns = hold_ns
        self.fired_ns = 0  # the end of the last window fired
        # (end, records read before it), oldest first
        self._read: dict[int, list[tuple[int, int]]] = {channel: [] for channel in channels}
        self._idle: dict[int, int] = {}  # channels that are idle: records read before

    def note(self, channel: int, time_ns: int, records: int) -> None:
        """A channel's watermark arrives behind so many of its records."""
        end_ns = last_end(self.size_ns, self.phase_ns, time_ns)
        ends = self._read[channel]
        if end_ns > (ends[-1][0] if ends else 0):
            ends.append((end_ns, records))

    def fall_idle(self, channel: int, time_ns: int, records: int) -> None:
        """A channel is idle behind so many of its records: these belong to the next window that ends, at this event time or later."""
        self._idle[channel] = records
        if self.hold_ns and not self._read[channel]:
            self.note(channel, time_ns, records)  # it is unknown since when they have waited

    def wake(self, channel: int) -> None:
        """A channel is active again."""
        self._idle.pop(channel, None)

    def fire(self, time_ns: int, records: Mapping[int, int]) -> int | None:
        """The records read by now that belong to windows still open, at this event time; None: no window has ended."""
        end_ns = last_end(self.size_ns, self.phase_ns, time_ns - self.hold_ns)
        if end_ns <= self.fired_ns:
            return None
        if self.hold_ns and any(ends and ends[0][0] > end_ns for ends in self._read.values()):
            return None  # it is unknown since when the records before the first watermark of a channel have waited
        self.fired_ns = end_ns
        return sum(self._later(channel, end_ns, read) for channel, read in records.items())

    def _later(self, channel: int, end_ns: int, read: int) -> int:
        """Records of one channel that belong to windows behind this end."""
        ends = self._read[channel]
        while ends and ends[0][0] < end_ns and not (self.hold_ns and (len(ends) == 1 or ends[1][0] > end_ns)):
            del ends[0]
        if ends:
            return read - ends[0][1]
        return read - self._idle.get(channel, read)  # active, and its watermark is behind: they came too late


class Slices:
    """The records that sliding windows keep after their first output, until their last window has ended.

    SQL keeps a record once, in a slice; the WindowOperator keeps a copy for each window.
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
