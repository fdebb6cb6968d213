"""Output: what may be sent, messages on lines, segments, emission, flush."""

from sim.plane.rows import PlaneState
from sim.plane.text.basics import (
    BROADCAST,
    CREDIT,
    DATA,
    HARD,
    IDLE,
    OWNED,
    READING,
    RESIZE,
    RESUME,
    SOFT,
    append_element,
    append_work,
    cancel,
    free_element,
    is_priority,
    new_element,
    record_size,
    remove_after,
    schedule,
    wake,
    wake_if,
)
from sim.plane.text.records import address, catch_up, copies_of

# ---- What may be sent (S1) and what may be polled (R4): the two lists through which a channel asks for attention.


def sendable(w: PlaneState, c: int) -> bool:
    """S1, for the head of the sender's queue."""
    ch = w.channels[c]
    if ch.queued == 0 or ch.blocked == 1:
        return False
    if ch.queued > ch.buffers and w.elements[ch.head].kind >= 0:
        return True
    if ch.credit == 0 and ch.local == 0:
        return False
    if ch.head == ch.tail and ch.full_at > 0:
        if ch.flush == 0:
            return False
        if w.tasks[ch.writer].ahead > 0:
            catch_up(w, ch.writer)
        return ch.written > ch.sent
    return True


def pollable(w: PlaneState, c: int) -> bool:
    """R4: something waits for the reader; of a gate that is shut only recovered input can."""
    ch = w.channels[c]
    if ch.taken < ch.recovered:
        return True
    if ch.local == 1:
        return sendable(w, c)
    return ch.received > 0


def offer(w: PlaneState, c: int) -> None:
    """SEND c, if there is something to send and SEND is not on the work list yet."""
    ch = w.channels[c]
    if ch.listed == 0 and sendable(w, c) and (ch.ready == 0 or ch.local == 0 or is_priority(w, ch.head)):
        ch.listed = 1
        append_work(w, w.g.tasks + c)


def append_ready(w: PlaneState, c: int) -> None:
    """At the end of the gate's ready list, and the gate at the end of its task's list unless it stands there."""
    ch = w.channels[c]
    gate = w.gates[ch.gate]
    ch.ready = 1
    ch.ready_after = -1
    ch.ready_before = gate.ready_tail
    if gate.ready_tail < 0:
        gate.ready_head = c
    else:
        w.channels[gate.ready_tail].ready_after = c
    gate.ready_tail = c
    if gate.listed == 0:
        append_gate(w, ch.gate)


def append_gate(w: PlaneState, i: int) -> None:
    gate = w.gates[i]
    task = w.tasks[gate.task]
    gate.listed = 1
    gate.after = -1
    gate.before = task.gate_tail
    if task.gate_tail < 0:
        task.gate_head = i
    else:
        w.gates[task.gate_tail].after = i
    task.gate_tail = i


def remove_ready(w: PlaneState, c: int) -> None:
    """Out of the gate's ready list, wherever it stands."""
    ch = w.channels[c]
    gate = w.gates[ch.gate]
    ch.ready = 0
    if ch.ready_before < 0:
        gate.ready_head = ch.ready_after
    else:
        w.channels[ch.ready_before].ready_after = ch.ready_after
    if ch.ready_after < 0:
        gate.ready_tail = ch.ready_before
    else:
        w.channels[ch.ready_after].ready_before = ch.ready_before


def remove_gate(w: PlaneState, i: int) -> None:
    """Out of the task's gate list, wherever it stands."""
    gate = w.gates[i]
    task = w.tasks[gate.task]
    gate.listed = 0
    if gate.before < 0:
        task.gate_head = gate.after
    else:
        w.gates[gate.before].after = gate.after
    if gate.after < 0:
        task.gate_tail = gate.before
    else:
        w.gates[gate.after].before = gate.before


def withdraw(w: PlaneState, c: int) -> None:
    """The channel has nothing left to poll."""
    remove_ready(w, c)
    i = w.channels[c].gate
    if w.gates[i].ready_head < 0:
        remove_gate(w, i)


def make_ready(w: PlaneState, c: int) -> None:
    """The channel has something to poll (R4)."""
    ch = w.channels[c]
    if ch.ready == 0:
        append_ready(w, c)
        wake_if(w, ch.reader, IDLE)


# ---- Messages to the sender (S6) and the lines on which everything delayed travels (S5).


def put_on_line(w: PlaneState, i: int, e: int, time: int) -> None:
    """Element e arrives at `time`; line i ranks behind the tasks."""
    line = w.lines[i]
    w.elements[e].time = time
    w.elements[e].next = -1
    if line.head < 0:
        line.head = e
        schedule(w, w.g.tasks + i, time)
    else:
        w.elements[line.tail].next = e
    line.tail = e


def take_off_line(w: PlaneState, i: int) -> int:
    """The element that arrives now; the next one sets the line's event."""
    line = w.lines[i]
    e = line.head
    line.head = w.elements[e].next
    w.elements[e].next = -1
    if line.head < 0:
        line.tail = -1
        cancel(w, w.g.tasks + i)
    else:
        schedule(w, w.g.tasks + i, w.elements[line.head].time)
    return e


