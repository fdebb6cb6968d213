"""Columns of a sweep in words, for the axes of pictures and the headings of reports."""

from __future__ import annotations

from sim.analysis.sweeps.measure import unit

__all__ = ["quantity"]

_QUANTITIES = {
    "end_to_end_p50_ms": "checkpoint duration, median",
    "end_to_end_p99_ms": "checkpoint duration, 99th percentile",
    "end_to_end_max_ms": "checkpoint duration, longest",
    "throughput_per_second": "throughput",
    "throughput_change": "throughput against no checkpoints",
    "checkpointed_bytes": "written per checkpoint",
    "persisted_bytes": "in-flight data per checkpoint",
    "delay_mean_s": "mean delay of records",
    "delay_p99_s": "delay of records, 99th percentile",
    "caught_up_ms": "time until caught up after a failure",
    "downtime_ms": "downtime",
    "completed": "completed checkpoints",
    "failed": "failed checkpoints",
}


def quantity(column: str) -> str:
    """``quantity("end_to_end_p99_ms") == "checkpoint duration, 99th percentile [ms]"``: words and a unit, never a name of a column."""
    symbol = unit(column)
    named = _QUANTITIES.get(column)
    if named is None:
        stem = column.removesuffix("_per_second").removesuffix(f"_{symbol}") if symbol else column.removesuffix("_share")
        named = stem.replace("_", " ")
    return f"{named} [{symbol}]" if symbol else named
