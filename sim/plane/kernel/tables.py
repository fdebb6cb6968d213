"""The rows of a world as tables: copies, with the columns the interface names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sim.plane.kernel.rows import General, World
from sim.plane.seam.interface import State
from sim.plane.seam.layout import Layout

__all__ = ["Column", "assign", "channel_table", "column", "gate_table", "partition_table", "picked", "summed", "task_table", "totals"]

Column = np.ndarray[Any, np.dtype[np.int64]]
CHANNEL_COLUMNS = (
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
CLOCKS = {State.IDLE: "idle_ns", State.BUSY: "busy_ns", State.SOFT: "soft_ns", State.HARD: "hard_ns", State.HELD: "busy_ns"}


def column(rows: Any, name: str) -> Column:
    """One field of all rows, whichever way they are kept."""
    if isinstance(rows, General):
        rows = [rows]
    if isinstance(rows, list):
        return np.fromiter((getattr(row, name) for row in rows), np.int64, len(rows))
    return np.array(rows[name])


def picked(rows: Any, name: str, places: Sequence[int] | Column) -> Column:
    """One field of some rows."""
    if isinstance(rows, list):
        return np.fromiter((getattr(rows[place], name) for place in places), np.int64, len(places))
    values: Column = rows[name][places]
    return values


def assign(rows: Any, name: str, places: Sequence[int], values: Any) -> None:
    """Set one field of some rows, to one value or to one each."""
    if not isinstance(rows, list):
        rows[name][places] = values
        return
    one_each = values.tolist() if isinstance(values, np.ndarray) else [values] * len(places)
    for place, value in zip(places, one_each, strict=True):
        setattr(rows[place], name, value)


def table(columns: dict[str, Column]) -> np.ndarray[Any, Any]:
    n = len(next(iter(columns.values())))
    rows = np.zeros(n, [(name, np.int64) for name in columns])
    for name, values in columns.items():
        rows[name] = values
    return rows


def summed(n: int, owner: Column, values: Column) -> Column:
    """The values added up by owner."""
    total = np.zeros(n, np.int64)
    np.add.at(total, owner, values)
    return total


def totals(world: World) -> dict[str, Column]:
    """What a task has written and taken in all its attempts (P3), by column."""
    tasks, channels = world.tasks, world.channels
    writer, reader = column(channels, "writer"), column(channels, "reader")
    return {
        "records_out": column(tasks, "earlier_records") + summed(len(tasks), writer, column(channels, "records_out")),
        "bytes_in": column(tasks, "earlier_in") + summed(len(tasks), reader, column(channels, "taken")),
        "bytes_out": column(tasks, "earlier_out") + summed(len(tasks), writer, column(channels, "written")),
    }


def task_table(world: World, now: int) -> np.ndarray[Any, Any]:
    tasks, partitions = world.tasks, world.partitions
    n = len(tasks)
    state, running = column(tasks, "state"), now - column(tasks, "since")
    clocks = {name: column(tasks, name) for name in ("busy_ns", "idle_ns", "soft_ns", "hard_ns")}
    for member, name in CLOCKS.items():
        clocks[name] += np.where(state == member, running, 0)
    return table(
        {
            "state": state,
            "served": column(tasks, "served"),
            **totals(world),
            "buffers_in": column(tasks, "buffers_in"),
            "buffers_out": summed(n, column(partitions, "task"), column(partitions, "buffers_out")),
            **clocks,
            "digest": column(tasks, "digest"),
        }
    )


def channel_table(world: World) -> np.ndarray[Any, Any]:
    return table({name: column(world.channels, name) for name in CHANNEL_COLUMNS})


def partition_table(world: World, layout: Layout) -> np.ndarray[Any, Any]:
    rows = world.partitions
    used, pool = column(rows, "used"), column(rows, "pool")
    available = (used < pool) & (column(rows, "full") == 0)
    edge = np.array([e for _, e, _ in layout.partitions], np.int64)
    return table({"task": column(rows, "task"), "edge": edge, "used": used, "size": pool, "available": available.astype(np.int64)})


def gate_table(world: World, layout: Layout) -> np.ndarray[Any, Any]:
    rows = world.gates
    edge = np.array([e for _, e, _ in layout.gates], np.int64)
    return table(
        {
            "task": column(rows, "task"),
            "edge": edge,
            "idle_floating": column(rows, "idle"),
            "buffer_bytes": column(rows, "announced_bytes"),
        }
    )
