"""Records that a task serves ahead of their time while no other component sees it.  They are taken back before a component looks.

A record that lies inside the current buffer and fits inside the open one changes nothing that another task reads.  So when a service
begins, such records are served at once, one after the other, and the task's next event is the first one that shows.  Who
wants to see or stop the task before that event calls `catch_up`: then the task stands where it does at this moment.
"""

from sim.plane.kernel.rows import PlaneState
from sim.plane.kernel.text.draws import record_size
from sim.plane.kernel.text.names import BUSY, FARTHEST, FETCHED, IDLE, NEVER, POLL, REBALANCE, RESCALE
from sim.plane.kernel.text.records import consume, copies_of, count_copy, fetch_targets, next_due, route, service_ns
from sim.plane.kernel.text.tree import schedule
from sim.plane.kernel.text.work import enter


def goes_far(w: PlaneState, t: int) -> bool:
    """Whether it pays to run ahead: where channels come from memory, a few records wait for it less when each is served by itself."""
    task = w.tasks[t]
    if w.g.fetches == 0 or task.source > 0:
        return True
    if task.current < 0:
        return False
    ch = w.channels[task.current]
    return ch.taken - ch.record_end > FETCHED * (ch.record_end - ch.consumed)


def run_ahead(w: PlaneState, t: int, end: int) -> int:
    """A service that ends at `end` has begun; returns when the task's next event is."""
    task = w.tasks[t]
    task.ahead_end = end
    if task.source > 0:
        task.ahead_since = task.since
        task.ahead_busy = task.busy_ns
        task.ahead_idle = task.idle_ns
        task.ahead_digest = task.digest
        task.ahead_due = task.due
        task.ahead_due_part = task.due_part
        task.ahead_segment = task.segment
    return serve_unseen(w, t, end, NEVER)


def catch_up(w: PlaneState, t: int) -> None:
    """A task that is ahead goes back to the beginning of that, and on to this moment."""
    task = w.tasks[t]
    if task.ahead == 0:
        return
    while task.ahead > 0:
        take_back(w, t)
    if task.source > 0:
        task.since = task.ahead_since
        task.busy_ns = task.ahead_busy
        task.idle_ns = task.ahead_idle
        task.digest = task.ahead_digest
        task.due = task.ahead_due
        task.due_part = task.ahead_due_part
        task.segment = task.ahead_segment
        task.state = BUSY
        task.serving = 1
    schedule(w, t, serve_unseen(w, t, task.ahead_end, w.g.reached))
    task.ahead = 0


def catch_up_all(w: PlaneState) -> None:
    for t in range(w.g.tasks):
        catch_up(w, t)


def serve_unseen(w: PlaneState, t: int, end: int, bound: int) -> int:
    """Serve on from a service that ends at `end`, up to the first event that shows or whose key is not below `bound`; returns its time."""
    task = w.tasks[t]
    while task.ahead < FARTHEST and is_below(w, t, end, bound) and has_next(w, t) and write_unseen(w, t):
        task.ahead += 1
        task.served += 1
        if w.g.fetches == 1:
            fetch_targets(w, t, FETCHED)
        if task.source > 0:
            next_due(w, t)
            if task.due > end:
                if task.source != POLL:
                    enter(w, t, IDLE, end)
                    if not is_below(w, t, task.due, bound):
                        task.serving = 0
                        return task.due
                    enter(w, t, BUSY, task.due)
                end = task.due
            end += service_ns(w, t, task.service_table, task.service_n)
        else:
            consume(w, task.current)
            gate = w.gates[w.channels[task.current].gate]
            end += service_ns(w, t, gate.service_table, gate.service_n)
    return end


def is_below(w: PlaneState, t: int, time: int, bound: int) -> bool:
    """Whether the task's event at `time` comes before the key `bound`."""
    return time < w.g.horizon and ((time << w.g.shift) | t) < bound


def has_next(w: PlaneState, t: int) -> bool:
    """Whether another record follows unseen: of a buffer that it does not end, of a source that is not exhausted."""
    task = w.tasks[t]
    if task.source > 0:
        return task.served + 1 != task.total
    if task.current < 0:
        return False
    ch = w.channels[task.current]
    return ch.record_end < ch.taken


def write_unseen(w: PlaneState, t: int) -> bool:
    """Write the record in service if that fills no buffer and opens none; it makes one copy at most."""
    task = w.tasks[t]
    p = task.first_partition
    if p == task.last_partition or copies_of(w, p, task.served + 1) == 0:
        return True
    c = route(w, p)
    ch = w.channels[c]
    end = ch.written + record_size(w, c, w.partitions[p].size_table, w.partitions[p].size_n, ch.records_out)
    if end >= ch.full_at:
        return False
    ch.written = end
    ch.records_out += 1
    count_copy(w, p)
    return True


def take_back(w: PlaneState, t: int) -> None:
    """The record served last is in service again."""
    task = w.tasks[t]
    if task.source == 0:
        gone = w.channels[task.current]
        gone.record_end = gone.consumed
        gone.records_in -= 1
        gate = w.gates[gone.gate]
        gate.records_in -= 1
        gone.consumed -= record_size(w, task.current, gate.size_table, gate.size_n, gone.records_in)
    p = task.first_partition
    if p < task.last_partition and copies_of(w, p, task.served) == 1:
        part = w.partitions[p]
        part.copies -= 1
        if part.ship == REBALANCE or part.ship == RESCALE:
            if part.turn == 0:
                part.turn = part.channels
            part.turn -= 1
        c = route(w, p)
        ch = w.channels[c]
        ch.records_out -= 1
        ch.written -= record_size(w, c, part.size_table, part.size_n, ch.records_out)
    task.served -= 1
    task.ahead -= 1
