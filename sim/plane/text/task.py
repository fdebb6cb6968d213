"""Tasks: counting markers, pending outputs, and the turns of task threads."""

from sim.plane.rows import PlaneState
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
    append_turn,
    become,
    draw,
    fold_channel,
    free_element,
    free_marker,
    quantile,
    report,
    report_safe,
    report_task,
    schedule,
    take_head,
    wake_between_records,
)
from sim.plane.text.channels import (
    append_gate,
    append_ready,
    available,
    begin_serving_ahead,
    catch_up,
    consume,
    continue_writing,
    emit,
    fetch_targets,
    flush_touched,
    next_due,
    note_mark,
    notify_sender,
    pays_to_serve_ahead,
    pollable,
    recycle_current,
    remove_gate,
    remove_ready,
    resume_sender,
    send_marker,
    service_ns,
)

# ---- Markers that a task has processed are counted per gate and number (M4).


def process_marker(w: PlaneState, c: int, e: int) -> None:
    """Process a marker of channel c that has reached the task."""
    element = w.elements[e]
    series = element.kind
    number = element.number
    traits = element.traits
    free_marker(w, e)
    ch = w.channels[c]
    if (traits & BLOCKING) != 0:
        ch.held_back = 1
    if number <= w.words[w.gates[ch.gate].settled + series]:
        if (traits & BLOCKING) != 0:  # but not what an earlier marker holds back
            resume_sender(w, c)
        return
    if (traits & FINAL) != 0:
        close_channel(w, c)
    count_marker(w, c, series, number)
    if (traits & FINAL) != 0:
        count_closed(w, c)


def count_marker(w: PlaneState, c: int, series: int, number: int) -> None:
    """Count a marker of channel c, and report the first and the last one of its number.  Report each marker of the upper series."""
    words = w.words
    gate = w.gates[w.channels[c].gate]
    if series >= ONE_BY_ONE:
        closed = 0
        if gate.closed == gate.channels:
            closed = 1
        report(w, NOTE_ARRIVED, gate.task, gate.place, series, number, c, 1, closed)
        return
    first = 0
    at = find_count(w, w.channels[c].gate, series, number)
    if at < 0:
        first = 1
        at = open_count(w, w.channels[c].gate, series, number)
    add_to_count(w, at, w.channels[c].place)
    last = 0
    if words[at + 2] == gate.channels:
        last = 1
        drop_count(w, w.channels[c].gate, at)
    if first == 1 or last == 1:
        report(w, NOTE_ARRIVED, gate.task, gate.place, series, number, c, first, last)


def find_count(w: PlaneState, i: int, series: int, number: int) -> int:
    """Return the index in `words` of the open count of gate i for this number, or -1 if there is none."""
    gate = w.gates[i]
    for k in range(gate.open_counts):
        at = gate.counts + k * gate.count_words
        if w.words[at] == series and w.words[at + 1] == number:
            return at
    return -1


def open_count(w: PlaneState, i: int, series: int, number: int) -> int:
    """Open a count on gate i, and return its index in `words`.  Closed channels are counted at once.

    If there are too many counts, the oldest one is dropped, and its number becomes obsolete.
    """
    words = w.words
    gate = w.gates[i]
    if gate.open_counts == COUNTS:
        words[gate.settled + words[gate.counts]] = words[gate.counts + 1]
        drop_count(w, i, gate.counts)
    at = gate.counts + gate.open_counts * gate.count_words
    gate.open_counts += 1
    words[at] = series
    words[at + 1] = number
    words[at + 2] = gate.closed
    for k in range(gate.count_words - COUNT_HEAD):
        words[at + COUNT_HEAD + k] = words[gate.closed_bits + k]
    return at


def drop_count(w: PlaneState, i: int, at: int) -> None:
    """Drop the count at index `at` of gate i, and close the gap in the list."""
    words = w.words
    gate = w.gates[i]
    gate.open_counts -= 1
    end = gate.counts + gate.open_counts * gate.count_words
    while at < end:
        words[at] = words[at + gate.count_words]
        at += 1


