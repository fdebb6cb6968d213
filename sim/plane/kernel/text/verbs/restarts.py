"""Threads that stop, and what a task leaves behind and finds when it starts anew (P1, P3-P6).

Between `sweep` and `stand` the owner of the state (`PlaneState`) resets the rows of the tasks marked FORGETTING, but for what lasts.
It writes their positions, too.
"""

from sim.plane.kernel.rows import PlaneState
from sim.plane.kernel.text.channels.messages import put_on_line
from sim.plane.kernel.text.channels.offering import append_ready
from sim.plane.kernel.text.channels.output import count_shared
from sim.plane.kernel.text.draws import record_size
from sim.plane.kernel.text.elements import append_element, free_element, free_marker, new_element
from sim.plane.kernel.text.names import BROADCAST, DATA, FORGETTING, HALTED, HELD, WATCH
from sim.plane.kernel.text.task.late import be_late_again
from sim.plane.kernel.text.tree import cancel
from sim.plane.kernel.text.work import append_work, become


def halt(w: PlaneState, t: int) -> None:
    """P1: nothing the thread was doing ends."""
    task = w.tasks[t]
    task.serving = 0
    if task.emitting == 1:
        w.partitions[task.cursor].uncounted += 1
    task.emitting = 0
    task.held = 1
    drop_event(w, t)
    become(w, t, HALTED)


def drop_event(w: PlaneState, t: int) -> None:
    cancel(w, t)
    if w.g.stale == t:
        w.g.stale = -1


def sweep(w: PlaneState) -> None:
    """P3: all entries of a task that forgets leave the work list, the lines, its queues and lists."""
    g = w.g
    for _ in range(g.work_n):
        item = w.ring[g.work_head]
        g.work_head = (g.work_head + 1) & g.work_mask
        g.work_n -= 1
        if not forgotten(w, item):
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
            if forgotten(w, g.tasks + element.channel):
                free_chain(w, e)
            else:
                put_on_line(w, i, e, element.time)
            e = after
    for c in range(g.channels):
        if forgotten(w, g.tasks + c):
            ch = w.channels[c]
            free_chain(w, ch.head)
            free_chain(w, ch.first)
    for t in range(g.tasks):
        if forgotten(w, t):
            free_chain(w, w.tasks[t].urgent_head)
            free_chain(w, w.tasks[t].watches)
            drop_event(w, t)
            become(w, t, HELD)


def forgotten(w: PlaneState, item: int) -> bool:
    """Does this item of work belong to a task that forgets?  Both ends of a channel do or none."""
    if item >= w.g.tasks:
        return w.tasks[w.channels[item - w.g.tasks].reader].held == FORGETTING
    return w.tasks[item].held == FORGETTING


def free_chain(w: PlaneState, first: int) -> None:
    """Linked elements of any kind back into the pool."""
    e = first
    while e >= 0:
        after = w.elements[e].next
        if w.elements[e].kind >= 0 or w.elements[e].kind == WATCH:
            free_marker(w, e)
        else:
            free_element(w, e)
        e = after


def stand(w: PlaneState, t: int) -> None:
    """P5, P6: the channels of the task have their offsets; the rest follows."""
    task = w.tasks[t]
    task.held = 1
    task.recovering = 1
    be_late_again(w, t)
    for p in range(task.first_partition, task.last_partition):
        part = w.partitions[p]
        for c in range(part.first_channel, part.first_channel + part.channels):
            recover_output(w, c)
        if part.ship == BROADCAST:
            count_shared(w, p)
            part.recovered = part.used
    for i in range(task.first_gate, task.last_gate):
        gate = w.gates[i]
        gate.shut = 1
        for k in range(gate.first_channel, gate.first_channel + gate.channels):
            c = w.words[k]
            w.channels[c].blocked = 1
            w.channels[c].recovered = w.channels[c].arrived
            seek_record(w, c)
            if w.channels[c].arrived > w.channels[c].taken:
                append_ready(w, c)


def seek_record(w: PlaneState, c: int) -> None:
    """The reader's next record, counted back from the end of the stream (P5)."""
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
    """Closed buffers from `sent` to `written` (P6)."""
    ch = w.channels[c]
    part = w.partitions[ch.partition]
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
