"""Operations that the control plane calls: capture, markers, positions, restarts, sums (RULES.md: verbs).

Arguments: `t` is a task, `i` a gate, `p` a partition, `c` a channel, `e` an element of a queue.  They
are indices of rows.  `number` is the number of a marker; that of a barrier is its checkpoint.
"""

from sim.plane.text.basics import (
    ANNOUNCED,
    BLOCKING,
    BROADCAST,
    DATA,
    EDGE_SUMS,
    HALTED,
    HELD,
    MARKER_SERIES,
    NEVER,
    NOTE_LEFT,
    PRIORITY,
    RESETTING,
    VERTEX_SUMS,
    WATCH,
)
from sim.plane.text.task import Tasks


class Verbs(Tasks):
    """What the control plane calls."""

    __slots__ = ()

    # ---- In-flight data: the bytes that a capture counts, and the buffers that it pins (C1-C5).

    def capture(self, t: int, number: int) -> None:
        """Capture the input of a task that has arrived or will arrive before the marker of each channel, and pin its buffers (C1)."""
        self.start_pinning(t, number)
        task = self.tasks[t]
        for k in range(task.first_input, task.last_input):
            c = self.words[k]
            ch = self.channels[c]
            ch.capturing = number
            ch.captured_from = ch.consumed
            ch.cap_in = 0
            ch.in_from = ch.taken
            ch.in_to = NEVER
            if ch.mark == number:
                self.finish_capture(c)

    def start_pinning(self, t: int, number: int) -> None:
        """Pin buffers for this number from now on, and release those that are pinned for an earlier one (C4)."""
        task = self.tasks[t]
        if task.pinning != number:
            self.release_capture(t)
        task.pinning = number

    def captured_input(self, t: int) -> int:
        """Return the captured input bytes of a task.  A channel whose marker is missing counts all that has arrived so far (C5)."""
        task = self.tasks[t]
        total = 0
        for k in range(task.first_input, task.last_input):
            ch = self.channels[self.words[k]]
            total += ch.cap_in
            if ch.capturing > 0:
                total += ch.arrived - ch.captured_from
        return total

    def pin_output(self, c: int, end: int) -> int:
        """Capture and pin the data in the sender's queue up to the offset `end` (C3, C4).  Return its bytes."""
        ch = self.channels[c]
        ch.cap_out = end - ch.sent
        if ch.out_to <= ch.sent:
            ch.out_from = ch.sent
        if end > ch.out_to:
            ch.out_to = end
        return ch.cap_out

    def release_capture(self, t: int) -> None:
        """Unpin the buffers of a task.  Those that were recycled or sent while pinned return to their pools (C4)."""
        task = self.tasks[t]
        if task.pinning == 0:
            return
        task.pinning = 0
        for k in range(task.first_input, task.last_input):
            self.release_input(self.words[k])
        for k in range(task.first_output, task.last_output):
            self.release_output(self.words[k])

    def release_input(self, c: int) -> None:
        """Unpin the input buffers of channel c, and recycle those that have been read."""
        ch = self.channels[c]
        ch.in_from = NEVER
        while ch.owed_exclusive > 0:
            ch.owed_exclusive -= 1
            self.recycle_exclusive(c)
        while ch.owed_floating > 0:
            ch.owed_floating -= 1
            self.recycle_floating(ch.gate)

    def release_output(self, c: int) -> None:
        """Unpin the output segments of channel c, and return those that have been sent."""
        ch = self.channels[c]
        ch.out_from = 0
        ch.out_to = 0
        while ch.owed_segments > 0:
            ch.owed_segments -= 1
            self.give_back(c)

    # ---- Operations on markers: forward, convert, prioritise, resume, settle (M1-M3, M5).

    def forward(self, t: int, only_partition: int, series: int, number: int, traits: int) -> int:
        """Write a marker to every output channel of the task, or of partition `only_partition` unless it is -1.  Return the bytes captured (M1)."""
        task = self.tasks[t]
        captured = 0
        sent = 0
        if (traits & PRIORITY) != 0:
            self.start_pinning(t, number)
        for p in range(task.first_partition, task.last_partition):
            if only_partition < 0 or p == only_partition:
                part = self.partitions[p]
                sent += part.channels
                for c in range(part.first_channel, part.last_channel):
                    captured += self.insert(c, self.new_marker(c, series, number, traits))
        if (traits & ANNOUNCED) != 0:
            if sent > 0:
                self.report_when_left(t, number, sent)
            else:
                self.report_task(NOTE_LEFT, t, number)
        return captured

    def insert(self, c: int, e: int) -> int:
        """Insert marker e into the sender's queue.  If it has priority, capture the data that it overtakes.  Return the bytes captured."""
        self.close(c)
        captured = 0
        if self.is_priority(e):
            self.insert_priority(c, e)
            captured = self.pin_output(c, self.channels[c].written)
        else:
            self.append_element(c, e)
        self.offer(c)
        return captured

    def report_when_left(self, t: int, number: int, markers: int) -> None:
        """Report LEFT when `markers` more markers of this number have left the output queues of the task (S7)."""
        task = self.tasks[t]
        e = task.watches
        while e >= 0 and self.elements[e].number != number:
            e = self.elements[e].next
        if e < 0:
            e = self.new_element(-1, WATCH)
            self.g.markers += 1
            self.elements[e].number = number
            self.elements[e].backlog = 0
            self.elements[e].next = task.watches
            task.watches = e
        self.elements[e].backlog += markers

    def convert_output(self, t: int, number: int) -> int:
        """Convert ordinary markers of this number in the task's output queues to priority markers, which overtake data (M2).

        Flink: ResultSubpartition#alignedBarrierTimeout.  Return the bytes captured.
        """
        task = self.tasks[t]
        captured = 0
        self.start_pinning(t, number)
        for k in range(task.first_output, task.last_output):
            c = self.words[k]
            self.channels[c].cap_out = 0
            captured += self.convert_channel(c, number)
        return captured

    def convert_channel(self, c: int, number: int) -> int:
        """Convert the markers in the queue of one channel (M2).  Return the bytes captured."""
        ch = self.channels[c]
        captured = 0
        end = ch.sent
        before = -1
        e = ch.head
        while e >= 0:
            element = self.elements[e]
            after = element.next
            if element.kind == DATA:
                end = element.end
                before = e
            elif (
                element.kind == MARKER_SERIES
                and element.number == number
                and (element.traits & (PRIORITY | ANNOUNCED)) == ANNOUNCED
            ):
                self.remove_after(c, before, e)
                element.traits = (element.traits | PRIORITY) & ~BLOCKING
                self.insert_priority(c, e)
                captured = self.pin_output(c, end)  # of one marker: a channel has at most one of a number
                if before < 0 or self.elements[before].next == e:  # no data to overtake: the marker is where it was
                    before = e
                self.offer(c)
            else:
                before = e
            e = after
        return captured

    def prioritise(self, t: int, number: int) -> None:
        """Process markers of this number before data: those in the task's receive queues, and those still to arrive (M3)."""
        task = self.tasks[t]
        task.prioritised = number
        moved = False
        for k in range(task.first_input, task.last_input):
            c = self.words[k]
            if self.channels[c].received > self.channels[c].received_buffers and self.prioritise_channel(t, c, number):
                moved = True
        if moved:
            self.wake_between_records(t)

    def prioritise_channel(self, t: int, c: int, number: int) -> bool:
        """Move markers of this number from a receive queue to the task's urgent markers.  Return whether there were any."""
        ch = self.channels[c]
        moved = False
        before = -1
        e = ch.first
        while e >= 0:
            element = self.elements[e]
            after = element.next
            if element.kind == MARKER_SERIES and element.number == number:
                if before < 0:
                    ch.first = after
                else:
                    self.elements[before].next = after
                if after < 0:
                    ch.last = before
                ch.received -= 1
                self.append_urgent(t, e)
                moved = True
            else:
                before = e
            e = after
        if moved and not self.pollable(c):
            self.withdraw(c)
        return moved

    def resume(self, t: int, number: int) -> None:
        """Resume the senders that are blocked by a marker of this or an earlier number (M5)."""
        task = self.tasks[t]
        for k in range(task.first_input, task.last_input):
            if self.channels[self.words[k]].mark <= number:
                self.resume_sender(self.words[k])

    def settle(self, t: int, series: int, number: int) -> None:
        """Make numbers up to this one obsolete on all gates of the task (M5)."""
        task = self.tasks[t]
        for i in range(task.first_gate, task.last_gate):
            self.settle_gate(i, series, number)

    # ---- Positions and record counts of a task, which are copied column by column to `words`, from `g.copied` on (P2, P8).

    def bare_position(self, t: int) -> int:
        """Copy the position of a task without captured data to `words[copied]`.  Return the number of pending outputs.

        The words are the records served; the bytes read, then the records read by input channel; the bytes written, then the
        records written by output channel.
        """
        task = self.tasks[t]
        self.words[self.g.copied] = task.served
        at = self.g.copied + 1
        n = task.last_input - task.first_input
        for k in range(task.first_input, task.last_input):
            ch = self.channels[self.words[k]]
            self.words[at] = ch.consumed
            self.words[at + n] = ch.records_in
            at += 1
        at += n
        n = task.last_output - task.first_output
        for k in range(task.first_output, task.last_output):
            c = self.words[k]
            self.words[at] = self.channels[c].written
            self.words[at + n] = self.channels[c].records_out
            at += 1
        return task.late

    def copy_record_counts(self, t: int, earlier: int) -> int:
        """Copy the records read by input channel, then the records written by output channel, to `words[copied]`.

        Return the number of records served.  With `earlier` = 1, earlier attempts of the task are included (P8).
        """
        task = self.tasks[t]
        at = self.g.copied
        for k in range(task.first_input, task.last_input):
            ch = self.channels[self.words[k]]
            self.words[at] = ch.records_in
            if earlier == 1:
                self.words[at] += ch.earlier_read
            at += 1
        for k in range(task.first_output, task.last_output):
            c = self.words[k]
            self.words[at] = self.channels[c].records_out
            if earlier == 1:
                self.words[at] += self.channels[c].earlier_written
            at += 1
        return task.served + task.earlier_served

    # ---- Halts and restarts of tasks (P1, P3-P6).
    #
    # Between `sweep` and `restore_task` the owner of the state (`PlaneState`) resets the rows of the tasks marked RESETTING, except
    # for the fields that survive a restart (`Kept`), and writes their positions.

    def halt(self, t: int) -> None:
        """Halt a task.  Its thread stops at once: the current service does not end, and its record is not written completely (P1)."""
        task = self.tasks[t]
        task.serving = 0
        if task.emitting == 1:
            self.partitions[task.cursor].uncounted += 1
        task.emitting = 0
        task.held = 1
        self.drop_event(t)
        self.become(t, HALTED)

    def drop_event(self, t: int) -> None:
        """Cancel the event of a task."""
        self.cancel(t)
        if self.g.stale == t:
            self.g.stale = -1

    def sweep(self) -> None:
        """Remove the tasks that are restarted from the work list, the lines, the queues and other lists (P3)."""
        g = self.g
        for _ in range(g.work_n):
            item = self.ring[g.work_head]
            g.work_head = (g.work_head + 1) & g.work_mask
            g.work_n -= 1
            if not self.is_resetting(item):
                self.append_work(item)
        for i in range(g.flush_rank - g.tasks):
            line = self.lines[i]
            e = line.head
            line.head = -1
            line.tail = -1
            self.cancel(g.tasks + i)
            while e >= 0:
                element = self.elements[e]
                after = element.next
                element.next = -1
                if self.is_resetting(g.tasks + element.channel):
                    self.free_chain(e)
                else:
                    self.put_on_line(i, e, element.time)
                e = after
        for c in range(g.channels):
            if self.is_resetting(g.tasks + c):
                ch = self.channels[c]
                self.free_chain(ch.head)
                self.free_chain(ch.first)
        for t in range(g.tasks):
            if self.is_resetting(t):
                self.free_chain(self.tasks[t].urgent_head)
                self.free_chain(self.tasks[t].watches)
                self.drop_event(t)
                self.become(t, HELD)

    def is_resetting(self, item: int) -> bool:
        """Return whether a work item belongs to a task that is restarted (RESETTING).

        Both tasks of a channel are restarted, or neither is.
        """
        if item >= self.g.tasks:
            return self.tasks[self.channels[item - self.g.tasks].reader].held == RESETTING
        return self.tasks[item].held == RESETTING

    def free_chain(self, first: int) -> None:
        """Return all elements of a linked list to the pool.  `first` is -1 for an empty list."""
        e = first
        while e >= 0:
            after = self.elements[e].next
            if self.elements[e].kind >= 0 or self.elements[e].kind == WATCH:  # kinds of markers are their series
                self.free_marker(e)
            else:
                self.free_element(e)
            e = after

    def restore_task(self, t: int) -> None:
        """Restore a task.  Derive its fields from the offsets of its channels, and queue recovered output and input (P5, P6)."""
        task = self.tasks[t]
        task.held = 1
        task.recovering = 1
        self.be_late_again(t)
        for p in range(task.first_partition, task.last_partition):
            part = self.partitions[p]
            for c in range(part.first_channel, part.last_channel):
                self.recover_output(c)
            if part.ship == BROADCAST:
                self.count_shared(p)
                part.recovered = part.used
        for i in range(task.first_gate, task.last_gate):
            gate = self.gates[i]
            gate.shut = 1
            for k in range(gate.first_channel, gate.last_channel):
                c = self.words[k]
                self.channels[c].blocked = 1
                self.channels[c].recovered = self.channels[c].arrived
                self.seek_record(c)
                if self.channels[c].arrived > self.channels[c].taken:
                    self.append_ready(c)

    def seek_record(self, c: int) -> None:
        """Find the reader's next record in channel c, by stepping back from the last record written (P5)."""
        ch = self.channels[c]
        gate = self.gates[ch.gate]
        i = ch.records_out
        at = ch.written
        while i > 0:
            size = self.record_size(c, gate.size_table, gate.size_n, i - 1)
            if at - size < ch.consumed:
                break
            at -= size
            i -= 1
        ch.records_in = i
        gate.records_in += i
        ch.record_end = at + self.record_size(c, gate.size_table, gate.size_n, i)

    def recover_output(self, c: int) -> None:
        """Queue the recovered output of channel c, the bytes from `sent` to `written`, as closed buffers (P6).  The next flush sends them (O6)."""
        ch = self.channels[c]
        part = self.partitions[ch.partition]
        if ch.written > ch.sent:
            self.touch(ch.partition, c)
        end = ch.sent
        while end < ch.written:
            end += self.g.segment_bytes
            if end > ch.written:
                end = ch.written
            e = self.new_element(c, DATA)
            self.elements[e].end = end
            self.append_element(c, e)
            ch.buffers += 1
            ch.count += 1
            if part.ship != BROADCAST:
                if ch.count == self.g.max_per_channel:
                    part.full += 1
                part.used += 1
                part.recovered += 1

    # ---- Sums over the tasks of each vertex and the channels of each edge, for samples.  Copying all rows would take longer.

    def sum_up(self) -> None:
        """Write the sums of all vertices, then those of all edges, to `words[g.sums]` (VERTEX_COLUMNS and EDGE_COLUMNS of the interface).

        For each edge, `words` from `g.first_channels` on have its first channel and its upstream vertex.
        """
        g = self.g
        for v in range(g.vertices):
            self.sum_tasks(self.words[g.first_tasks + v], self.words[g.first_tasks + v + 1], g.sums + v * VERTEX_SUMS)
        for e in range(g.edges):
            at = g.first_channels + 2 * e
            written = self.sum_channels(
                self.words[at], self.words[at + 2], g.sums + g.vertices * VERTEX_SUMS + e * EDGE_SUMS
            )
            self.words[g.sums + self.words[at + 1] * VERTEX_SUMS + 1] += written

    def sum_in_flight(self) -> None:
        """Write, by task, the number of records written to its output channels minus those read from its input channels, to `words[g.copied]`."""
        for t in range(self.g.tasks):
            task = self.tasks[t]
            records = 0
            for p in range(task.first_partition, task.last_partition):
                records += self.written_into(p)
            for i in range(task.first_gate, task.last_gate):
                records -= self.gates[i].records_in
            self.words[self.g.copied + t] = records

    def written_into(self, p: int) -> int:
        """Return the number of records written to the channels of a partition, without those cut off by a halt or being written."""
        part = self.partitions[p]
        task = self.tasks[part.task]
        copies = part.copies - part.uncounted
        if task.emitting == 1 and task.cursor == p:
            copies -= 1
        if part.ship == BROADCAST:
            copies *= part.channels
        return copies

    def sum_tasks(self, first: int, last: int, at: int) -> None:
        """Write the sums of the tasks from `first` to `last` - 1 to `words[at]`.

        They are the records served, the bytes written by earlier attempts, and the busy, idle, soft and hard back-pressured
        times [ns].
        """
        served = 0
        earlier = 0
        busy = 0
        idle = 0
        soft = 0
        hard = 0
        for t in range(first, last):
            task = self.tasks[t]
            served += task.served + task.earlier_served
            earlier += task.earlier_out
            busy += task.busy_ns
            idle += task.idle_ns
            soft += task.soft_ns
            hard += task.hard_ns
        self.words[at] = served
        self.words[at + 1] = earlier
        self.words[at + 2] = busy
        self.words[at + 3] = idle
        self.words[at + 4] = soft
        self.words[at + 5] = hard

    def sum_channels(self, first: int, last: int, at: int) -> int:
        """Write the sums of the channels from `first` to `last` - 1 to `words[at]`, and return the sum of their offsets `written`.

        They are bytes and buffers to read, and bytes and buffers to send (EDGE_COLUMNS of the interface).
        """
        written = 0
        at_reader = 0
        to_read = 0
        at_writer = 0
        to_send = 0
        for c in range(first, last):
            ch = self.channels[c]
            written += ch.written
            at_reader += ch.arrived - ch.taken
            at_writer += ch.written - ch.sent
            to_send += ch.queued
            if ch.local == 1:
                to_read += ch.queued
            else:
                to_read += ch.received
        self.words[at] = at_reader
        self.words[at + 1] = to_read
        self.words[at + 2] = at_writer
        self.words[at + 3] = to_send
        return written
