"""Outputs that leave after the service of their record (L1-L9)."""

from sim.plane.rows import PlaneState
from sim.plane.text.basics import (
    BUSY,
    FIRING,
    HARD,
    IDLE,
    NOTE_NONE_LATE,
    NOTE_SAFE,
    NOTE_WRITTEN,
    SOFT,
    TIMED,
    append_turn,
    become,
    law,
    report,
    schedule,
    wake_between_records,
)
from sim.plane.text.channels import go_on_writing
from sim.plane.text.counting import process_marker


def become_late(w: PlaneState, t: int) -> None:
    """The record just served waits, in hand if there is no room (L1, L2)."""
    task = w.tasks[t]
    if task.lag == TIMED:
        if task.late == task.lag_capacity:
            task.in_hand = 1
        else:
            set_ready(w, t, task.served - 1)
    task.late += 1


def set_ready(w: PlaneState, t: int, k: int) -> None:
    """When record k, behind `late` others, is ready (L2)."""
    task = w.tasks[t]
    ready = w.g.now + law(w, task.lag_table, task.lag_n, task.lag_stride, task.lag_offset, k)
    if ready < task.lag_last:
        ready = task.lag_last
    task.lag_last = ready
    i = task.lag_first + task.late
    if i >= task.lag_capacity:
        i -= task.lag_capacity
    w.words[task.lag_ring + i] = ready


def write_late(w: PlaneState, t: int) -> bool:
    """L3; False: the turn ends: HARD, with a record in hand, firing, or with a notice."""
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
        if not go_on_writing(w, t):
            become(w, t, HARD)
            return False
    if task.in_hand > 0:
        become(w, t, BUSY)
        schedule(w, t, w.words[task.lag_ring + task.lag_first])
        return False
    return True


def begin_firing(w: PlaneState, t: int) -> bool:
    """L7: the thread works for the outputs of the first late record; False: it has none."""
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
    """L7; the turn that follows is the caller's."""
    task = w.tasks[t]
    task.serving = 0
    task.late -= 1
    if not go_on_writing(w, t):
        become(w, t, HARD)


def yields_now(w: PlaneState, t: int) -> bool:
    """L8: mails and markers with priority pass before the next record is fired; True: a notice ends the turn."""
    task = w.tasks[t]
    if task.interrupted == 1:
        task.interrupted = 0
        task.behind = 0
        report(w, NOTE_SAFE, t, -1, -1, -1, -1, 0, 0)
    while w.g.noted == 0 and task.urgent_head >= 0 and (task.waits_for_late & 1) == 0:
        e = task.urgent_head
        task.urgent_head = w.elements[e].next
        process_marker(w, w.elements[e].channel, e)
    if w.g.noted > 0:
        append_turn(w, t)
        return True
    return False


def first_ready(w: PlaneState, t: int) -> bool:
    task = w.tasks[t]
    if task.lag == TIMED:
        return w.words[task.lag_ring + task.lag_first] <= w.g.now
    return task.served - task.late < task.released_until


def expect_late(w: PlaneState, t: int) -> None:
    """L4."""
    task = w.tasks[t]
    if task.lag == TIMED and task.serving == 0 and (task.state == IDLE or task.state == SOFT):
        schedule(w, t, w.words[task.lag_ring + task.lag_first])


def release_late_outputs(w: PlaneState, t: int, until: int) -> None:
    """L5."""
    task = w.tasks[t]
    if until > task.released_until:
        task.released_until = until
    wake_between_records(w, t)


def wait_for_late(w: PlaneState, t: int) -> None:
    """L6."""
    task = w.tasks[t]
    if (task.waits_for_late & 1) == 0:
        task.waits_for_late += 1
    wake_between_records(w, t)


def report_written(w: PlaneState, t: int) -> None:
    """L9."""
    task = w.tasks[t]
    if task.waits_for_late < 2:
        task.waits_for_late += 2
    wake_between_records(w, t)


def go_on_waiting(w: PlaneState, t: int) -> None:
    """What was let go is written (L9); mails and nothing else before the last late output is (L6)."""
    task = w.tasks[t]
    if task.waits_for_late >= 2:
        task.waits_for_late -= 2
        report(w, NOTE_WRITTEN, t, -1, -1, -1, -1, 0, 0)
    elif task.interrupted == 1:
        task.interrupted = 0
        task.behind = 0
        report(w, NOTE_SAFE, t, -1, -1, -1, -1, 0, 0)
    elif task.late > 0:
        become(w, t, IDLE)
    else:
        task.waits_for_late = 0
        report(w, NOTE_NONE_LATE, t, -1, -1, -1, -1, 0, 0)


def be_late_again(w: PlaneState, t: int) -> None:
    """L5: the task was started with late records."""
    task = w.tasks[t]
    if task.lag == TIMED:
        n = task.late
        task.late = 0
        while task.late < n and task.late < task.lag_capacity:
            set_ready(w, t, task.served - n + task.late)
            task.late += 1
        task.in_hand = n - task.late
        task.late = n
