"""The window operator of a task, in processing time and event time, and the watermarks that a task receives.

Records in windows are pending outputs of the data plane (`late` in `Position`).  This module decides when they are
released, and which of them a snapshot contains.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from sim.model.job import Source, Window
from sim.model.randomness import draw, stream
from sim.plane.interface import Marker
from sim.protocol.event_time import Idleness, Slices, StatusWatermarkValve, WindowContents, last_end, next_end
from sim.runtime.context import ACTIVE, IDLE, LAST_WATERMARK, WATERMARKS, TaskSnapshot
from sim.runtime.task.parts import Stage, TaskFeature, TaskPart, TaskParts, WaitingBytes
from sim.runtime.task.thread import Slot

# ---- The base class of window operators in processing time and in event time.  Records in windows are part of the state.


class Timer(NamedTuple):
    """A processing-time timer of a window operator."""

    records: int  # number of records served at the end of its window; their outputs are released
    at_ns: int  # when it fires


class _WindowSnapshot(NamedTuple):
    """The part of a snapshot that describes windows.  The records in windows are in another part."""

    timers: tuple[Timer, ...] = ()
    slices: tuple[int, ...] = ()  # of sliding windows: number of records emitted by each of the last window ends

    def redistribute(self, snapshots: Sequence[TaskSnapshot], subtask: int, tasks: int) -> _WindowSnapshot:
        """Return the part of a subtask after rescaling to `tasks` subtasks.  Record counts are split evenly.

        `snapshots` are those of all subtasks before rescaling.  Processing-time timers are not redistributed.
        """
        ends = [(_window_snapshot(part).slices, part.position.served - part.position.late) for part in snapshots]
        longest = max(len(slices) for slices, _ in ends)
        padded = [(*[(slices or (left,))[0]] * (longest - len(slices)), *slices) for slices, left in ends]
        totals = [sum(column) for column in zip(*padded, strict=True)]
        return _WindowSnapshot((), tuple(total // tasks + (subtask < total % tasks) for total in totals))


def _window_snapshot(snapshot: TaskSnapshot) -> _WindowSnapshot:
    """Return the windows in a snapshot, which are empty if the task had finished before the checkpoint."""
    windows: _WindowSnapshot = snapshot.kept.get("windows", _WindowSnapshot())
    return windows


class OperatorWindows(TaskPart):
    """The window operator of one task.  A subclass defines when windows end.

    Flink: SlicingWindowOperator, RecordsWindowBuffer, AbstractMapBundleOperator.
    """

    def __init__(self, slot: Slot, window: Window) -> None:
        self.slot = slot
        self.window = window
        self._continue_from(())

    def _continue_from(self, window_ends: tuple[int, ...]) -> None:
        """Continue from a snapshot, which contains the ends of sliding windows (`_WindowSnapshot`)."""
        self.slices = Slices(self.window.overlapping, copies=self.window.api == "datastream", ends=window_ends)
        self._flushed = self.slot.position.served  # number of records whose buffered rows have been merged into state

    def timers(self) -> tuple[Timer, ...]:
        """Return the timers that a snapshot taken now contains.  Event-time windows have none, because watermarks end them."""
        return ()

    def resume_timers(self, timers: tuple[Timer, ...]) -> None:
        """Restore the timers of a snapshot."""

    def restored(self, snapshot: TaskSnapshot) -> None:
        """Restore the windows and their timers."""
        windows = _window_snapshot(snapshot)
        self._continue_from(windows.slices)
        self.resume_timers(windows.timers)

    def before_barrier(self, checkpoint: int) -> int:
        """Merge buffered rows into state (WindowBuffer#flush).  Return the time that this takes the task thread [ns]."""
        return self.flush_ns()

    def release_before_barrier(self) -> bool:
        """Release all outputs if the operator is a local aggregation (`Window.early`), which emits them before each barrier."""
        position = self.slot.position
        if not self.window.early or not position.late:
            return False
        self._release(position.served)
        return True

    def cut(self, checkpoint: int, snapshot: TaskSnapshot) -> None:
        """Add timers and slices to the snapshot.

        Operators that have finished have no timers.  Records left in their windows are lost, also after a restore (FLIP-147).
        """
        timers = () if snapshot.finished else self.timers()
        snapshot.kept["windows"] = _WindowSnapshot(timers, tuple(self.slices.ends))

    def waiting(self) -> WaitingBytes:
        return WaitingBytes(windows=self.records() * self.window.record_bytes)

    def records(self) -> int:
        """Return the number of records in state now.  A record that is stored in several copies counts once per copy."""
        late = self.slot.position.late
        return self.slices.records(late) if self.window.overlapping > 1 else late

    def flush_ns(self) -> int:
        """Merge the buffered rows into state.  Return the time that this takes the task thread [ns]."""
        before, self._flushed = self._flushed, self.slot.position.served
        return (self._flushed - before) * self.window.flush_ns

    def flush(self, release: Callable[[], None]) -> None:
        """Merge the buffered rows into state on the task thread, then call `release` unless the task has stopped.

        It may be called only while the thread is between two records.
        """
        if (flush_ns := self.flush_ns()) == 0:
            release()
            return

        def on_elapsed() -> None:
            if not self.slot.thread.stopped:
                release()
            self.slot.thread.vacate()

        self.slot.thread.occupy()
        self.slot.context.env.call_in(flush_ns, on_elapsed)

    def _release(self, until: int) -> None:
        """Release the outputs of the first `until` records.  The data plane reports when they are written."""
        self.slot.thread.release_late_outputs(until)
        self.slot.context.plane.report_written(self.slot.task)


# ---- Processing-time windows: the task thread fires them at their ends.
#
# Flink: WindowOperator, InternalTimerServiceImpl#onProcessingTime.  All keys of a window have the same end, so one mail
# fires them all.  Sessions end key by key: here the records of one step are grouped, and emitted when the session gap of
# all of them is over.  The records in windows are the pending outputs of the data plane (rules L1-L9).


class ProcessingTimeWindows(OperatorWindows):
    """A window operator in processing time.  A window ends at the same time in all subtasks."""

    def __init__(self, slot: Slot, window: Window) -> None:
        super().__init__(slot, window)
        self._unfired: list[Timer] = []  # timers of windows that have ended
        self._timers_stopped = False  # timers do not fire any more

    @property
    def has_pending_outputs(self) -> bool:
        """Whether records are emitted at the end of data, which only a local aggregation does.  Other windows lose them."""
        return self.window.early

    def restored(self, snapshot: TaskSnapshot) -> None:
        """Restore the windows.  Operators that had finished are not opened again (FLIP-147), and have no timers."""
        super().restored(snapshot)
        if snapshot.finished:
            self.quiesce()

    def begin(self) -> None:
        """Handle the start of the task.  Restored timers that are due fire now."""
        for timer in self._unfired:
            self._schedule_mail(timer)
        self._schedule_window_end()

    def resume_timers(self, timers: tuple[Timer, ...]) -> None:
        """Restore timers that are due, and all timers of sessions.  The timer of an open window is created anew."""
        self._unfired = [timer for timer in timers if timer.at_ns <= self.slot.now or self.window.hold_ns]

    def timers(self) -> tuple[Timer, ...]:
        """Return the timers that have not fired, and that of the open window."""
        return (*self._unfired, Timer(self.slot.position.served, self._next_end() + self.window.hold_ns))

    def quiesce(self) -> None:
        """Stop all timers (ProcessingTimeServiceImpl#quiesce).  Records in windows remain in state."""
        self._timers_stopped = True
        self.slot.checks.timers_quiet(self.slot.task)

    def end_input(self) -> None:
        """Finish the operator.  Records in windows are lost with their timers (FLINK-18647); a local aggregation emits them."""
        self.quiesce()
        if self.window.early:
            self.slot.thread.release_late_outputs(self.slot.position.served)

    def _next_end(self) -> int:
        """Return the end of the open window [ns]."""
        return next_end(self.window.step_ns, self.window.phase_ns, self.slot.now)

    def _schedule_window_end(self) -> None:
        """Schedule the end of the open window."""
        self.slot.context.env.call_in(self._next_end() - self.slot.now, self._end_window)

    def _end_window(self) -> None:
        """End the open window.  It contains the records served so far, even if the task thread fires its timer later."""
        if self._timers_stopped or self.slot.thread.stopped:
            return
        self.slot.checks.window_ended(self.slot.task)
        timer = Timer(self.slot.position.served, self.slot.now + self.window.hold_ns)
        if not (self.window.hold_ns and self._unfired and self._unfired[-1].records == timer.records):
            self._unfired.append(timer)
            self._schedule_mail(timer)
        self._schedule_window_end()

    def _schedule_mail(self, timer: Timer) -> None:
        """Schedule the mail of a timer for the time at which the timer is due."""
        post = partial(self.slot.thread.post, lambda: self._fire(timer))
        self.slot.context.env.call_in(max(0, timer.at_ns - self.slot.now), post)

    def _fire(self, timer: Timer) -> None:
        """Fire a timer on the task thread: flush buffered rows, then release the outputs of its window."""
        if self._timers_stopped:
            return
        self._unfired.remove(timer)
        self.slot.checks.timer_fired(self.slot.task, timer.at_ns, timer.records)
        self.slices.end(timer.records)
        self.flush(lambda: self.slot.thread.release_late_outputs(timer.records))


# ---- Event-time windows: a watermark ends them, after the records that precede it.
#
# Flink: InternalTimerServiceImpl#tryAdvanceWatermark.  A window contains the records of each channel that precede the
# watermark of its end (`EventTimeWindow`).  These may include records of the next window: at most those of one watermark
# interval, and of the lateness that a source has in excess of the common lateness.


class EventTimeWindows(OperatorWindows):
    """A window operator in event time.  It counts the records of each input channel."""

    def __init__(self, slot: Slot, window: Window) -> None:
        super().__init__(slot, window)
        self.channels = slot.channels
        self.watermarks: WatermarkSender | None = None  # of the same task, which sets it
        ends = slot.context.scenario.job.event_time_windows[slot.vertex.name]
        self.record_counts = WindowContents(ends.step_ns, ends.phase_ns, self.channels, ends.hold_ns)

    @property
    def has_pending_outputs(self) -> bool:
        return not self.drops

    @property
    def drops(self) -> bool:
        """Whether records in windows are never emitted, because all inputs are idle and not even the last watermark arrives.

        Source: RecordWriterOutput#emitWatermark.
        """
        return self.watermarks is not None and self.watermarks.is_idle

    def on_watermark(self, channel: int, time_ns: int) -> None:
        """Record a watermark of a channel, with the number of records that the task has read before it."""
        self.record_counts.note(channel, time_ns, self._records_read()[channel])

    def fall_idle(self, channel: int, time_ns: int) -> None:
        """Record that a channel is idle at this event time.  Its records no longer wait for its watermarks."""
        self.record_counts.fall_idle(channel, time_ns, self._records_read()[channel])

    def fire(self, time_ns: int) -> bool:
        """Fire the windows that end at or before `time_ns` in event time.

        Return whether outputs are released: the plane then reports when they are written.
        """
        later = self.record_counts.fire(time_ns, self._records_read())
        if later is None:
            return False
        position = self.slot.position
        until = position.served - later
        self.slices.end(until)
        if position.late <= later:
            return False

        def release() -> None:
            self.slot.checks.records_left(self.slot.task, until)
            self._release(until)

        self.flush(release)
        return True

    def end_input(self) -> None:
        """End all windows, as the last watermark does, unless the inputs are idle."""
        if not self.drops:
            self.slot.thread.release_late_outputs(self.slot.position.served)

    def _records_read(self) -> dict[int, int]:
        """Return the number of records read so far, by input channel."""
        return dict(zip(self.channels, self.slot.position.records_read.tolist(), strict=True))


def attach_windows(slot: Slot, _: TaskParts) -> OperatorWindows | None:
    """Return the windows of a task, or None if it has none."""
    if (window := slot.vertex.window) is None:
        return None
    return (EventTimeWindows if window.time == "event" else ProcessingTimeWindows)(slot, window)


WINDOWS_FEATURE = TaskFeature(attach_windows, Stage.WINDOWS)


# ---- The watermarks of a task, which leave after the outputs of the windows that they end.


class WatermarkSender(TaskPart):
    """Sends the watermarks of a task.  `windows` are the event-time windows of the task, or None."""

    is_idle = False
    """Whether all inputs are idle.  Then not even the last watermark is sent (RecordWriterOutput#emitWatermark)."""

    def __init__(self, slot: Slot, windows: EventTimeWindows | None) -> None:
        self.slot = slot
        self.windows = windows
        if windows is not None:
            windows.watermarks = self
        self._sent_ns = 0  # the latest watermark sent

    def _send(self, number: int) -> None:
        """Send a watermark [ns], or the status IDLE or ACTIVE, to all downstream tasks."""
        self.slot.checks.watermark_sent(self.slot.task, number)
        self.slot.context.plane.forward(self.slot.task, Marker(number, series=WATERMARKS))


# ---- The watermarks of a task with inputs.  It forwards the minimum of its channels after the outputs of the windows that end.
#
# Flink: StatusWatermarkValve, MailboxWatermarkProcessor.  A watermark is forwarded when all its windows have fired.  Only
# watermarks that end a window of the job are sent, each as a marker of the data plane.


class WatermarkForwarder(WatermarkSender):
    """Forwards the watermarks of a task with inputs."""

    def __init__(self, slot: Slot, windows: EventTimeWindows | None) -> None:
        super().__init__(slot, windows)
        self.valve = StatusWatermarkValve(slot.channels)
        self._open_channels = set(slot.channels)  # channels whose data has not ended
        self._idle_forwarded = False  # whether the last status forwarded is IDLE

    @property
    def is_idle(self) -> bool:  # type: ignore[override]
        return self.valve.idle

    def watermark_arrived(self, channel: int, number: int) -> None:
        """Handle a watermark of a channel, in event time [ns], or the status IDLE or ACTIVE."""
        self.slot.checks.watermark_arrived(self.slot.task, channel, number)
        if number == IDLE:
            if self.windows is not None:
                self.windows.fall_idle(channel, self.valve.time_ns)
            self._fire_and_forward(has_advanced=self.valve.fall_idle(channel))
        elif number == ACTIVE:
            if self.windows is not None:
                self.windows.record_counts.wake(channel)
            self.valve.wake(channel)
            self._fire_and_forward(has_advanced=False)
        else:
            if self.windows is not None:
                self.windows.on_watermark(channel, number)
            self._fire_and_forward(has_advanced=self.valve.advance(channel, number))

    def channel_ended(self, channel: int) -> None:
        """Handle the end of data of a channel, which is its last watermark."""
        self._open_channels.discard(channel)
        if not self.valve.is_idle(channel):
            self.watermark_arrived(channel, LAST_WATERMARK)

    def _fire_and_forward(self, *, has_advanced: bool) -> None:
        """Fire windows if the watermark of the task has advanced, then forward it.

        If windows release outputs, `outputs_written` forwards the watermark later.  After the data of all channels has ended,
        windows fire when the operator finishes.
        """
        if not (
            has_advanced and self._open_channels and self.windows is not None and self.windows.fire(self.valve.time_ns)
        ):
            self.forward()

    def outputs_written(self, *, at_end: bool) -> None:
        """Forward the watermark, because the outputs of the windows that it ends are written."""
        self.forward()

    def forward(self) -> None:
        """Forward the watermark and the watermark status, if they have changed."""
        if self._idle_forwarded and not self.valve.idle:
            self._send(ACTIVE)
            self._idle_forwarded = False
        if self.valve.time_ns > self._sent_ns and self._open_channels:
            self._sent_ns = self.valve.time_ns
            self._send(self._sent_ns)
        if self.valve.idle and not self._idle_forwarded:
            self._send(IDLE)
            self._idle_forwarded = True


# ---- The watermarks of a source: a periodic mail reads the event time of the records, and sends a watermark if it ends a window.
#
# Flink: ProgressiveTimestampsAndWatermarks.  The timestamp of a record is the time at which it is due; if the source has
# no rate, it is the time of emission.  Checks that cannot end a window are skipped, unless the source may become idle:
# then it checks every interval, and sends its status (WatermarksWithIdleness, WatermarkToDataOutput).


class WatermarkGenerator(WatermarkSender):
    """The watermark generator of a source task.  `windows` are chained to the source."""

    def __init__(self, slot: Slot, source: Source, windows: EventTimeWindows | None) -> None:
        super().__init__(slot, windows)
        self.watermark = source.watermark
        context, job = slot.context, slot.context.scenario.job
        # markers do not include the lateness that all sources have in common: windows wait for it (`EventTimeWindow`)
        self._behind_ns = self.watermark.lateness_ns - job.lateness_ns
        self._ends = {  # (interval, phase) of the window ends of the job
            (window.step_ns, (window.phase_ns + wait_ns) % window.step_ns)
            for window in job.event_time_windows.values()
            for wait_ns in (0, window.hold_ns)
        }
        self.log = context.log(slot.task)
        self._ended = False
        self._watermark_ns: int = 0  # the latest watermark, sent or not
        self._seen = (0, 0)  # (records, time) of the last check that found new records
        self._idleness: Idleness | None = None
        vertex, subtask = context.names[slot.task]
        first = draw(stream(context.scenario.run.seed, "watermark", vertex, subtask), 0)
        self._phase_ns = 1 + (first * self.watermark.interval_ns >> 32)

    def begin(self) -> None:
        """Handle the start of the task."""
        served = self.slot.position.served
        self._seen = (served, 0)
        if self.watermark.idle_timeout_ns is not None:
            self._idleness = Idleness(self.watermark.idle_timeout_ns, served)
        self._poll_at(self.slot.now)

    def _poll_at(self, time_ns: int) -> None:
        """Schedule the next check: the first multiple of the watermark interval, shifted by a phase, at or after `time_ns`."""
        interval_ns = self.watermark.interval_ns
        at_ns = time_ns + (self._phase_ns - time_ns) % interval_ns
        self.slot.context.env.call_in(max(1, at_ns - self.slot.now), lambda: self.slot.thread.post(self._look))

    def _look(self) -> None:
        """Check, on the task thread: send a watermark or a status if due, and schedule the next check."""
        if self._ended or self.slot.thread.mails_only:
            return  # the data of the source has ended
        reached_ns = self._event_time() - self._behind_ns
        if self._idleness is None or self._is_active(self._idleness, reached_ns):
            self._advance(reached_ns)
        if self._idleness is not None:
            self._poll_at(self.slot.now + 1)
            return
        ahead_ns = min(next_end(*end, reached_ns) for end in self._ends)
        self._poll_at(max(self.slot.now + 1, ahead_ns + self._behind_ns))

    def _is_active(self, idleness: Idleness, reached_ns: int) -> bool:
        """Return whether the source is active, and send its status if that has changed.

        An idle source becomes active with its next watermark, not with its next record.
        """
        times = self.slot.context.plane.tasks("soft_ns", "hard_ns")[self.slot.task]
        back_pressured_ns = int(times["soft_ns"]) + int(times["hard_ns"])
        if idleness.check(self.slot.position.served, self.slot.now - back_pressured_ns):
            if not self.is_idle:
                self.is_idle = True
                self._send(IDLE)
            return False
        if self.is_idle and reached_ns > self._watermark_ns:
            self.is_idle = False
            self._send(ACTIVE)
        return not self.is_idle

    def _advance(self, reached_ns: int) -> None:
        """Advance the watermark, and send it if it ends a window, after the outputs of the windows chained to the source."""
        self._watermark_ns = max(self._watermark_ns, reached_ns)
        end_ns = max(last_end(*end, reached_ns) for end in self._ends)
        if end_ns > self._sent_ns:
            self._sent_ns = end_ns
            if self.windows is None or not self.windows.fire(end_ns):
                self._send(end_ns)

    def end_input(self) -> None:
        """Stop the generator: the source sends no further watermark (SourceOperator#finish)."""
        self._ended = True

    def outputs_written(self, *, at_end: bool) -> None:
        """Send the watermark after the outputs of chained windows, unless the data of the source had ended."""
        if not at_end:
            self._send(self._sent_ns)

    def _event_time(self) -> int:
        """Return the event time of the latest record [ns], or 0 if there is no record.

        If the source has no rate, it is the time of the check that finds the record.
        """
        served = self.slot.position.served
        if self.log is None or served == 0:
            return 0
        if self.log.segments:
            return self.log.due(served - 1)
        if served != self._seen[0]:
            self._seen = (served, self.slot.now)
        return self._seen[1]


def attach_watermarks(slot: Slot, parts: TaskParts) -> WatermarkSender | None:
    """Return the generator of a source, or the forwarder of a task with inputs; None if the job has no event-time windows."""
    if not slot.context.scenario.job.event_time_windows:
        return None
    source, windows = slot.vertex.source, parts.of(EventTimeWindows)
    return WatermarkForwarder(slot, windows) if source is None else WatermarkGenerator(slot, source, windows)


WATERMARKS_FEATURE = TaskFeature(attach_watermarks, Stage.WATERMARKS)
