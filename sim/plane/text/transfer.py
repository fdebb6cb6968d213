"""Transfer: from the queue to the wire; arrival, credits, recycling."""

from sim.plane.rows import PlaneState
from sim.plane.text.basics import (
    ANNOUNCED,
    BLOCKING,
    CREDIT,
    DATA,
    FLOATING,
    LOOSE,
    MARKER_SERIES,
    NOTE_ANNOUNCED,
    NOTE_LEFT,
    OWNED,
    PRIORITY,
    append_urgent,
    fold_channel,
    free_element,
    is_priority,
    new_element,
    report,
    take_head,
    wake_between_records,
)
from sim.plane.text.channels import (
    make_ready,
    offer,
    pollable,
    put_on_line,
    retire,
    sendable,
    take_off_line,
    tell_sender,
    withdraw,
)
from sim.plane.text.records import catch_up

# ---- The receiver's side of a channel: arrival, credits, recycling (R1-R5).


def arrive(w: PlaneState, e: int) -> None:
    """An element reaches the reader of a remote channel."""
    element = w.elements[e]
    c = element.channel
    if element.kind == DATA:
        ch = w.channels[c]
        if w.g.digests == 1:
            fold_channel(w, c, element.end, element.end - ch.arrived)
        ch.arrived = element.end
        if ch.fl_free > 0:
            ch.fl_free -= 1
            element.traits = 1
        else:
            ch.ex_free -= 1
            element.traits = 0
        ch.received_buffers += 1
        append_received(w, c, e)
    else:
        deliver_marker(w, c, e)
    require(w, c, element.backlog)


def deliver_marker(w: PlaneState, c: int, e: int) -> None:
    """R5, on any channel; an ordinary marker only comes here on a remote one."""
    element = w.elements[e]
    note_mark(w, c, element.kind, element.number)
    ch = w.channels[c]
    t = ch.reader
    prioritised = element.kind == MARKER_SERIES and element.number == w.tasks[t].prioritised
    if prioritised or (element.traits & PRIORITY) != 0:
        catch_up(w, t)
        append_urgent(w, t, e)
        wake_between_records(w, t)
    else:
        gate = w.gates[ch.gate]
        if (element.traits & ANNOUNCED) != 0 and element.number > gate.announced:
            gate.announced = element.number
            report(w, NOTE_ANNOUNCED, t, gate.place, -1, element.number, -1, 0, 0)
        append_received(w, c, e)


def note_mark(w: PlaneState, c: int, series: int, number: int) -> None:
    """The marker is noted (R5); a capture that awaited it is complete on this channel (C2)."""
    ch = w.channels[c]
    if series == MARKER_SERIES and number >= ch.mark:
        ch.mark = number
        ch.mark_at = ch.arrived
        if ch.capturing == number:
            finish_capture(w, c)


def finish_capture(w: PlaneState, c: int) -> None:
    ch = w.channels[c]
    ch.capturing = 0
    ch.cap_in = ch.mark_at - ch.captured_from
    ch.in_to = ch.mark_at


def append_received(w: PlaneState, c: int, e: int) -> None:
    """At the end of the receive queue (R4)."""
    ch = w.channels[c]
    w.elements[e].next = -1
    if ch.first < 0:
        ch.first = e
    else:
        w.elements[ch.last].next = e
    ch.last = e
    ch.received += 1
    make_ready(w, c)


def require(w: PlaneState, c: int, backlog: int) -> None:
    """As many buffers as the sender's backlog asks for, or a place in the list of listeners (R2)."""
    g = w.g
    ch = w.channels[c]
    gate = w.gates[ch.gate]
    ch.required = backlog + g.exclusive
    gained = 0
    while ch.ex_free + ch.fl_free < ch.required and ch.waiting == 0:
        if gate.idle > 0:
            gate.idle -= 1
            ch.fl_free += 1
            gained += 1
        else:
            listen(w, c)
    if gained > 0:
        tell_sender(w, c, CREDIT, gained)


def listen(w: PlaneState, c: int) -> None:
    """At the end of the gate's listeners."""
    ch = w.channels[c]
    gate = w.gates[ch.gate]
    ch.waiting = 1
    ch.next_listener = -1
    if gate.listener_head < 0:
        gate.listener_head = c
    else:
        w.channels[gate.listener_tail].next_listener = c
    gate.listener_tail = c


def recycle_current(w: PlaneState, c: int) -> None:
    """The reader is through with the channel's current buffer (T7, T8)."""
    ch = w.channels[c]
    how = ch.current
    ch.current = 0
    if ch.local == 1:
        if (how & OWNED) != 0:
            retire(w, c, ch.taken)
    elif (how & LOOSE) != 0:  # recovered input (P6)
        return
    elif ch.taken <= ch.in_to and ch.in_from < ch.taken:  # pinned (C4); most often `in_from` is not read
        if (how & FLOATING) != 0:
            ch.owed_floating += 1
        else:
            ch.owed_exclusive += 1
    elif (how & FLOATING) != 0:
        recycle_floating(w, ch.gate)
    else:
        recycle_exclusive(w, c)


