"""The columns of a sweep's rows, each of a fixed type: so any part of a sweep can be read with any other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import pyarrow as pa

from sim.analysis.strategies.consequences import Consequences
from sim.analysis.strategies.path import BarrierPath
from sim.analysis.strategies.summary import Summary

__all__ = ["MEASURED", "OUTCOME", "PROVENANCE", "table"]

_ARROW = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
_PARTS = {"path_": "median checkpoint: ", "tail_": "slowest tenth: "}
"""Prefix of a column -> which slowest barrier its way belongs to."""


def _of(kind: type, prefix: str = "") -> dict[str, pa.DataType]:
    hints = get_type_hints(kind)
    return {prefix + field.name: _ARROW[hints[field.name]] for field in fields(kind) if hints[field.name] is not BarrierPath}


def _meanings(kind: type, prefix: str = "") -> dict[str, str]:
    """Column -> meaning, from the annotations of the fields."""
    hints = get_type_hints(kind, include_extras=True)
    annotated = {name: hint for name, hint in hints.items() if get_origin(hint) is Annotated}
    return {prefix + name: _PARTS.get(prefix, "") + get_args(hint)[1] for name, hint in annotated.items()}


OUTCOME: dict[str, pa.DataType] = {
    "cell": pa.string(),
    "status": pa.string(),
    "error": pa.string(),
    "job_status": pa.string(),
    "violations": pa.int64(),
    "violation": pa.string(),
    "records_as_one": pa.int64(),
    "warmup_ms": pa.float64(),
    **_of(Summary),
    **_of(BarrierPath, "path_"),
    **_of(BarrierPath, "tail_"),
    **_of(Consequences),
}
"""Columns of an outcome: the same bytes wherever the cell ran."""

PROVENANCE: dict[str, pa.DataType] = {
    "host": pa.string(),
    "attempt": pa.int64(),
    "cpu_s": pa.float64(),
    "wall_s": pa.float64(),
}
"""Columns about the place and time of a run, kept apart from its outcome."""


MEASURED = (*(name for name, kind in OUTCOME.items() if kind != pa.string()), "throughput_change")
"""Columns of numbers, which have means."""

MEANING: dict[str, str] = {
    "cell": "hash of effective scenario, seed and code version",
    "status": "ok or error",
    "error": "why there is no result",
    "job_status": "at the end of the run: RUNNING, FINISHED, or FAILED or RESTARTING FOR EVER and the reason",
    "violations": "of what checkpoints promise; -1: nobody looked",
    "violation": "the first one's story",
    "records_as_one": "records simulated as one (run.resolution); 1: the run is exact",
    "warmup_ms": "left out at the beginning (run.warmup)",
    **_meanings(Summary),
    **_meanings(BarrierPath, "path_"),
    **_meanings(BarrierPath, "tail_"),
    **_meanings(Consequences),
    "throughput_change": "against the same job under the same load without checkpoints",
    "host": "where the cell ran",
    "attempt": "0: the first",
    "cpu_s": "CPU time it took",
    "wall_s": "time it took",
}
"""Column -> meaning."""


def table(rows: Iterable[Mapping[str, Any]], columns: Mapping[str, pa.DataType]) -> pa.Table:
    """A table with these columns; null where a row lacks a value."""
    return pa.Table.from_pylist([dict(row) for row in rows], schema=pa.schema(list(columns.items())))
