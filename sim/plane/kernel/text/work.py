"""The work list (E2), pending notices (E3), and what a task's thread is doing (T12)."""

from sim.plane.kernel.rows import PlaneState
from sim.plane.kernel.text.draws import fold
from sim.plane.kernel.text.names import BUSY, HALTED, HARD, HELD, IDLE, NOTE_WORDS, SOFT


def append_work(w: PlaneState, item: int) -> None:
    """At the end of the work list: TURN t is t, SEND c is tasks + c."""
    g = w.g
    w.ring[(g.work_head + g.work_n) & g.work_mask] = item
    g.work_n += 1


def append_turn(w: PlaneState, t: int) -> None:
    """TURN t, unless it is there already."""
    task = w.tasks[t]
    if task.listed == 0:
        task.listed = 1
        append_work(w, t)


def wake(w: PlaneState, t: int) -> None:
    """TURN t, unless the task is in service or held."""
    task = w.tasks[t]
    if task.serving == 0 and task.held == 0:
        append_turn(w, t)


def wake_if(w: PlaneState, t: int, state: int) -> None:
    if w.tasks[t].state == state:
        wake(w, t)


def wake_between_records(w: PlaneState, t: int) -> None:
    """Priority markers and interruptions do not wait for output."""
    state = w.tasks[t].state
    if state == IDLE or state == SOFT:
        wake(w, t)


def report(w: PlaneState, kind: int, task: int, gate: int, series: int, number: int, channel: int, first: int, last: int) -> None:
    """A notice, in the order of the interface's fields; a halted task has nothing to say (P1)."""
    if w.tasks[task].state == HALTED:
        return
    i = w.g.noted * NOTE_WORDS
    notes = w.notes
    notes[i] = w.g.now
    notes[i + 1] = kind
    notes[i + 2] = task
    notes[i + 3] = gate
    notes[i + 4] = series
    notes[i + 5] = number
    notes[i + 6] = channel
    notes[i + 7] = first
    notes[i + 8] = last
    w.g.noted += 1


def become(w: PlaneState, t: int, state: int) -> None:
    """Enter a state now."""
    enter(w, t, state, w.g.now)


def enter(w: PlaneState, t: int, state: int, now: int) -> None:
    """Enter a state; the time since the last change belongs to the old one."""
    task = w.tasks[t]
    old = task.state
    if old != state:
        ns = now - task.since
        if old == BUSY or old == HELD:
            task.busy_ns += ns
        elif old == IDLE:
            task.idle_ns += ns
        elif old == SOFT:
            task.soft_ns += ns
        elif old == HARD:
            task.hard_ns += ns
        task.since = now
        task.state = state
        if w.g.digests == 1:
            task.digest = fold(fold(task.digest, now), state)


def fold_channel(w: PlaneState, c: int, end: int, length: int) -> None:
    """Sending, arrival or taking of a data element (G1)."""
    ch = w.channels[c]
    ch.digest = fold(fold(fold(ch.digest, w.g.now), end), length)
