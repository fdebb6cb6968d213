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
    """``quantity("end_to_end_p99_ms") == "checkpoint duration, 99th percentile"``: words; values carry the unit."""
    symbol = unit(column)
    stem = column.removesuffix("_per_second").removesuffix(f"_{symbol}") if symbol else column.removesuffix("_share")
    return _QUANTITIES.get(column, stem.replace("_", " "))
