"""Records: where they go, when they are due, how long they are served; records served ahead of time."""

from sim.plane.rows import PlaneState
from sim.plane.text.basics import (
    BUSY,
    FARTHEST,
    FETCHED,
    HASH,
    IDLE,
    NEVER,
    POLL,
    REBALANCE,
    RESCALE,
    SEGMENT,
    draw,
    enter,
    fetch,
    law,
    record_size,
    schedule,
)

# ---- One record of a task: where it goes, when it is due, how long its service takes (O5, W1, T11).


def copies_of(w: PlaneState, p: int, served: int) -> int:
    """floor((k+1) f) - floor(k f), k + 1 records served."""
    part = w.partitions[p]
    if part.fan_den == 1:
        return part.fan_num
    return served * part.fan_num // part.fan_den - (served - 1) * part.fan_num // part.fan_den


def address(w: PlaneState, p: int) -> int:
    """The channel of the next copy, which is made now."""
    c = route(w, p)
    count_copy(w, p)
    return c


def count_copy(w: PlaneState, p: int) -> None:
    """One copy more is made."""
    part = w.partitions[p]
    part.copies += 1
    if part.ship == REBALANCE or part.ship == RESCALE:
        part.turn += 1
        if part.turn == part.channels:
            part.turn = 0


def route(w: PlaneState, p: int) -> int:
    """The channel of the next copy, the first one of a broadcast (O5)."""
    return route_later(w, p, 0)


def route_later(w: PlaneState, p: int, k: int) -> int:
    """The same, when k copies more are made."""
    part = w.partitions[p]
    if part.ship == HASH:
        u = draw(part.stride, part.offset, part.copies + k)
        if part.weights_n == 0:
            return part.first_channel + ((u * part.channels) >> 32)
        return part.first_channel + w.words[part.weights + ((u * part.weights_n) >> 32)]
    if part.ship == REBALANCE or part.ship == RESCALE:
        return part.first_channel + (part.turn + k) % part.channels
    return part.first_channel


def fetch_targets(w: PlaneState, t: int, k: int) -> None:
    """The channels that a record will be written to, k copies from now, of a job whose channels exceed the cache."""
    task = w.tasks[t]
    for p in range(task.first_partition, task.last_partition):
        fetch(w, route_later(w, p, k))


def next_due(w: PlaneState, t: int) -> None:
    """When record `served` is due (W1), step by step without a division."""
    task = w.tasks[t]
    if task.segment == task.last_segment:
        return
    words = w.words
    moved = False
    while task.segment + SEGMENT < task.last_segment and words[task.segment + SEGMENT] <= task.served:
        task.segment += SEGMENT
        moved = True
    if moved:
        task.due = words[task.segment + 1]
        task.due_part = 0
    else:
        task.due += words[task.segment + 3]
        task.due_part += words[task.segment + 4]
        if task.due_part >= words[task.segment + 2]:
            task.due_part -= words[task.segment + 2]
            task.due += 1


def consume(w: PlaneState, c: int) -> None:
    """The next record of a channel, which is taken as a whole, is the reader's."""
    ch = w.channels[c]
    gate = w.gates[ch.gate]
    ch.consumed = ch.record_end
    ch.records_in += 1
    gate.records_in += 1
    ch.record_end += record_size(w, c, gate.size_table, gate.size_n, ch.records_in)


def service_ns(w: PlaneState, t: int, table: int, n: int) -> int:
    """How long record `served` takes (T11)."""
    task = w.tasks[t]
    ns = law(w, table, n, task.stride, task.offset, task.served)
    if task.slow_num != task.slow_den:
        ns = ns * task.slow_num // task.slow_den
    if ns < 1:
        ns = 1
    return ns


# ---- Records that a task serves ahead of their time while no other component sees it.  They are taken back before a component looks.
#
# A record that lies inside the current buffer and fits inside the open one changes nothing that another task reads.  So
# when a service begins, such records are served at once, one after the other, and the task's next event is the first
# one that shows.  Who wants to see or stop the task before that event calls `catch_up`: then the task stands where it
# does at this moment.


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
