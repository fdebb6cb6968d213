"""Sums over the tasks of each vertex and the channels of each edge: what a sample is made of, without a copy of every row."""

from sim.plane.kernel.rows import PlaneState
from sim.plane.kernel.text.names import BROADCAST, BUSY, EDGE_SUMS, HARD, HELD, IDLE, SOFT, VERTEX_SUMS


def sum_up(w: PlaneState, now: int) -> None:
    """Write the sums behind `words[g.sums]`: those of all vertices, then those of all edges."""
    g = w.g
    for v in range(g.vertices):
        sum_tasks(w, w.words[g.first_tasks + v], w.words[g.first_tasks + v + 1], g.sums + v * VERTEX_SUMS, now)
    for e in range(g.edges):
        at = g.first_channels + 2 * e
        written = sum_channels(w, w.words[at], w.words[at + 2], g.sums + g.vertices * VERTEX_SUMS + e * EDGE_SUMS)
        w.words[g.sums + w.words[at + 1] * VERTEX_SUMS + 1] += written


def flying(w: PlaneState) -> None:
    """Write behind `words[g.copied]`, by task: records written into its channels, less those that it read."""
    for t in range(w.g.tasks):
        task = w.tasks[t]
        records = 0
        for p in range(task.first_partition, task.last_partition):
            records += written_into(w, p)
        for i in range(task.first_gate, task.last_gate):
            records -= w.gates[i].records_in
        w.words[w.g.copied + t] = records


def written_into(w: PlaneState, p: int) -> int:
    """Records that the channels of a partition count: its copies, but for those that are cut off or being written."""
    part = w.partitions[p]
    task = w.tasks[part.task]
    copies = part.copies - part.uncounted
    if task.emitting == 1 and task.cursor == p:
        copies -= 1
    if part.ship == BROADCAST:
        copies *= part.channels
    return copies


def sum_tasks(w: PlaneState, first: int, last: int, at: int, now: int) -> None:
    """Served, bytes out of earlier attempts, busy, idle, soft and hard up to now."""
    served = 0
    earlier = 0
    busy = 0
    idle = 0
    soft = 0
    hard = 0
    for t in range(first, last):
        task = w.tasks[t]
        served += task.served
        earlier += task.earlier_out
        busy += task.busy_ns
        idle += task.idle_ns
        soft += task.soft_ns
        hard += task.hard_ns
        running = now - task.since
        if task.state == BUSY or task.state == HELD:
            busy += running
        elif task.state == IDLE:
            idle += running
        elif task.state == SOFT:
            soft += running
        elif task.state == HARD:
            hard += running
    w.words[at] = served
    w.words[at + 1] = earlier
    w.words[at + 2] = busy
    w.words[at + 3] = idle
    w.words[at + 4] = soft
    w.words[at + 5] = hard


def sum_channels(w: PlaneState, first: int, last: int, at: int) -> int:
    """Bytes and buffers at the reader, bytes and buffers at the writer; returns the bytes ever written."""
    written = 0
    at_reader = 0
    to_read = 0
    at_writer = 0
    to_send = 0
    for c in range(first, last):
        ch = w.channels[c]
        written += ch.written
        at_reader += ch.arrived - ch.taken
        at_writer += ch.written - ch.sent
        to_send += ch.queued
        if ch.local == 1:
            to_read += ch.queued
        else:
            to_read += ch.received
    w.words[at] = at_reader
    w.words[at + 1] = to_read
    w.words[at + 2] = at_writer
    w.words[at + 3] = to_send
    return written
