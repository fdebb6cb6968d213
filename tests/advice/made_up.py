"""A small job, and rows of runs of it that were never run."""

import math

import pandas as pd

from sim.advice import judgement
from sim.advice.candidates import CandidateSearch
from sim.advice.judgement import Limits
from sim.advice.optimizer import run_until_decided
from sim.advice.trials import OVER_BUDGET, Bench
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
        "observed": lambda name: max(2 * parse_duration(name[0]) / 1e9, 60),
        "period": lambda name, p50_ms: max(parse_duration(name[0]) / 1e9, p50_ms / 1e3),
    }
    return judgement.measure(rows, **usual | options)


def row(axes, k, ms, **others):
    """Its checkpoints take `ms`, a failure costs 5 s and the interval."""
    seconds = parse_duration(axes["interval"]) / 1e9
    return {
        **axes,
        "status": "ok",
        "job_status": "RUNNING",
        "strategy": "x",
        "replication": k,
        "failed": 0,
        "interrupted": 0,
        "completed": 100,
        "throughput_per_second": 400.0,
        "throughput_change": 0.0,
        "checkpointed_bytes": 1.0,
        "checkpointed_mean_bytes": 1.0,
        "materialized_bytes_per_hour": 0.0,
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
        "emitted_per_second": 400.0,
        "offered_per_second": 400.0,
        "busiest_subtask_share": 0.5,
        "bottleneck": "count",
        **others,
    }


class MadeUp:
    """Rows of runs nobody ran: `duration` [ms] by what barriers are called; recovery is the interval and 5 s.

    `state`: every MB of it makes a checkpoint a second longer; `cost_s`: what each one takes from the job; `due`: what
    sources are due to emit, of which they emit 400/s.
    `affords`: whether a share of the budget covers scenarios; `but`: what is otherwise in a row, which it is given.
    """

    lack = OVER_BUDGET

    def __init__(
        self,
        duration,
        spread=0.0,
        *,
        state=False,
        cost_s=0.0,
        due=400.0,
        affords=lambda _scenarios, _share: True,
        but=lambda _own: {},
    ):
        self.duration, self.spread, self.state, self.cost_s, self.due = duration, spread, state, cost_s, due
        self.affords, self.but = affords, but
        self.replications = {}

    def run(self, scenarios):
        rows = []
        for scenario in scenarios:
            name = dict(scenario.axes)["interval"], dict(scenario.axes)["protocol"]
            self.replications[name] = max(self.replications.get(name, 0), scenario.run.replications)
            more_ms = scenario.job.vertices[-1].state.bytes / 1e3 if self.state else 0.0
            rows += [self.row(dict(scenario.axes), k, more_ms) for k in range(scenario.run.replications)]
        return pd.DataFrame(rows)

    def row(self, axes, k, more_ms):
        seconds = parse_duration(axes["interval"]) / 1e9
        ms = self.duration.get(axes["protocol"], 1e6) * (1 + self.spread * (-1) ** k) + more_ms
        cost = self.cost_s / seconds
        completed = 100 if axes["trial"] == "long" else 2
        served = {"throughput_per_second": 400.0 * (1 - cost), "throughput_change": -cost}
        own = row(axes, k, ms, completed=completed, offered_per_second=self.due, **served)
        return own | self.but(own)


def searched(bench, runner, most=12, mtbf_s=DAY_S, **limits):
    """A search that is over.  `bench`: or the file of the job."""
    bench = bench if isinstance(bench, Bench) else Bench(bench, {})
    found = CandidateSearch(bench, Limits(**limits), mtbf_s, runner, most)
    run_until_decided(found)
    return found
