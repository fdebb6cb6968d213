"""A small job, and rows of runs of it that were never run."""

import math

from sim.advice import judgement
from sim.advice.trials import observed_s
from sim.model.units import parse_duration

JOB = """\
# A job.
version: 1
job:
  source: {source: {rate: 200/s, record: 100 B}, parallelism: 2}
  sink: {input: {source: hash}, service: 1 ms, parallelism: 2}
checkpoint: {interval: 30 s}
run: {duration: 3 s}
"""
DAY_S = 86_400.0


def measured(rows, **options):
    """Trials that are observed as long as usual, with a checkpoint each interval, or as long as one takes."""
    usual = {
        "observed": lambda name: observed_s(name[0]),
        "period": lambda name, p50_ms: max(parse_duration(name[0]) / 1e9, p50_ms / 1e3),
    }
    return judgement.measured(rows, **usual | options)


def row(axes, k, ms, **others):
    """Its checkpoints take `ms`, a failure costs 5 s and the interval."""
    seconds = parse_duration(axes["interval"]) / 1e9
    return {
        **axes,
        "status": "ok",
        "strategy": "x",
        "replication": k,
        "failed": 0,
        "interrupted": 0,
        "completed": 100,
        "throughput_per_second": 400.0,
        "throughput_change": 0.0,
        "checkpointed_bytes": 1.0,
        "checkpointed_mean_bytes": 1.0,
        "persisted_bytes": 0.0,
        "end_to_end_p99_ms": ms,
        "end_to_end_p50_ms": ms,
        "end_to_end_p90_ms": ms,
        "end_to_end_max_ms": ms,
        "visible_p99_ms": math.nan,
        "lost_records": 0,
        "downtime_ms": 5000.0,
        "replayed_records": 400 * seconds,
        "caught_up_ms": 5000 + 1000 * seconds,
        "backlog_growth": math.inf,
        **others,
    }
