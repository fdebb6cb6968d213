"""The monitor of event time and windows.

It computes the expected watermarks and outputs from the events of a run, and compares them with the actual ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Self

from sim.invariants.cuts import COVERED, WINDOW_STATE_LAW, missing_records_error, records_in_state, redistribute_ends
from sim.invariants.event_time import (
    ACTIVE,
    ALL_END,
    BEHIND_INPUTS,
    IDLE,
    OWN_WINDOW,
    TIMERS_FIRE,
    Inputs,
    OpenWindows,
    Pending,
    Timers,
    unreleased_records_error,
)
from sim.invariants.state import RestoredState
from sim.invariants.violation import Violation, count_is, number_of, seconds
from sim.plane.interface import ThreadState, channels_in
from sim.results.journal import Happening
from sim.runtime import context as runtime_context
from sim.runtime.context import StateSnapshot, TaskSnapshot
from sim.runtime.monitors.monitor import ByCheckpoint, EndOfRun, InvariantMonitor, WatchedRun

_STATUSES = {runtime_context.IDLE: IDLE, runtime_context.ACTIVE: ACTIVE}


@dataclass(slots=True)
class _TaskAttempt:
    """The expected watermarks, outputs and timers of one attempt of a task."""

    inputs: Inputs
    open_windows: OpenWindows | None  # of event-time windows
    timers: Timers | None  # of processing-time windows
    sent_ns: int = 0  # the last watermark sent
    due_watermark_ns: int = 0  # a watermark that must be sent before the next one arrives; 0 if there is none
    # number of records that must be emitted before the next watermark, counted since the job started; None if there are none
    due_records: int | None = None
    timers_stopped: bool = False  # timers do not fire any more, because the data of the task has ended
    input_ended: bool = False
    window_ends: deque[int] = field(default_factory=deque)  # of sliding windows: records emitted by each window end


class WindowMonitor(InvariantMonitor):
    """Checks watermarks, the outputs of windows, and timers."""

    evidence_kinds = frozenset(
        {
            Happening.JOB_RESTORED,
            Happening.TASK_RESTORED,
            Happening.TASK_FAILED,
            Happening.RESCALED,
            Happening.TRIGGERED,
        }
    )

    def __init__(self, watched: WatchedRun) -> None:
        super().__init__(watched)
        self._inputs = [channels_in(self.context.layout, task) for task in self.context.tasks]
        self._windows = [self.context.vertex(task).window for task in self.context.tasks]
        self._tasks: dict[int, _TaskAttempt] = {}
        # by (vertex, index): timers in the snapshot, or None if the operators had finished
        self._timers = ByCheckpoint[tuple[str, int], tuple[Pending, ...] | None]()
        # by (vertex, index): records emitted by each end of sliding windows
        self._window_ends = ByCheckpoint[tuple[str, int], tuple[int, ...]]()

    def continue_from(self, before: Self, checkpoint: int) -> None:
        """Handle that the job starts from a checkpoint of another job instance.

        The windows of rescaled vertices are redistributed; their processing-time timers are dropped.
        """
        pending_by_task, resized = before._timers.get(checkpoint, {}), self.resized(before)
        self._timers[checkpoint] = {
            name: pending for name, pending in pending_by_task.items() if name[0] not in resized
        }
        self._window_ends[checkpoint] = {
            name: ends for name, ends in before._window_ends.get(checkpoint, {}).items() if name[0] not in resized
        }
        for vertex in resized:
            self._window_ends[checkpoint] |= self._redistributed_ends(before, checkpoint, vertex)

    def _redistributed_ends(self, before: Self, checkpoint: int, vertex: str) -> dict[tuple[str, int], tuple[int, ...]]:
        """Return the records emitted by each end of sliding windows after rescaling, by (vertex, index)."""
        old_tasks = [task for task, name in enumerate(before.context.names) if name[0] == vertex]
        ends_by_name, tally = before._window_ends.get(checkpoint, {}), before.ledger.of(checkpoint)
        ends = [ends_by_name.get(before.context.names[task], ()) for task in old_tasks]
        emitted = [int(tally.served[task] - tally.late[task]) for task in old_tasks]
        names = [name for name in self.context.names if name[0] == vertex]
        return dict(zip(names, redistribute_ends(ends, emitted, len(names)), strict=True))

    # ------------------------------------------------------------------------------------------ event time

    def restarted(self, checkpoint: int, tasks: Iterable[int]) -> None:
        """Reset the tasks to the content of the checkpoint: timers are state, watermarks are not."""
        for task in tasks:
            self._tasks.pop(task, None)
            self._attempt_of(task).window_ends.extend(
                self._window_ends.get(checkpoint, {}).get(self.context.names[task], ())
            )
            if (timers := self._attempt_of(task).timers) is not None:
                pending = self._timers.get(checkpoint, {}).get(self.context.names[task], ())
                if pending is None:
                    self._attempt_of(task).timers = None
                else:
                    timers.pending = list(pending)

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
            self.report_once_of_task(
                BEHIND_INPUTS,
                task,
                f"its watermark stays at {seconds(attempt.sent_ns)}, all active inputs had come to {seconds(attempt.due_watermark_ns)}",
            )
        if attempt.due_records is not None and attempt.due_watermark_ns:
            self.report_once_of_task(
                OWN_WINDOW, task, f"the records up to {attempt.due_records} have not left, their windows have ended"
            )
        attempt.due_watermark_ns, attempt.due_records = 0, None
        before_ns, watermark_ns = attempt.inputs.time_ns, _STATUSES.get(number, number)
        has_advanced = attempt.inputs.on_watermark(channel, watermark_ns, last=number == runtime_context.LAST_WATERMARK)
        if has_advanced and attempt.inputs.is_active_again:
            attempt.due_watermark_ns = attempt.inputs.time_ns
        if attempt.open_windows is None:
            return
        position = self.context.plane.position(task)
        read = dict(zip(self._inputs[task], position.records_read.tolist(), strict=True))
        attempt.open_windows.on_watermark(channel, watermark_ns, read[channel], before_ns)
        later_records = attempt.open_windows.later_records(attempt.inputs.time_ns, read) if has_advanced else None
        if later_records is None:
            return
        # the last watermark ends all windows of a record, others one
        ended = attempt.window_ends.maxlen or 1 if attempt.inputs.time_ns == runtime_context.LAST_WATERMARK else 1
        attempt.window_ends.extend([position.served - later_records] * ended)
        if position.late > later_records:
            attempt.due_records = position.served - later_records

    def watermark_sent(self, task: int, number: int) -> None:
        """Check a watermark or a status that a task sends against the inputs, records and windows of the task."""
        attempt, is_source = self._attempt_of(task), not self._inputs[task]
        ahead = f"its watermark {seconds(number)} is ahead of its"
        if number == runtime_context.IDLE:
            fact = self._idle_source_error(task) if is_source else self._idle_task_error(attempt.inputs)
        elif number == runtime_context.ACTIVE:
            fact = None
        elif number < attempt.sent_ns:
            fact = f"its watermark goes back from {seconds(attempt.sent_ns)} to {seconds(number)}"
        elif is_source:
            reached_ns = self._event_time(task)
            fact = None if number <= reached_ns else f"{ahead} records, which have come to {seconds(reached_ns)}"
        elif number > attempt.inputs.time_ns:
            slowest = min(attempt.inputs.reached, key=lambda channel: attempt.inputs.reached[channel])
            writer = self.formatter.task(self.context.layout.writer[slowest])
            fact = f"{ahead} input from {writer}, which has come to {seconds(attempt.inputs.reached[slowest])}"
        elif attempt.due_records is not None:
            fact = (
                f"its watermark {seconds(number)} leaves before the records up to {attempt.due_records}, which it ends"
            )
        else:
            fact = None
        self.report_once_of_task(BEHIND_INPUTS, task, fact)
        if number not in _STATUSES:
            attempt.sent_ns = number

    # ------------------------------------------------------------------------------------------ windows

    def records_left(self, task: int, until: int) -> None:
        """Check that a watermark releases exactly the records of the windows that it ends."""
        attempt = self._attempt_of(task)
        expected = attempt.due_records if self._inputs[task] else self._served(task)
        if expected != until:
            excess = until - (0 if expected is None else expected)
            if expected is None:
                fact = f"records up to {until} leave, no window has ended"
            elif excess > 0:
                fact = f"{number_of(excess, 'record')} of later windows leave with those up to {expected}"
            else:
                fact = f"{count_is(-excess, 'record')} left behind: those up to {expected} belong to windows that have ended"
            self.report_once_of_task(OWN_WINDOW, task, fact)
        attempt.due_records = None

    def window_ended(self, task: int) -> None:
        """Check the end of a processing-time window, and add its timer."""
        if (timers := self._attempt_of(task).timers) is not None:
            self.report_once_of_task(TIMERS_FIRE, task, timers.window_ended(self.now_ns, self._served(task)))

    def timer_fired(self, task: int, due_ns: int, records: int) -> None:
        """Check that a timer fires in time and releases the records of its window."""
        self._attempt_of(task).window_ends.append(records)
        if (timers := self._attempt_of(task).timers) is None:
            self.report_once_of_task(
                TIMERS_FIRE,
                task,
                f"a timer of {seconds(due_ns)} fires, its operators had finished when the snapshot was taken",
            )
        else:
            self.report_once_of_task(TIMERS_FIRE, task, timers.fire(self.now_ns, due_ns, records))

    def timers_quiet(self, task: int) -> None:
        """Record that timers do not fire any more."""
        self._attempt_of(task).timers_stopped = True

    def input_ended(self, task: int) -> None:
        """Record the end of input."""
        self._attempt_of(task).input_ended = True

    def at_the_end(self, end: EndOfRun) -> Iterator[Violation]:
        """Yield the first violation by a task whose data has ended and whose event-time windows still hold records."""
        states = self.context.plane.tasks("state")["state"]
        for task, attempt in self._tasks.items():
            window = self._windows[task]
            if window is None or window.time != "event" or not attempt.input_ended or self.ends.drops(task):
                continue
            if states[task] == ThreadState.IDLE and (
                fact := unreleased_records_error(self.context.plane.position(task).late)
            ):
                yield Violation(ALL_END, self.now_ns, self.formatter.task(task), fact)
                return

    # ------------------------------------------------------------------------------------------ snapshots

    def cut(self, checkpoint: int, task: int, part: TaskSnapshot) -> None:
        """Check the windows at the barrier, and record the timers that the snapshot must contain.

        It contains none if the operators have finished.
        """
        window = self._windows[task]
        if window is None:
            return
        attempt, late = self._attempt_of(task), part.position.late
        if window.early and late and not attempt.timers_stopped:
            self.report_once_of_task(
                OWN_WINDOW,
                task,
                f"{count_is(late, 'record')} held behind barrier {checkpoint}, a first stage lets all go before it",
            )
        now_ns = self.now_ns
        if attempt.timers is not None and not attempt.timers_stopped:
            self.report_once_of_task(TIMERS_FIRE, task, attempt.timers.silent(now_ns))
        pending = (
            None
            if attempt.timers is None or part.finished
            else attempt.timers.kept(now_ns, self.ledger.served(checkpoint, task))
        )
        self._timers.setdefault(checkpoint, {})[self.context.names[task]] = pending
        if window.overlapping > 1:
            self._window_ends.setdefault(checkpoint, {})[self.context.names[task]] = tuple(attempt.window_ends)

    def state_taken(self, checkpoint: int, task: int, snapshot: StateSnapshot) -> None:
        """Check that the state in the snapshot is as large as the records in windows."""
        window = self._windows[task]
        if window is None or not window.record_bytes:
            return
        late = int(self.ledger.of(checkpoint).late[task])
        if snapshot.window_bytes < late * window.record_bytes:
            fact = f"snapshot {checkpoint} has {number_of(snapshot.window_bytes, 'byte')} for {number_of(late, 'record')} in windows"
            self.report_once_of_task(COVERED, task, f"{fact}, {window.record_bytes} each")
        ends = self._window_ends.get(checkpoint, {}).get(self.context.names[task], ())
        if ends and not self._attempt_of(task).timers_stopped and not self._attempt_of(task).input_ended:
            records = records_in_state(late, ends, window.overlapping, copies=window.api == "datastream")
            if (error := missing_records_error(snapshot.window_bytes, records, window.record_bytes)) is not None:
                self.report_once_of_task(WINDOW_STATE_LAW, task, f"snapshot {checkpoint}: {error}")

    # ------------------------------------------------------------------------------------------ reading the run

    def _attempt_of(self, task: int) -> _TaskAttempt:
        """Return the current attempt of a task, which is created if there is none."""
        attempt = self._tasks.get(task)
        if attempt is None:
            attempt = self._tasks[task] = self._new_attempt(task)
        return attempt

    def _new_attempt(self, task: int) -> _TaskAttempt:
        """Create a new attempt of a task."""
        channels, window, now_ns = self._inputs[task], self._windows[task], self.now_ns
        inputs = Inputs.of(channels)
        if window is None:
            return _TaskAttempt(inputs, None, None)
        ends: deque[int] = deque(maxlen=window.overlapping)
        if window.time == "event":
            windows = self.context.scenario.job.event_time_windows[self.context.names[task][0]]
            return _TaskAttempt(inputs, OpenWindows.of(*windows, channels), None, window_ends=ends)
        times = window.step_ns, window.phase_ns, window.hold_ns
        begun_ns = 0 if self.context.origin is None and not self.context.env.now else now_ns
        return _TaskAttempt(inputs, None, Timers(*times, begun_ns=begun_ns), window_ends=ends)

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
