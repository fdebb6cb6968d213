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
from sim.model.scenario import Scenario
from sim.sweeps.file.document import Precision

__all__ = ["more_replications"]

FASTEST = 2
"""First estimates of a spread are rough: the number of replications grows by this factor at most."""


def more_replications(scenarios: Sequence[Scenario], results: pd.DataFrame, precision: Precision) -> list[Scenario]:
    """The scenarios with the replications they seem to need; unchanged ones if all means are precise enough.

    A combination without any value, e.g. a duration if no checkpoint completes, gets no further replications.
    """
    axes = [axis for axis, _ in scenarios[0].axes]
    values: dict[tuple[str, ...], list[float]] = {}
    for row in results[results["strategy"] != "none"][[*axes, precision.of]].itertuples(index=False, name=None):
        if not pd.isna(row[-1]):
            values.setdefault(row[:-1], []).append(float(row[-1]))
    return [_with_more(scenario, values.get(tuple(value for _, value in scenario.axes), []), precision) for scenario in scenarios]


def _with_more(scenario: Scenario, values: Sequence[float], precision: Precision) -> Scenario:
    now = scenario.run.replications
    if not values:
        return scenario
    goal, width = precision.within / 100 * abs(float(np.mean(values))), half_width(values)
    if width <= goal:
        return scenario
    needed = min(ceil(now * (width / goal) ** 2) if goal and np.isfinite(width) else now * FASTEST, now * FASTEST, precision.most)
    return replace(scenario, run=replace(scenario.run, replications=max(now, needed)))
