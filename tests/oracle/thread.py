"""The task thread: what one turn does, service, polling (rules T1-T12, W1)."""

from __future__ import annotations

from sim.model.randomness import draw
from sim.plane.interface import Marker, NoticeKind, ThreadState, Wait
from tests.oracle.parts import fold, quantile


def waits(task):
    """W3."""
    return Wait.MAILBOX if task.log is None else task.log.waits


def due(task, i):
    """W1: when record i of a source may be read."""
    return 0 if task.log is None else task.log.due(i)


class Thread:
    """The threads of all tasks."""

    def __init__(self, plane):
        self.plane = plane

    def enter(self, task, state):
        """T12: every instant belongs to the state entered last."""
        if state == task.state:
            return
        task.spent[task.state] += self.plane.now - task.since
        task.since = self.plane.now
        task.state = state
        if self.plane.spec.digests:
            task.digest = fold(task.digest, self.plane.now, state)

    def turn(self, task):
        """The work item TURN."""
        if task.in_service or task.held or task.halted:  # T1
            return
        if task.emission:  # T2
            if not self.plane.output.emit(task):
                return
            task.passed_over = self.is_passed_over(task)
        if not self.plane.late.write(task):  # L3
            return
        before = self.plane.reports
        if task.reports_written:  # L9
            task.reports_written = False
            self.plane.report(NoticeKind.WRITTEN, task)
        elif task.waits_for_late:
            self.plane.late.wait(task)
        else:
            self.continue_from(task)
        # T10
        if self.plane.reports > before or (task.interrupted and task.state in (ThreadState.IDLE, ThreadState.SOFT)):
            self.plane.wake(task)
        self.plane.late.expect(task)

    def continue_from(self, task):
        """T3 to T9 until the thread has something to do, nothing to do, or something to report."""
        if task.recovering and self.plane.spec.opens_at_once:  # P9
            self.plane.restarts.open_at_once(task)
            return
        before = self.plane.reports
        while True:
            if task.behind:  # T3
                task.behind = False
            elif task.interrupted and not (task.passed_over and self.has_due(task)):  # T3, W3
                task.interrupted = False
                self.plane.report(NoticeKind.INTERRUPTED, task)
                return
            while task.priority:  # T4
                self.plane.markers.process(*task.priority.popleft())
                if self.plane.reports > before:
                    return
            if not task.output_available and waits(task) != Wait.LOCK:  # T5, W3
                self.enter(task, ThreadState.SOFT)
                return
            if not task.gates:
                self.serve_source(task)
                return
            serve = self.serve_joined if task.vertex.joined else self.serve_input
            if not serve(task) or self.plane.reports > before:
                return

    def serve_source(self, task):
        """T6."""
        if task.recovering:  # P7
            self.plane.restarts.finish(task)
            return
        if task.log is not None and task.log.total == task.served:
            if not task.exhausted:
                task.exhausted = True
                self.plane.report(NoticeKind.EXHAUSTED, task)
            else:
                self.enter(task, ThreadState.IDLE)
            return
        at = due(task, task.served)
        if at <= self.plane.now or waits(task) == Wait.POLL:
            if self.plane.identities:
                task.serving = (task.number, task.served)
            self.begin_service(task, 0, max(at, self.plane.now))
        else:
            task.passed_over = False
            self.enter(task, ThreadState.IDLE)
            self.set_alarm(task, at, "wake-up")

    def has_due(self, task):
        """Whether a source has a record to emit at once."""
        return (task.log is None or task.log.total != task.served) and due(task, task.served) <= self.plane.now

    def is_passed_over(self, task):
        """W3: a mail waits, and the source takes the lock again before the mail has it."""
        if task.log is None or task.log.waits != Wait.LOCK or not task.interrupted:
            return False
        return (
            draw(self.plane.stream("lock", task.vertex.name, task.subtask), task.served)
            >= task.log.mail_lock_probability_q32
        )

    def serve_input(self, task):
        """T7 to T9; True: a marker was processed and the turn continues at T3."""
        while True:
            for gate in task.gates:
                if self.take_record(task, gate):
                    return False
            for gate in task.gates:  # D2
                if not gate.ready:
                    self.plane.debloat.pause(gate)
            if task.recovering and self.plane.restarts.open_gates(task):
                return False
            if not task.ready_gates:
                self.enter(task, ThreadState.IDLE)
                return False
            if self.poll(task, task.ready_gates[0]):
                return True

    def serve_joined(self, task):
        """T9 of joined inputs; True: a marker was processed and the turn continues at T3."""
        last = task.vertex.input_of(task.last_used).stop if task.last_used >= 0 else 0
        for _ in task.gates:
            inlet = task.vertex.input_of(last % len(task.gates))
            gates, last = task.gates[inlet.start : inlet.stop], inlet.stop
            while True:
                used = next((gate for gate in gates if self.take_record(task, gate)), None)
                if used is not None:
                    task.last_used = used.position
                    return False
                for gate in gates:
                    if not gate.ready:
                        self.plane.debloat.pause(gate)
                        if gate.shut and self.plane.restarts.open_gate(gate):
                            return False
                ready = next((gate for gate in task.ready_gates if gate.position in inlet), None)
                if ready is None:
                    break
                if self.poll(task, ready):
                    task.last_used = ready.position
                    return True
        self.enter(task, ThreadState.IDLE)
        return False

    def take_record(self, task, gate):
        """T7: begin the service of the next record of the current buffer if it is here as a whole; else the buffer is used up (T8)."""
        data = gate.current
        if data is None:
            return False
        channel = data.channel
        end = channel.consumed + channel.fragment + channel.size(channel.records_in)
        if end > channel.taken:
            self.finish_current(data)
            return False
        channel.consumed, channel.fragment = end, 0
        if self.plane.identities:
            task.serving = channel.history[channel.records_in]
        channel.records_in += 1
        channel.ever_read += 1
        if end == data.end:
            self.finish_current(data)
        self.begin_service(task, channel.gate.position, self.plane.now)
        return True

    def finish_current(self, data):
        data.channel.gate.current = None
        self.plane.receiving.recycle(data)

    def poll(self, task, gate):
        """T9: the next element of a gate, round robin over its channels; True: it was a marker, and is processed."""
        task.ready_gates.remove(gate)
        channel = gate.ready.popleft()
        element = self.take_from(channel)
        if self.pollable(channel):
            gate.ready.append(channel)
        if gate.ready:
            task.ready_gates.append(gate)
        self.plane.debloat.polled(gate, element)
        if isinstance(element, Marker):
            self.plane.markers.process(channel, element)
            return True
        gate.current = element
        return False

    def pollable(self, channel):
        """R4: has the channel an element for its reader?"""
        if channel.recovered or channel.gate.shut:
            return bool(channel.recovered)
        return self.plane.sending.sendable(channel) if channel.local else bool(channel.received)

    def take_from(self, channel):
        """T9: the first element of a channel; on a local channel sending, arrival and taking are one."""
        if channel.recovered:
            return self.take(channel, channel.recovered.popleft(), folds=1)
        element = self.plane.sending.take_head(channel) if channel.local else channel.received.popleft()
        if isinstance(element, Marker):
            if channel.local:
                self.plane.receiving.mark(channel, element)
            return element
        if channel.local:
            channel.arrived = element.end
        return self.take(channel, element, folds=1 + channel.local)

    def take(self, channel, data, folds):
        """T9, G1: a data element is taken, on a local channel it also arrives."""
        channel.taken = data.end
        channel.reader.buffers_in += 1
        if self.plane.spec.digests:
            for _ in range(folds):
                channel.digest = fold(channel.digest, self.plane.now, data.end, data.length)
        return data

    def begin_service(self, task, gate, begin_ns):
        """T11; the thread is busy from now on (W3)."""
        num, den = task.slow
        duration = max(1, quantile(task.vertex.service[gate], task.service, task.served) * num // den)
        task.in_service = True
        self.enter(task, ThreadState.BUSY)
        self.set_alarm(task, begin_ns + duration, "served")

    def end_service(self, task):
        """T11: write the outputs, then take the next turn.  A refused segment makes the thread HARD."""
        task.in_service = False
        if self.plane.identities and task.serving is not None:
            task.served_records.append(task.serving)
        task.served += 1
        task.ever_served += 1
        if task.vertex.lag is not None:
            self.plane.late.add(task)
        else:
            self.write_outputs(task, task.served - 1, task.serving)
        self.plane.append_work(task)

    def write_outputs(self, task, k, record):
        """O5, T2: the outputs of record k; False: a segment was refused and the task is HARD."""
        self.plane.output.plan(task, k)
        task.writing = record
        if self.plane.output.emit(task):
            return True
        self.enter(task, ThreadState.HARD)
        return False

    def set_alarm(self, task, time, kind):
        """E1: one pending event per task."""
        self.drop_alarm(task)
        task.alarm = self.plane.at(time, task.number, kind, task)

    def drop_alarm(self, task):
        if task.alarm is not None:
            self.plane.drop(task.alarm)
            task.alarm = None
