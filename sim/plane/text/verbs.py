"""Operations that the control plane calls: capture, markers, positions, restarts, sums (RULES.md: verbs).

Arguments: `w` is the state of the plane, `t` a task, `i` a gate, `p` a partition, `c` a channel, `e` an element of a queue.  They
are indices of rows.  `number` is the number of a marker; that of a barrier is its checkpoint.
"""

from sim.plane.rows import PlaneState
from sim.plane.text.basics import (
    ANNOUNCED,
    BLOCKING,
    BROADCAST,
    BUSY,
    DATA,
    EDGE_SUMS,
    HALTED,
    HARD,
    HELD,
    IDLE,
    MARKER_SERIES,
    NEVER,
    NOTE_LEFT,
    PRIORITY,
    RESETTING,
    SOFT,
    VERTEX_SUMS,
    WATCH,
    append_element,
    append_urgent,
    append_work,
    become,
    cancel,
    free_element,
    free_marker,
    insert_priority,
    is_priority,
    new_element,
    new_marker,
    record_size,
    remove_after,
    report_task,
    wake_between_records,
)
from sim.plane.text.channels import (
    append_ready,
    close,
    count_shared,
    finish_capture,
    give_back,
    offer,
    pollable,
    put_on_line,
    recycle_exclusive,
    recycle_floating,
    resume_sender,
    touch,
    withdraw,
)
from sim.plane.text.task import be_late_again, settle_gate

# ---- In-flight data: the bytes that a capture counts, and the buffers that it pins (C1-C5).


def capture(w: PlaneState, t: int, number: int) -> None:
    """Capture the input of a task that has arrived or will arrive before the marker of each channel, and pin its buffers (C1)."""
    start_pinning(w, t, number)
    task = w.tasks[t]
    for i in range(task.first_gate, task.last_gate):
        gate = w.gates[i]
        for k in range(gate.first_channel, gate.last_channel):
            c = w.words[k]
            ch = w.channels[c]
            ch.capturing = number
            ch.captured_from = ch.consumed
            ch.cap_in = 0
            ch.in_from = ch.taken
            ch.in_to = NEVER
            if ch.mark == number:
                finish_capture(w, c)


def start_pinning(w: PlaneState, t: int, number: int) -> None:
    """Pin buffers for this number from now on, and release those that are pinned for an earlier one (C4)."""
    task = w.tasks[t]
    if task.pinning != number:
        release_capture(w, t)
    task.pinning = number


def captured_input(w: PlaneState, t: int) -> int:
    """Return the captured input bytes of a task.  A channel whose marker is missing counts all that has arrived so far (C5)."""
    task = w.tasks[t]
    total = 0
    for i in range(task.first_gate, task.last_gate):
        gate = w.gates[i]
        for k in range(gate.first_channel, gate.last_channel):
            ch = w.channels[w.words[k]]
            total += ch.cap_in
            if ch.capturing > 0:
                total += ch.arrived - ch.captured_from
    return total


def pin_output(w: PlaneState, c: int, end: int) -> int:
    """Capture and pin the data in the sender's queue up to the offset `end` (C3, C4).  Return its bytes."""
    ch = w.channels[c]
    ch.cap_out = end - ch.sent
    if ch.out_to <= ch.sent:
        ch.out_from = ch.sent
    if end > ch.out_to:
        ch.out_to = end
    return ch.cap_out


def release_capture(w: PlaneState, t: int) -> None:
    """Unpin the buffers of a task.  Those that were recycled or sent while pinned return to their pools (C4)."""
    task = w.tasks[t]
    if task.pinning == 0:
        return
    task.pinning = 0
    for i in range(task.first_gate, task.last_gate):
        gate = w.gates[i]
        for k in range(gate.first_channel, gate.last_channel):
            release_input(w, i, w.words[k])
    for p in range(task.first_partition, task.last_partition):
        part = w.partitions[p]
        for c in range(part.first_channel, part.last_channel):
            release_output(w, c)


def release_input(w: PlaneState, i: int, c: int) -> None:
    """Unpin the input buffers of channel c of gate i, and recycle those that have been read."""
    ch = w.channels[c]
    ch.in_from = NEVER
    while ch.owed_exclusive > 0:
        ch.owed_exclusive -= 1
        recycle_exclusive(w, c)
    while ch.owed_floating > 0:
        ch.owed_floating -= 1
        recycle_floating(w, i)


