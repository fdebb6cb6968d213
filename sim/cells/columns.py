"""The columns of a sweep's rows: their types, their meaning, which way is worse, and when a value is a bound or was never there.

Types are fixed, so any part of a sweep can be read with any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import pyarrow as pa

from sim.analysis.strategies.consequences import Consequences
from sim.analysis.strategies.path import BarrierPath
from sim.analysis.strategies.storage_use import StorageUse
from sim.analysis.strategies.summary import Summary

_ARROW = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
_PARTS = {"path_": "median checkpoint: ", "tail_": "slowest tenth: "}
"""Prefix of a column -> which slowest barrier its way belongs to."""


def _of(kind: type, prefix: str = "") -> dict[str, pa.DataType]:
    hints = get_type_hints(kind)
    return {prefix + field.name: _ARROW[hints[field.name]] for field in fields(kind) if hints[field.name] is not BarrierPath}


def _meanings(kind: type, prefix: str = "") -> dict[str, str]:
    """Column -> meaning and population, from the annotations of the fields."""
    hints = get_type_hints(kind, include_extras=True)
    annotated = {name: get_args(hint)[1:] for name, hint in hints.items() if get_origin(hint) is Annotated}
    return {prefix + name: _PARTS.get(prefix, "") + "; of ".join(texts) for name, texts in annotated.items()}


OUTCOME: dict[str, pa.DataType] = {
    "cell": pa.string(),
    "status": pa.string(),
    "error": pa.string(),
    "job_status": pa.string(),
    "violations": pa.int64(),
    "violation": pa.string(),
    "warmup_ms": pa.float64(),
    "nothing": pa.string(),
    **_of(Summary),
    **_of(BarrierPath, "path_"),
    **_of(BarrierPath, "tail_"),
    **_of(Consequences),
    **_of(StorageUse),
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
    "violations": "of what checkpoints promise; -1: not checked",
    "violation": "the first one's story",
    "warmup_ms": "left out at the beginning (run.warmup)",
    "nothing": "columns without a value as there was nothing to measure; a value that is missing for another reason counts as worst",
    **_meanings(Summary),
    **_meanings(BarrierPath, "path_"),
    **_meanings(BarrierPath, "tail_"),
    **_meanings(Consequences),
    **_meanings(StorageUse),
    "throughput_change": "against the same job under the same load without checkpoints",
    "host": "where the cell ran",
    "attempt": "0: the first",
    "cpu_s": "CPU time it took",
    "wall_s": "time it took",
}
"""Column -> meaning."""


@dataclass(frozen=True, slots=True)
class ComparedColumn:
    """A column of numbers by which settings are compared."""

    worse: Literal["more", "less", "neither"]
    ends: str = ""  # what must happen for its value to be known; until then it is a bound; empty: it is of the run as it was
    follows: str = ""  # measured on completed checkpoints: a bound whenever that column is one
    of: Literal["restarts", "failures", "planned_restarts", "commits", "first_uploads", ""] = (
        ""  # where there was none of these there was nothing to measure
    )

    @property
    def may_be_bound(self) -> bool:
        return bool(self.ends or self.follows)


_MEDIAN, _TAIL = "end_to_end_p50_ms", "end_to_end_p99_ms"
_COST, _GAIN, _NEITHER = ComparedColumn("more"), ComparedColumn("less"), ComparedColumn("neither")
_PART = ComparedColumn("more", follows=_MEDIAN)
_CHECKPOINT = ComparedColumn("more", ends="complete its checkpoints within the run")
_RESTARTS: dict[str, Literal["failures", "planned_restarts"]] = {"": "failures", "planned_": "planned_restarts"}
_RULES: dict[str, ComparedColumn] = {
    **dict.fromkeys(("warmup_ms", "completed", "busiest_subtask", "interrupted", "first_uploads"), _NEITHER),
    **dict.fromkeys(
        ("violations", "failed", "in_progress", "lost_records", "restarts", "failures", "planned_restarts", "backlog_growth"), _COST
    ),
    **dict.fromkeys((field.name for field in fields(StorageUse)), _COST),
    **dict.fromkeys(("busy_share", "busiest_subtask_share", "backpressured_share", "most_backpressured_share"), _COST),
    **dict.fromkeys(("lag_s", "delay_mean_s", "delay_p99_s"), ComparedColumn("more", ends="live until the end of the run")),
    **dict.fromkeys(("throughput_per_second", "throughput_change", "commits", "committed_records"), _GAIN),
    **dict.fromkeys(("emitted_per_second", "offered_per_second"), _GAIN),
    **dict.fromkeys(("end_to_end_p50_ms", "end_to_end_p90_ms", "end_to_end_p99_ms", "end_to_end_max_ms"), _CHECKPOINT),
    **dict.fromkeys(("first_upload_ms", "first_upload_bytes"), ComparedColumn("more", of="first_uploads")),
    **dict.fromkeys(("start_delay_ms", "alignment_ms", "sync_ms", "async_ms"), _PART),
    **dict.fromkeys(("persisted_bytes", "persisted_mean_bytes", "checkpointed_bytes", "checkpointed_mean_bytes"), _PART),
    **dict.fromkeys(
        ("visible_p50_ms", "visible_p99_ms", "visible_max_ms"),
        ComparedColumn("more", ends="make all output visible within the run", of="commits"),
    ),
    **{
        prefix + name: ComparedColumn("more", ends=ends, of=of)
        for prefix, of in _RESTARTS.items()
        for name, ends in (
            ("downtime_ms", "run again within the run"),
            ("caught_up_ms", "catch up within the run"),
            ("replayed_records", ""),
        )
    },
    "disturbed_share": ComparedColumn("more", of="restarts"),
    "ended_s": ComparedColumn("more", ends="come to an end within the run"),
}


def _column(name: str) -> ComparedColumn:
    if name.startswith("path_"):
        return ComparedColumn("neither" if name.endswith("_at_source") else "more", follows=_MEDIAN)
    if name.startswith("tail_"):
        return ComparedColumn("neither" if name.endswith("_at_source") else "more", follows=_TAIL)
    return _RULES[name]


COLUMNS: dict[str, ComparedColumn] = {name: _column(name) for name in MEASURED}
"""Column of numbers -> what comparing settings by it needs to know."""


def table(rows: Iterable[Mapping[str, Any]], columns: Mapping[str, pa.DataType]) -> pa.Table:
    """A table with these columns; null where a row lacks a value."""
    return pa.Table.from_pylist([dict(row) for row in rows], schema=pa.schema(list(columns.items())))
