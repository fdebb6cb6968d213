"""The rows of a plane's state as tables: copies, with the columns the interface names."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from sim.plane.kernel.rows import General, PlaneState
from sim.plane.seam.interface import ThreadState
from sim.plane.seam.layout import Layout

Column = np.ndarray[Any, np.dtype[np.int64]]
TASK_COLUMNS = (
    "state", "served", "records_out", "bytes_in", "bytes_out", "buffers_in", "buffers_out", "busy_ns", "idle_ns", "soft_ns", "hard_ns",
    "digest",
)  # fmt: skip
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
TOTALS = {  # column: (of the task's earlier attempts, end of the channel, of the channel)
    "records_out": ("earlier_records", "writer", "records_out"),
    "bytes_in": ("earlier_in", "reader", "taken"),
    "bytes_out": ("earlier_out", "writer", "written"),
}
CLOCKS = {  # column: the states in which its time runs; as plain numbers, which NumPy compares ten times faster than members
    "idle_ns": (int(ThreadState.IDLE),),
    "busy_ns": (int(ThreadState.BUSY), int(ThreadState.HELD)),
    "soft_ns": (int(ThreadState.SOFT),),
    "hard_ns": (int(ThreadState.HARD),),
}


def column(rows: Any, name: str) -> Column:
    """One field of all rows, whichever way they are kept."""
    if isinstance(rows, General):
        rows = [rows]
    if isinstance(rows, list):
        return np.fromiter((getattr(row, name) for row in rows), np.int64, len(rows))
    return np.array(rows[name], np.int64)


def picked(rows: Any, name: str, places: Sequence[int] | Column | slice) -> Column:
    """One field of some rows."""
    if isinstance(rows, list):
        places = range(len(rows))[places] if isinstance(places, slice) else places
        return np.fromiter((getattr(rows[place], name) for place in places), np.int64, len(places))
    values: Column = rows[name][places].astype(np.int64, copy=isinstance(places, slice))
    return values


def assign(rows: Any, name: str, places: Sequence[int], values: Any) -> None:
    """Set one field of some rows, to one value or to one each."""
    if not isinstance(rows, list):
        rows[name][places] = values
        return
    one_each = values.tolist() if isinstance(values, np.ndarray) else [values] * len(places)
    for place, value in zip(places, one_each, strict=True):
        setattr(rows[place], name, value)


@cache
def _row(names: tuple[str, ...]) -> np.dtype[Any]:
    return np.dtype([(name, np.int64) for name in names])


def table(columns: dict[str, Column]) -> np.ndarray[Any, Any]:
    n = len(next(iter(columns.values())))
    rows = np.empty(n, _row(tuple(columns)))
    for name, values in columns.items():
        rows[name] = values
    return rows


def summed(n: int, owner: Column, values: Column) -> Column:
    """The values added up by owner."""
    total = np.zeros(n, np.int64)
    np.add.at(total, owner, values)
    return total


def total(state: PlaneState, name: str) -> Column:
    """What each task has written or taken in all its attempts (P3)."""
    earlier, end, of_channel = TOTALS[name]
    return column(state.tasks, earlier) + summed(len(state.tasks), column(state.channels, end), column(state.channels, of_channel))


def totals(state: PlaneState) -> dict[str, Column]:
    return {name: total(state, name) for name in TOTALS}


def task_table(state: PlaneState, now: int, columns: Sequence[str] = ()) -> np.ndarray[Any, Any]:
    """All columns, or some: those that sum over channels take longest where there are many."""
    tasks = state.tasks
    thread_states, running = column(tasks, "state"), now - column(tasks, "since")

    def values(name: str) -> Column:
        if name in TOTALS:
            return total(state, name)
        if name == "buffers_out":
            return summed(len(tasks), column(state.partitions, "task"), column(state.partitions, name))
        spent = column(tasks, name)
        for member in CLOCKS.get(name, ()):
            spent += (thread_states == member) * running
        return spent

    return table({name: values(name) for name in columns or TASK_COLUMNS})


def channel_table(state: PlaneState, columns: Sequence[str] = ()) -> np.ndarray[Any, Any]:
    return table({name: column(state.channels, name) for name in columns or CHANNEL_COLUMNS})


def partition_table(state: PlaneState, layout: Layout) -> np.ndarray[Any, Any]:
    rows = state.partitions
    used, pool = column(rows, "used"), column(rows, "pool")
    available = (used < pool) & (column(rows, "full") == 0)
    edge = np.array([e for _, e, _ in layout.partitions], np.int64)
    return table({"task": column(rows, "task"), "edge": edge, "used": used, "size": pool, "available": available.astype(np.int64)})


def gate_table(state: PlaneState, layout: Layout) -> np.ndarray[Any, Any]:
    rows = state.gates
    edge = np.array([e for _, e, _ in layout.gates], np.int64)
    return table(
        {
            "task": column(rows, "task"),
            "edge": edge,
            "idle_floating": column(rows, "idle"),
            "buffer_bytes": column(rows, "announced_bytes"),
        }
    )
