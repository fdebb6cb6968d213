"""Event time, counted once more: the least watermark of a task's inputs, and the records that belong to windows behind it.

Laws 88, 89 and 124.  Flink: StatusWatermarkValve, InternalTimerServiceImpl#tryAdvanceWatermark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sim.checkers.violation import number_of

BEHIND_INPUTS = "a watermark is never ahead of an input that is not idle, does not go back, and follows the records that it ends"
ALL_END = "the end of its data ends all windows of a task: what they hold leaves"
OWN_WINDOW = "records leave with the watermark that ends their window: none of a later window, and all of this one"

IDLE, ACTIVE = -1, -2
"""Statuses, in place of an event time."""


@dataclass(slots=True)
class Inputs:
    """The watermarks of the input channels of one task, since it began."""

    reached: dict[int, int]  # by channel [ns]
    idle: set[int] = field(default_factory=set)
    behind: set[int] = field(default_factory=set)  # active again, with a watermark that the task has passed
    closed: set[int] = field(default_factory=set)
    time_ns: int = 0

    @classmethod
    def of(cls, channels: Iterable[int]) -> Inputs:
        return cls(dict.fromkeys(channels, 0))

    @property
    def all_idle(self) -> bool:
        return len(self.idle) == len(self.reached)

    @property
    def goes_on(self) -> bool:
        """Whether a channel is active, and its data has not ended."""
        return any(channel not in self.idle and channel not in self.closed for channel in self.reached)

    def hear(self, channel: int, number: int, *, last: bool = False) -> bool:
        """A watermark or a status; True: the least watermark has risen."""
        before_ns = self.time_ns
        if last:
            self.closed.add(channel)
        if number == IDLE:
            self.idle.add(channel)
            self.behind.discard(channel)
            if self.all_idle and self.reached[channel] == before_ns:
                self.time_ns = max(self.reached.values())
        elif number == ACTIVE:
            self.idle.discard(channel)
            if self.reached[channel] < self.time_ns:
                self.behind.add(channel)
            return False
        elif channel in self.idle:
            return False
        else:
            self.reached[channel] = max(self.reached[channel], number)
            if number >= self.time_ns:
                self.behind.discard(channel)
        counted = [time_ns for own, time_ns in self.reached.items() if own not in self.idle and own not in self.behind]
        self.time_ns = max(self.time_ns, min(counted, default=0))
        return self.time_ns > before_ns


@dataclass(slots=True)
class Belonging:
    """The windows that the records of each input channel belong to.

    `marks`: (end of the last window that a watermark ends, records read before it), oldest first.
    """

    step_ns: int
    phase_ns: int
    hold_ns: int
    marks: dict[int, list[tuple[int, int]]]
    idle: dict[int, int] = field(default_factory=dict)  # records read before the channel was idle
    fired_ns: int = 0

    @classmethod
    def of(cls, step_ns: int, phase_ns: int, hold_ns: int, channels: Iterable[int]) -> Belonging:
        return cls(step_ns, phase_ns, hold_ns, {channel: [] for channel in channels})

    def end_until(self, time_ns: int) -> int:
        """The end of the last window up to this time; 0: none."""
        return max(0, (time_ns - self.phase_ns) // self.step_ns * self.step_ns + self.phase_ns)

    def hear(self, channel: int, number: int, read: int, time_ns: int) -> None:
        """A watermark or a status, behind so many records; `time_ns`: the event time of the task before it."""
        if number == IDLE:
            self.idle[channel] = read
            if not (self.hold_ns and not self.marks[channel]):
                return
            number = time_ns
        elif number == ACTIVE:
            self.idle.pop(channel, None)
            return
        end_ns = self.end_until(number)
        if end_ns > (self.marks[channel][-1][0] if self.marks[channel] else 0):
            self.marks[channel].append((end_ns, read))

    def later(self, time_ns: int, read: Mapping[int, int]) -> int | None:
        """The records that stay when the event time is this one; None: no window ends."""
        end_ns = self.end_until(time_ns - self.hold_ns)
        if end_ns <= self.fired_ns:
            return None
        if self.hold_ns and any(marks and marks[0][0] > end_ns for marks in self.marks.values()):
            return None  # the records before the first watermark came at an unknown time
        self.fired_ns = end_ns
        return sum(self._later(channel, end_ns, records) for channel, records in read.items())

    def _later(self, channel: int, end_ns: int, read: int) -> int:
        marks = self.marks[channel]
        if self.hold_ns:  # what the last watermark so far has behind it has waited
            while len(marks) > 1 and marks[1][0] <= end_ns:
                del marks[0]
        else:
            while marks and marks[0][0] < end_ns:
                del marks[0]
        if marks:
            return read - marks[0][1]
        return read - self.idle.get(channel, read)


def still_held(late: int) -> str | None:
    """What is wrong with a task whose data has ended, and whose thread has nothing to do; `late`: records that its windows hold."""
    return f"its data has ended, it waits for nothing, and its windows hold {number_of(late, 'record')}" if late else None
