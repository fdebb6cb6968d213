"""The columns of a sweep's rows: one type each, whatever the first rows hold, so that any part of a sweep can be read with any other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, get_type_hints

import pyarrow as pa

from sim.analysis.consequences import Consequences
from sim.analysis.path import Path
from sim.analysis.summary import Summary

__all__ = ["MEASURED", "OUTCOME", "PROVENANCE", "table"]

_ARROW = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}


def _of(kind: type, prefix: str = "") -> dict[str, pa.DataType]:
    hints = get_type_hints(kind)
    return {prefix + field.name: _ARROW[hints[field.name]] for field in fields(kind) if hints[field.name] is not Path}


OUTCOME: dict[str, pa.DataType] = {
    "cell": pa.string(),
    "status": pa.string(),  # ok or error
    "error": pa.string(),
    "job_status": pa.string(),  # RUNNING, FINISHED, or FAILED and the reason
    "violations": pa.int64(),  # of what checkpoints promise; -1: nobody looked
    "violation": pa.string(),  # the first one's story
    **_of(Summary),
    **_of(Path, "path_"),
    **_of(Path, "tail_"),
    **_of(Consequences),
}
"""What a cell gives: the same bytes wherever it ran."""

PROVENANCE: dict[str, pa.DataType] = {
    "host": pa.string(),
    "attempt": pa.int64(),  # 0: the first
    "cpu_s": pa.float64(),
    "wall_s": pa.float64(),
}
"""Where and how a cell ran: kept apart from what it gave."""


MEASURED = (*(name for name, kind in OUTCOME.items() if kind != pa.string()), "throughput_change")
"""Columns of numbers, of which there are means."""


def table(rows: Iterable[Mapping[str, Any]], columns: Mapping[str, pa.DataType]) -> pa.Table:
    """`rows` with these columns; null where a row says nothing."""
    return pa.Table.from_pylist([dict(row) for row in rows], schema=pa.schema(list(columns.items())))
