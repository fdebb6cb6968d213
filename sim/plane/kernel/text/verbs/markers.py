"""What the control plane does with markers: forward, convert, prioritise, resume, settle (M1-M3, M5)."""

from sim.plane.kernel.rows import PlaneState
from sim.plane.kernel.text.channels.messages import resume_sender
from sim.plane.kernel.text.channels.offering import offer, pollable, withdraw
from sim.plane.kernel.text.channels.output import close
from sim.plane.kernel.text.elements import (
    append_element,
    append_urgent,
    insert_priority,
    is_priority,
    new_element,
    new_marker,
    remove_after,
)
from sim.plane.kernel.text.names import ANNOUNCED, BLOCKING, DATA, MARKER_SERIES, NOTE_LEFT, PRIORITY, WATCH
from sim.plane.kernel.text.task.counting import settle_gate
from sim.plane.kernel.text.verbs.capture import pin_for, pin_output
from sim.plane.kernel.text.work import report, wake_between_records


def forward(w: PlaneState, t: int, only: int, series: int, number: int, traits: int) -> int:
    """A marker into every channel of the task, or of partition `only` (-1: all); returns captured bytes (M1)."""
    task = w.tasks[t]
    captured = 0
    sent = 0
    if (traits & PRIORITY) != 0:
        pin_for(w, t, number)
    for p in range(task.first_partition, task.last_partition):
        if only < 0 or p == only:
            part = w.partitions[p]
            sent += part.channels
            for c in range(part.first_channel, part.first_channel + part.channels):
                captured += insert(w, c, new_marker(w, c, series, number, traits))
    if (traits & ANNOUNCED) != 0:
        if sent > 0:
            watch(w, t, number, sent)
        else:
            report(w, NOTE_LEFT, t, -1, -1, number, -1, 0, 0)
    return captured


def insert(w: PlaneState, c: int, e: int) -> int:
    """The marker into the sender's queue; a priority marker captures what it overtakes."""
    close(w, c)
    captured = 0
    if is_priority(w, e):
        insert_priority(w, c, e)
        captured = pin_output(w, c, w.channels[c].written)
    else:
        append_element(w, c, e)
    offer(w, c)
    return captured


def watch(w: PlaneState, t: int, number: int, markers: int) -> None:
    """So many more markers of this number have to leave before LEFT (S7)."""
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
    """Ordinary markers of this number still in the task's queues overtake; returns captured bytes (M2)."""
    task = w.tasks[t]
    captured = 0
    pin_for(w, t, number)
    for p in range(task.first_partition, task.last_partition):
        part = w.partitions[p]
        for c in range(part.first_channel, part.first_channel + part.channels):
            w.channels[c].cap_out = 0
            captured += convert_channel(w, c, number)
    return captured


def convert_channel(w: PlaneState, c: int, number: int) -> int:
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
        elif element.kind == MARKER_SERIES and element.number == number and (element.traits & (PRIORITY | ANNOUNCED)) == ANNOUNCED:
            remove_after(w, c, before, e)
            element.traits = (element.traits | PRIORITY) & ~BLOCKING
            insert_priority(w, c, e)
            captured = pin_output(w, c, end)
            if before < 0 or w.elements[before].next == e:
                before = e
            offer(w, c)
        else:
            before = e
        e = after
    return captured


def prioritise(w: PlaneState, t: int, number: int) -> None:
    """Markers of this number in the task's receive queues, and those still to arrive, become urgent (M3)."""
    task = w.tasks[t]
    task.prioritised = number
    moved = False
    for i in range(task.first_gate, task.last_gate):
        gate = w.gates[i]
        for k in range(gate.first_channel, gate.first_channel + gate.channels):
            c = w.words[k]
            if w.channels[c].received > w.channels[c].received_buffers and prioritise_channel(w, t, c, number):
                moved = True
    if moved:
        wake_between_records(w, t)


def prioritise_channel(w: PlaneState, t: int, c: int, number: int) -> bool:
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
    """M5: the senders that wait behind a blocking marker go on."""
    task = w.tasks[t]
    for i in range(task.first_gate, task.last_gate):
        gate = w.gates[i]
        for k in range(gate.first_channel, gate.first_channel + gate.channels):
            if w.channels[w.words[k]].mark <= number:
                resume_sender(w, w.words[k])


def settle(w: PlaneState, t: int, series: int, number: int) -> None:
    task = w.tasks[t]
    for i in range(task.first_gate, task.last_gate):
        settle_gate(w, i, series, number)