def release_output(w: PlaneState, c: int) -> None:
    """Unpin the output segments of channel c, and return those that have been sent."""
    ch = w.channels[c]
    ch.out_from = 0
    ch.out_to = 0
    while ch.owed_segments > 0:
        ch.owed_segments -= 1
        give_back(w, c)


# ---- Operations on markers: forward, convert, prioritise, resume, settle (M1-M3, M5).


def forward(w: PlaneState, t: int, only_partition: int, series: int, number: int, traits: int) -> int:
    """Write a marker to every output channel of the task, or of partition `only_partition` unless it is -1.  Return the bytes captured (M1)."""
    task = w.tasks[t]
    captured = 0
    sent = 0
    if (traits & PRIORITY) != 0:
        start_pinning(w, t, number)
    for p in range(task.first_partition, task.last_partition):
        if only_partition < 0 or p == only_partition:
            part = w.partitions[p]
            sent += part.channels
            for c in range(part.first_channel, part.last_channel):
                captured += insert(w, c, new_marker(w, c, series, number, traits))
    if (traits & ANNOUNCED) != 0:
        if sent > 0:
            report_when_left(w, t, number, sent)
        else:
            report_task(w, NOTE_LEFT, t, number)
    return captured


def insert(w: PlaneState, c: int, e: int) -> int:
    """Insert marker e into the sender's queue.  If it has priority, capture the data that it overtakes.  Return the bytes captured."""
    close(w, c)
    captured = 0
    if is_priority(w, e):
        insert_priority(w, c, e)
        captured = pin_output(w, c, w.channels[c].written)
    else:
        append_element(w, c, e)
    offer(w, c)
    return captured


def report_when_left(w: PlaneState, t: int, number: int, markers: int) -> None:
    """Report LEFT when `markers` more markers of this number have left the output queues of the task (S7)."""
    task = w.tasks[t]
    e = task.watches
    while e >= 0 and w.elements[e].number != number:
        e = w.elements[e].next
    if e < 0:
        e = new_element(w, -1, WATCH)
        w.g.markers += 1
        w.elements[e].number = number
        w.elements[e].backlog = 0
        w.elements[e].next = task.watches
        task.watches = e
    w.elements[e].backlog += markers


def convert_output(w: PlaneState, t: int, number: int) -> int:
    """Convert ordinary markers of this number in the task's output queues to priority markers, which overtake data (M2).

    Flink: ResultSubpartition#alignedBarrierTimeout.  Return the bytes captured.
    """
    task = w.tasks[t]
    captured = 0
    start_pinning(w, t, number)
    for p in range(task.first_partition, task.last_partition):
        part = w.partitions[p]
        for c in range(part.first_channel, part.last_channel):
            w.channels[c].cap_out = 0
            captured += convert_channel(w, c, number)
    return captured


def convert_channel(w: PlaneState, c: int, number: int) -> int:
    """Convert the markers in the queue of one channel (M2).  Return the bytes captured."""
    ch = w.channels[c]
    captured = 0
    end = ch.sent
    before = -1
    e = ch.head
    while e >= 0:
        element = w.elements[e]
        after = element.next
        if element.kind == DATA:
            end = element.end
            before = e
        elif (
            element.kind == MARKER_SERIES
            and element.number == number
            and (element.traits & (PRIORITY | ANNOUNCED)) == ANNOUNCED
        ):
            remove_after(w, c, before, e)
            element.traits = (element.traits | PRIORITY) & ~BLOCKING
            insert_priority(w, c, e)
            captured = pin_output(w, c, end)  # of one marker: a channel has at most one of a number
            if before < 0 or w.elements[before].next == e:  # no data to overtake: the marker is where it was
                before = e
            offer(w, c)
        else:
            before = e
        e = after
    return captured


def prioritise(w: PlaneState, t: int, number: int) -> None:
    """Process markers of this number before data: those in the task's receive queues, and those still to arrive (M3)."""
    task = w.tasks[t]
    task.prioritised = number
    moved = False
    for i in range(task.first_gate, task.last_gate):
        gate = w.gates[i]
        for k in range(gate.first_channel, gate.last_channel):
            c = w.words[k]
            if w.channels[c].received > w.channels[c].received_buffers and prioritise_channel(w, t, c, number):
                moved = True
    if moved:
        wake_between_records(w, t)