def add_to_count(w: PlaneState, at: int, place: int) -> bool:
    """Count a channel once.  Return whether it had not been counted."""
    i = at + COUNT_HEAD + place // BITS
    bit = 1 << (place % BITS)
    if (w.words[i] & bit) != 0:
        return False
    w.words[i] |= bit
    w.words[at + 2] += 1
    return True


def close_channel(w: PlaneState, c: int) -> None:
    """Close a channel after a FINAL marker: it counts for every later number."""
    gate = w.gates[w.channels[c].gate]
    place = w.channels[c].place
    i = gate.closed_bits + place // BITS
    bit = 1 << (place % BITS)
    if (w.words[i] & bit) == 0:
        w.words[i] |= bit
        gate.closed += 1


def count_closed(w: PlaneState, c: int) -> None:
    """Add a closed channel to every open count, and report those that are complete, oldest first."""
    words = w.words
    i = w.channels[c].gate
    gate = w.gates[i]
    k = 0
    while k < gate.open_counts:
        at = gate.counts + k * gate.count_words
        if add_to_count(w, at, w.channels[c].place) and words[at + 2] == gate.channels:
            series = words[at]
            number = words[at + 1]
            drop_count(w, i, at)
            report(w, NOTE_ARRIVED, gate.task, gate.place, series, number, c, 0, 1)
        else:
            k += 1


def settle_gate(w: PlaneState, i: int, series: int, number: int) -> None:
    """Make numbers up to this one obsolete on the gate (M5)."""
    words = w.words
    gate = w.gates[i]
    words[gate.settled + series] = number
    k = 0
    while k < gate.open_counts:
        at = gate.counts + k * gate.count_words
        if words[at] == series and words[at + 1] <= number:
            drop_count(w, i, at)
        else:
            k += 1


# ---- Outputs that leave after the service of their record (L1-L9).


def become_late(w: PlaneState, t: int) -> None:
    """Delay the outputs of the record just served.  If the capacity is used up, the thread keeps the record in hand (L1, L2)."""
    task = w.tasks[t]
    if task.lag == TIMED:
        if task.late == task.lag_capacity:
            task.in_hand = 1
        else:
            set_ready(w, t, task.served - 1)
    task.late += 1


def set_ready(w: PlaneState, t: int, k: int) -> None:
    """Compute the time at which the outputs of record k are ready.  They follow the pending outputs (L2)."""
    task = w.tasks[t]
    ready = w.g.now + quantile(w, task.lag_table, task.lag_n, task.lag_stride, task.lag_offset, k)
    if ready < task.lag_last:
        ready = task.lag_last
    task.lag_last = ready
    i = task.lag_first + task.late
    if i >= task.lag_capacity:
        i -= task.lag_capacity
    w.words[task.lag_ring + i] = ready


def write_late(w: PlaneState, t: int) -> bool:
    """Write the pending outputs that are ready (L3).

    Return False if this ends the turn: the thread waits for a segment, has a record in hand, fires, or has a notice.
    """
    task = w.tasks[t]
    while True:
        while task.in_hand > 0 and task.late - task.in_hand < task.lag_capacity:
            in_hand = task.in_hand
            task.late -= in_hand
            set_ready(w, t, task.served - in_hand)
            task.late += in_hand
            task.in_hand = in_hand - 1
        if task.late == 0 or not first_ready(w, t):
            break
        if task.yields == 1 and yields_now(w, t):
            return False
        if task.firing_ns > 0 and begin_firing(w, t):
            return False
        if task.lag == TIMED:
            task.lag_first += 1
            if task.lag_first == task.lag_capacity:
                task.lag_first = 0
        task.late -= 1
        if not continue_writing(w, t):
            become(w, t, HARD)
            return False
    if task.in_hand > 0:
        become(w, t, BUSY)
        schedule(w, t, w.words[task.lag_ring + task.lag_first])
        return False
    return True