def recycle_exclusive(w: PlaneState, c: int) -> None:
    """R3."""
    ch = w.channels[c]
    ch.ex_free += 1
    if ch.ex_free + ch.fl_free > ch.required and ch.fl_free > 0:
        ch.fl_free -= 1
        recycle_floating(w, ch.gate)
    else:
        tell_sender(w, c, CREDIT, 1)


def recycle_floating(w: PlaneState, i: int) -> None:
    """A floating buffer goes back to the gate: to the first listener that still needs it, or it is idle (R3)."""
    gate = w.gates[i]
    while gate.listener_head >= 0:
        c = gate.listener_head
        ch = w.channels[c]
        gate.listener_head = ch.next_listener
        if gate.listener_head < 0:
            gate.listener_tail = -1
        ch.waiting = 0
        if ch.ex_free + ch.fl_free < ch.required:
            ch.fl_free += 1
            if ch.ex_free + ch.fl_free < ch.required:
                listen(w, c)
            tell_sender(w, c, CREDIT, 1)
            return
    gate.idle += 1


# ---- From the sender's queue to the wire, or, on a local channel, to the reader's attention (S2-S5, S7).


def send(w: PlaneState, c: int) -> None:
    """SEND c."""
    ch = w.channels[c]
    ch.listed = 0
    if not sendable(w, c):
        return
    if ch.local == 1:
        send_local(w, c)
        return
    before = ch.sent
    e = ch.head
    if w.elements[e].kind == DATA:
        ch.credit -= 1
        e = send_data(w, c, e)
    else:
        send_marker(w, c, e)
    w.elements[e].backlog = backlog(w, c)
    transmit(w, e, ch.sent - before)
    offer(w, c)


def send_data(w: PlaneState, c: int, head: int) -> int:
    """The head, or a slice of it while it is open, leaves the queue; returns what travels."""
    ch = w.channels[c]
    w.partitions[ch.partition].buffers_out += 1
    e = head
    before = ch.sent
    if head == ch.tail and ch.full_at > 0:
        e = new_element(w, c, DATA)
        w.elements[e].end = ch.written
        ch.sent = ch.written
        ch.flush = 0
    else:
        take_head(w, c)
        ch.buffers -= 1
        ch.sent = w.elements[head].end
        retire(w, c, ch.sent)
    if w.g.digests == 1:
        fold_channel(w, c, ch.sent, ch.sent - before)
    return e


def send_marker(w: PlaneState, c: int, e: int) -> None:
    """A marker leaves the queue: a blocking one closes the door behind it, a watched one is missed."""
    ch = w.channels[c]
    take_head(w, c)
    element = w.elements[e]
    if (element.traits & BLOCKING) != 0:
        ch.blocked = 1
    if (element.traits & ANNOUNCED) != 0:
        miss(w, ch.writer, element.number)


def miss(w: PlaneState, t: int, number: int) -> None:
    """One watched marker less; LEFT with the last of its number (S7)."""
    task = w.tasks[t]
    before = -1
    e = task.watches
    while e >= 0 and w.elements[e].number != number:
        before = e
        e = w.elements[e].next
    if e < 0:
        return
    watch = w.elements[e]
    watch.backlog -= 1
    if watch.backlog == 0:
        if before < 0:
            task.watches = watch.next
        else:
            w.elements[before].next = watch.next
        free_element(w, e)
        w.g.markers -= 1
        report(w, NOTE_LEFT, t, -1, -1, number, -1, 0, 0)


def backlog(w: PlaneState, c: int) -> int:
    """S3: the data left behind, without an open buffer that is not to be flushed."""
    ch = w.channels[c]
    if ch.blocked == 1:
        return 0
    n = ch.buffers
    if ch.full_at > 0 and ch.flush == 0:
        n -= 1
    return n


def transmit(w: PlaneState, e: int, length: int) -> None:
    """S5."""
    g = w.g
    if g.nic_num > 0:
        i = w.tasks[w.channels[w.elements[e].channel].writer].line
        line = w.lines[i]
        if line.free_at < g.now:
            line.free_at = g.now
        line.free_at += (length * g.nic_den + g.nic_num - 1) // g.nic_num
        put_on_line(w, i, e, line.free_at + g.latency)
    elif g.latency > 0:
        put_on_line(w, 1, e, g.now + g.latency)
    else:
        arrive(w, e)


def forward_line_event(w: PlaneState, i: int) -> None:
    arrive(w, take_off_line(w, i))


def send_local(w: PlaneState, c: int) -> None:
    """A priority marker is delivered; anything else waits for its reader (S4)."""
    ch = w.channels[c]
    e = ch.head
    if is_priority(w, e):
        send_marker(w, c, e)
        deliver_marker(w, c, e)
        if ch.ready == 1 and not pollable(w, c):
            withdraw(w, c)
        offer(w, c)
    else:
        make_ready(w, c)