def prioritise_channel(w: PlaneState, t: int, c: int, number: int) -> bool:
    """Move markers of this number from a receive queue to the task's urgent markers.  Return whether there were any."""
    ch = w.channels[c]
    moved = False
    before = -1
    e = ch.first
    while e >= 0:
        element = w.elements[e]
        after = element.next
        if element.kind == MARKER_SERIES and element.number == number:
            if before < 0:
                ch.first = after
            else:
                w.elements[before].next = after
            if after < 0:
                ch.last = before
            ch.received -= 1
            append_urgent(w, t, e)
            moved = True
        else:
            before = e
        e = after
    if moved and not pollable(w, c):
        withdraw(w, c)
    return moved


def resume(w: PlaneState, t: int, number: int) -> None:
    """Resume the senders that are blocked by a marker of this or an earlier number (M5)."""
    task = w.tasks[t]
    for i in range(task.first_gate, task.last_gate):
        gate = w.gates[i]
        for k in range(gate.first_channel, gate.last_channel):
            if w.channels[w.words[k]].mark <= number:
                resume_sender(w, w.words[k])


def settle(w: PlaneState, t: int, series: int, number: int) -> None:
    """Make numbers up to this one obsolete on all gates of the task (M5)."""
    task = w.tasks[t]
    for i in range(task.first_gate, task.last_gate):
        settle_gate(w, i, series, number)


# ---- Positions and record counts of a task, which are copied column by column to `words`, from `g.copied` on (P2, P8).


def bare_position(w: PlaneState, t: int) -> int:
    """Copy the position of a task without captured data to `words[copied]`.  Return the number of pending outputs.

    The words are the records served; the bytes read, then the records read by input channel; the bytes written, then the
    records written by output channel.
    """
    task = w.tasks[t]
    w.words[w.g.copied] = task.served
    at = w.g.copied + 1
    n = input_channels(w, t)
    for i in range(task.first_gate, task.last_gate):
        gate = w.gates[i]
        for k in range(gate.first_channel, gate.last_channel):
            ch = w.channels[w.words[k]]
            w.words[at] = ch.consumed
            w.words[at + n] = ch.records_in
            at += 1
    at += n
    n = output_channels(w, t)
    for p in range(task.first_partition, task.last_partition):
        part = w.partitions[p]
        for c in range(part.first_channel, part.last_channel):
            w.words[at] = w.channels[c].written
            w.words[at + n] = w.channels[c].records_out
            at += 1
    return task.late


def copy_record_counts(w: PlaneState, t: int, earlier: int) -> int:
    """Copy the records read by input channel, then the records written by output channel, to `words[copied]`.

    Return the number of records served.  With `earlier` = 1, earlier attempts of the task are included (P8).
    """
    task = w.tasks[t]
    at = w.g.copied
    for i in range(task.first_gate, task.last_gate):
        gate = w.gates[i]
        for k in range(gate.first_channel, gate.last_channel):
            ch = w.channels[w.words[k]]
            w.words[at] = ch.records_in
            if earlier == 1:
                w.words[at] += ch.earlier_read
            at += 1
    for p in range(task.first_partition, task.last_partition):
        part = w.partitions[p]
        for c in range(part.first_channel, part.last_channel):
            w.words[at] = w.channels[c].records_out
            if earlier == 1:
                w.words[at] += w.channels[c].earlier_written
            at += 1
    return task.served + task.earlier_served


def input_channels(w: PlaneState, t: int) -> int:
    """Return the number of input channels of a task."""
    n = 0
    for i in range(w.tasks[t].first_gate, w.tasks[t].last_gate):
        n += w.gates[i].channels
    return n


def output_channels(w: PlaneState, t: int) -> int:
    """Return the number of output channels of a task."""
    n = 0
    for p in range(w.tasks[t].first_partition, w.tasks[t].last_partition):
        n += w.partitions[p].channels
    return n


# ---- Halts and restarts of tasks (P1, P3-P6).
#
# Between `sweep` and `restore_task` the owner of the state (`PlaneState`) resets the rows of the tasks marked RESETTING, except
# for the fields that survive a restart (`Kept`), and writes their positions.