def begin_firing(w: PlaneState, t: int) -> bool:
    """Start the firing of the first record with pending outputs (L7).  Return False if the record has no outputs."""
    task = w.tasks[t]
    k = task.served - task.late
    outputs = (k + 1) * task.fired_num // task.fired_den - k * task.fired_num // task.fired_den
    if outputs == 0:
        return False
    ns = outputs * task.firing_ns
    if task.slow_num != task.slow_den:
        ns = ns * task.slow_num // task.slow_den
    if ns < 1:
        ns = 1
    become(w, t, BUSY)
    task.serving = FIRING
    schedule(w, t, w.g.now + ns)
    return True


def end_firing(w: PlaneState, t: int) -> None:
    """End a firing, and write its outputs (L7).  The caller makes the turn that follows."""
    task = w.tasks[t]
    task.serving = 0
    task.late -= 1
    if not continue_writing(w, t):
        become(w, t, HARD)


def yields_now(w: PlaneState, t: int) -> bool:
    """Process mails and priority markers before the next record is fired (L8).  Return whether a notice ends the turn."""
    task = w.tasks[t]
    if task.interrupted == 1:
        report_safe(w, t)
    while w.g.noted == 0 and task.urgent_head >= 0 and (task.waits_for_late & 1) == 0:
        e = task.urgent_head
        task.urgent_head = w.elements[e].next
        process_marker(w, w.elements[e].channel, e)
    if w.g.noted > 0:
        append_turn(w, t)
        return True
    return False


def first_ready(w: PlaneState, t: int) -> bool:
    """Return whether the first pending output is ready or released (L3)."""
    task = w.tasks[t]
    if task.lag == TIMED:
        return w.words[task.lag_ring + task.lag_first] <= w.g.now
    return task.served - task.late < task.released_until


def expect_late(w: PlaneState, t: int) -> None:
    """Schedule the time at which the next pending output is ready, if the thread waits (L4)."""
    task = w.tasks[t]
    if task.lag == TIMED and task.serving == 0 and (task.state == IDLE or task.state == SOFT):
        schedule(w, t, w.words[task.lag_ring + task.lag_first])


def release_late_outputs(w: PlaneState, t: int, until: int) -> None:
    """Release the outputs of the first `until` records (L5)."""
    task = w.tasks[t]
    if until > task.released_until:
        task.released_until = until
    wake_between_records(w, t)


def wait_for_late(w: PlaneState, t: int) -> None:
    """Let the task process nothing else until its last pending output is written (L6)."""
    task = w.tasks[t]
    if (task.waits_for_late & 1) == 0:
        task.waits_for_late += 1
    wake_between_records(w, t)


def report_written(w: PlaneState, t: int) -> None:
    """Request a notice when all released outputs are written (L9)."""
    task = w.tasks[t]
    if task.waits_for_late < 2:
        task.waits_for_late += 2
    wake_between_records(w, t)


def continue_waiting(w: PlaneState, t: int) -> None:
    """Report that released outputs are written (L9), or process only mails until the last pending output is written (L6)."""
    task = w.tasks[t]
    if task.waits_for_late >= 2:
        task.waits_for_late -= 2
        report_task(w, NOTE_WRITTEN, t, -1)
    elif task.interrupted == 1:
        report_safe(w, t)
    elif task.late > 0:
        become(w, t, IDLE)
    else:
        task.waits_for_late = 0
        report_task(w, NOTE_NONE_LATE, t, -1)


def be_late_again(w: PlaneState, t: int) -> None:
    """Delay the pending outputs of a restored task again, from now on (L5)."""
    task = w.tasks[t]
    if task.lag == TIMED:
        n = task.late
        task.late = 0
        while task.late < n and task.late < task.lag_capacity:
            set_ready(w, t, task.served - n + task.late)
            task.late += 1
        task.in_hand = n - task.late
        task.late = n


