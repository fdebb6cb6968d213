"""Invariants of watermarks, window ends and processing-time timers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sim.invariants.violation import number_of, seconds

# ---- The minimum watermark of a task's inputs, and the records of open windows, computed independently of the runtime.
#
# Laws 88, 89 and 124.  Source: StatusWatermarkValve, InternalTimerServiceImpl#tryAdvanceWatermark.

BEHIND_INPUTS = (
    "a watermark is never ahead of an input that is not idle, does not go back, and follows the records that it ends"
)
ALL_END = "the end of its data ends all windows of a task: what they hold leaves"
OWN_WINDOW = "records leave with the watermark that ends their window: none of a later window, and all of this one"

IDLE, ACTIVE = -1, -2
"""Values in place of a watermark that mean a watermark status."""


@dataclass(slots=True)
class Inputs:
    """The watermarks of the input channels of one task since its start."""

    reached: dict[int, int]  # channel -> its watermark [ns]
    idle: set[int] = field(default_factory=set)  # idle channels
    # channels that are active again after being idle, but whose watermark is below that of the task; they do not count
    behind: set[int] = field(default_factory=set)
    closed: set[int] = field(default_factory=set)  # channels that have received their last watermark
    time_ns: int = 0  # watermark of the task

    @classmethod
    def of(cls, channels: Iterable[int]) -> Inputs:
        """Return the inputs of a task that starts, all with watermark 0."""
        return cls(dict.fromkeys(channels, 0))

    @property
    def all_idle(self) -> bool:
        """Return whether all channels are idle."""
        return len(self.idle) == len(self.reached)

    @property
    def is_active_again(self) -> bool:
        """Return whether some channel is active and its data has not ended."""
        return any(channel not in self.idle and channel not in self.closed for channel in self.reached)

    def on_watermark(self, channel: int, number: int, *, last: bool = False) -> bool:
        """Process a watermark or a status of a channel.  Return whether the watermark of the task has advanced.

        `number`: watermark [ns], IDLE or ACTIVE.  `last`: it is the last watermark of the channel.
        """
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
        counted = [
            time_ns for other, time_ns in self.reached.items() if other not in self.idle and other not in self.behind
        ]
        self.time_ns = max(self.time_ns, min(counted, default=0))
        return self.time_ns > before_ns


@dataclass(slots=True)
class OpenWindows:
    """Computes how many records of each input channel are in open windows.

    `step_ns`, `phase_ns`: distance and offset of window ends.  `hold_ns`: time after its end at which a window releases its
    records, e.g. the gap of sessions.  `marks`: channel -> (end of the last window that a watermark ends [ns], records read
    before it), oldest first.
    """

    step_ns: int
    phase_ns: int
    hold_ns: int
    marks: dict[int, list[tuple[int, int]]]
    idle: dict[int, int] = field(default_factory=dict)  # idle channel -> records read before it became idle
    fired_ns: int = 0  # end of the last window that has ended

    @classmethod
    def of(cls, step_ns: int, phase_ns: int, hold_ns: int, channels: Iterable[int]) -> OpenWindows:
        """Return the state of a task that starts, without marks."""
        return cls(step_ns, phase_ns, hold_ns, {channel: [] for channel in channels})

    def end_until(self, time_ns: int) -> int:
        """Return the last window end at or before this time [ns], or 0."""
        return max(0, (time_ns - self.phase_ns) // self.step_ns * self.step_ns + self.phase_ns)

    def on_watermark(self, channel: int, number: int, read: int, time_ns: int) -> None:
        """Process a watermark or a status that a channel delivers after `read` records.

        `number`: watermark [ns], IDLE or ACTIVE.  `time_ns`: watermark of the task before it.
        """
        if number == IDLE:
            self.idle[channel] = read
            marks = self.marks[channel]
            if not self.hold_ns:
                return
            # its records leave with the next window, or with the latest one that the channel has reached
            if marks:
                following_ns = self.end_until(time_ns) + self.step_ns
                if marks[-1][0] >= following_ns:
                    following_ns, _ = marks.pop()
                marks.append((following_ns, read))
                return
            number = time_ns
        elif number == ACTIVE:
            self.idle.pop(channel, None)
            return
        end_ns = self.end_until(number)
        if end_ns > (self.marks[channel][-1][0] if self.marks[channel] else 0):
            self.marks[channel].append((end_ns, read))

    def later_records(self, time_ns: int, read: Mapping[int, int]) -> int | None:
        """Return how many records are in open windows at this event time, or None if no window ends."""
        end_ns = self.end_until(time_ns - self.hold_ns)
        if end_ns <= self.fired_ns:
            return None
        if self.hold_ns and any(marks and marks[0][0] > end_ns for marks in self.marks.values()):
            return None  # the age of records before the first watermark is unknown
        self.fired_ns = end_ns
        return sum(self._later_records_of(channel, end_ns, records) for channel, records in read.items())

    def _later_records_of(self, channel: int, end_ns: int, read: int) -> int:
        """Return how many records of a channel belong to windows after `end_ns`.  Removes marks that are no longer needed."""
        marks = self.marks[channel]
        if self.hold_ns:  # records before the latest mark that has been reached were held long enough
            while len(marks) > 1 and marks[1][0] <= end_ns:
                del marks[0]
        else:
            while marks and marks[0][0] < end_ns:
                del marks[0]
        if marks:
            return read - marks[0][1]
        return read - self.idle.get(channel, read)


def unreleased_records_error(late: int) -> str | None:
    """Return what is wrong with a task whose data has ended and that has nothing to do, or None.

    `late`: number of records in its windows.
    """
    return (
        f"its data has ended, it waits for nothing, and its windows hold {number_of(late, 'record')}" if late else None
    )


# ---- Processing-time timers fire once, at their time and in order, also after a restore (law 90).

TIMERS_FIRE = "each timer of a window fires once: at its time, in order, also if it was restored"

Pending = tuple[int, int]
"""(time of a timer [ns], number of the last record that it releases, counted since the start of the job)."""


@dataclass(slots=True)
class Timers:
    """The processing-time timers of one task that must fire."""

    step_ns: int  # distance of window ends
    phase_ns: int  # offset of window ends
    hold_ns: int  # time from the end of a window to its timer
    begun_ns: int = 0  # start of the task
    pending: list[Pending] = field(default_factory=list)
    ended_ns: int = 0  # end of the last window that has ended

    def window_ended(self, now_ns: int, served: int) -> str | None:
        """Add the timer of a window that ends, which releases the first `served` records.  Return what is wrong, or None."""
        fact = None
        if (now_ns - self.phase_ns) % self.step_ns:
            fact = f"a window ends at {seconds(now_ns)}, windows of {seconds(self.step_ns)} do not"
        self.ended_ns = now_ns
        if not (self.hold_ns and self.pending and self.pending[-1][1] == served):
            self.pending.append((now_ns + self.hold_ns, served))
        return fact

    def fire(self, now_ns: int, due_ns: int, records: int) -> str | None:
        """Remove a timer that fires.  Return what is wrong, or None.

        `due_ns`: time of the timer.  `records`: number of the last record that it releases.
        """
        missed = [timer for timer in self.pending if timer[0] < due_ns]
        expected = [timer for timer in self.pending if timer[0] == due_ns and timer[1] == records]
        self.pending = [timer for timer in self.pending if timer[0] > due_ns or timer[1] > records]
        if now_ns < due_ns:
            return f"the timer of {seconds(due_ns)} fires at {seconds(now_ns)}"
        if missed:
            return f"the timer of {seconds(missed[0][0])} has not fired, that of {seconds(due_ns)} fires; {len(missed)} were forgotten"
        return (
            None
            if expected
            else f"a timer of {seconds(due_ns)} fires that was never set, and lets the records up to {records} go"
        )

    def silent(self, now_ns: int) -> str | None:
        """Return what is wrong if a window has ended without setting a timer, or None."""
        end_ns = (now_ns - 1 - self.phase_ns) // self.step_ns * self.step_ns + self.phase_ns
        if end_ns <= max(self.begun_ns, self.ended_ns):
            return None
        return (
            f"the window that ended at {seconds(end_ns)} has no timer; the last one was set at {seconds(self.ended_ns)}"
        )

    def kept(self, now_ns: int, served: int) -> tuple[Pending, ...]:
        """Return the timers that a snapshot must contain: pending ones, and that of the open window."""
        end_ns = now_ns + self.step_ns - (now_ns - self.phase_ns) % self.step_ns
        return (*self.pending, (end_ns + self.hold_ns, served))
