"""Positions of a kernel's tasks, read from its rows and written into them (P2-P6).

A start has three steps.  The kernel sweeps out what belongs to the tasks.  Here every field becomes what it was at the beginning,
except those that last.  Then the kernel has the tasks stand at their positions.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from sim.plane.kernel.rows import Channel, Gate, Partition, PlaneState, Task
from sim.plane.kernel.tables import Column, assign, column, picked, totals
from sim.plane.kernel.text.names import BROADCAST, FORGETTING, REBALANCE, RESCALE, SEGMENT, SERIES, STAND, SWEEP
from sim.plane.seam.interface import PlaneSpec, Position
from sim.plane.seam.layout import Layout
from sim.plane.seam.positions import ChannelPlaces, channels_in, channels_out, nothing

KEPT: dict[type, set[str]] = {  # what a start leaves as it is: what never changes, and what lasts (P3)
    Task: {
        "state", "held", "joined", "stride", "offset", "slow_num", "slow_den", "first_partition", "last_partition", "since",
        "busy_ns", "idle_ns", "soft_ns", "hard_ns", "digest", "first_gate", "last_gate", "buffers_in", "line", "source", "total",
        "lock_stride", "lock_offset", "lock_wins",
        "service_table", "service_n", "first_segment", "last_segment", "earlier_in", "earlier_out", "earlier_records", "earlier_served",
        "lag", "lag_capacity", "lag_table", "lag_n", "lag_stride", "lag_offset", "lag_ring",
        "firing_ns", "fired_num", "fired_den", "yields", "runs_ahead",
    },
    Partition: {
        "pool", "limit", "first_channel", "channels", "task", "ship", "copies", "turn", "fan_num", "fan_den", "size_table", "size_n",
        "weights", "weights_n", "stride", "offset", "buffers_out",
    },
    Gate: {
        "task", "place", "input_end", "first_channel", "channels", "service_table", "service_n", "size_table", "size_n", "settled",
        "closed_bits", "counts", "count_words",
    },
    Channel: {"stride", "offset", "local", "writer", "reader", "partition", "gate", "place", "digest", "earlier_read", "earlier_written"},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Places:
    """The places of the rows of some tasks."""

    tasks: list[int]
    partitions: list[int]
    gates: list[int]
    channels: list[int]

    @classmethod
    def of(cls, plan: Layout, tasks: Iterable[int]) -> Places:
        every = sorted(tasks)
        return cls(
            every,
            [p for t in every for p in plan.task_partitions[t]],
            [g for t in every for g in plan.task_gates[t]],
            [c for t in every for c in channels_out(plan, t)],
        )


def position_of(cells: Column, inputs: int, outputs: int, late: int) -> Position:
    """P2 without captures, whose fields lie on lines of memory that are seldom touched; `cells` as the kernel's text copies them."""
    read, written = cells[1 : 1 + 2 * inputs], cells[1 + 2 * inputs :]
    return Position(
        int(cells[0]),
        consumed=read[:inputs],
        records_out=read[inputs:],
        captured=nothing(inputs),
        written=written[:outputs],
        records_in=written[outputs:],
        overtaken=nothing(outputs),
        late=late,
    )


def with_captures(state: PlaneState, bare: Position, inputs: ChannelPlaces, outputs: ChannelPlaces) -> Position:
    """P2; the places of the channels of the task."""
    rows = state.channels
    so_far = picked(rows, "arrived", inputs) - picked(rows, "captured_from", inputs)
    return bare._replace(
        captured=np.where(picked(rows, "capturing", inputs) > 0, so_far, picked(rows, "cap_in", inputs)),
        overtaken=picked(rows, "cap_out", outputs),
    )


