"""Tasks: counting markers, pending outputs, and the turns of task threads."""

from sim.plane.text.basics import (
    BITS,
    BLOCKING,
    BUSY,
    COUNT_HEAD,
    COUNTS,
    DATA,
    FINAL,
    FIRING,
    FLOATING,
    HARD,
    IDLE,
    LOCK,
    LOOSE,
    NOTE_ARRIVED,
    NOTE_EXHAUSTED,
    NOTE_NONE_LATE,
    NOTE_RECOVERED,
    NOTE_WRITTEN,
    ONE_BY_ONE,
    OWNED,
    POLL,
    READING,
    RESUME,
    SOFT,
    TIMED,
    draw,
)
from sim.plane.text.channels import Channels


class Tasks(Channels):
    """Markers counted, pending outputs, and the turns of task threads."""

    __slots__ = ()

    # ---- Markers that a task has processed are counted per gate and number (M4).

    def process_marker(self, c: int, e: int) -> None:
        """Process a marker of channel c that has reached the task."""
        element = self.elements[e]
        series = element.kind
        number = element.number
        traits = element.traits
        self.free_marker(e)
        ch = self.channels[c]
        if (traits & BLOCKING) != 0:
            ch.held_back = 1
        if number <= self.words[self.gates[ch.gate].settled + series]:
            if (traits & BLOCKING) != 0:  # but not what an earlier marker holds back
                self.resume_sender(c)
            return
        if (traits & FINAL) != 0:
            self.close_channel(c)
        self.count_marker(c, series, number)
        if (traits & FINAL) != 0:
            self.count_closed(c)

    def count_marker(self, c: int, series: int, number: int) -> None:
        """Count a marker of channel c, and report the first and the last one of its number.  Report each marker of the upper series."""
        words = self.words
        gate = self.gates[self.channels[c].gate]
        if series >= ONE_BY_ONE:
            closed = 0
            if gate.closed == gate.channels:
                closed = 1
            self.report(NOTE_ARRIVED, gate.task, gate.place, series, number, c, 1, closed)
            return
        first = 0
        at = self.find_count(self.channels[c].gate, series, number)
        if at < 0:
            first = 1
            at = self.open_count(self.channels[c].gate, series, number)
        self.add_to_count(at, self.channels[c].place)
        last = 0
        if words[at + 2] == gate.channels:
            last = 1
            self.drop_count(self.channels[c].gate, at)
        if first == 1 or last == 1:
            self.report(NOTE_ARRIVED, gate.task, gate.place, series, number, c, first, last)

    def find_count(self, i: int, series: int, number: int) -> int:
        """Return the index in `words` of the open count of gate i for this number, or -1 if there is none."""
        gate = self.gates[i]
        for k in range(gate.open_counts):
            at = gate.counts + k * gate.count_words
            if self.words[at] == series and self.words[at + 1] == number:
                return at
        return -1

    def open_count(self, i: int, series: int, number: int) -> int:
        """Open a count on gate i, and return its index in `words`.  Closed channels are counted at once.

        If there are too many counts, the oldest one is dropped, and its number becomes obsolete.
        """
        words = self.words
        gate = self.gates[i]
        if gate.open_counts == COUNTS:
            words[gate.settled + words[gate.counts]] = words[gate.counts + 1]
            self.drop_count(i, gate.counts)
        at = gate.counts + gate.open_counts * gate.count_words
        gate.open_counts += 1
        words[at] = series
        words[at + 1] = number
        words[at + 2] = gate.closed
        for k in range(gate.count_words - COUNT_HEAD):
            words[at + COUNT_HEAD + k] = words[gate.closed_bits + k]
        return at

    def drop_count(self, i: int, at: int) -> None:
        """Drop the count at index `at` of gate i, and close the gap in the list."""
        words = self.words
        gate = self.gates[i]
        gate.open_counts -= 1
        end = gate.counts + gate.open_counts * gate.count_words
        while at < end:
            words[at] = words[at + gate.count_words]
            at += 1

    def add_to_count(self, at: int, place: int) -> bool:
        """Count a channel once.  Return whether it had not been counted."""
        i = at + COUNT_HEAD + place // BITS
        bit = 1 << (place % BITS)
        if (self.words[i] & bit) != 0:
            return False
        self.words[i] |= bit
        self.words[at + 2] += 1
        return True

    def close_channel(self, c: int) -> None:
        """Close a channel after a FINAL marker: it counts for every later number."""
        gate = self.gates[self.channels[c].gate]
        place = self.channels[c].place
        i = gate.closed_bits + place // BITS
        bit = 1 << (place % BITS)
        if (self.words[i] & bit) == 0:
            self.words[i] |= bit
            gate.closed += 1

    def count_closed(self, c: int) -> None:
        """Add a closed channel to every open count, and report those that are complete, oldest first."""
        words = self.words
        i = self.channels[c].gate
        gate = self.gates[i]
        k = 0
        while k < gate.open_counts:
            at = gate.counts + k * gate.count_words
            if self.add_to_count(at, self.channels[c].place) and words[at + 2] == gate.channels:
                series = words[at]
                number = words[at + 1]
                self.drop_count(i, at)
                self.report(NOTE_ARRIVED, gate.task, gate.place, series, number, c, 0, 1)
            else:
                k += 1

    def settle_gate(self, i: int, series: int, number: int) -> None:
        """Make numbers up to this one obsolete on the gate (M5)."""
        words = self.words
        gate = self.gates[i]
        words[gate.settled + series] = number
        k = 0
        while k < gate.open_counts:
            at = gate.counts + k * gate.count_words
            if words[at] == series and words[at + 1] <= number:
                self.drop_count(i, at)
            else:
                k += 1

    # ---- Outputs that leave after the service of their record (L1-L9).

    def become_late(self, t: int) -> None:
        """Delay the outputs of the record just served.  If the capacity is used up, the thread keeps the record in hand (L1, L2)."""
        task = self.tasks[t]
        if task.lag == TIMED:
            if task.late == task.lag_capacity:
                task.in_hand = 1
            else:
                self.set_ready(t, task.served - 1)
        task.late += 1

    def set_ready(self, t: int, k: int) -> None:
        """Compute the time at which the outputs of record k are ready.  They follow the pending outputs (L2)."""
        task = self.tasks[t]
        ready = self.g.now + self.quantile(task.lag_table, task.lag_n, task.lag_stride, task.lag_offset, k)
        if ready < task.lag_last:
            ready = task.lag_last
        task.lag_last = ready
        i = task.lag_first + task.late
        if i >= task.lag_capacity:
            i -= task.lag_capacity
        self.words[task.lag_ring + i] = ready

    def write_late(self, t: int) -> bool:
        """Write the pending outputs that are ready (L3).

        Return False if this ends the turn: the thread waits for a segment, has a record in hand, fires, or has a notice.
        """
        task = self.tasks[t]
        while True:
            while task.in_hand > 0 and task.late - task.in_hand < task.lag_capacity:
                in_hand = task.in_hand
                task.late -= in_hand
                self.set_ready(t, task.served - in_hand)
                task.late += in_hand
                task.in_hand = in_hand - 1
            if task.late == 0 or not self.first_ready(t):
                break
            if task.yields == 1 and self.yields_now(t):
                return False
            if task.firing_ns > 0 and self.begin_firing(t):
                return False
            if task.lag == TIMED:
                task.lag_first += 1
                if task.lag_first == task.lag_capacity:
                    task.lag_first = 0
            task.late -= 1
            if not self.continue_writing(t):
                self.become(t, HARD)
                return False
        if task.in_hand > 0:
            self.become(t, BUSY)
            self.schedule(t, self.words[task.lag_ring + task.lag_first])
            return False
        return True

    def begin_firing(self, t: int) -> bool:
        """Start the firing of the first record with pending outputs (L7).  Return False if the record has no outputs."""
        task = self.tasks[t]
        k = task.served - task.late
        outputs = (k + 1) * task.fired_num // task.fired_den - k * task.fired_num // task.fired_den
        if outputs == 0:
            return False
        ns = outputs * task.firing_ns
        if task.slow_num != task.slow_den:
            ns = ns * task.slow_num // task.slow_den
        if ns < 1:
            ns = 1
        self.become(t, BUSY)
        task.serving = FIRING
        self.schedule(t, self.g.now + ns)
        return True

    def end_firing(self, t: int) -> None:
        """End a firing, and write its outputs (L7).  The caller makes the turn that follows."""
        task = self.tasks[t]
        task.serving = 0
        task.late -= 1
        if not self.continue_writing(t):
            self.become(t, HARD)

    def yields_now(self, t: int) -> bool:
        """Process mails and priority markers before the next record is fired (L8).  Return whether a notice ends the turn."""
        task = self.tasks[t]
        if task.interrupted == 1:
            self.report_safe(t)
        while self.g.noted == 0 and task.urgent_head >= 0 and (task.waits_for_late & 1) == 0:
            e = task.urgent_head
            task.urgent_head = self.elements[e].next
            self.process_marker(self.elements[e].channel, e)
        if self.g.noted > 0:
            self.append_turn(t)
            return True
        return False

    def first_ready(self, t: int) -> bool:
        """Return whether the first pending output is ready or released (L3)."""
        task = self.tasks[t]
        if task.lag == TIMED:
            return self.words[task.lag_ring + task.lag_first] <= self.g.now
        return task.served - task.late < task.released_until

    def expect_late(self, t: int) -> None:
        """Schedule the time at which the next pending output is ready, if the thread waits (L4)."""
        task = self.tasks[t]
        if task.lag == TIMED and task.serving == 0 and (task.state == IDLE or task.state == SOFT):
            self.schedule(t, self.words[task.lag_ring + task.lag_first])

    def release_late_outputs(self, t: int, until: int) -> None:
        """Release the outputs of the first `until` records (L5)."""
        task = self.tasks[t]
        if until > task.released_until:
            task.released_until = until
        self.wake_between_records(t)

    def wait_for_late(self, t: int) -> None:
        """Let the task process nothing else until its last pending output is written (L6)."""
        task = self.tasks[t]
        if (task.waits_for_late & 1) == 0:
            task.waits_for_late += 1
        self.wake_between_records(t)

    def report_written(self, t: int) -> None:
        """Request a notice when all released outputs are written (L9)."""
        task = self.tasks[t]
        if task.waits_for_late < 2:
            task.waits_for_late += 2
        self.wake_between_records(t)

    def continue_waiting(self, t: int) -> None:
        """Report that released outputs are written (L9), or process only mails until the last pending output is written (L6)."""
        task = self.tasks[t]
        if task.waits_for_late >= 2:
            task.waits_for_late -= 2
            self.report_task(NOTE_WRITTEN, t, -1)
        elif task.interrupted == 1:
            self.report_safe(t)
        elif task.late > 0:
            self.become(t, IDLE)
        else:
            task.waits_for_late = 0
            self.report_task(NOTE_NONE_LATE, t, -1)

    def be_late_again(self, t: int) -> None:
        """Delay the pending outputs of a restored task again, from now on (L5)."""
        task = self.tasks[t]
        if task.lag == TIMED:
            n = task.late
            task.late = 0
            while task.late < n and task.late < task.lag_capacity:
                self.set_ready(t, task.served - n + task.late)
                task.late += 1
            task.in_hand = n - task.late
            task.late = n

    # ---- A task that was started anew reads its recovered input, then requests its partitions (P6, P7).

    def poll_recovered(self, c: int) -> None:
        """Take the next segment of recovered input as the current buffer.  It belongs to no pool."""
        ch = self.channels[c]
        before = ch.taken
        ch.taken = before + self.g.segment_bytes
        if ch.taken > ch.recovered:
            ch.taken = ch.recovered
        ch.current = READING
        if ch.local == 0:
            ch.current = READING | LOOSE
        if self.g.digests == 1:
            self.fold_channel(c, ch.taken, ch.taken - before)

    def open_gates(self, t: int, first: int, last: int) -> bool:
        """Let the gates from `first` to `last` - 1 request their partitions if they have no recovered input left.

        Return whether all gates of the task are open, so that RECOVERED is reported.
        """
        task = self.tasks[t]
        for i in range(first, last):
            gate = self.gates[i]
            if gate.shut == 1 and (gate.ready_head < 0 or self.g.opens_at_once == 1):
                gate.shut = 0
                for k in range(gate.first_channel, gate.last_channel):
                    self.notify_sender(self.words[k], RESUME, 0)
        for i in range(task.first_gate, task.last_gate):
            if self.gates[i].shut == 1:
                return False
        task.recovering = 0
        self.report_task(NOTE_RECOVERED, t, -1)
        return True

    # ---- The turns of a task's thread, and the end of a service (T1-T11).

    def turn(self, t: int) -> None:
        """Execute TURN t, a turn of the task's thread.  A turn that reported a notice is repeated (T10)."""
        task = self.tasks[t]
        task.listed = 0
        if task.serving > 0 or task.held == 1:
            return
        if task.emitting == 1:
            if not self.continue_writing(t):
                return
            if task.source == LOCK:
                self.pass_over(t)
        if task.late > 0 and not self.write_late(t):
            return
        if task.waits_for_late > 0:
            self.continue_waiting(t)
        else:
            self.run(t)
        if self.g.noted > 0 or (task.interrupted == 1 and (task.state == IDLE or task.state == SOFT)):
            self.append_turn(t)
        if task.late > 0:
            self.expect_late(t)

    def run(self, t: int) -> None:
        """Continue the turn from T3 on, until the thread waits, serves a record, or has reported a notice."""
        g = self.g
        task = self.tasks[t]
        if task.recovering == 1 and g.opens_at_once == 1:
            self.open_gates(t, task.first_gate, task.last_gate)
            return
        while g.noted == 0:
            if task.behind == 1:
                task.behind = 0
            elif task.interrupted == 1 and (task.passed_over == 0 or not self.has_due(t)):
                self.report_safe(t)
                return
            while task.urgent_head >= 0:
                e = task.urgent_head
                task.urgent_head = self.elements[e].next
                self.process_marker(self.elements[e].channel, e)
                if g.noted > 0:
                    return
            if not self.available(t) and task.source != LOCK:
                self.become(t, SOFT)
                return
            if task.source > 0:
                self.read_source(t)
                return
            if task.joined == 1:
                if self.read_joined(t):
                    return
            elif self.read_input(t):
                return

    def read_source(self, t: int) -> None:
        """Read the next record of a source (T6)."""
        task = self.tasks[t]
        if task.recovering == 1:
            self.open_gates(t, 0, 0)
        elif task.served == task.total:
            if task.exhausted == 0:
                task.exhausted = 1
                self.report_task(NOTE_EXHAUSTED, t, -1)
            else:
                self.become(t, IDLE)
        elif task.due <= self.g.now:
            self.begin_service(t, task.service_table, task.service_n, self.g.now)
        elif task.source == POLL:
            self.begin_service(t, task.service_table, task.service_n, task.due)
        else:
            task.passed_over = 0
            self.become(t, IDLE)
            self.schedule(t, task.due)

    def has_due(self, t: int) -> bool:
        """Return whether a source has a record to emit at once."""
        task = self.tasks[t]
        return task.served != task.total and task.due <= self.g.now

    def pass_over(self, t: int) -> None:
        """Draw at random whether a waiting mail gets the checkpoint lock now, or the source takes it again (W3)."""
        task = self.tasks[t]
        task.passed_over = 0
        if task.interrupted == 1 and draw(task.lock_stride, task.lock_offset, task.served) >= task.lock_wins:
            task.passed_over = 1

    def read_input(self, t: int) -> bool:
        """Read input (T7-T9).  Return True when the turn ends, False when a marker was processed."""
        task = self.tasks[t]
        while True:
            c = task.current
            if c >= 0:
                if self.take_record(t, c):
                    if self.channels[c].current == 0:
                        task.current = -1
                    return True
                task.current = -1
            if self.g.period > 0:
                for i in range(task.first_gate, task.last_gate):
                    self.pause_gate(i)
            if task.recovering == 1 and self.open_gates(t, task.first_gate, task.last_gate):
                return True
            i = task.gate_head
            if i < 0:
                self.become(t, IDLE)
                return True
            e = self.poll(t, i)
            if e >= 0:
                self.process_marker(self.elements[e].channel, e)
                return False
            task.current = self.gates[i].current

    def read_joined(self, t: int) -> bool:
        """Read joined inputs (T9).  Return True when the turn ends, False when a marker was processed."""
        task = self.tasks[t]
        last = self.gates[task.last_used].input_end
        for _ in range(task.first_gate, task.last_gate):
            first = last
            if first == task.last_gate:
                first = task.first_gate
            last = self.gates[first].input_end
            while True:
                if self.take_joined(t, first, last):
                    return True
                for k in range(first, last):
                    self.pause_gate(k)
                    if self.gates[k].shut == 1 and self.gates[k].ready_head < 0 and self.open_gates(t, k, k + 1):
                        return True
                i = self.ready_gate(t, first, last)
                if i < 0:
                    break
                e = self.poll(t, i)
                if e >= 0:
                    task.last_used = i
                    self.process_marker(self.elements[e].channel, e)
                    return False
        self.become(t, IDLE)
        return True

    def take_joined(self, t: int, first: int, last: int) -> bool:
        """Read the current buffer of the input that has these gates (T7, T8).  Return whether a service begins."""
        for i in range(first, last):
            gate = self.gates[i]
            c = gate.current
            if c >= 0:
                if self.take_record(t, c):
                    if self.channels[c].current == 0:
                        gate.current = -1
                    self.tasks[t].last_used = i
                    return True
                gate.current = -1
        return False

    def ready_gate(self, t: int, first: int, last: int) -> int:
        """Return the first of these gates in the task's list, or -1 if none has a ready channel."""
        i = self.tasks[t].gate_head
        while i >= 0 and (i < first or i >= last):
            i = self.gates[i].after
        return i

    def take_record(self, t: int, c: int) -> bool:
        """Start the service of the next record of the channel's current buffer, if the record is complete (T7).

        Otherwise recycle the buffer, which has been read to its end (T8).  Return whether a service has started.
        """
        ch = self.channels[c]
        gate = self.gates[ch.gate]
        complete = ch.record_end <= ch.taken
        if complete:
            self.consume(c)
        if not complete or ch.consumed == ch.taken:
            self.recycle_current(c)
        if complete:
            self.begin_service(t, gate.service_table, gate.service_n, self.g.now)
        return complete

    def begin_service(self, t: int, table: int, n: int, begin_ns: int) -> None:
        """Start a service that is counted from `begin_ns` (T11).  The thread is busy from now on (W3)."""
        task = self.tasks[t]
        end = begin_ns + self.service_ns(t, table, n)
        self.become(t, BUSY)
        task.serving = 1
        if task.runs_ahead == 1 and task.interrupted == 0 and self.pays_to_serve_ahead(t):
            end = self.begin_serving_ahead(t, end)
        if self.g.fetches == 1:
            self.fetch_targets(t, 0)
        self.schedule(t, end)

    def end_service(self, t: int) -> None:
        """End a service and write its outputs (T11).  The caller makes the turn that follows."""
        task = self.tasks[t]
        task.serving = 0
        task.ahead = 0
        task.served += 1
        if task.source > 0:
            self.next_due(t)
        if task.lag > 0:
            self.become_late(t)
        elif not self.emit(t):
            self.become(t, HARD)
        elif self.g.timeout == 0:
            self.flush_touched(t)

    def poll(self, t: int, i: int) -> int:
        """Take the first element of gate i, which has a ready channel (T9).

        Return the element if it is a marker.  If it is data, make it the current buffer and return -1.
        """
        gate = self.gates[i]
        c = gate.ready_head
        ch = self.channels[c]
        self.remove_gate(i)
        self.remove_ready(c)
        if self.g.period > 0 and gate.active == 0:
            gate.active = 1
            gate.active_since = self.g.now
        before = ch.taken
        e = -1
        if ch.taken < ch.recovered:
            self.poll_recovered(c)
        elif ch.local == 1:
            e = self.poll_local(c)
        else:
            e = self.poll_remote(c)
        if self.pollable(c):
            self.append_ready(c)
        elif gate.ready_head >= 0:
            self.append_gate(i)
        if e >= 0:
            return e
        self.tasks[t].buffers_in += 1
        gate.polled_bytes += ch.taken - before
        gate.current = c
        return -1

    def poll_remote(self, c: int) -> int:
        """Take the first element of the receive queue.  Return it if it is a marker; make data the current buffer and return -1."""
        ch = self.channels[c]
        e = ch.first
        element = self.elements[e]
        ch.first = element.next
        ch.received -= 1
        if element.kind != DATA:
            return e
        ch.received_buffers -= 1
        if self.g.digests == 1:
            self.fold_channel(c, element.end, element.end - ch.taken)
        ch.taken = element.end
        ch.current = READING
        if element.traits == 1:
            ch.current = READING | FLOATING
        self.free_element(e)
        return -1

    def poll_local(self, c: int) -> int:
        """Take the head of the sender's queue of a local channel: it is sent, arrives and is taken at once.  Return values are those of `poll`."""
        ch = self.channels[c]
        e = ch.head
        if self.elements[e].kind != DATA:
            self.send_marker(c, e)
            self.note_mark(c, self.elements[e].kind, self.elements[e].number)
            return e
        before = ch.sent
        if e == ch.tail and ch.full_at > 0:
            self.catch_up(ch.writer)
            ch.sent = ch.written
            ch.flush = 0
            ch.current = READING
        else:
            ch.sent = self.elements[e].end
            self.take_head(c)
            ch.buffers -= 1
            self.free_element(e)
            ch.current = READING | OWNED
        self.partitions[ch.partition].buffers_out += 1
        ch.arrived = ch.sent
        ch.taken = ch.sent
        if self.g.digests == 1:
            self.fold_channel(c, ch.sent, ch.sent - before)
            self.fold_channel(c, ch.sent, ch.sent - before)
            self.fold_channel(c, ch.sent, ch.sent - before)
        return -1

    def pause_gate(self, i: int) -> None:
        """Stop measuring the active time of a gate if no channel of it is ready (D2)."""
        gate = self.gates[i]
        if gate.active == 1 and gate.ready_head < 0:
            gate.active = 0
            gate.active_ns += self.g.now - gate.active_since
