"""Windows of a task, in event time and processing time, and their content."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from sim.model.job import Window
from sim.plane.interface import Marker
from sim.protocol.event_time import Slices, StatusWatermarkValve, WindowContents, next_end
from sim.runtime.context import ACTIVE, IDLE, LAST_WATERMARK, WATERMARKS, TaskSnapshot
from sim.runtime.task.parts import Stage, TaskFeature, TaskPart, TaskParts, WaitingBytes
from sim.runtime.task.slot import Slot

# ---- The content of windows of either time: records in state, buffered rows, and output that leaves before a barrier.
#
# Flink: SlicingWindowOperator, RecordsWindowBuffer, AbstractMapBundleOperator.


class HeldRecords:
    """The records that the windows of one task hold."""

    def __init__(self, slot: Slot, window: Window) -> None:
        self.slot = slot
        self.window = window
        self.slices = self._slices(())
        self._flushed = self.served()  # records whose rows are in state

    def restored(self, slices: tuple[int, ...]) -> None:
        """A snapshot is restored, with the ends of the slices that it held."""
        self.slices = self._slices(slices)
        self._flushed = self.served()

    def records(self) -> int:
        """Records in state now; one that is kept in several copies counts for each."""
        late = self.slot.context.plane.position(self.slot.task).late
        return self.slices.records(late) if self.window.overlapping > 1 else late

    def end(self, records: int) -> None:
        """A window has ended; `records` have left since the job began."""
        if self.window.overlapping > 1:
            self.slices.end(records)

    def flush_ns(self) -> int:
        """Merge the buffered rows into state.  Returns the time that this takes [ns]."""
        served = self.served()
        rows, self._flushed = served - self._flushed, served
        return rows * self.window.flush_ns

    def leave(self) -> bool:
        """Let all records leave now.  True: there are some, and the plane reports when they are written."""
        position = self.slot.context.plane.position(self.slot.task)
        if not position.late:
            return False
        self.slot.thread.release_late_outputs(position.served)
        self.slot.context.plane.report_written(self.slot.task)
        return True

    def work(self, ns: int, done: Callable[[], None]) -> None:
        """Keep the thread for so long, then go on.  Call at a safe point only."""
        if ns == 0:
            done()
            return

        def worked() -> None:
            if not self.slot.thread.stopped:
                done()
            self.slot.thread.vacate()

        self.slot.thread.occupy()
        self.slot.context.env.call_in(ns, worked)

    def served(self) -> int:
        """The records served since the job began."""
        return self.slot.context.plane.position(self.slot.task).served

    def _slices(self, ends: tuple[int, ...]) -> Slices:
        return Slices(self.window.overlapping, copies=self.window.api == "datastream", ends=ends)


# ---- Windows of either time as a part of their operator: their records are state, and rows that are buffered leave before a barrier.


class Timer(NamedTuple):
    """A timer of a window operator."""

    records: int  # served when its window ended: it lets these go
    at_ns: int  # when it is due


class _Kept(NamedTuple):
    """What a snapshot keeps of windows beside their records."""

    timers: tuple[Timer, ...] = ()
    slices: tuple[int, ...] = ()  # of sliding windows: records that had left at each of the last ends

    def dealt(self, parts: Sequence[TaskSnapshot], own: int, tasks: int) -> _Kept:
        """The equal part of subtask `own` of so many; `parts`: of all former subtasks.  Timers of processing time are not dealt out."""
        ends = [(_of(part).slices, part.position.served - part.position.late) for part in parts]
        longest = max(len(slices) for slices, _ in ends)
        padded = [(*[(slices or (left,))[0]] * (longest - len(slices)), *slices) for slices, left in ends]
        totals = [sum(column) for column in zip(*padded, strict=True)]
        return _Kept((), tuple(total // tasks + (own < total % tasks) for total in totals))


def _of(snapshot: TaskSnapshot) -> _Kept:
    kept: _Kept = snapshot.kept.get("windows", _Kept())  # a task that had finished before the checkpoint keeps nothing
    return kept


class OperatorWindows(TaskPart):
    """The windows of one task.  A subclass defines when they end."""

    def __init__(self, slot: Slot, window: Window) -> None:
        self.slot = slot
        self.window = window
        self.content = HeldRecords(slot, window)

    @abstractmethod
    def timers(self) -> tuple[Timer, ...]:
        """The timers of a snapshot taken now."""

    def restored(self, snapshot: TaskSnapshot) -> None:
        """Timers of the future are armed with the windows that go on."""
        kept = _of(snapshot)
        self.content.restored(kept.slices)
        self.resume_timers(kept.timers)

    def resume_timers(self, timers: tuple[Timer, ...]) -> None:
        """These timers were state.  Watermarks are not: where they end windows there are no timers."""

    def before_barrier(self, checkpoint: int) -> int:
        """Rows that are buffered are merged into state (WindowBuffer#flush)."""
        return self.content.flush_ns()

    def leaves(self) -> bool:
        """A first stage holds nothing behind a barrier."""
        return self.window.early and self.content.leave()

    def cut(self, checkpoint: int, snapshot: TaskSnapshot) -> None:
        """Operators that have finished have no timers: what their windows held is lost, and no restore brings it back (FLIP-147)."""
        snapshot.kept["windows"] = _Kept(() if snapshot.finished else self.timers(), tuple(self.content.slices.ends))

    def waiting(self) -> WaitingBytes:
        return WaitingBytes(windows=self.content.records() * self.window.record_bytes)


# ---- Windows of processing time: what they hold leaves at their ends, fired by the task thread.
#
# Flink:  WindowOperator, InternalTimerServiceImpl#onProcessingTime.  All keys of a window share its end, so one mail
# fires them all.  Sessions end key by key: records that came within one step wait together, and leave when all of them
# have waited.  The records held are the plane's late outputs (rules L1-L9); which of them are due is decided here.


class ProcessingTimeWindows(OperatorWindows):
    """A window ends at the same instant in all subtasks."""

    def __init__(self, slot: Slot, window: Window) -> None:
        super().__init__(slot, window)
        self._due: list[Timer] = []  # windows that have ended, and whose mail has not run
        self._quiet = False  # no timer fires any more

    @property
    def has_pending_outputs(self) -> bool:
        """A first stage lets all go at the end; what other windows hold is lost with their timers."""
        return self.window.early

    def restored(self, snapshot: TaskSnapshot) -> None:
        """Operators that had finished at their snapshot are not opened again (FLIP-147): they have no timer."""
        super().restored(snapshot)
        if snapshot.finished:
            self.quiesce()

    def begin(self) -> None:
        """The task runs: what was due when it was restored fires at once."""
        for timer in self._due:
            self._post_in_time(timer)
        self._arm()

    def resume_timers(self, timers: tuple[Timer, ...]) -> None:
        self._due = [timer for timer in timers if timer.at_ns <= self.slot.now or self.window.hold_ns]

    def timers(self) -> tuple[Timer, ...]:
        return (*self._due, Timer(self.content.served(), self._next_end() + self.window.hold_ns))

    def quiesce(self) -> None:
        """Pending timers stay with what their windows hold (ProcessingTimeServiceImpl#quiesce)."""
        self._quiet = True
        self.slot.checks.timers_quiet(self.slot.task)

    def end_input(self) -> None:
        """The operator finishes.  What windows hold is lost with their timers (FLINK-18647); a first stage lets all go."""
        self.quiesce()
        if self.window.early:
            self.slot.thread.release_late_outputs(self.content.served())

    def _next_end(self) -> int:
        return next_end(self.window.step_ns, self.window.phase_ns, self.slot.now)

    def _arm(self) -> None:
        self.slot.context.env.call_in(self._next_end() - self.slot.now, self._end_window)

    def _end_window(self) -> None:
        """The records served so far are due; later ones belong to the next window, whenever the thread gets to the timer."""
        if self._quiet or self.slot.thread.stopped:
            return
        self.slot.checks.window_ended(self.slot.task)
        timer = Timer(self.content.served(), self.slot.now + self.window.hold_ns)
        if not (self.window.hold_ns and self._due and self._due[-1].records == timer.records):
            self._due.append(timer)
            self._post_in_time(timer)
        self._arm()

    def _post_in_time(self, timer: Timer) -> None:
        if timer.at_ns <= self.slot.now:
            self._post(timer)
        else:
            self.slot.context.env.call_in(timer.at_ns - self.slot.now, lambda: self._post(timer))

    def _post(self, timer: Timer) -> None:
        self.slot.thread.post(lambda: self._fire(timer))

    def _fire(self, timer: Timer) -> None:
        if self._quiet:
            return
        self._due.remove(timer)
        self.slot.checks.timer_fired(self.slot.task, timer.at_ns, timer.records)
        self.content.end(timer.records)
        self.content.work(self.content.flush_ns(), lambda: self.slot.thread.release_late_outputs(timer.records))


def attach(slot: Slot, _: TaskParts) -> ProcessingTimeWindows | None:
    window = slot.vertex.window
    return ProcessingTimeWindows(slot, window) if window is not None and window.time != "event" else None


FEATURE = TaskFeature(attach, Stage.WINDOWS)


# ---- Windows of event time: a watermark ends them, behind the records in front of it.
#
# Flink: InternalTimerServiceImpl#tryAdvanceWatermark.  A window takes what each channel brought before the event time of its end
# (`EventTimeWindow`).  Records of the next window that came before the marker leave as well: at most those of one interval of watermarks,
# and of the lateness that a source has beyond that of others.


class EventClock(Protocol):
    """The event time, as windows read it."""

    @property
    def idle(self) -> bool:
        """No watermark passes."""


class EventTimeWindows(OperatorWindows):
    """Windows that watermarks end.  They hold records by channel."""

    def __init__(self, slot: Slot, window: Window) -> None:
        super().__init__(slot, window)
        self.channels = slot.channels
        self.clock: EventClock | None = None  # what tells them the time
        ends = slot.context.scenario.job.event_time_windows[slot.vertex.name]
        self.contents = WindowContents(ends.step_ns, ends.phase_ns, self.channels, ends.hold_ns)

    @property
    def has_pending_outputs(self) -> bool:
        return not self.drops

    @property
    def drops(self) -> bool:
        """While a stream is idle the last watermark does not pass either (RecordWriterOutput#emitWatermark)."""
        return self.clock is not None and self.clock.idle

    def timers(self) -> tuple[Timer, ...]:
        """There are no timers: records wait for the next watermark, and watermarks are not part of a snapshot."""
        return ()

    def note(self, channel: int, time_ns: int) -> None:
        """A watermark arrives."""
        self.contents.note(channel, time_ns, self._read()[channel])

    def fall_idle(self, channel: int, time_ns: int) -> None:
        """A channel is idle at this event time: its records wait for no watermark of it."""
        self.contents.fall_idle(channel, time_ns, self._read()[channel])

    def fire(self, time_ns: int) -> bool:
        """Let the records of windows go that have ended; True: there are some, and the plane reports when they are written."""
        later = self.contents.fire(time_ns, self._read())
        position = self.slot.context.plane.position(self.slot.task)
        if later is None:
            return False
        until = position.served - later
        self.content.end(until)
        if position.late <= later:
            return False

        def flushed() -> None:
            self.slot.checks.records_left(self.slot.task, until)
            self.slot.thread.release_late_outputs(until)
            self.slot.context.plane.report_written(self.slot.task)

        self.content.work(self.content.flush_ns(), flushed)
        return True

    def end_input(self) -> None:
        """The last watermark ends all windows."""
        if not self.drops:
            self.slot.thread.release_late_outputs(self.slot.context.plane.position(self.slot.task).served)

    def _read(self) -> dict[int, int]:
        """Records of each channel."""
        return dict(
            zip(self.channels, self.slot.context.plane.position(self.slot.task).records_out.tolist(), strict=True)
        )


def attach_event_time_windows(slot: Slot, _: TaskParts) -> EventTimeWindows | None:
    window = slot.vertex.window
    return EventTimeWindows(slot, window) if window is not None and window.time == "event" else None


EVENT_TIME_WINDOWS_FEATURE = TaskFeature(attach_event_time_windows, Stage.WINDOWS)


# ---- The event time of a task that reads: the least watermark of its input goes on, behind what it ends.
#
# Flink: StatusWatermarkValve, MailboxWatermarkProcessor.  A watermark goes on when everything it ends is fired.
# Only watermarks that end a window of the job are sent, each as a marker.


class EventTime(TaskPart):
    """The event time of a task with inputs.  `windows`: those that it ends."""

    def __init__(self, slot: Slot, windows: EventTimeWindows | None) -> None:
        self.slot = slot
        self.windows = windows
        if windows is not None:
            windows.clock = self
        self.valve = StatusWatermarkValve(slot.channels)
        self._open = set(slot.channels)  # channels whose data goes on
        self._sent_ns = 0
        self._said_idle = False

    @property
    def idle(self) -> bool:
        """Whether all inputs are idle.  No watermark passes then, not even the last one of a source (RecordWriterOutput#emitWatermark)."""
        return self.valve.idle

    def watermark_arrived(self, channel: int, number: int) -> None:
        """A watermark was processed on a channel, or a status of it."""
        self.slot.checks.watermark_arrived(self.slot.task, channel, number)
        if number == IDLE:
            if self.windows is not None:
                self.windows.fall_idle(channel, self.valve.time_ns)
            self._go_on(risen=self.valve.fall_idle(channel))
        elif number == ACTIVE:
            if self.windows is not None:
                self.windows.contents.wake(channel)
            self.valve.wake(channel)
            self._go_on(risen=False)
        else:
            if self.windows is not None:
                self.windows.note(channel, number)
            self._go_on(risen=self.valve.advance(channel, number))

    def channel_ended(self, channel: int) -> None:
        """The data of a channel has ended: the channel holds no watermark back."""
        self._open.discard(channel)
        if not self.valve.is_idle(channel):
            self.watermark_arrived(channel, LAST_WATERMARK)

    def _go_on(self, *, risen: bool) -> None:
        """Windows end before the watermark leaves; the end of the last channel fires what is left when the operator finishes."""
        if not (risen and self._open and self.windows is not None and self.windows.fire(self.valve.time_ns)):
            self.forward()

    def outputs_written(self, *, at_end: bool) -> None:
        """All that the watermark ends is written."""
        self.forward()

    def forward(self) -> None:
        """The watermark goes on, and the status behind it."""
        if self._said_idle and not self.valve.idle:
            self._send(ACTIVE)
            self._said_idle = False
        if self.valve.time_ns > self._sent_ns and self._open:
            self._sent_ns = self.valve.time_ns
            self._send(self._sent_ns)
        if self.valve.idle and not self._said_idle:
            self._send(IDLE)
            self._said_idle = True

    def _send(self, number: int) -> None:
        self.slot.checks.watermark_sent(self.slot.task, number)
        self.slot.context.plane.forward(self.slot.task, Marker(number, series=WATERMARKS))


def attach_event_time(slot: Slot, operator: TaskParts) -> EventTime | None:
    if not slot.context.scenario.job.event_time_windows or slot.vertex.source is not None:
        return None
    return EventTime(slot, operator.of(EventTimeWindows))


EVENT_TIME_FEATURE = TaskFeature(attach_event_time, Stage.EVENT_TIME)
