"""From the results of trials to a choice, on results made by hand."""

import math
from itertools import product

import pandas as pd
import pytest

from sim.advice.configuration import differences
from sim.advice.judgement import Limits, choose, judged
from tests.advice.made_up import measured

DAY_S = 86_400.0
DURATION = {"aligned": 6000.0, "aligned, debloating": 2500.0, "unaligned": 60.0}
COST = {"aligned": 0.0, "aligned, debloating": 0.01, "unaligned": 0.0}


def results(
    duration=DURATION,
    cost=COST,
    noise=0.0,
    visible=math.nan,
    intervals=("10 s", "60 s", "600 s"),
    catch_up=2.0,
    worlds=("",),
    growth=math.inf,
):
    """Recovery is a downtime of 5 s and twice the interval; `noise`: of durations, from run to run."""
    rows = []
    for k, interval, protocol, trial, world in product(
        range(3), intervals, duration, ("undisturbed", "failure"), worlds
    ):
        seconds, wobble = float(interval.split()[0]), noise * (k - 1)
        rows.append(
            {
                "status": "ok",
                "strategy": "aligned",
                "interval": interval,
                "protocol": protocol,
                "trial": trial,
                "replication": k,
                "throughput_per_second": 1000 * (1 - cost[protocol]),
                "throughput_change": -cost[protocol],
                "failed": 0,
                "interrupted": 0,
                "end_to_end_p99_ms": duration[protocol] * (1 + wobble),
                "end_to_end_p50_ms": duration[protocol],
                "end_to_end_p90_ms": duration[protocol],
                "visible_p99_ms": visible,
                "lost_records": 0,
                "end_to_end_max_ms": duration[protocol],
                "checkpointed_bytes": 2e6,
                "checkpointed_mean_bytes": 2e6,
                "completed": 4,
                "persisted_bytes": 1e6,
                "downtime_ms": 5000.0,
                "replayed_records": 1000 * seconds,
                "caught_up_ms": 5000 + 1000 * catch_up * seconds,
                "world": world,
                "backlog_growth": growth,
            }
        )
    return pd.DataFrame(rows)


def changes(trials, today):
    """Interval and protocol are one thing each."""
    return {name: 0 if today is None else (name[0] != today[0]) + (name[1] != today[1]) for name in trials}


def chosen(table, *, today=("600 s", "aligned"), mtbf_s=DAY_S, unlimited=False, patience_ms=math.inf, **limits):
    trials = measured(table, now="aligned", unlimited=unlimited)
    return choose(judged(trials, Limits(**limits), mtbf_s, patience_ms=patience_ms), changes(trials, today))


def test_a_job_that_keeps_up_serves_what_arrives():
    """Whatever was left over from before the time observed: the difference of two settings is none."""
    cost = {"aligned": -0.02, "aligned, debloating": 0.01, "unaligned": 0.03}
    found = {
        growth: measured(results(cost=cost, growth=growth), now="aligned", unlimited=False)
        for growth in (0.0, math.inf)
    }
    by_growth = {
        growth: {
            difference.quantity: difference
            for difference in differences(trials, ("60 s", "aligned"), ("60 s", "unaligned"))
        }
        for growth, trials in found.items()
    }

    assert [pytest.approx(by_growth[growth]["throughput"].change.value) for growth in (0.0, math.inf)] == [0, -50]
    assert {0.0} == {setting.loss for setting in judged(found[0.0], Limits(), DAY_S)}