def tell_sender(w: PlaneState, c: int, kind: int, number: int) -> None:
    """A message from the reader of channel c to its writer's side."""
    if w.g.latency == 0 or w.channels[c].local == 1:
        act(w, c, kind, number)
    else:
        e = new_element(w, c, kind)
        w.elements[e].number = number
        put_on_line(w, 0, e, w.g.now + w.g.latency)


def act(w: PlaneState, c: int, kind: int, number: int) -> None:
    """What a message does when it is there."""
    ch = w.channels[c]
    if kind == CREDIT:
        ch.credit += number
        offer(w, c)
    elif kind == RESUME:
        ch.blocked = 0
        offer(w, c)
    elif kind == RESIZE:
        ch.buffer_bytes = number


def reverse_line_event(w: PlaneState) -> None:
    e = take_off_line(w, 0)
    element = w.elements[e]
    c = element.channel
    kind = element.kind
    number = element.number
    free_element(w, e)
    act(w, c, kind, number)


def resume_sender(w: PlaneState, c: int) -> None:
    """M5, for one channel."""
    ch = w.channels[c]
    if ch.held_back == 1:
        ch.held_back = 0
        tell_sender(w, c, RESUME, 0)


# ---- Output: segments, writing into buffers, the emission of a record, flushing (O1-O7).


def emit(w: PlaneState, t: int) -> bool:
    """Write the outputs of the last record served and not late, or go on where that was refused; False: refused (again) (O4, O5)."""
    task = w.tasks[t]
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
            shared = w.partitions[cursor].ship == BROADCAST
            if shared:
                rest = write_shared(w, cursor, rest)
            else:
                rest = write(w, c, rest)
            if rest > 0:
                task.emitting = 1
                task.cursor = cursor
                task.copies = copies
                task.target = c
                task.rest = rest
                return False
            w.channels[c].records_out += 1
            if shared:
                for i in range(c + 1, c + w.partitions[cursor].channels):
                    w.channels[i].records_out += 1
        while copies == 0:
            cursor += 1
            if cursor >= task.last_partition:
                return True
            copies = copies_of(w, cursor, done)
        copies -= 1
        c = address(w, cursor)
        part = w.partitions[cursor]
        rest = record_size(w, c, part.size_table, part.size_n, w.channels[c].records_out)
        if w.g.timeout == 0:
            touch(w, cursor, c)
            if part.ship == BROADCAST:
                touch(w, cursor, c + part.channels - 1)


def write(w: PlaneState, c: int, rest: int) -> int:
    """Append `rest` bytes of a record; returns the bytes for which no segment was granted."""
    ch = w.channels[c]
    if ch.written + rest < ch.full_at:  # the common case: it fits and leaves room
        ch.written += rest
        return 0
    while rest > 0:
        if ch.full_at == 0 and not open_buffer(w, c):
            return rest
        room = ch.full_at - ch.written
        if rest > room:
            room += enlarge(w, c, rest)
        if rest < room:
            ch.written += rest
            return 0
        ch.written += room
        rest -= room
        close_full(w, c)
    return 0


def write_shared(w: PlaneState, p: int, rest: int) -> int:
    """The same for all channels of a broadcast, step by step (O4)."""
    part = w.partitions[p]
    lead = w.channels[part.first_channel]
    while rest > 0:
        if lead.full_at == 0 and not open_shared(w, p):
            return rest
        room = lead.full_at - lead.written
        if rest > room:
            room += enlarge_shared(w, p, rest)
        if rest < room:
            room = rest
        for c in range(part.first_channel, part.first_channel + part.channels):
            ch = w.channels[c]
            ch.written += room
            if ch.written == ch.full_at:
                close_full(w, c)
        rest -= room
    return 0


def open_shared(w: PlaneState, p: int) -> bool:
    """One segment for a buffer of each channel, as small as the smallest (O1, O3)."""
    part = w.partitions[p]
    if part.used >= part.limit:
        return False
    share(w, p, part.used + 1)
    capacity = w.g.segment_bytes
    for c in range(part.first_channel, part.first_channel + part.channels):
        ch = w.channels[c]
        ch.count += 1
        append_element(w, c, new_element(w, c, DATA))
        ch.buffers += 1
        if ch.buffer_bytes < capacity:
            capacity = ch.buffer_bytes
    for c in range(part.first_channel, part.first_channel + part.channels):
        ch = w.channels[c]
        ch.opened_at = ch.written
        ch.full_at = ch.written + capacity
    return True


def enlarge_shared(w: PlaneState, p: int, rest: int) -> int:
    """As for one channel."""
    part = w.partitions[p]
    gained = enlarge(w, part.first_channel, rest)
    if gained > 0:
        for c in range(part.first_channel + 1, part.first_channel + part.channels):
            w.channels[c].full_at += gained
    return gained


def share(w: PlaneState, p: int, used: int) -> None:
    """So many shared segments are in use; together they count as one channel's (O2)."""
    part = w.partitions[p]
    part.used = used
    part.full = 0
    if used >= w.g.max_per_channel:
        part.full = 1