def excess_of(state: PlaneState, plan: Layout, segment_bytes: int, positions: Mapping[int, Position]) -> int:
    """Segments in use beyond what the pools may grant, once the tasks stand at these positions."""
    used = column(state.partitions, "used")
    for t, position in positions.items():
        segments = iter((-(-position.overtaken // segment_bytes)).tolist())
        for p in plan.task_partitions[t]:
            used[p] = sum(next(segments) for _ in plan.partitions[p][2])
    return int(np.maximum(used - column(state.partitions, "limit"), 0).sum())


def place(state: PlaneState, spec: PlaneSpec, plan: Layout, positions: Mapping[int, Position], do: Callable[[int, int], int]) -> None:
    """P3: the tasks stand at their positions; `do` runs an operation of the kernel."""
    where = Places.of(plan, positions)
    before, stood = totals(state), standing(state, where)
    assign(state.tasks, "held", where.tasks, FORGETTING)
    do(SWEEP, 0)
    renew(state, spec, where)
    captured = np.zeros(len(plan.reader), np.int64)
    for t, position in positions.items():
        captured[channels_in(plan, t)] = position.captured
    for t, position in positions.items():
        outputs = channels_out(plan, t)
        write(state, t, position, outputs, captured[outputs])
        count_copies(state, plan.task_partitions[t], position)
        seek_due(state, t, position.served)
    for t in where.tasks:
        do(STAND, t)
    after = totals(state)
    for total, field in (("bytes_in", "earlier_in"), ("bytes_out", "earlier_out"), ("records_out", "earlier_records")):
        earlier = column(state.tasks, field) + before[total] - after[total]
        assign(state.tasks, field, where.tasks, earlier[where.tasks])
    stands = standing(state, where)
    for rows, places, field in ((state.tasks, where.tasks, "earlier_served"), (state.channels, where.channels, "earlier_read"),
                                (state.channels, where.channels, "earlier_written")):  # fmt: skip
        assign(rows, field, places, picked(rows, field, places) + stood[field] - stands[field])


def standing(state: PlaneState, where: Places) -> dict[str, np.ndarray[Any, Any]]:
    """Where the tasks and channels stand, by the field that keeps what a start takes back (P8)."""
    return {
        "earlier_served": picked(state.tasks, "served", where.tasks),
        "earlier_read": picked(state.channels, "records_in", where.channels),
        "earlier_written": picked(state.channels, "records_out", where.channels),
    }


def renew(state: PlaneState, spec: PlaneSpec, where: Places) -> None:
    """Every field as it was at the beginning, except those kept."""
    for row, rows, places in (
        (Task, state.tasks, where.tasks), (Partition, state.partitions, where.partitions), (Gate, state.gates, where.gates),
        (Channel, state.channels, where.channels),
    ):  # fmt: skip
        for field in fields(row):
            if field.name not in KEPT[row]:
                assign(rows, field.name, places, field.default)
    assign(state.tasks, "last_used", where.tasks, picked(state.tasks, "last_gate", where.tasks) - 1)
    assign(state.gates, "idle", where.gates, spec.floating)
    assign(state.gates, "last_size", where.gates, spec.starting_buffer_bytes << 32)
    assign(state.gates, "announced_bytes", where.gates, spec.starting_buffer_bytes)
    assign(state.channels, "buffer_bytes", where.channels, spec.starting_buffer_bytes)
    own = np.where(picked(state.channels, "local", where.channels) == 1, 0, spec.exclusive)
    for name in ("credit", "required", "ex_free"):
        assign(state.channels, name, where.channels, own)
    for settled, closed, counts in zip(*(picked(state.gates, n, where.gates) for n in ("settled", "closed_bits", "counts")), strict=True):
        for i in (*range(settled, settled + SERIES), *range(closed, counts)):
            state.words[i] = 0


def write(state: PlaneState, task: int, position: Position, outputs: list[int], captured: np.ndarray[Any, Any]) -> None:
    """P5: the records a task has served, the offsets of its output channels."""
    assign(state.tasks, "served", [task], position.served)
    assign(state.tasks, "late", [task], position.late)
    sent = position.written - position.overtaken
    for name, values in (
        ("written", position.written), ("sent", sent), ("arrived", sent), ("taken", sent - captured), ("consumed", sent - captured),
        ("records_out", position.records_in),
    ):  # fmt: skip
        assign(state.channels, name, outputs, values)


def count_copies(state: PlaneState, partitions: Sequence[int], position: Position) -> None:
    """P4: the copies made of the records whose outputs are written, and the channel of the next one."""
    columns = (picked(state.partitions, name, partitions).tolist() for name in ("fan_num", "fan_den", "ship", "turn", "copies", "channels"))
    first = 0
    for p, num, den, ship, turn, copies, channels in zip(partitions, *columns, strict=True):
        made = (position.served - position.late) * num // den
        assign(state.partitions, "copies", [p], made)
        counted = position.records_in[first : first + (1 if ship == BROADCAST else channels)]
        assign(state.partitions, "uncounted", [p], made - int(counted.sum()))
        first += channels
        if ship in (REBALANCE, RESCALE):
            assign(state.partitions, "turn", [p], (turn + made - copies) % channels)


def seek_due(state: PlaneState, task: int, served: int) -> None:
    """W1: when the next record of a source is due, and by which segment."""
    begin, end = (int(picked(state.tasks, name, [task])[0]) for name in ("first_segment", "last_segment"))
    segments = range(begin, end, SEGMENT)
    at = segments[max(bisect_right(segments, served, key=lambda place: state.words[place]) - 1, 0)] if segments else begin
    assign(state.tasks, "segment", [task], at)
    if begin < end:
        first, start, num, quotient, rest = (int(word) for word in state.words[at : at + SEGMENT])
        parts = (served - first) * rest
        assign(state.tasks, "due", [task], start + (served - first) * quotient + parts // num)
        assign(state.tasks, "due_part", [task], parts % num)
