"""The plane's tables: one structured array of int64 columns per kind of thing, columns as named in the interface."""

from __future__ import annotations

import numpy as np

from sim.plane.interface import VERTEX_COLUMNS, ThreadState

TASKS = (
    "state",
    "served",
    "records_out",
    "bytes_in",
    "bytes_out",
    "buffers_in",
    "buffers_out",
    "busy_ns",
    "idle_ns",
    "soft_ns",
    "hard_ns",
    "digest",
)
CHANNELS = (
    "written",
    "sent",
    "arrived",
    "taken",
    "consumed",
    "records_in",
    "records_out",
    "credit",
    "blocked",
    "queued",
    "received",
    "buffer_bytes",
    "cap_in",
    "cap_out",
    "digest",
)
PARTITIONS = ("task", "edge", "used", "size", "available")
GATES = ("task", "edge", "idle_floating", "buffer_bytes")


def table(names, rows):
    return np.array(list(rows), dtype=[(name, np.int64) for name in names])


def spent(task, now):
    """T12: ns per state up to now."""
    times = list(task.spent)
    times[task.state] += now - task.since
    return times


def task_row(task, now):
    times = spent(task, now)
    return (
        task.state,
        task.served,
        task.records_out,
        task.earlier_in + sum(c.taken for c in task.channels_in),
        task.earlier_out + sum(c.written for c in task.channels_out),
        task.buffers_in,
        task.buffers_out,
        times[ThreadState.BUSY] + times[ThreadState.HELD],
        times[ThreadState.IDLE],
        times[ThreadState.SOFT],
        times[ThreadState.HARD],
        task.digest,
    )


def task_table(plane, columns=()):
    return table(TASKS, (task_row(task, plane.now) for task in plane.all_tasks))[list(columns or TASKS)]


def channel_table(plane, columns=()):
    rows = table(
        CHANNELS,
        (
            (
                c.written,
                c.sent,
                c.arrived,
                c.taken,
                c.consumed,
                c.records_in,
                c.records_out,
                c.credit,
                int(c.blocked),
                len(c.queue),
                len(c.received),
                c.buffer_bytes,
                c.cap_in,
                c.cap_out,
                c.digest,
            )
            for c in plane.all_channels
        ),
    )
    return rows[list(columns or CHANNELS)]


def sums(plane):
    tasks, channels, layout = task_table(plane), channel_table(plane), plane.layout
    tasks["served"] = [task.ever_served for task in plane.all_tasks]  # P8
    of_task, of_edge = np.array(layout.vertex), np.array(layout.edge)
    at_hand = np.where(layout.local, channels["queued"], channels["received"])
    waiting = (
        channels["arrived"] - channels["taken"],
        at_hand,
        channels["written"] - channels["sent"],
        channels["queued"],
    )
    by_vertex = [tasks[name][of_task == v].sum() for v in range(len(plane.spec.vertices)) for name in VERTEX_COLUMNS]
    by_edge = [values[of_edge == e].sum() for e in range(len(plane.spec.edges)) for values in waiting]
    return np.array([*by_vertex, *by_edge], np.int64)


def partition_table(plane):
    return table(
        PARTITIONS, ((p.task.number, p.edge_number, p.used, p.size, int(p.available)) for p in plane.all_partitions)
    )


def gate_table(plane):
    return table(GATES, ((g.task.number, g.edge_number, g.idle_floating, g.previous) for g in plane.all_gates))
