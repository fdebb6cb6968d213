"""From the results of trials to a choice, on results made by hand."""

import pandas as pd
import pytest

from sim.advice.configuration import differences
from sim.advice.judgement import Limits, judged
from tests.advice.made_up import DAY_S, measured, row

COST = {"aligned": -0.02, "aligned, debloating": 0.01, "unaligned": 0.03}


def results(growth):
    """Three runs of each kind of barriers, which cost so much of 1000 records/s."""
    axes = {"world": "", "interval": "60 s"}
    rows = [
        row(
            axes | {"protocol": protocol, "trial": trial},
            k,
            100.0,
            throughput_per_second=1000 * (1 - cost),
            throughput_change=-cost,
            backlog_growth=growth,
        )
        for k in range(3)
        for protocol, cost in COST.items()
        for trial in ("undisturbed", "failure")
    ]
    return measured(pd.DataFrame(rows), now="aligned", unlimited=False)


@pytest.mark.parametrize(("growth", "change"), [(0.0, 0), (float("inf"), -50)])
def test_a_job_that_keeps_up_serves_what_arrives(growth, change):
    """Whatever was left over from before the time observed: the difference of two settings is none."""
    trials = results(growth)
    found = {own.quantity: own for own in differences(trials, ("60 s", "aligned"), ("60 s", "unaligned"))}

    assert pytest.approx(found["throughput"].change.value) == change
    assert (growth == 0) == ({0.0} == {setting.loss for setting in judged(trials, Limits(), DAY_S)})