def halt(w: PlaneState, t: int) -> None:
    """Halt a task.  Its thread stops at once: the current service does not end, and its record is not written completely (P1)."""
    task = w.tasks[t]
    task.serving = 0
    if task.emitting == 1:
        w.partitions[task.cursor].uncounted += 1
    task.emitting = 0
    task.held = 1
    drop_event(w, t)
    become(w, t, HALTED)


def drop_event(w: PlaneState, t: int) -> None:
    """Cancel the event of a task."""
    cancel(w, t)
    if w.g.stale == t:
        w.g.stale = -1


def sweep(w: PlaneState) -> None:
    """Remove the tasks that are restarted from the work list, the lines, the queues and other lists (P3)."""
    g = w.g
    for _ in range(g.work_n):
        item = w.ring[g.work_head]
        g.work_head = (g.work_head + 1) & g.work_mask
        g.work_n -= 1
        if not is_resetting(w, item):
            append_work(w, item)
    for i in range(g.flush_rank - g.tasks):
        line = w.lines[i]
        e = line.head
        line.head = -1
        line.tail = -1
        cancel(w, g.tasks + i)
        while e >= 0:
            element = w.elements[e]
            after = element.next
            element.next = -1
            if is_resetting(w, g.tasks + element.channel):
                free_chain(w, e)
            else:
                put_on_line(w, i, e, element.time)
            e = after
    for c in range(g.channels):
        if is_resetting(w, g.tasks + c):
            ch = w.channels[c]
            free_chain(w, ch.head)
            free_chain(w, ch.first)
    for t in range(g.tasks):
        if is_resetting(w, t):
            free_chain(w, w.tasks[t].urgent_head)
            free_chain(w, w.tasks[t].watches)
            drop_event(w, t)
            become(w, t, HELD)


def is_resetting(w: PlaneState, item: int) -> bool:
    """Return whether a work item belongs to a task that is restarted (RESETTING).

    Both tasks of a channel are restarted, or neither is.
    """
    if item >= w.g.tasks:
        return w.tasks[w.channels[item - w.g.tasks].reader].held == RESETTING
    return w.tasks[item].held == RESETTING


def free_chain(w: PlaneState, first: int) -> None:
    """Return all elements of a linked list to the pool.  `first` is -1 for an empty list."""
    e = first
    while e >= 0:
        after = w.elements[e].next
        if w.elements[e].kind >= 0 or w.elements[e].kind == WATCH:  # kinds of markers are their series
            free_marker(w, e)
        else:
            free_element(w, e)
        e = after


def restore_task(w: PlaneState, t: int) -> None:
    """Restore a task.  Derive its fields from the offsets of its channels, and queue recovered output and input (P5, P6)."""
    task = w.tasks[t]
    task.held = 1
    task.recovering = 1
    be_late_again(w, t)
    for p in range(task.first_partition, task.last_partition):
        part = w.partitions[p]
        for c in range(part.first_channel, part.last_channel):
            recover_output(w, c)
        if part.ship == BROADCAST:
            count_shared(w, p)
            part.recovered = part.used
    for i in range(task.first_gate, task.last_gate):
        gate = w.gates[i]
        gate.shut = 1
        for k in range(gate.first_channel, gate.last_channel):
            c = w.words[k]
            w.channels[c].blocked = 1
            w.channels[c].recovered = w.channels[c].arrived
            seek_record(w, c)
            if w.channels[c].arrived > w.channels[c].taken:
                append_ready(w, c)


def seek_record(w: PlaneState, c: int) -> None:
    """Find the reader's next record in channel c, by stepping back from the last record written (P5)."""
    ch = w.channels[c]
    gate = w.gates[ch.gate]
    i = ch.records_out
    at = ch.written
    while i > 0:
        size = record_size(w, c, gate.size_table, gate.size_n, i - 1)
        if at - size < ch.consumed:
            break
        at -= size
        i -= 1
    ch.records_in = i
    gate.records_in += i
    ch.record_end = at + record_size(w, c, gate.size_table, gate.size_n, i)


