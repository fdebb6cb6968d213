"""Rows of runs that nobody ran."""

import math

from sim.units import parse_duration


def row(axes, k, ms, **others):
    """Its checkpoints take `ms`, a failure costs 5 s and the interval."""
    seconds = parse_duration(axes["interval"]) / 1e9
    return {
        **axes, "status": "ok", "strategy": "x", "replication": k, "failed": 0, "interrupted": 0, "completed": 100,
        "throughput_per_second": 400.0, "throughput_change": 0.0, "checkpointed_bytes": 1.0, "persisted_bytes": 0.0,
        "end_to_end_p99_ms": ms, "end_to_end_p50_ms": ms, "end_to_end_max_ms": ms, "visible_p99_ms": math.nan,
        "downtime_ms": 5000.0, "replayed_records": 400 * seconds, "caught_up_ms": 5000 + 1000 * seconds, "backlog_growth": math.inf,
        **others,
    }  # fmt: skip
