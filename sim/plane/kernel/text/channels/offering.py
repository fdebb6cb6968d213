"""What may be sent (S1) and what may be polled (R4): the two lists through which a channel asks for attention."""

from sim.plane.kernel.rows import PlaneState
from sim.plane.kernel.text.ahead import catch_up
from sim.plane.kernel.text.elements import is_priority
from sim.plane.kernel.text.names import IDLE
from sim.plane.kernel.text.work import append_work, wake_if


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
