"""Event time of a task: idle sources, watermarks of its channels, and the records of windows."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from itertools import pairwise

# Source: StatusWatermarkValve, WatermarksWithIdleness, BoundedOutOfOrdernessWatermarks.


def last_end(size_ns: int, phase_ns: int, time_ns: int) -> int:
    """Return the latest end of a window at or before this time, or 0."""
    return max(0, time_ns - (time_ns - phase_ns) % size_ns)


def next_end(size_ns: int, phase_ns: int, time_ns: int) -> int:
    """Return the first end of a window after this time."""
    return time_ns + size_ns - (time_ns - phase_ns) % size_ns


class Idleness:
    """Detects that a source is idle: it had no record for `timeout_ns` (WatermarksWithIdleness).

    The source is checked periodically.  The first check without a new record starts the timeout; the clock stops under
    back-pressure.
    """

    def __init__(self, timeout_ns: int, records: int) -> None:
        self.timeout_ns = timeout_ns
        self._records = records
        self._since_ns: int | None = None

    def check(self, records: int, clock_ns: int) -> bool:
        """Return whether the source is idle.  `records`: its records so far; `clock_ns`: time without back-pressure."""
        if records != self._records:
            self._records, self._since_ns = records, None
            return False
        if self._since_ns is None:
            self._since_ns = clock_ns
            return False
        return clock_ns - self._since_ns > self.timeout_ns


class StatusWatermarkValve:
    """The watermarks of all channels of a task, and their minimum (StatusWatermarkValve).

    Idle channels are ignored.  A channel that becomes active is ignored until its watermark reaches the minimum.
    """

    def __init__(self, channels: Iterable[int]) -> None:
        self.time_ns = 0  # minimum; 0: some channel has none yet
        self.idle = False  # whether all channels are idle
        self._reached = dict.fromkeys(channels, 0)
        self._idle: set[int] = set()
        self._ignored: set[int] = set()  # idle, or active again with a watermark below the minimum

    def advance(self, channel: int, time_ns: int) -> bool:
        """Process a watermark.  Return whether the minimum has advanced."""
        if time_ns <= self._reached[channel] or channel in self._idle:
            return False
        self._reached[channel] = time_ns
        if time_ns >= self.time_ns:
            self._ignored.discard(channel)
        return self._update_minimum()

    def fall_idle(self, channel: int) -> bool:
        """Mark a channel as idle.  Return whether the minimum has advanced; when all are idle it is the largest watermark."""
        self._idle.add(channel)
        self._ignored.add(channel)
        self.idle = len(self._idle) == len(self._reached)
        if self._reached[channel] != self.time_ns:
            return False
        return self._advance_to(max(self._reached.values())) if self.idle else self._update_minimum()

    def wake(self, channel: int) -> None:
        """Mark a channel as active."""
        self.idle = False
        self._idle.discard(channel)
        if self._reached[channel] >= self.time_ns:
            self._ignored.discard(channel)

    def is_idle(self, channel: int) -> bool:
        """Return whether a channel is idle."""
        return channel in self._idle

    def _update_minimum(self) -> bool:
        """Advance to the minimum of all channels that are not ignored.  Return whether it has advanced."""
        if not self._ignored:  # the usual case, faster
            return self._advance_to(min(self._reached.values()))
        return self._advance_to(
            min((time for channel, time in self._reached.items() if channel not in self._ignored), default=0)
        )

    def _advance_to(self, time_ns: int) -> bool:
        """Raise the minimum to `time_ns`, if that is larger.  Return whether it has advanced."""
        before, self.time_ns = self.time_ns, max(self.time_ns, time_ns)
        return self.time_ns > before


class WindowContents:
    """Counts the records of each channel that precede its watermarks, i.e. that belong to windows that have ended.

    `size_ns` is the time between two window ends, `phase_ns` the offset of the ends, and `hold_ns` the additional time for
    which records are held.
    """

    def __init__(self, size_ns: int, phase_ns: int, channels: Iterable[int], hold_ns: int = 0) -> None:
        self.size_ns = size_ns
        self.phase_ns = phase_ns
        self.hold_ns = hold_ns
        self.fired_ns = 0  # end of the last window that fired
        # channel -> (window end, records read before it), oldest first
        self._read: dict[int, list[tuple[int, int]]] = {channel: [] for channel in channels}
        self._idle: dict[int, int] = {}  # idle channel -> records read before it became idle

    def note(self, channel: int, time_ns: int, records: int) -> None:
        """Process a watermark that arrives after `records` records of its channel."""
        end_ns = last_end(self.size_ns, self.phase_ns, time_ns)
        ends = self._read[channel]
        if end_ns > (ends[-1][0] if ends else 0):
            ends.append((end_ns, records))

    def fall_idle(self, channel: int, time_ns: int, records: int) -> None:
        """Mark a channel as idle after `records` records.  They belong to the next window that ends."""
        self._idle[channel] = records
        ends = self._read[channel]
        if self.hold_ns and not ends:
            self.note(channel, time_ns, records)  # their age is unknown
        elif self.hold_ns:
            end_ns = next_end(self.size_ns, self.phase_ns, time_ns)
            if end_ns <= ends[-1][0]:
                end_ns = ends.pop()[0]
            ends.append((end_ns, records))

    def wake(self, channel: int) -> None:
        """Mark a channel as active."""
        self._idle.pop(channel, None)

    def fire(self, time_ns: int, records: Mapping[int, int]) -> int | None:
        """Fire the windows that end at or before this event time.

        `records` are the records read so far, by channel.  Return how many of them belong to open windows, or None if no
        window ends.
        """
        end_ns = last_end(self.size_ns, self.phase_ns, time_ns - self.hold_ns)
        if end_ns <= self.fired_ns:
            return None
        if self.hold_ns and any(ends and ends[0][0] > end_ns for ends in self._read.values()):
            return None  # the age of records before the first watermark of a channel is unknown
        self.fired_ns = end_ns
        return sum(self._records_after(channel, end_ns, read) for channel, read in records.items())

    def _records_after(self, channel: int, end_ns: int, read: int) -> int:
        """Return the records of one channel that belong to windows after this end."""
        ends = self._read[channel]
        while ends and ends[0][0] < end_ns and not (self.hold_ns and (len(ends) == 1 or ends[1][0] > end_ns)):
            del ends[0]
        if ends:
            return read - ends[0][1]
        return read - self._idle.get(channel, read)  # an active channel without a watermark: its records are late


class Slices:
    """Counts the records in the state of sliding windows.  A record stays until the last of its windows has ended.

    SQL stores a record once, in a slice.  The WindowOperator stores a copy per window (`copies`).
    """

    def __init__(self, windows: int, *, copies: bool, ends: Iterable[int] = ()) -> None:
        self.copies = copies
        self.ends: deque[int] = deque(ends, maxlen=windows)  # records emitted by each window end, oldest first

    def end(self, records: int) -> None:
        """Process the end of a window.  `records` is the number of records emitted since the job started."""
        self.ends.append(records)

    def records(self, open_records: int) -> int:
        """Return the number of records in state, copies included.

        `open_records` is the number of records that no window has emitted yet.
        """
        windows = self.ends.maxlen or 1
        begins = [*(() if len(self.ends) == windows else (0,)), *self.ends]
        kept = open_records * (windows if self.copies else 1)
        for age, (before, after) in enumerate(reversed([*pairwise(begins)]), 1):
            kept += (after - before) * (windows - age if self.copies else 1)
        return kept