# ---- A task that was started anew reads its recovered input, then requests its partitions (P6, P7).


def poll_recovered(w: PlaneState, c: int) -> None:
    """Take the next segment of recovered input as the current buffer.  It belongs to no pool."""
    ch = w.channels[c]
    before = ch.taken
    ch.taken = before + w.g.segment_bytes
    if ch.taken > ch.recovered:
        ch.taken = ch.recovered
    ch.current = READING
    if ch.local == 0:
        ch.current = READING | LOOSE
    if w.g.digests == 1:
        fold_channel(w, c, ch.taken, ch.taken - before)


def open_gates(w: PlaneState, t: int, first: int, last: int) -> bool:
    """Let the gates from `first` to `last` - 1 request their partitions if they have no recovered input left.

    Return whether all gates of the task are open, so that RECOVERED is reported.
    """
    task = w.tasks[t]
    for i in range(first, last):
        gate = w.gates[i]
        if gate.shut == 1 and (gate.ready_head < 0 or w.g.opens_at_once == 1):
            gate.shut = 0
            for k in range(gate.first_channel, gate.last_channel):
                notify_sender(w, w.words[k], RESUME, 0)
    for i in range(task.first_gate, task.last_gate):
        if w.gates[i].shut == 1:
            return False
    task.recovering = 0
    report_task(w, NOTE_RECOVERED, t, -1)
    return True


# ---- The turns of a task's thread, and the end of a service (T1-T11).


def turn(w: PlaneState, t: int) -> None:
    """Execute TURN t, a turn of the task's thread.  A turn that reported a notice is repeated (T10)."""
    task = w.tasks[t]
    task.listed = 0
    if task.serving > 0 or task.held == 1:
        return
    if task.emitting == 1:
        if not continue_writing(w, t):
            return
        if task.source == LOCK:
            pass_over(w, t)
    if task.late > 0 and not write_late(w, t):
        return
    if task.waits_for_late > 0:
        continue_waiting(w, t)
    else:
        run(w, t)
    if w.g.noted > 0 or (task.interrupted == 1 and (task.state == IDLE or task.state == SOFT)):
        append_turn(w, t)
    if task.late > 0:
        expect_late(w, t)


def run(w: PlaneState, t: int) -> None:
    """Continue the turn from T3 on, until the thread waits, serves a record, or has reported a notice."""
    g = w.g
    task = w.tasks[t]
    if task.recovering == 1 and g.opens_at_once == 1:
        open_gates(w, t, task.first_gate, task.last_gate)
        return
    while g.noted == 0:
        if task.behind == 1:
            task.behind = 0
        elif task.interrupted == 1 and (task.passed_over == 0 or not has_due(w, t)):
            report_safe(w, t)
            return
        while task.urgent_head >= 0:
            e = task.urgent_head
            task.urgent_head = w.elements[e].next
            process_marker(w, w.elements[e].channel, e)
            if g.noted > 0:
                return
        if not available(w, t) and task.source != LOCK:
            become(w, t, SOFT)
            return
        if task.source > 0:
            read_source(w, t)
            return
        if task.joined == 1:
            if read_joined(w, t):
                return
        elif read_input(w, t):
            return


def read_source(w: PlaneState, t: int) -> None:
    """Read the next record of a source (T6)."""
    task = w.tasks[t]
    if task.recovering == 1:
        open_gates(w, t, 0, 0)
    elif task.served == task.total:
        if task.exhausted == 0:
            task.exhausted = 1
            report_task(w, NOTE_EXHAUSTED, t, -1)
        else:
            become(w, t, IDLE)
    elif task.due <= w.g.now:
        begin_service(w, t, task.service_table, task.service_n, w.g.now)
    elif task.source == POLL:
        begin_service(w, t, task.service_table, task.service_n, task.due)
    else:
        task.passed_over = 0
        become(w, t, IDLE)
        schedule(w, t, task.due)


