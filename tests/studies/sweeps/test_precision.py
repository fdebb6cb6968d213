"""Replications until a mean is known well enough."""

import math
from dataclasses import replace

import pandas as pd
import pytest

from sim.studies.sweeps.design import Precision
from sim.studies.sweeps.racing import more_replications


@pytest.mark.parametrize(
    ("values", "most", "expected"),
    [
        ([100.0, 100.0, 100.0], 20, 3),  # known
        ([100.0, 99.0, 101.0], 20, 3),  # known to 2.5 %
        ([100.0, 97.0, 103.0], 2, 3),  # more than the most are there already: none is taken back
        ([100.0, 97.0, 103.0], 20, 6),  # 7.5 %: seven would do, twice as many is the most at once
        ([100.0, 97.5, 102.5], 20, 5),  # 6.2 %: (6.2 / 5)^2 times as many
        ([100.0, 97.5, 102.5], 4, 4),
        ([-100.0, -97.5, -102.5], 20, 5),  # a mean below 0 is as well known
        ([-100.0, -100.0, -100.0], 20, 3),
        ([-5.0, 0.0, 5.0], 20, 6),  # a share of nothing
        ([10.0, 100.0, 300.0], 20, 6),
        ([50.0], 20, 6),  # the others have no row yet: a single value has no interval
        ([10.0, 100.0, 300.0], 4, 4),
        ([], 20, 3),  # nothing is measured
        ([100.0, 300.0, math.nan], 20, 3),  # one failed: there is no mean to know
        ([math.nan, math.nan, math.nan], 20, 3),
    ],
)
def test_more_where_the_mean_is_not_known(study, values, most, expected):
    """Each combination for itself."""
    precision = Precision(of="end_to_end_p50_ms", within="5 %", most=most)
    mine, other = (replace(scenario, run=replace(scenario.run, replications=3)) for scenario in study.scenarios)
    rows = [
        {"status": "ok", "strategy": "aligned", "checkpoint.barriers": "aligned", "end_to_end_p50_ms": value}
        for value in values
    ]
    rows += [
        {"status": "ok", "strategy": "unaligned", "checkpoint.barriers": "unaligned", "end_to_end_p50_ms": 5.0}
    ] * 3
    rows += [{"status": "ok", "strategy": "none", "checkpoint.barriers": None, "end_to_end_p50_ms": 99.0}]

    extended = more_replications([mine, other], pd.DataFrame(rows), precision)

    assert [expected, 3] == [scenario.run.replications for scenario in extended]
    (alone,) = more_replications([mine], pd.DataFrame(rows), precision)
    assert expected == alone.run.replications
