"""Invariants of event time: watermarks, the outputs of windows, and timers, compared with those that events of a run imply."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from sim.plane.interface import ThreadState, channels_in
from sim.results.violations import count_is, number_of, seconds
from sim.runtime.context import ACTIVE, IDLE, LAST_WATERMARK, RestoredState, StateSnapshot, TaskSnapshot
from sim.runtime.invariants.invariant import ByCheckpoint, Invariant
from sim.runtime.invariants.state import SNAPSHOT_COMPLETE

# ---- The minimum watermark of a task's inputs, and the records of open windows, computed independently of the runtime.
#
# Invariants 88, 89 and 124.  Source: StatusWatermarkValve, InternalTimerServiceImpl#tryAdvanceWatermark.

BEHIND_INPUTS = (
    "a watermark is never ahead of an input that is not idle, does not go back, and follows the records that it ends"
)
ALL_END = "the end of its data ends all windows of a task: what they hold leaves"
OWN_WINDOW = "records leave with the watermark that ends their window: none of a later window, and all of this one"


@dataclass(slots=True)
class Inputs:
    """The watermarks of the input channels of one task since its start, which are 0 then."""

    reached: dict[int, int]  # channel -> its watermark [ns]
    idle: set[int] = field(default_factory=set)  # idle channels
    # channels that are active again after being idle, but whose watermark is below that of the task; they do not count
    behind: set[int] = field(default_factory=set)
    closed: set[int] = field(default_factory=set)  # channels that have received their last watermark
    time_ns: int = 0  # watermark of the task

    @property
    def is_active_again(self) -> bool:
        """Return whether some channel is active and its data has not ended."""
        return any(channel not in self.idle and channel not in self.closed for channel in self.reached)

    def on_watermark(self, channel: int, number: int) -> bool:
        """Process a watermark [ns] or a status of a channel.  Return whether the watermark of the task has advanced."""
        before_ns = self.time_ns
        if number == LAST_WATERMARK:
            self.closed.add(channel)
        if number == IDLE:
            self.idle.add(channel)
            self.behind.discard(channel)
            if len(self.idle) == len(self.reached) and self.reached[channel] == before_ns:
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


# ---- Processing-time timers fire once, at their time and in order, also after a restore (invariant 90).

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


# ---- Records of sliding windows stay in state until their last window has ended, also after a restore (invariant 123).
#
# Source: SliceAssigners (SQL, which stores a record once), WindowOperator (which stores a copy per window).

WINDOW_STATE = "a record stays in state until the last window it belongs to has ended"


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


# ---- The windows of all tasks.


@dataclass(slots=True)
class _TaskAttempt:
    """The expected watermarks, outputs and timers of one attempt of a task."""

    inputs: Inputs
    open_windows: OpenWindows | None = None  # of event-time windows
    timers: Timers | None = None  # of processing-time windows
    sent_ns: int = 0  # the last watermark sent
    due_watermark_ns: int = 0  # a watermark that must be sent before the next one arrives; 0 if there is none
    # number of records that must be emitted before the next watermark, counted since the job started; None if there are none
    due_records: int | None = None
    timers_stopped: bool = False  # timers do not fire any more, because the data of the task has ended
    input_ended: bool = False
    window_ends: deque[int] = field(default_factory=deque)  # of sliding windows: records emitted by each window end


class EventTime(Invariant):
    """Checks watermarks, the outputs of windows, and timers."""

    def start(self) -> None:
        self._inputs = [channels_in(self.context.layout, task) for task in self.context.tasks]
        self._windows = [self.context.vertex(task).window for task in self.context.tasks]
        self._tasks: dict[int, _TaskAttempt] = {}
        # timers in the snapshot, or None if the operators had finished
        self._timers = ByCheckpoint[tuple[Pending, ...] | None]()
        # records emitted by each end of sliding windows
        self._window_ends = ByCheckpoint[tuple[int, ...]]()

    def continue_from(self, before: Self, checkpoint: int) -> None:
        """Handle that the job starts from a checkpoint of another job instance.

        The windows of rescaled vertices are redistributed; their processing-time timers are dropped.
        """
        resized, names = self.resized(before), before.context.names
        timers, ends = before._timers.get(checkpoint, {}), before._window_ends.get(checkpoint, {})
        self._timers[checkpoint] = {name: pending for name, pending in timers.items() if name[0] not in resized}
        self._window_ends[checkpoint] = {name: row for name, row in ends.items() if name[0] not in resized}
        tally = before.ledger.of(checkpoint)
        for vertex in resized:
            old = [(ends.get(name, ()), task) for task, name in enumerate(names) if name[0] == vertex]
            emitted = [int(tally.served[task] - tally.late[task]) for _, task in old]
            own = [name for name in self.context.names if name[0] == vertex]
            redistributed = redistribute_ends([row for row, _ in old], emitted, len(own))
            self._window_ends[checkpoint] |= zip(own, redistributed, strict=True)

    # ------------------------------------------------------------------------------------------ event time

    def restarted(self, checkpoint: int, tasks: Iterable[int]) -> None:
        """Reset the tasks to the content of the checkpoint: timers are state, watermarks are not."""
        timers, ends = self._timers.get(checkpoint, {}), self._window_ends.get(checkpoint, {})
        for task in tasks:
            name, attempt = self.context.names[task], self._new_attempt(task)
            self._tasks[task] = attempt
            attempt.window_ends.extend(ends.get(name, ()))
            if attempt.timers is not None:
                if (pending := timers.get(name, ())) is None:
                    attempt.timers = None
                else:
                    attempt.timers.pending = list(pending)

    def restored(
        self, checkpoint: int, task: int, restored_parts: Sequence[RestoredState], restored_record_count: int
    ) -> None:
        """Record when the task starts: its timers are armed from then on."""
        if (timers := self._attempt_of(task).timers) is not None:
            timers.begun_ns = self.now_ns

    def watermark_arrived(self, task: int, channel: int, number: int) -> None:
        """Check that the task has handled the previous watermark, and compute which records this one must release."""
        attempt = self._attempt_of(task)
        if attempt.sent_ns < attempt.due_watermark_ns:
            fact = f"its watermark stays at {seconds(attempt.sent_ns)}, all active inputs had come to {seconds(attempt.due_watermark_ns)}"
            self._report(BEHIND_INPUTS, task, fact)
        if attempt.due_records is not None and attempt.due_watermark_ns:
            fact = f"the records up to {attempt.due_records} have not left, their windows have ended"
            self._report(OWN_WINDOW, task, fact)
        attempt.due_watermark_ns, attempt.due_records = 0, None
        before_ns = attempt.inputs.time_ns
        has_advanced = attempt.inputs.on_watermark(channel, number)
        if has_advanced and attempt.inputs.is_active_again:
            attempt.due_watermark_ns = attempt.inputs.time_ns
        if attempt.open_windows is None:
            return
        position = self.context.plane.position(task)
        read = dict(zip(self._inputs[task], position.records_read.tolist(), strict=True))
        attempt.open_windows.on_watermark(channel, number, read[channel], before_ns)
        later_records = attempt.open_windows.later_records(attempt.inputs.time_ns, read) if has_advanced else None
        if later_records is None:
            return
        # the last watermark ends all windows of a record, others one
        ended = attempt.window_ends.maxlen or 1 if attempt.inputs.time_ns == LAST_WATERMARK else 1
        attempt.window_ends.extend([position.served - later_records] * ended)
        if position.late > later_records:
            attempt.due_records = position.served - later_records

    def watermark_sent(self, task: int, number: int) -> None:
        """Check a watermark or a status that a task sends against the inputs, records and windows of the task."""
        attempt, inputs, is_source = self._attempt_of(task), self._attempt_of(task).inputs, not self._inputs[task]
        ahead, fact = f"its watermark {seconds(number)} is ahead of its", None
        if number == IDLE:
            fact = self._idle_source_error(task) if is_source else self._idle_task_error(inputs)
        elif number == ACTIVE:
            pass
        elif number < attempt.sent_ns:
            fact = f"its watermark goes back from {seconds(attempt.sent_ns)} to {seconds(number)}"
        elif is_source:
            if number > (reached_ns := self._event_time(task)):
                fact = f"{ahead} records, which have come to {seconds(reached_ns)}"
        elif number > inputs.time_ns:
            slowest = min(inputs.reached, key=inputs.reached.__getitem__)
            writer = self.formatter.task(self.context.layout.writer[slowest])
            fact = f"{ahead} input from {writer}, which has come to {seconds(inputs.reached[slowest])}"
        elif attempt.due_records is not None:
            fact = (
                f"its watermark {seconds(number)} leaves before the records up to {attempt.due_records}, which it ends"
            )
        self._report(BEHIND_INPUTS, task, fact)
        if number not in (IDLE, ACTIVE):
            attempt.sent_ns = number

    # ------------------------------------------------------------------------------------------ windows

    def records_left(self, task: int, until: int) -> None:
        """Check that a watermark releases exactly the records of the windows that it ends."""
        attempt = self._attempt_of(task)
        expected = attempt.due_records if self._inputs[task] else self._served(task)
        attempt.due_records = None
        if expected is None:
            self._report(OWN_WINDOW, task, f"records up to {until} leave, no window has ended")
        elif until > expected:
            fact = f"{number_of(until - expected, 'record')} of later windows leave with those up to {expected}"
            self._report(OWN_WINDOW, task, fact)
        elif until < expected:
            left = count_is(expected - until, "record")
            fact = f"{left} left behind: those up to {expected} belong to windows that have ended"
            self._report(OWN_WINDOW, task, fact)

    def window_ended(self, task: int) -> None:
        """Check the end of a processing-time window, and add its timer."""
        if (timers := self._attempt_of(task).timers) is not None:
            self._report(TIMERS_FIRE, task, timers.window_ended(self.now_ns, self._served(task)))

    def timer_fired(self, task: int, due_ns: int, records: int) -> None:
        """Check that a timer fires in time and releases the records of its window."""
        attempt = self._attempt_of(task)
        attempt.window_ends.append(records)
        fact = (
            f"a timer of {seconds(due_ns)} fires, its operators had finished when the snapshot was taken"
            if attempt.timers is None
            else attempt.timers.fire(self.now_ns, due_ns, records)
        )
        self._report(TIMERS_FIRE, task, fact)

    def timers_quiet(self, task: int) -> None:
        self._attempt_of(task).timers_stopped = True

    def input_ended(self, task: int) -> None:
        self._attempt_of(task).input_ended = True

    def at_the_end(self) -> None:
        """Report the first task whose data has ended and whose event-time windows still hold records."""
        states = self.context.plane.tasks("state")["state"]
        for task, attempt in self._tasks.items():
            window = self._windows[task]
            if window is None or window.time != "event" or not attempt.input_ended or self.ends.drops(task):
                continue
            late = self.context.plane.position(task).late
            if late and states[task] == ThreadState.IDLE:
                fact = f"its data has ended, it waits for nothing, and its windows hold {number_of(late, 'record')}"
                self.report(ALL_END, fact, task=task, once=True)

    # ------------------------------------------------------------------------------------------ snapshots

    def cut(self, checkpoint: int, task: int, part: TaskSnapshot) -> None:
        """Check the windows at the barrier, and record the timers that the snapshot must contain.

        It contains none if the operators have finished.
        """
        window = self._windows[task]
        if window is None:
            return
        attempt, late, now_ns, name = self._attempt_of(task), part.position.late, self.now_ns, self.context.names[task]
        timers = attempt.timers
        if not attempt.timers_stopped:
            if window.early and late:
                fact = (
                    f"{count_is(late, 'record')} held behind barrier {checkpoint}, a first stage lets all go before it"
                )
                self._report(OWN_WINDOW, task, fact)
            if timers is not None:
                self._report(TIMERS_FIRE, task, timers.silent(now_ns))
        self._timers.setdefault(checkpoint, {})[name] = (
            None if timers is None or part.finished else timers.kept(now_ns, self.ledger.served(checkpoint, task))
        )
        if window.overlapping > 1:
            self._window_ends.setdefault(checkpoint, {})[name] = tuple(attempt.window_ends)

    def state_taken(self, checkpoint: int, task: int, snapshot: StateSnapshot) -> None:
        """Check that the state in the snapshot is as large as the records in windows."""
        window, held_bytes = self._windows[task], snapshot.window_bytes
        if window is None or not window.record_bytes:
            return
        late, attempt = int(self.ledger.of(checkpoint).late[task]), self._attempt_of(task)
        if held_bytes < late * window.record_bytes:
            fact = (
                f"snapshot {checkpoint} has {number_of(held_bytes, 'byte')} for {number_of(late, 'record')} in windows"
            )
            self._report(SNAPSHOT_COMPLETE, task, f"{fact}, {window.record_bytes} each")
        ends = self._window_ends.get(checkpoint, {}).get(self.context.names[task], ())
        if ends and not attempt.timers_stopped and not attempt.input_ended:
            records = records_in_state(late, ends, window.overlapping, copies=window.api == "datastream")
            if held_bytes < records * window.record_bytes:
                fact = f"it has {number_of(held_bytes, 'byte')} for {number_of(records, 'record')} whose last window has not ended"
                self._report(WINDOW_STATE, task, f"snapshot {checkpoint}: {fact}, {window.record_bytes} each")

    # ------------------------------------------------------------------------------------------ reading the run

    def _attempt_of(self, task: int) -> _TaskAttempt:
        """Return the current attempt of a task, which is created if there is none."""
        attempt = self._tasks.get(task)
        if attempt is None:
            attempt = self._tasks[task] = self._new_attempt(task)
        return attempt

    def _new_attempt(self, task: int) -> _TaskAttempt:
        channels, window = self._inputs[task], self._windows[task]
        attempt = _TaskAttempt(Inputs(dict.fromkeys(channels, 0)))
        if window is None:
            return attempt
        attempt.window_ends = deque(maxlen=window.overlapping)
        if window.time == "event":
            windows = self.context.scenario.job.event_time_windows[self.context.names[task][0]]
            attempt.open_windows = OpenWindows(*windows, {channel: [] for channel in channels})
        else:
            begun_ns = 0 if self.context.origin is None and not self.context.env.now else self.now_ns
            attempt.timers = Timers(window.step_ns, window.phase_ns, window.hold_ns, begun_ns=begun_ns)
        return attempt

    def _event_time(self, task: int) -> int:
        """Return the largest watermark that a source may send [ns].

        It is the event time of its latest record, minus the lateness of the source in excess of the common lateness of all
        sources.
        """
        source, log, served = self.context.vertex(task).source, self.context.log(task), self._served(task)
        if source is None or log is None or not served:
            return 0
        behind_ns = source.watermark.lateness_ns - self.context.scenario.job.lateness_ns
        return (log.due(served - 1) if log.segments else self.now_ns) - behind_ns

    def _idle_source_error(self, task: int) -> str | None:
        """Return an error if a source reports IDLE before its idle timeout has passed, or None."""
        source, log, served = self.context.vertex(task).source, self.context.log(task), self._served(task)
        if source is None or log is None or not served or not log.segments or source.watermark.idle_timeout_ns is None:
            return None
        since_ns = self.now_ns - log.due(served - 1)
        if since_ns >= source.watermark.idle_timeout_ns:
            return None
        return f"it says that it is idle, its last record was due {seconds(since_ns)} ago"

    def _served(self, task: int) -> int:
        return self.context.plane.position(task).served

    def _idle_task_error(self, inputs: Inputs) -> str | None:
        """Return an error if a task reports IDLE while one of its inputs is active, or None."""
        active = [channel for channel in inputs.reached if channel not in inputs.idle]
        if not active:
            return None
        return f"it says that it is idle, its input from {self.formatter.task(self.context.layout.writer[active[0]])} is not"

    def _report(self, invariant: str, task: int, fact: str | None) -> None:
        """Report what is wrong with a task, if anything, once per invariant and task."""
        if fact is not None:
            self.report(invariant, fact, task=task, once=task)