def has_due(w: PlaneState, t: int) -> bool:
    """Return whether a source has a record to emit at once."""
    task = w.tasks[t]
    return task.served != task.total and task.due <= w.g.now


def pass_over(w: PlaneState, t: int) -> None:
    """Draw at random whether a waiting mail gets the checkpoint lock now, or the source takes it again (W3)."""
    task = w.tasks[t]
    task.passed_over = 0
    if task.interrupted == 1 and draw(task.lock_stride, task.lock_offset, task.served) >= task.lock_wins:
        task.passed_over = 1


def read_input(w: PlaneState, t: int) -> bool:
    """Read input (T7-T9).  Return True when the turn ends, False when a marker was processed."""
    task = w.tasks[t]
    while True:
        c = task.current
        if c >= 0:
            if take_record(w, t, c):
                if w.channels[c].current == 0:
                    task.current = -1
                return True
            task.current = -1
        if w.g.period > 0:
            for i in range(task.first_gate, task.last_gate):
                pause_gate(w, i)
        if task.recovering == 1 and open_gates(w, t, task.first_gate, task.last_gate):
            return True
        i = task.gate_head
        if i < 0:
            become(w, t, IDLE)
            return True
        e = poll(w, t, i)
        if e >= 0:
            process_marker(w, w.elements[e].channel, e)
            return False
        task.current = w.gates[i].current


def read_joined(w: PlaneState, t: int) -> bool:
    """Read joined inputs (T9).  Return True when the turn ends, False when a marker was processed."""
    task = w.tasks[t]
    last = w.gates[task.last_used].input_end
    for _ in range(task.first_gate, task.last_gate):
        first = last
        if first == task.last_gate:
            first = task.first_gate
        last = w.gates[first].input_end
        while True:
            if take_joined(w, t, first, last):
                return True
            for k in range(first, last):
                pause_gate(w, k)
                if w.gates[k].shut == 1 and w.gates[k].ready_head < 0 and open_gates(w, t, k, k + 1):
                    return True
            i = ready_gate(w, t, first, last)
            if i < 0:
                break
            e = poll(w, t, i)
            if e >= 0:
                task.last_used = i
                process_marker(w, w.elements[e].channel, e)
                return False
    become(w, t, IDLE)
    return True


def take_joined(w: PlaneState, t: int, first: int, last: int) -> bool:
    """Read the current buffer of the input that has these gates (T7, T8).  Return whether a service begins."""
    for i in range(first, last):
        gate = w.gates[i]
        c = gate.current
        if c >= 0:
            if take_record(w, t, c):
                if w.channels[c].current == 0:
                    gate.current = -1
                w.tasks[t].last_used = i
                return True
            gate.current = -1
    return False


def ready_gate(w: PlaneState, t: int, first: int, last: int) -> int:
    """Return the first of these gates in the task's list, or -1 if none has a ready channel."""
    i = w.tasks[t].gate_head
    while i >= 0 and (i < first or i >= last):
        i = w.gates[i].after
    return i


def take_record(w: PlaneState, t: int, c: int) -> bool:
    """Start the service of the next record of the channel's current buffer, if the record is complete (T7).

    Otherwise recycle the buffer, which has been read to its end (T8).  Return whether a service has started.
    """
    ch = w.channels[c]
    gate = w.gates[ch.gate]
    complete = ch.record_end <= ch.taken
    if complete:
        consume(w, c)
    if not complete or ch.consumed == ch.taken:
        recycle_current(w, c)
    if complete:
        begin_service(w, t, gate.service_table, gate.service_n, w.g.now)
    return complete