def recover_output(w: PlaneState, c: int) -> None:
    """Queue the recovered output of channel c, the bytes from `sent` to `written`, as closed buffers (P6).  The next flush sends them (O6)."""
    ch = w.channels[c]
    part = w.partitions[ch.partition]
    if ch.written > ch.sent:
        touch(w, ch.partition, c)
    end = ch.sent
    while end < ch.written:
        end += w.g.segment_bytes
        if end > ch.written:
            end = ch.written
        e = new_element(w, c, DATA)
        w.elements[e].end = end
        append_element(w, c, e)
        ch.buffers += 1
        ch.count += 1
        if part.ship != BROADCAST:
            if ch.count == w.g.max_per_channel:
                part.full += 1
            part.used += 1
            part.recovered += 1


# ---- Sums over the tasks of each vertex and the channels of each edge, for samples.  Copying all rows would take longer.


def sum_up(w: PlaneState, now: int) -> None:
    """Write the sums of all vertices, then those of all edges, to `words[g.sums]` (VERTEX_COLUMNS and EDGE_COLUMNS of the interface).

    For each edge, `words` from `g.first_channels` on have its first channel and its upstream vertex.
    """
    g = w.g
    for v in range(g.vertices):
        sum_tasks(w, w.words[g.first_tasks + v], w.words[g.first_tasks + v + 1], g.sums + v * VERTEX_SUMS, now)
    for e in range(g.edges):
        at = g.first_channels + 2 * e
        written = sum_channels(w, w.words[at], w.words[at + 2], g.sums + g.vertices * VERTEX_SUMS + e * EDGE_SUMS)
        w.words[g.sums + w.words[at + 1] * VERTEX_SUMS + 1] += written


def sum_in_flight(w: PlaneState) -> None:
    """Write, by task, the number of records written to its output channels minus those read from its input channels, to `words[g.copied]`."""
    for t in range(w.g.tasks):
        task = w.tasks[t]
        records = 0
        for p in range(task.first_partition, task.last_partition):
            records += written_into(w, p)
        for i in range(task.first_gate, task.last_gate):
            records -= w.gates[i].records_in
        w.words[w.g.copied + t] = records


def written_into(w: PlaneState, p: int) -> int:
    """Return the number of records written to the channels of a partition, without those cut off by a halt or being written."""
    part = w.partitions[p]
    task = w.tasks[part.task]
    copies = part.copies - part.uncounted
    if task.emitting == 1 and task.cursor == p:
        copies -= 1
    if part.ship == BROADCAST:
        copies *= part.channels
    return copies


def sum_tasks(w: PlaneState, first: int, last: int, at: int, now: int) -> None:
    """Write the sums of the tasks from `first` to `last` - 1 to `words[at]`.

    They are the records served, the bytes written by earlier attempts, and the busy, idle, soft and hard back-pressured time up
    to `now` [ns].
    """
    served = 0
    earlier = 0
    busy = 0
    idle = 0
    soft = 0
    hard = 0
    for t in range(first, last):
        task = w.tasks[t]
        served += task.served + task.earlier_served
        earlier += task.earlier_out
        busy += task.busy_ns
        idle += task.idle_ns
        soft += task.soft_ns
        hard += task.hard_ns
        running = now - task.since
        if task.state == BUSY or task.state == HELD:
            busy += running
        elif task.state == IDLE:
            idle += running
        elif task.state == SOFT:
            soft += running
        elif task.state == HARD:
            hard += running
    w.words[at] = served
    w.words[at + 1] = earlier
    w.words[at + 2] = busy
    w.words[at + 3] = idle
    w.words[at + 4] = soft
    w.words[at + 5] = hard


def sum_channels(w: PlaneState, first: int, last: int, at: int) -> int:
    """Write the sums of the channels from `first` to `last` - 1 to `words[at]`, and return the sum of their offsets `written`.

    They are bytes and buffers to read, and bytes and buffers to send (EDGE_COLUMNS of the interface).
    """
    written = 0
    at_reader = 0
    to_read = 0
    at_writer = 0
    to_send = 0
    for c in range(first, last):
        ch = w.channels[c]
        written += ch.written
        at_reader += ch.arrived - ch.taken
        at_writer += ch.written - ch.sent
        to_send += ch.queued
        if ch.local == 1:
            to_read += ch.queued
        else:
            to_read += ch.received
    w.words[at] = at_reader
    w.words[at + 1] = to_read
    w.words[at + 2] = at_writer
    w.words[at + 3] = to_send
    return written
