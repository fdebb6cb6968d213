"""A task that was started anew reads its recovered input, then requests its partitions (P6, P7)."""

from sim.plane.kernel.rows import PlaneState
from sim.plane.kernel.text.channels.messages import tell_sender
from sim.plane.kernel.text.names import LOOSE, NOTE_RECOVERED, READING, RESUME
from sim.plane.kernel.text.work import fold_channel, report


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
