"""Outputs that leave after the service of their record (rules L1-L9)."""

from __future__ import annotations

from sim.plane.interface import NoticeKind, ThreadState
from tests.oracle.parts import Late, quantile


class LateOutputs:
    """The late outputs of all tasks."""

    def __init__(self, plane):
        self.plane = plane

    def add(self, task):
        """L1: the record just served waits; in hand, if there is no room."""
        late = Late(task.served - 1, task.serving)
        if not self.room(task):
            task.in_hand.append(late)
            return
        self.enter(task, late)

    def room(self, task):
        lag = task.vertex.lag
        return lag is None or not lag.times or len(task.late) < lag.capacity

    def enter(self, task, late):
        """L2."""
        lag = task.vertex.lag
        if lag is not None and lag.times:
            time = quantile(lag.times, self.plane.stream("lag", task.vertex.name, task.subtask), late.ordinal)
            late.ready = max(self.plane.now + time, task.late[-1].ready if task.late else 0)
        task.late.append(late)

    def ready(self, task, late):
        return late.ready <= self.plane.now if self.timed(task) else late.ordinal < task.release_late_outputs

    def timed(self, task):
        return task.vertex.lag is not None and bool(task.vertex.lag.times)

    def write(self, task):
        """L3; False: the turn ends: HARD, with a record in hand, firing, or with a notice."""
        while True:
            while task.in_hand and self.room(task):
                self.enter(task, task.in_hand.popleft())
            if not task.late or not self.ready(task, task.late[0]):
                break
            if self.yields_now(task) or self.fire(task, task.late[0]):
                return False
            if not self.write_first(task):
                return False
        if not task.in_hand:
            return True
        self.plane.thread.enter(task, ThreadState.BUSY)
        self.plane.thread.set_alarm(task, task.late[0].ready, "wake-up")
        return False

    def write_first(self, task):
        """The first late record is late no more; False: HARD inside its outputs."""
        late = task.late.popleft()
        return self.plane.thread.write_outputs(task, late.ordinal, late.record)

    def fire(self, task, late):
        """L7: the thread works for the outputs of a record that is ready; False: that takes no time."""
        lag, k = task.vertex.lag, late.ordinal
        if lag is None or lag.firing_ns == 0:
            return False
        num, den = lag.outputs
        outputs = (k + 1) * num // den - k * num // den
        if outputs == 0:
            return False
        slow_num, slow_den = task.slow
        task.in_service = True
        self.plane.thread.enter(task, ThreadState.BUSY)
        self.plane.thread.set_alarm(
            task, self.plane.now + max(1, outputs * lag.firing_ns * slow_num // slow_den), "fired"
        )
        return True

    def end_firing(self, task):
        """L7."""
        task.in_service = False
        self.write_first(task)
        self.plane.append_work(task)

    def yields_now(self, task):
        """L8: mails and markers with priority pass before the next record is fired; True: a notice ends the turn."""
        if task.vertex.lag is None or not task.vertex.lag.yields:
            return False
        before = self.plane.reports
        if task.interrupted:
            task.interrupted = task.behind = False
            self.plane.report(NoticeKind.INTERRUPTED, task)
        while task.priority and not task.waits_for_late and self.plane.reports == before:
            self.plane.markers.process(*task.priority.popleft())
        if self.plane.reports > before:
            self.plane.wake(task)
            return True
        return False

    def expect(self, task):
        """L4."""
        if (
            task.late
            and self.timed(task)
            and not task.in_service
            and task.state in (ThreadState.IDLE, ThreadState.SOFT)
        ):
            self.plane.thread.set_alarm(task, task.late[0].ready, "wake-up")

    def wait(self, task):
        """L6."""
        if task.interrupted:
            task.interrupted = task.behind = False
            self.plane.report(NoticeKind.INTERRUPTED, task)
        elif task.late:
            self.plane.thread.enter(task, ThreadState.IDLE)
        else:
            task.waits_for_late = False
            self.plane.report(NoticeKind.DELAYED_OUTPUTS_WRITTEN, task)

    def release_late_outputs(self, task, until):
        """L5."""
        task.release_late_outputs = max(task.release_late_outputs, until)
        self.plane.wake_if_idle_or_soft(task)

    def be_late_again(self, task, late):
        """L5: the task was started with so many late records."""
        for k in range(task.served - late, task.served):
            again = Late(k, task.served_records[k])
            if self.room(task):
                self.enter(task, again)
            else:
                task.in_hand.append(again)
