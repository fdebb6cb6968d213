"""In-flight data: what a capture counts and what it pins (C1-C5)."""

from sim.plane.kernel.rows import PlaneState
from sim.plane.kernel.text.channels.output import give_back
from sim.plane.kernel.text.channels.receiving import finish_capture, recycle_exclusive, recycle_floating
from sim.plane.kernel.text.names import NEVER


def capture(w: PlaneState, t: int, number: int) -> None:
    """C1: on every input channel, until the marker of this number arrives; what waits or arrives before it is pinned."""
    pin_for(w, t, number)
    task = w.tasks[t]
    for i in range(task.first_gate, task.last_gate):
        gate = w.gates[i]
        for k in range(gate.first_channel, gate.first_channel + gate.channels):
            c = w.words[k]
            ch = w.channels[c]
            ch.capturing = number
            ch.captured_from = ch.consumed
            ch.cap_in = 0
            ch.in_from = ch.taken
            ch.in_to = NEVER
            if ch.mark == number:
                finish_capture(w, c)


def pin_for(w: PlaneState, t: int, number: int) -> None:
    """What is pinned of an earlier number goes back before anything is pinned for this one (C4)."""
    task = w.tasks[t]
    if task.pinning != number:
        release_capture(w, t)
    task.pinning = number


def captured_in(w: PlaneState, t: int) -> int:
    """Input bytes; a channel whose marker is missing counts what has arrived so far (C5)."""
    task = w.tasks[t]
    total = 0
    for i in range(task.first_gate, task.last_gate):
        gate = w.gates[i]
        for k in range(gate.first_channel, gate.first_channel + gate.channels):
            ch = w.channels[w.words[k]]
            total += ch.cap_in
            if ch.capturing > 0:
                total += ch.arrived - ch.captured_from
    return total


def captured_out(w: PlaneState, t: int) -> int:
    """Output bytes."""
    task = w.tasks[t]
    total = 0
    for p in range(task.first_partition, task.last_partition):
        part = w.partitions[p]
        for c in range(part.first_channel, part.first_channel + part.channels):
            total += w.channels[c].cap_out
    return total


def pin_output(w: PlaneState, c: int, end: int) -> int:
    """The data of the sender's queue up to `end` is captured and pinned (C3, C4); returns the bytes."""
    ch = w.channels[c]
    ch.cap_out = end - ch.sent
    if ch.out_to <= ch.sent:
        ch.out_from = ch.sent
    if end > ch.out_to:
        ch.out_to = end
    return ch.cap_out


def release_capture(w: PlaneState, t: int) -> None:
    """Buffers that were recycled or sent while pinned go back now (C4)."""
    task = w.tasks[t]
    if task.pinning == 0:
        return
    task.pinning = 0
    for i in range(task.first_gate, task.last_gate):
        gate = w.gates[i]
        for k in range(gate.first_channel, gate.first_channel + gate.channels):
            release_input(w, i, w.words[k])
    for p in range(task.first_partition, task.last_partition):
        part = w.partitions[p]
        for c in range(part.first_channel, part.first_channel + part.channels):
            release_output(w, c)


def release_input(w: PlaneState, i: int, c: int) -> None:
    ch = w.channels[c]
    ch.in_from = NEVER
    while ch.owed_exclusive > 0:
        ch.owed_exclusive -= 1
        recycle_exclusive(w, c)
    while ch.owed_floating > 0:
        ch.owed_floating -= 1
        recycle_floating(w, i)


def release_output(w: PlaneState, c: int) -> None:
    ch = w.channels[c]
    ch.out_from = 0
    ch.out_to = 0
    while ch.owed_segments > 0:
        ch.owed_segments -= 1
        give_back(w, c)