def begin_service(w: PlaneState, t: int, table: int, n: int, begin_ns: int) -> None:
    """Start a service that is counted from `begin_ns` (T11).  The thread is busy from now on (W3)."""
    task = w.tasks[t]
    end = begin_ns + service_ns(w, t, table, n)
    become(w, t, BUSY)
    task.serving = 1
    if task.runs_ahead == 1 and task.interrupted == 0 and pays_to_serve_ahead(w, t):
        end = begin_serving_ahead(w, t, end)
    if w.g.fetches == 1:
        fetch_targets(w, t, 0)
    schedule(w, t, end)


def end_service(w: PlaneState, t: int) -> None:
    """End a service and write its outputs (T11).  The caller makes the turn that follows."""
    task = w.tasks[t]
    task.serving = 0
    task.ahead = 0
    task.served += 1
    if task.source > 0:
        next_due(w, t)
    if task.lag > 0:
        become_late(w, t)
    elif not emit(w, t):
        become(w, t, HARD)
    elif w.g.timeout == 0:
        flush_touched(w, t)


def poll(w: PlaneState, t: int, i: int) -> int:
    """Take the first element of gate i, which has a ready channel (T9).

    Return the element if it is a marker.  If it is data, make it the current buffer and return -1.
    """
    gate = w.gates[i]
    c = gate.ready_head
    ch = w.channels[c]
    remove_gate(w, i)
    remove_ready(w, c)
    if w.g.period > 0 and gate.active == 0:
        gate.active = 1
        gate.active_since = w.g.now
    before = ch.taken
    e = -1
    if ch.taken < ch.recovered:
        poll_recovered(w, c)
    elif ch.local == 1:
        e = poll_local(w, c)
    else:
        e = poll_remote(w, c)
    if pollable(w, c):
        append_ready(w, c)
    elif gate.ready_head >= 0:
        append_gate(w, i)
    if e >= 0:
        return e
    w.tasks[t].buffers_in += 1
    gate.polled_bytes += ch.taken - before
    gate.current = c
    return -1


def poll_remote(w: PlaneState, c: int) -> int:
    """Take the first element of the receive queue.  Return it if it is a marker; make data the current buffer and return -1."""
    ch = w.channels[c]
    e = ch.first
    element = w.elements[e]
    ch.first = element.next
    ch.received -= 1
    if element.kind != DATA:
        return e
    ch.received_buffers -= 1
    if w.g.digests == 1:
        fold_channel(w, c, element.end, element.end - ch.taken)
    ch.taken = element.end
    ch.current = READING
    if element.traits == 1:
        ch.current = READING | FLOATING
    free_element(w, e)
    return -1


def poll_local(w: PlaneState, c: int) -> int:
    """Take the head of the sender's queue of a local channel: it is sent, arrives and is taken at once.  Return values are those of `poll`."""
    ch = w.channels[c]
    e = ch.head
    if w.elements[e].kind != DATA:
        send_marker(w, c, e)
        note_mark(w, c, w.elements[e].kind, w.elements[e].number)
        return e
    before = ch.sent
    if e == ch.tail and ch.full_at > 0:
        catch_up(w, ch.writer)
        ch.sent = ch.written
        ch.flush = 0
        ch.current = READING
    else:
        ch.sent = w.elements[e].end
        take_head(w, c)
        ch.buffers -= 1
        free_element(w, e)
        ch.current = READING | OWNED
    w.partitions[ch.partition].buffers_out += 1
    ch.arrived = ch.sent
    ch.taken = ch.sent
    if w.g.digests == 1:
        fold_channel(w, c, ch.sent, ch.sent - before)
        fold_channel(w, c, ch.sent, ch.sent - before)
        fold_channel(w, c, ch.sent, ch.sent - before)
    return -1


def pause_gate(w: PlaneState, i: int) -> None:
    """Stop measuring the active time of a gate if no channel of it is ready (D2)."""
    gate = w.gates[i]
    if gate.active == 1 and gate.ready_head < 0:
        gate.active = 0
        gate.active_ns += w.g.now - gate.active_since
