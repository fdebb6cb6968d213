"""Windows of processing time: what they hold leaves at their ends, fired by the task thread.

Flink: WindowOperator, InternalTimerServiceImpl#onProcessingTime.  All keys of a window share its end, so one mail fires them all.
Sessions end key by key: records that came within one step wait together, and leave when all of them have waited.
The records held are the plane's late outputs (rules L1-L10); which of them are due is decided here.
"""

from __future__ import annotations

from sim.model.job import Window
from sim.protocol.event_time import next_end
from sim.runtime.contents import TaskSnapshot
from sim.runtime.task.operator.windows.windows import OperatorWindows, Timer
from sim.runtime.task.part import PartsPort, Stage, TaskFeature
from sim.runtime.task.slot import Slot


class ProcessingTimeWindows(OperatorWindows):
    """A window ends at the same instant in all subtasks."""

    def __init__(self, slot: Slot, window: Window) -> None:
        super().__init__(slot, window)
        self._due: list[Timer] = []  # windows that have ended, and whose mail has not run
        self._quiet = False  # no timer fires any more

    @property
    def owes_outputs(self) -> bool:
        """Bundles are finished at the end; what other windows hold is lost with their timers."""
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

    def go_on(self, timers: tuple[Timer, ...]) -> None:
        self._due = [timer for timer in timers if timer.at_ns <= self.slot.now or self.window.hold_ns]

    def timers(self) -> tuple[Timer, ...]:
        return (*self._due, Timer(self.content.served(), self._next_end() + self.window.hold_ns))

    def quiesce(self) -> None:
        """Pending timers stay with what their windows hold (ProcessingTimeServiceImpl#quiesce)."""
        self._quiet = True
        self.slot.checks.timers_quiet(self.slot.task)

    def end_input(self) -> None:
        """The operator finishes.  What windows hold is lost with their timers (FLINK-18647); bundles are finished."""
        self.quiesce()
        if self.window.early:
            self.slot.thread.let_go(self.content.served())

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
        self.content.work(self.content.flush_ns(), lambda: self.slot.thread.let_go(timer.records))


def attach(slot: Slot, _: PartsPort) -> ProcessingTimeWindows | None:
    window = slot.vertex.window
    return ProcessingTimeWindows(slot, window) if window is not None and window.time != "event" else None


FEATURE = TaskFeature(attach, Stage.WINDOWS)