def count_shared(w: PlaneState, p: int) -> None:
    """A shared segment is in use until the last channel has given it back (O1)."""
    part = w.partitions[p]
    most = 0
    for c in range(part.first_channel, part.first_channel + part.channels):
        if w.channels[c].count > most:
            most = w.channels[c].count
    share(w, p, most)


def open_buffer(w: PlaneState, c: int) -> bool:
    """A segment out of the pool (O3), at the end of the queue."""
    ch = w.channels[c]
    part = w.partitions[ch.partition]
    if part.used >= part.limit:
        return False
    part.used += 1
    ch.count += 1
    if ch.count == w.g.max_per_channel:
        part.full += 1
    append_element(w, c, new_element(w, c, DATA))
    ch.buffers += 1
    ch.opened_at = ch.written
    ch.full_at = ch.written + ch.buffer_bytes
    return True


def enlarge(w: PlaneState, c: int, rest: int) -> int:
    """Without output to spare, a small buffer grows to what the record needs; returns the bytes gained."""
    ch = w.channels[c]
    at_most = ch.opened_at + w.g.segment_bytes
    if w.g.stretching == 0 or ch.full_at >= at_most or has_room(w, ch.partition):
        return 0
    before = ch.full_at
    ch.full_at = ch.written + rest
    if ch.full_at > at_most:
        ch.full_at = at_most
    return ch.full_at - before


def close_full(w: PlaneState, c: int) -> None:
    ch = w.channels[c]
    w.elements[ch.tail].end = ch.written
    ch.full_at = 0
    offer(w, c)


def close(w: PlaneState, c: int) -> None:
    """Close the open buffer wherever it stands (M1); if nothing of it is left to send it is gone."""
    ch = w.channels[c]
    if ch.full_at == 0:
        return
    ch.full_at = 0
    e = ch.tail
    w.elements[e].end = ch.written
    if ch.written > ch.sent:
        return
    before = -1
    i = ch.head
    while i != e:  # priority markers may stand before it
        before = i
        i = w.elements[i].next
    remove_after(w, c, before, e)
    free_element(w, e)
    ch.buffers -= 1
    if ch.local == 1 and ch.current != 0:
        ch.current = READING | OWNED  # with the recycling of the last slice (O7)
    else:
        give_back(w, c)


def has_room(w: PlaneState, p: int) -> bool:
    """O2, for one partition."""
    part = w.partitions[p]
    return part.used < part.pool and part.full == 0


def available(w: PlaneState, t: int) -> bool:
    """O2."""
    task = w.tasks[t]
    for p in range(task.first_partition, task.last_partition):
        if not has_room(w, p):
            return False
    return True


def give_back(w: PlaneState, c: int) -> None:
    """One segment returns to its pool and wakes the writer that waits for it (O7)."""
    ch = w.channels[c]
    part = w.partitions[ch.partition]
    if part.ship == BROADCAST:
        ch.count -= 1
        if ch.count + 1 == part.used:
            count_shared(w, ch.partition)
    else:
        if ch.count == w.g.max_per_channel:
            part.full -= 1
        ch.count -= 1
        part.used -= 1
    state = w.tasks[part.task].state
    if state == HARD or (state == SOFT and available(w, part.task)):
        wake(w, part.task)


def retire(w: PlaneState, c: int, end: int) -> None:
    """The buffer ending at `end` is sent (local: recycled); pinned, its segment is owed (C4)."""
    ch = w.channels[c]
    if end <= ch.out_to and ch.out_from < end:  # most often no byte is pinned, and `out_from` is not read
        ch.owed_segments += 1
    else:
        give_back(w, c)


def flush_channel(w: PlaneState, c: int) -> None:
    ch = w.channels[c]
    if ch.written > ch.sent:
        ch.flush = 1
        offer(w, c)


def flush(w: PlaneState, t: int) -> None:
    """Everything written may leave (O6)."""
    task = w.tasks[t]
    for p in range(task.first_partition, task.last_partition):
        part = w.partitions[p]
        for c in range(part.first_channel, part.first_channel + part.channels):
            flush_channel(w, c)


def touch(w: PlaneState, p: int, c: int) -> None:
    """Remember where an emission writes, so that its flush need not visit every channel."""
    part = w.partitions[p]
    if part.touched_to == 0 or c < part.touched_from:
        part.touched_from = c
    if c >= part.touched_to:
        part.touched_to = c + 1


def flush_touched(w: PlaneState, t: int) -> None:
    """The flush at the end of an emission: everywhere else nothing is unsent that was not flushed before."""
    task = w.tasks[t]
    for p in range(task.first_partition, task.last_partition):
        part = w.partitions[p]
        for c in range(part.touched_from, part.touched_to):
            flush_channel(w, c)
        part.touched_from = 0
        part.touched_to = 0


def go_on_writing(w: PlaneState, t: int) -> bool:
    """The emission, and the flush at its end without a timer (T2, O6)."""
    if not emit(w, t):
        return False
    if w.g.timeout == 0:
        flush_touched(w, t)
    return True
