"""One record of a task: where it goes, when it is due, how long its service takes (O5, W1, T11)."""

from sim.plane.kernel.rows import PlaneState
from sim.plane.kernel.text.draws import draw, law, record_size
from sim.plane.kernel.text.elements import fetch
from sim.plane.kernel.text.names import HASH, REBALANCE, RESCALE, SEGMENT


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
