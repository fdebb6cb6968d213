"""Replications until a mean is precise enough: the number still needed for each combination, given its runs so far.

The measure is half the width of the mean's 95 % confidence interval (Student's t over independent replications), as a share of the
mean.  It shrinks with the square root of their number (Law, Simulation Modeling and Analysis, 9.4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil

import numpy as np
import pandas as pd

from sim.analysis.intervals import half_width
from sim.analysis.sweeps.observed import planned, scored
from sim.model.scenario import Scenario
from sim.sweeps.file.document import Precision

FASTEST = 2
"""First estimates of a spread are rough: the number of replications grows by this factor at most."""


def more_replications(scenarios: Sequence[Scenario], results: pd.DataFrame, precision: Precision) -> list[Scenario]:
    """The scenarios with the replications they seem to need; unchanged ones if all means are precise enough.

    What had not ended when its run did counts with the time it had taken.  A combination without a value in some run gets no further
    replications: a job that failed, or that completed no checkpoint, has no mean.
    """
    axes = [axis for axis, _ in scenarios[0].axes]
    values: dict[tuple[str, ...], list[float]] = {}
    rows = planned(results)
    seen = scored(results, precision.of)
    for key, value, lost in zip(rows[axes].itertuples(index=False, name=None), seen["value"], seen["lost"], strict=True):
        if lost or not pd.isna(value):
            values.setdefault(key, []).append(float(value))
    return [_with_more(scenario, values.get(tuple(value for _, value in scenario.axes), []), precision) for scenario in scenarios]


def _with_more(scenario: Scenario, values: Sequence[float], precision: Precision) -> Scenario:
    now = scenario.run.replications
    if not values or np.isnan(values).any():
        return scenario
    goal, width = precision.within / 100 * abs(float(np.mean(values))), half_width(values)
    if width <= goal:
        return scenario
    needed = min(ceil(now * (width / goal) ** 2) if goal and np.isfinite(width) else now * FASTEST, now * FASTEST, precision.most)
    return replace(scenario, run=replace(scenario.run, replications=max(now, needed)))
