"""A task: recovered input, its turns."""

from sim.plane.rows import PlaneState
from sim.plane.text.basics import (
    BUSY,
    DATA,
    FLOATING,
    HARD,
    IDLE,
    LOCK,
    LOOSE,
    NOTE_EXHAUSTED,
    NOTE_RECOVERED,
    NOTE_SAFE,
    OWNED,
    POLL,
    READING,
    RESUME,
    SOFT,
    append_turn,
    become,
    draw,
    fold_channel,
    free_element,
    report,
    schedule,
    take_head,
)
from sim.plane.text.channels import (
    append_gate,
    append_ready,
    available,
    emit,
    flush_touched,
    go_on_writing,
    pollable,
    remove_gate,
    remove_ready,
    tell_sender,
)
from sim.plane.text.counting import process_marker
from sim.plane.text.late import become_late, expect_late, go_on_waiting, write_late
from sim.plane.text.records import catch_up, consume, fetch_targets, goes_far, next_due, run_ahead, service_ns
from sim.plane.text.transfer import note_mark, recycle_current, send_marker

# ---- A task that was started anew reads its recovered input, then requests its partitions (P6, P7).


def poll_recovered(w: PlaneState, c: int) -> None:
    """The next piece of recovered input becomes the current buffer, though no pool knows it."""
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
    """Gates from `first` to before `last` request their partitions if no recovered input is left (P9: at once).

    True: RECOVERED is reported.
    """
    task = w.tasks[t]
    for i in range(first, last):
        gate = w.gates[i]
        if gate.shut == 1 and (gate.ready_head < 0 or w.g.opens_at_once == 1):
            gate.shut = 0
            for k in range(gate.first_channel, gate.first_channel + gate.channels):
                tell_sender(w, w.words[k], RESUME, 0)
    for i in range(task.first_gate, task.last_gate):
        if w.gates[i].shut == 1:
            return False
    task.recovering = 0
    report(w, NOTE_RECOVERED, t, -1, -1, -1, -1, 0, 0)
    return True


# ---- The turns of a task's thread, and the end of a service (T1-T11).


def turn(w: PlaneState, t: int) -> None:
    """TURN t; one that reported a notice comes again (T10)."""
    task = w.tasks[t]
    task.listed = 0
    if task.serving > 0 or task.held == 1:
        return
    if task.emitting == 1:
        if not go_on_writing(w, t):
            return
        if task.source == LOCK:
            pass_over(w, t)
    if task.late > 0 and not write_late(w, t):
        return
    if task.waits_for_late > 0:
        go_on_waiting(w, t)
    else:
        run(w, t)
    if w.g.noted > 0 or (task.interrupted == 1 and (task.state == IDLE or task.state == SOFT)):
        append_turn(w, t)
    if task.late > 0:
        expect_late(w, t)


def run(w: PlaneState, t: int) -> None:
    """From T3 on, until the thread waits, serves, or has something to report."""
    g = w.g
    task = w.tasks[t]
    if task.recovering == 1 and g.opens_at_once == 1:
        open_gates(w, t, task.first_gate, task.last_gate)
        return
    while g.noted == 0:
        if task.behind == 1:
            task.behind = 0
        elif task.interrupted == 1 and (task.passed_over == 0 or not has_due(w, t)):
            task.interrupted = 0
            report(w, NOTE_SAFE, t, -1, -1, -1, -1, 0, 0)
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
    """T6."""
    task = w.tasks[t]
    if task.recovering == 1:
        open_gates(w, t, 0, 0)
    elif task.served == task.total:
        if task.exhausted == 0:
            task.exhausted = 1
            report(w, NOTE_EXHAUSTED, t, -1, -1, -1, -1, 0, 0)
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
    """Whether a source has a record to emit at once."""
    task = w.tasks[t]
    return task.served != task.total and task.due <= w.g.now


def pass_over(w: PlaneState, t: int) -> None:
    """W3: a mail that waits for the lock gets it now, or the source takes it again."""
    task = w.tasks[t]
    task.passed_over = 0
    if task.interrupted == 1 and draw(task.lock_stride, task.lock_offset, task.served) >= task.lock_wins:
        task.passed_over = 1


def read_input(w: PlaneState, t: int) -> bool:
    """T7-T9 until the turn ends (True) or a marker was processed (False)."""
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
    """T9 of joined inputs until the turn ends (True) or a marker was processed (False)."""
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
    """T7 and T8 with the current buffer of the input that has these gates; True: the service of a record begins."""
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
    """The first gate of the task's list that is one of these; -1: none has a ready channel."""
    i = w.tasks[t].gate_head
    while i >= 0 and (i < first or i >= last):
        i = w.gates[i].after
    return i


def take_record(w: PlaneState, t: int, c: int) -> bool:
    """T7: begin the service of the next record of a current buffer if it is here as a whole; else the buffer is used up (T8)."""
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
    """T11; the thread is busy from now on (W3)."""
    task = w.tasks[t]
    end = begin_ns + service_ns(w, t, table, n)
    become(w, t, BUSY)
    task.serving = 1
    if task.runs_ahead == 1 and task.interrupted == 0 and goes_far(w, t):
        end = run_ahead(w, t, end)
    if w.g.fetches == 1:
        fetch_targets(w, t, 0)
    schedule(w, t, end)


def end_service(w: PlaneState, t: int) -> None:
    """The record is served and its outputs leave (T11); the turn that follows is the caller's."""
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
    """T9: the first element of gate i, which has a ready channel; a marker is returned, data becomes the gate's current buffer (-1)."""
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
    """Take the first element of the receive queue; a marker is returned, data becomes the current buffer."""
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
    """Take the head of the sender's queue: sent, arrived and taken at once."""
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
    """D2: a gate without a ready channel is not measured."""
    gate = w.gates[i]
    if gate.active == 1 and gate.ready_head < 0:
        gate.active = 0
        gate.active_ns += w.g.now - gate.active_since
