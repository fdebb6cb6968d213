"""Channels: routing of records, serving ahead of time, output buffers, sending, arrival and credits."""

from sim.plane.text.basics import (
    ANNOUNCED,
    BLOCKING,
    BROADCAST,
    BUSY,
    CREDIT,
    DATA,
    FLOATING,
    HARD,
    HASH,
    IDLE,
    LOOSE,
    MARKER_SERIES,
    MAX_RECORDS_AHEAD,
    NEVER,
    NOTE_ANNOUNCED,
    NOTE_LEFT,
    OWNED,
    POLL,
    PREFETCHED_COPIES,
    PRIORITY,
    READING,
    REBALANCE,
    RESCALE,
    RESIZE,
    RESUME,
    SEGMENT,
    SOFT,
    Basics,
    draw,
)


class Channels(Basics):
    """Where records go, buffers, sending, arrival and credits."""

    __slots__ = ()

    # ---- One record of a task: where it goes, when it is due, how long its service takes (O5, W1, T11).

    def copies_of(self, p: int, served: int) -> int:
        """Return the number of copies that a partition makes of the latest of `served` records.

        It is floor(served * f) - floor((served - 1) * f), where f is the fan-out.
        """
        part = self.partitions[p]
        if part.fan_den == 1:
            return part.fan_num
        return served * part.fan_num // part.fan_den - (served - 1) * part.fan_num // part.fan_den

    def address(self, p: int) -> int:
        """Return the channel that the next copy of a record is written to, and count the copy."""
        if self.partitions[p].traverse > 0:
            self.partitions[p].turn = self.least_loaded(p)
        c = self.route(p)
        self.count_copy(p)
        return c

    def least_loaded(self, p: int) -> int:
        """Return the place of the channel with the fewest segments in use, and of these with the fewest bytes queued (O8)."""
        part = self.partitions[p]
        best = part.turn
        for i in range(part.traverse):
            place = (part.turn + i) % part.channels
            ch = self.channels[part.first_channel + place]
            if ch.count == 0:
                return place
            other = self.channels[part.first_channel + best]
            if ch.count < other.count or (
                ch.count == other.count and ch.written - ch.sent < other.written - other.sent
            ):
                best = place
        return best

    def count_copy(self, p: int) -> None:
        """Count a copy of a record, and advance the round robin of the partition."""
        part = self.partitions[p]
        part.copies += 1
        if part.ship == REBALANCE or part.ship == RESCALE:
            part.turn += 1
            if part.turn == part.channels:
                part.turn = 0

    def route(self, p: int) -> int:
        """Return the channel of the partition's next copy, or the first channel of a broadcast (O5)."""
        return self.route_later(p, 0)

    def route_later(self, p: int, k: int) -> int:
        """Return the channel of the copy after the next k copies."""
        part = self.partitions[p]
        if part.ship == HASH:
            u = draw(part.stride, part.offset, part.copies + k)
            if part.weights_n == 0:
                return part.first_channel + ((u * part.channels) >> 32)
            return part.first_channel + self.words[part.weights + ((u * part.weights_n) >> 32)]
        if part.ship == REBALANCE or part.ship == RESCALE:
            return part.first_channel + (part.turn + k) % part.channels
        return part.first_channel

    def fetch_targets(self, t: int, k: int) -> None:
        """Prefetch the channels of a record, k copies from now, if the channels of the job exceed the cache."""
        task = self.tasks[t]
        for p in range(task.first_partition, task.last_partition):
            self.fetch(self.route_later(p, k))

    def next_due(self, t: int) -> None:
        """Compute when the source's next record is due, from the time of the previous one and without a division (W1)."""
        task = self.tasks[t]
        if task.segment == task.last_segment:
            return
        words = self.words
        moved = False
        while task.segment + SEGMENT < task.last_segment and words[task.segment + SEGMENT] <= task.served:
            task.segment += SEGMENT
            moved = True
        if moved:
            task.due = words[task.segment + 1]
            task.due_part = 0
        else:
            task.due += words[task.segment + 3]
            task.due_part += words[task.segment + 4]
            if task.due_part >= words[task.segment + 2]:
                task.due_part -= words[task.segment + 2]
                task.due += 1

    def consume(self, c: int) -> None:
        """Let the reader of channel c take its next record, which is complete."""
        ch = self.channels[c]
        gate = self.gates[ch.gate]
        ch.consumed = ch.record_end
        ch.records_in += 1
        gate.records_in += 1
        ch.record_end += self.record_size(c, gate.size_table, gate.size_n, ch.records_in)

    def service_ns(self, t: int, table: int, n: int) -> int:
        """Return the service time of the task's next record [ns] (T11).  `table` and `n` are the distribution."""
        task = self.tasks[t]
        ns = self.quantile(table, n, task.stride, task.offset, task.served)
        if task.slow_num != task.slow_den:
            ns = ns * task.slow_num // task.slow_den
        if ns < 1:
            ns = 1
        return ns

    # ---- Records that a task serves ahead of their time while no other component sees it.  They are taken back before a component looks.
    #
    # A record that lies inside the current buffer and fits inside the open one changes nothing that another task reads.  So
    # when a service begins, such records are served at once, one after the other, and the task's next event is the first
    # one that shows.  Who wants to see or stop the task before that event calls `catch_up`: then the task stands where it
    # does at this moment.

    def pays_to_serve_ahead(self, t: int) -> bool:
        """Return whether serving records ahead of their time pays off.

        It does not if the channels exceed the cache and only few records are at hand: then waiting for memory dominates.
        """
        task = self.tasks[t]
        if self.g.fetches == 0 or task.source > 0:
            return True
        if task.current < 0:
            return False
        ch = self.channels[task.current]
        return ch.taken - ch.record_end > PREFETCHED_COPIES * (ch.record_end - ch.consumed)

    def begin_serving_ahead(self, t: int, end: int) -> int:
        """Serve records ahead of their time, after a service that ends at `end`.  Return the time of the task's next visible event."""
        task = self.tasks[t]
        task.ahead_end = end
        if task.source > 0:
            task.ahead_since = task.since
            task.ahead_busy = task.busy_ns
            task.ahead_idle = task.idle_ns
            task.ahead_digest = task.digest
            task.ahead_due = task.due
            task.ahead_due_part = task.due_part
            task.ahead_segment = task.segment
        return self.serve_ahead(t, end, NEVER)

    def catch_up(self, t: int) -> None:
        """Set a task to the current time: undo the services of all records served ahead, and serve those that are due by now again."""
        task = self.tasks[t]
        if task.ahead == 0:
            return
        while task.ahead > 0:
            self.undo_service(t)
        if task.source > 0:
            task.since = task.ahead_since
            task.busy_ns = task.ahead_busy
            task.idle_ns = task.ahead_idle
            task.digest = task.ahead_digest
            task.due = task.ahead_due
            task.due_part = task.ahead_due_part
            task.segment = task.ahead_segment
            task.state = BUSY
            task.serving = 1
        self.schedule(t, self.serve_ahead(t, task.ahead_end, self.g.reached))
        task.ahead = 0

    def catch_up_all(self) -> None:
        """Set all tasks, and the times of their threads, to the current time."""
        for t in range(self.g.tasks):
            self.catch_up(t)
            self.count_time(t, self.g.now)

    def serve_ahead(self, t: int, end: int, bound: int) -> int:
        """Serve records without events, up to the first one that other components can see or whose event is not before `bound`.

        The current service ends at `end`.  `bound` is a key of the event tree.  Return the time of the task's next event.
        """
        task = self.tasks[t]
        while (
            task.ahead < MAX_RECORDS_AHEAD and self.is_below(t, end, bound) and self.has_next(t) and self.write_ahead(t)
        ):
            task.ahead += 1
            task.served += 1
            if self.g.fetches == 1:
                self.fetch_targets(t, PREFETCHED_COPIES)
            if task.source > 0:
                self.next_due(t)
                if task.due > end:
                    if task.source != POLL:
                        self.enter(t, IDLE, end)
                        if not self.is_below(t, task.due, bound):
                            task.serving = 0
                            return task.due
                        self.enter(t, BUSY, task.due)
                    end = task.due
                end += self.service_ns(t, task.service_table, task.service_n)
            else:
                self.consume(task.current)
                gate = self.gates[self.channels[task.current].gate]
                end += self.service_ns(t, gate.service_table, gate.service_n)
        return end

    def is_below(self, t: int, time: int, bound: int) -> bool:
        """Return whether an event of the task at `time` precedes the key `bound` of the event tree."""
        return time < self.g.horizon and ((time << self.g.shift) | t) < bound

    def has_next(self, t: int) -> bool:
        """Return whether another record is at hand: in the current buffer, or of a source that is not exhausted."""
        task = self.tasks[t]
        if task.source > 0:
            return task.served + 1 != task.total
        if task.current < 0:
            return False
        ch = self.channels[task.current]
        return ch.record_end < ch.taken

    def write_ahead(self, t: int) -> bool:
        """Write the record in service, unless this fills or opens a buffer.  Return whether it was written.

        The task makes at most one copy of a record.
        """
        task = self.tasks[t]
        p = task.first_partition
        if p == task.last_partition or self.copies_of(p, task.served + 1) == 0:
            return True
        c = self.route(p)
        ch = self.channels[c]
        end = ch.written + self.record_size(c, self.partitions[p].size_table, self.partitions[p].size_n, ch.records_out)
        if end >= ch.full_at:
            return False
        ch.written = end
        ch.records_out += 1
        self.count_copy(p)
        return True

    def undo_service(self, t: int) -> None:
        """Undo the service of the last record: it is in service again."""
        task = self.tasks[t]
        if task.source == 0:
            gone = self.channels[task.current]
            gone.record_end = gone.consumed
            gone.records_in -= 1
            gate = self.gates[gone.gate]
            gate.records_in -= 1
            gone.consumed -= self.record_size(task.current, gate.size_table, gate.size_n, gone.records_in)
        p = task.first_partition
        if p < task.last_partition and self.copies_of(p, task.served) == 1:
            part = self.partitions[p]
            part.copies -= 1
            if part.ship == REBALANCE or part.ship == RESCALE:
                if part.turn == 0:
                    part.turn = part.channels
                part.turn -= 1
            c = self.route(p)
            ch = self.channels[c]
            ch.records_out -= 1
            ch.written -= self.record_size(c, part.size_table, part.size_n, ch.records_out)
        task.served -= 1
        task.ahead -= 1

    # ---- What may be sent (S1) and what may be polled (R4): the two lists through which a channel asks for attention.

    def sendable(self, c: int) -> bool:
        """Return whether the head of the sender's queue may be sent (S1)."""
        ch = self.channels[c]
        if ch.queued == 0 or ch.blocked == 1:
            return False
        if ch.queued > ch.buffers and self.elements[ch.head].kind >= 0:
            return True
        if ch.credit == 0 and ch.local == 0:
            return False
        if ch.head == ch.tail and ch.full_at > 0:
            if ch.flush == 0:
                return False
            if self.tasks[ch.writer].ahead > 0:
                self.catch_up(ch.writer)
            return ch.written > ch.sent
        return True

    def pollable(self, c: int) -> bool:
        """Return whether the reader has something to poll from channel c (R4).  Before its gate opens, that is only recovered input."""
        ch = self.channels[c]
        if ch.taken < ch.recovered:
            return True
        if ch.local == 1:
            return self.sendable(c)
        return ch.received > 0

    def offer(self, c: int) -> None:
        """Append SEND c to the work list, if the channel has something to send and is not on the list."""
        ch = self.channels[c]
        if ch.listed == 0 and self.sendable(c) and (ch.ready == 0 or ch.local == 0 or self.is_priority(ch.head)):
            ch.listed = 1
            self.append_work(self.g.tasks + c)

    def append_ready(self, c: int) -> None:
        """Append a channel to the ready list of its gate, and the gate to the list of its task unless it is there already."""
        ch = self.channels[c]
        gate = self.gates[ch.gate]
        ch.ready = 1
        ch.ready_after = -1
        ch.ready_before = gate.ready_tail
        if gate.ready_tail < 0:
            gate.ready_head = c
        else:
            self.channels[gate.ready_tail].ready_after = c
        gate.ready_tail = c
        if gate.listed == 0:
            self.append_gate(ch.gate)

    def append_gate(self, i: int) -> None:
        """Append a gate to the list of its task."""
        gate = self.gates[i]
        task = self.tasks[gate.task]
        gate.listed = 1
        gate.after = -1
        gate.before = task.gate_tail
        if task.gate_tail < 0:
            task.gate_head = i
        else:
            self.gates[task.gate_tail].after = i
        task.gate_tail = i

    def remove_ready(self, c: int) -> None:
        """Remove a channel from the gate's ready list."""
        ch = self.channels[c]
        gate = self.gates[ch.gate]
        ch.ready = 0
        if ch.ready_before < 0:
            gate.ready_head = ch.ready_after
        else:
            self.channels[ch.ready_before].ready_after = ch.ready_after
        if ch.ready_after < 0:
            gate.ready_tail = ch.ready_before
        else:
            self.channels[ch.ready_after].ready_before = ch.ready_before

    def remove_gate(self, i: int) -> None:
        """Remove a gate from the task's gate list."""
        gate = self.gates[i]
        task = self.tasks[gate.task]
        gate.listed = 0
        if gate.before < 0:
            task.gate_head = gate.after
        else:
            self.gates[gate.before].after = gate.after
        if gate.after < 0:
            task.gate_tail = gate.before
        else:
            self.gates[gate.after].before = gate.before

    def withdraw(self, c: int) -> None:
        """Remove a channel that has nothing left to poll from the ready list, and its gate from the task's list if it was the last one."""
        self.remove_ready(c)
        i = self.channels[c].gate
        if self.gates[i].ready_head < 0:
            self.remove_gate(i)

    def make_ready(self, c: int) -> None:
        """Put a channel on the ready list of its gate, and wake its reader if it is idle (R4)."""
        ch = self.channels[c]
        if ch.ready == 0:
            self.append_ready(c)
            if self.tasks[ch.reader].state == IDLE:
                self.wake(ch.reader)

    # ---- Messages to the sender (S6) and the lines on which everything delayed travels (S5).

    def put_on_line(self, i: int, e: int, time: int) -> None:
        """Put element e on line i, to arrive at `time`.  At the same time, events of tasks precede those of lines."""
        line = self.lines[i]
        self.elements[e].time = time
        self.elements[e].next = -1
        if line.head < 0:
            line.head = e
            self.schedule(self.g.tasks + i, time)
        else:
            self.elements[line.tail].next = e
        line.tail = e

    def take_off_line(self, i: int) -> int:
        """Remove and return the element that arrives now, and schedule the arrival of the next one."""
        line = self.lines[i]
        e = line.head
        line.head = self.elements[e].next
        self.elements[e].next = -1
        if line.head < 0:
            line.tail = -1
            self.cancel(self.g.tasks + i)
        else:
            self.schedule(self.g.tasks + i, self.elements[line.head].time)
        return e

    def notify_sender(self, c: int, kind: int, number: int) -> None:
        """Send a message (CREDIT, RESUME or RESIZE) from the reader of channel c to its writer."""
        if self.g.latency == 0 or self.channels[c].local == 1:
            self.act(c, kind, number)
        else:
            e = self.new_element(c, kind)
            self.elements[e].number = number
            self.put_on_line(0, e, self.g.now + self.g.latency)

    def act(self, c: int, kind: int, number: int) -> None:
        """Apply a message that has arrived at the writer of channel c."""
        ch = self.channels[c]
        if kind == CREDIT:
            ch.credit += number
            self.offer(c)
        elif kind == RESUME:
            ch.blocked = 0
            self.offer(c)
        elif kind == RESIZE:
            ch.buffer_bytes = number

    def reverse_line_event(self) -> None:
        """Apply the message that arrives now at a writer."""
        e = self.take_off_line(0)
        element = self.elements[e]
        c = element.channel
        kind = element.kind
        number = element.number
        self.free_element(e)
        self.act(c, kind, number)

    def resume_sender(self, c: int) -> None:
        """Resume the sender of a channel if a marker has blocked it (M5)."""
        ch = self.channels[c]
        if ch.held_back == 1:
            ch.held_back = 0
            self.notify_sender(c, RESUME, 0)

    # ---- Output: segments, writing into buffers, the emission of a record, flushing (O1-O8).

    def emit(self, t: int) -> bool:
        """Write the outputs of the last record without pending outputs, or continue where no segment was available (O4, O5).

        Return False if no segment is available now.
        """
        task = self.tasks[t]
        done = task.served - task.late
        cursor = task.first_partition - 1
        copies = 0
        c = 0
        rest = 0
        if task.emitting == 1:
            cursor = task.cursor
            copies = task.copies
            c = task.target
            rest = task.rest
            task.emitting = 0
        while True:
            if rest > 0:
                shared = self.partitions[cursor].ship == BROADCAST
                if shared:
                    rest = self.write_shared(cursor, rest)
                else:
                    rest = self.write(c, rest)
                if rest > 0:
                    task.emitting = 1
                    task.cursor = cursor
                    task.copies = copies
                    task.target = c
                    task.rest = rest
                    return False
                self.channels[c].records_out += 1
                if shared:
                    for i in range(c + 1, c + self.partitions[cursor].channels):
                        self.channels[i].records_out += 1
            while copies == 0:
                cursor += 1
                if cursor >= task.last_partition:
                    return True
                copies = self.copies_of(cursor, done)
            copies -= 1
            c = self.address(cursor)
            part = self.partitions[cursor]
            rest = self.record_size(c, part.size_table, part.size_n, self.channels[c].records_out)
            if self.g.timeout == 0:
                self.touch(cursor, c)
                if part.ship == BROADCAST:
                    self.touch(cursor, c + part.channels - 1)

    def write(self, c: int, rest: int) -> int:
        """Append `rest` bytes of a record to channel c.  Return how many could not be written because no segment was available."""
        ch = self.channels[c]
        if ch.written + rest < ch.full_at:  # the common case: it fits and leaves room
            ch.written += rest
            return 0
        while rest > 0:
            if ch.full_at == 0 and not self.open_buffer(c):
                return rest
            room = ch.full_at - ch.written
            if rest > room:
                room += self.enlarge(c, rest)
            if rest < room:
                ch.written += rest
                return 0
            ch.written += room
            rest -= room
            self.close_full(c)
        return 0

    def write_shared(self, p: int, rest: int) -> int:
        """Append `rest` bytes of a record to all channels of a broadcast (O4).  The result is that of `write`."""
        part = self.partitions[p]
        lead = self.channels[part.first_channel]
        while rest > 0:
            if lead.full_at == 0 and not self.open_shared(p):
                return rest
            room = lead.full_at - lead.written
            if rest > room:
                room += self.enlarge_shared(p, rest)
            if rest < room:
                room = rest
            for c in range(part.first_channel, part.last_channel):
                ch = self.channels[c]
                ch.written += room
                if ch.written == ch.full_at:
                    self.close_full(c)
            rest -= room
        return 0

    def open_shared(self, p: int) -> bool:
        """Open a buffer on each channel of a broadcast, all in one segment.  Their size is the smallest one announced (O1, O3)."""
        part = self.partitions[p]
        if part.used >= part.limit:
            return False
        self.share(p, part.used + 1)
        capacity = self.g.segment_bytes
        for c in range(part.first_channel, part.last_channel):
            ch = self.channels[c]
            ch.count += 1
            self.append_element(c, self.new_element(c, DATA))
            ch.buffers += 1
            if ch.buffer_bytes < capacity:
                capacity = ch.buffer_bytes
        for c in range(part.first_channel, part.last_channel):
            ch = self.channels[c]
            ch.opened_at = ch.written
            ch.full_at = ch.written + capacity
        return True

    def enlarge_shared(self, p: int, rest: int) -> int:
        """Enlarge the shared buffer as `enlarge` does."""
        part = self.partitions[p]
        gained = self.enlarge(part.first_channel, rest)
        if gained > 0:
            for c in range(part.first_channel + 1, part.last_channel):
                self.channels[c].full_at += gained
        return gained

    def share(self, p: int, used: int) -> None:
        """Set the number of shared segments in use, which count as those of one channel (O2)."""
        part = self.partitions[p]
        part.used = used
        part.full = 0
        if used >= self.g.max_per_channel:
            part.full = 1

    def count_shared(self, p: int) -> None:
        """Count shared segments.  Each is in use until the last channel has returned it (O1)."""
        part = self.partitions[p]
        most = 0
        for c in range(part.first_channel, part.last_channel):
            if self.channels[c].count > most:
                most = self.channels[c].count
        self.share(p, most)

    def open_buffer(self, c: int) -> bool:
        """Open a buffer at the end of the queue.  Return False if the pool has no segment for it (O3)."""
        ch = self.channels[c]
        part = self.partitions[ch.partition]
        if part.used >= part.limit:
            return False
        part.used += 1
        ch.count += 1
        if ch.count == self.g.max_per_channel:
            part.full += 1
        self.append_element(c, self.new_element(c, DATA))
        ch.buffers += 1
        ch.opened_at = ch.written
        ch.full_at = ch.written + ch.buffer_bytes
        return True

    def enlarge(self, c: int, rest: int) -> int:
        """Enlarge the open buffer for the rest of a record, up to a whole segment, if the partition is not available.  Return the bytes gained."""
        ch = self.channels[c]
        at_most = ch.opened_at + self.g.segment_bytes
        if self.g.stretching == 0 or ch.full_at >= at_most or self.has_room(ch.partition):
            return 0
        before = ch.full_at
        ch.full_at = ch.written + rest
        if ch.full_at > at_most:
            ch.full_at = at_most
        return ch.full_at - before

    def close_full(self, c: int) -> None:
        """Close the open buffer, which is full, and offer it to the network."""
        ch = self.channels[c]
        self.elements[ch.tail].end = ch.written
        ch.full_at = 0
        self.offer(c)

    def close(self, c: int) -> None:
        """Close the open buffer, which need not be full (M1).  Remove it if all its bytes have been sent."""
        ch = self.channels[c]
        if ch.full_at == 0:
            return
        ch.full_at = 0
        e = ch.tail
        self.elements[e].end = ch.written
        if ch.written > ch.sent:
            return
        before = -1
        i = ch.head
        while i != e:  # priority markers may stand before it
            before = i
            i = self.elements[i].next
        self.remove_after(c, before, e)
        self.free_element(e)
        ch.buffers -= 1
        if ch.local == 1 and ch.current != 0:
            ch.current = READING | OWNED  # with the recycling of the last slice (O7)
        else:
            self.give_back(c)

    def has_room(self, p: int) -> bool:
        """Return whether a partition is available (O2; Flink: LocalBufferPool)."""
        part = self.partitions[p]
        return part.used < part.pool and part.full == 0

    def available(self, t: int) -> bool:
        """Return whether all partitions of a task are available (O2)."""
        task = self.tasks[t]
        for p in range(task.first_partition, task.last_partition):
            if not self.has_room(p):
                return False
        return True

    def give_back(self, c: int) -> None:
        """Return one segment to its pool, and wake the writer that waits for it (O7)."""
        ch = self.channels[c]
        part = self.partitions[ch.partition]
        if part.ship == BROADCAST:
            ch.count -= 1
            if ch.count + 1 == part.used:
                self.count_shared(ch.partition)
        else:
            if ch.count == self.g.max_per_channel:
                part.full -= 1
            ch.count -= 1
            part.used -= 1
        state = self.tasks[part.task].state
        if state == HARD or (state == SOFT and self.available(part.task)):
            self.wake(part.task)

    def retire(self, c: int, end: int) -> None:
        """Return the segment of a buffer that has been sent (local: recycled) and ends at `end`; later, if a capture pins it (C4)."""
        ch = self.channels[c]
        if end <= ch.out_to and ch.out_from < end:  # most often no byte is pinned, and `out_from` is not read
            ch.owed_segments += 1
        else:
            self.give_back(c)

    def flush_channel(self, c: int) -> None:
        """Send everything written to a channel, including its open buffer (O6)."""
        ch = self.channels[c]
        if ch.written > ch.sent:
            ch.flush = 1
            self.offer(c)

    def flush(self, t: int) -> None:
        """Flush all output channels of a task (O6)."""
        task = self.tasks[t]
        for k in range(task.first_output, task.last_output):
            self.flush_channel(self.words[k])

    def touch(self, p: int, c: int) -> None:
        """Record that an emission writes to channel c, so that its flush need not visit every channel of the partition."""
        part = self.partitions[p]
        if part.touched_to == 0 or c < part.touched_from:
            part.touched_from = c
        if c >= part.touched_to:
            part.touched_to = c + 1

    def flush_touched(self, t: int) -> None:
        """Flush the channels that the emission has written to.  All others have been flushed before."""
        task = self.tasks[t]
        for p in range(task.first_partition, task.last_partition):
            part = self.partitions[p]
            for c in range(part.touched_from, part.touched_to):
                self.flush_channel(c)
            part.touched_from = 0
            part.touched_to = 0

    def continue_writing(self, t: int) -> bool:
        """Continue the emission, and flush at its end if the buffer timeout is 0 (T2, O6).  Return False if no segment is available."""
        if not self.emit(t):
            return False
        if self.g.timeout == 0:
            self.flush_touched(t)
        return True

    # ---- The receiver's side of a channel: arrival, credits, recycling (R1-R5).

    def arrive(self, e: int) -> None:
        """Deliver element e to the reader of its remote channel (R1)."""
        element = self.elements[e]
        c = element.channel
        if element.kind == DATA:
            ch = self.channels[c]
            if self.g.digests == 1:
                self.fold_channel(c, element.end, element.end - ch.arrived)
            ch.arrived = element.end
            if ch.fl_free > 0:
                ch.fl_free -= 1
                element.traits = 1
            else:
                ch.ex_free -= 1
                element.traits = 0
            ch.received_buffers += 1
            self.append_received(c, e)
        else:
            self.deliver_marker(c, e)
        self.require(c, element.backlog)

    def deliver_marker(self, c: int, e: int) -> None:
        """Deliver a marker to the reader (R5).  Not for ordinary markers of local channels, which stay in the sender's queue."""
        element = self.elements[e]
        self.note_mark(c, element.kind, element.number)
        ch = self.channels[c]
        t = ch.reader
        prioritised = element.kind == MARKER_SERIES and element.number == self.tasks[t].prioritised
        if prioritised or (element.traits & PRIORITY) != 0:
            self.catch_up(t)
            self.append_urgent(t, e)
            self.wake_between_records(t)
        else:
            gate = self.gates[ch.gate]
            if (element.traits & ANNOUNCED) != 0 and element.number > gate.announced:
                gate.announced = element.number
                self.report(NOTE_ANNOUNCED, t, gate.place, -1, element.number, -1, 0, 0)
            self.append_received(c, e)

    def note_mark(self, c: int, series: int, number: int) -> None:
        """Record the arrival of a marker (R5), and complete the capture that waits for it on this channel (C2)."""
        ch = self.channels[c]
        if series == MARKER_SERIES and number >= ch.mark:
            ch.mark = number
            ch.mark_at = ch.arrived
            if ch.capturing == number:
                self.finish_capture(c)

    def finish_capture(self, c: int) -> None:
        """Complete the capture of an input channel at the position of its marker (C2)."""
        ch = self.channels[c]
        ch.capturing = 0
        ch.cap_in = ch.mark_at - ch.captured_from
        ch.in_to = ch.mark_at

    def append_received(self, c: int, e: int) -> None:
        """Append an element to the receive queue (R4)."""
        ch = self.channels[c]
        self.elements[e].next = -1
        if ch.first < 0:
            ch.first = e
        else:
            self.elements[ch.last].next = e
        ch.last = e
        ch.received += 1
        self.make_ready(c)

    def require(self, c: int, backlog: int) -> None:
        """Take floating buffers for the sender's backlog, and grant them as credits (R2).

        If the gate has too few, the channel waits in its list of listeners.
        """
        g = self.g
        ch = self.channels[c]
        gate = self.gates[ch.gate]
        ch.required = backlog + g.exclusive
        gained = 0
        while ch.ex_free + ch.fl_free < ch.required and ch.waiting == 0:
            if gate.idle > 0:
                gate.idle -= 1
                ch.fl_free += 1
                gained += 1
            else:
                self.listen(c)
        if gained > 0:
            self.notify_sender(c, CREDIT, gained)

    def listen(self, c: int) -> None:
        """Append a channel to the listeners of its gate, which wait for floating buffers."""
        ch = self.channels[c]
        gate = self.gates[ch.gate]
        ch.waiting = 1
        ch.next_listener = -1
        if gate.listener_head < 0:
            gate.listener_head = c
        else:
            self.channels[gate.listener_tail].next_listener = c
        gate.listener_tail = c

    def recycle_current(self, c: int) -> None:
        """Recycle the current buffer of a channel, which has been read to its end (T7, T8)."""
        ch = self.channels[c]
        how = ch.current
        ch.current = 0
        if ch.local == 1:
            if (how & OWNED) != 0:
                self.retire(c, ch.taken)
        elif (how & LOOSE) != 0:  # recovered input (P6)
            return
        elif ch.taken <= ch.in_to and ch.in_from < ch.taken:  # pinned (C4); most often `in_from` is not read
            if (how & FLOATING) != 0:
                ch.owed_floating += 1
            else:
                ch.owed_exclusive += 1
        elif (how & FLOATING) != 0:
            self.recycle_floating(ch.gate)
        else:
            self.recycle_exclusive(c)

    def recycle_exclusive(self, c: int) -> None:
        """Recycle an exclusive buffer: return a surplus floating buffer to the gate, or else grant a credit (R3)."""
        ch = self.channels[c]
        ch.ex_free += 1
        if ch.ex_free + ch.fl_free > ch.required and ch.fl_free > 0:
            ch.fl_free -= 1
            self.recycle_floating(ch.gate)
        else:
            self.notify_sender(c, CREDIT, 1)

    def recycle_floating(self, i: int) -> None:
        """Give a floating buffer to the first listener that still needs one, or else return it to the gate (R3)."""
        gate = self.gates[i]
        while gate.listener_head >= 0:
            c = gate.listener_head
            ch = self.channels[c]
            gate.listener_head = ch.next_listener
            if gate.listener_head < 0:
                gate.listener_tail = -1
            ch.waiting = 0
            if ch.ex_free + ch.fl_free < ch.required:
                ch.fl_free += 1
                if ch.ex_free + ch.fl_free < ch.required:
                    self.listen(c)
                self.notify_sender(c, CREDIT, 1)
                return
        gate.idle += 1

    # ---- From the sender's queue to the wire, or, on a local channel, to the reader's attention (S2-S5, S7).

    def send(self, c: int) -> None:
        """Send the head of the queue of channel c."""
        ch = self.channels[c]
        ch.listed = 0
        if not self.sendable(c):
            return
        if ch.local == 1:
            self.send_local(c)
            return
        before = ch.sent
        e = ch.head
        if self.elements[e].kind == DATA:
            ch.credit -= 1
            e = self.send_data(c, e)
        else:
            self.send_marker(c, e)
        self.elements[e].backlog = self.backlog(c)
        self.transmit(e, ch.sent - before)
        self.offer(c)

    def send_data(self, c: int, head: int) -> int:
        """Remove the first buffer from the queue, or a slice with its written bytes if it is open.  Return the element to transmit."""
        ch = self.channels[c]
        self.partitions[ch.partition].buffers_out += 1
        e = head
        before = ch.sent
        if head == ch.tail and ch.full_at > 0:
            e = self.new_element(c, DATA)
            self.elements[e].end = ch.written
            ch.sent = ch.written
            ch.flush = 0
        else:
            self.take_head(c)
            ch.buffers -= 1
            ch.sent = self.elements[head].end
            self.retire(c, ch.sent)
        if self.g.digests == 1:
            self.fold_channel(c, ch.sent, ch.sent - before)
        return e

    def send_marker(self, c: int, e: int) -> None:
        """Remove marker e from the head of the queue.  A blocking marker blocks the queue; an announced one counts as having left."""
        ch = self.channels[c]
        self.take_head(c)
        element = self.elements[e]
        if (element.traits & BLOCKING) != 0:
            ch.blocked = 1
        if (element.traits & ANNOUNCED) != 0:
            self.miss(ch.writer, element.number)

    def miss(self, t: int, number: int) -> None:
        """Count that an announced marker has left the queues, and report LEFT if it is the last one of its number (S7)."""
        task = self.tasks[t]
        before = -1
        e = task.watches
        while e >= 0 and self.elements[e].number != number:
            before = e
            e = self.elements[e].next
        if e < 0:
            return
        watch = self.elements[e]
        watch.backlog -= 1
        if watch.backlog == 0:
            if before < 0:
                task.watches = watch.next
            else:
                self.elements[before].next = watch.next
            self.free_element(e)
            self.g.markers -= 1
            self.report_task(NOTE_LEFT, t, number)

    def backlog(self, c: int) -> int:
        """Return the number of buffers left in the queue (S3).  An open buffer counts only if it will be flushed."""
        ch = self.channels[c]
        if ch.blocked == 1:
            return 0
        n = ch.buffers
        if ch.full_at > 0 and ch.flush == 0:
            n -= 1
        return n

    def transmit(self, e: int, length: int) -> None:
        """Put an element of `length` bytes on the wire.  Without a NIC limit and latency it arrives at once (S5)."""
        g = self.g
        if g.nic_num > 0:
            i = self.tasks[self.channels[self.elements[e].channel].writer].line
            line = self.lines[i]
            if line.free_at < g.now:
                line.free_at = g.now
            line.free_at += (length * g.nic_den + g.nic_num - 1) // g.nic_num
            self.put_on_line(i, e, line.free_at + g.latency)
        elif g.latency > 0:
            self.put_on_line(1, e, g.now + g.latency)
        else:
            self.arrive(e)

    def forward_line_event(self, i: int) -> None:
        """Deliver the element that arrives now on forward line i."""
        self.arrive(self.take_off_line(i))

    def send_local(self, c: int) -> None:
        """Deliver a priority marker of a local channel.  Everything else stays in the queue, and the channel becomes ready (S4)."""
        ch = self.channels[c]
        e = ch.head
        if self.is_priority(e):
            self.send_marker(c, e)
            self.deliver_marker(c, e)
            if ch.ready == 1 and not self.pollable(c):
                self.withdraw(c)
            self.offer(c)
        else:
            self.make_ready(c)
