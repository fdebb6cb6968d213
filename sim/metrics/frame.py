"""Rows by column name -> a table with the columns of the schema, in its order."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from sim.metrics.packed import PackedRows
from sim.metrics.schema import TABLES, Row
from sim.units import MS

if TYPE_CHECKING:
    import pandas as pd


def frame(table: str, rows: Iterable[Row], only: Collection[str] | None = None) -> pd.DataFrame:
    """The table.  Every column is in every row, or follows from the others.  `only`: the columns to fill; None: all."""
    columns = [column for column in TABLES[table] if only is None or column.name in only]
    packed = PackedRows([column.name for column in columns])
    for row in rows:
        packed.add(tuple(row[column.name] if column.value is None else column.value(row) for column in columns))
    return packed.frame()


def ms(ns: int) -> float:
    """A time in ms.  -1 stays -1: it did not happen."""
    return -1.0 if ns < 0 else ns / MS


def span_ms(begin_ns: int, end_ns: int) -> float:
    """From one time to another in ms; -1: there was no end."""
    return -1.0 if end_ns < 0 else (end_ns - begin_ns) / MS


def task_name(name: tuple[str, int]) -> Row:
    """The two columns that say which subtask a row is about."""
    return {"vertex": name[0], "index": name[1]}
