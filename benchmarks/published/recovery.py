"""Fail a driven job and measure how long it takes to recover: one rule, for recorded and for simulated series alike.

The rule reads what a monitor shows once per second (a lag, a latency), not what the simulator knows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from sim.model.faults import TaskManagerLost
from sim.model.scenario import Scenario
from sim.runtime.simulate import simulate

__all__ = ["Course", "Rule", "course", "recovery_s"]


@dataclass(frozen=True, slots=True)
class Rule:
    """Recovered: not above `times` the `quantile` of the `before_s` seconds before the failure (and `above` it), for `hold_s` in a row.

    RecordCounts from the first second that is missing or above, as the detector of Khaos counts (it waits for eleven, too).
    """

    before_s: int = 300
    quantile: float = 0.95
    times: float = 1.5
    above: float = 0.0  # in the unit of the series: what is normal of a series that was all but 0
    hold_s: int = 11


def recovery_s(series: pd.Series[float], rule: Rule) -> float:
    """Recovery time by a series by second since the failure, NaN where nothing was reported.  NaN: not recovered, or never failed."""
    before = series.loc[-rule.before_s : -1].dropna()
    limit = max(rule.times * before.quantile(rule.quantile), before.quantile(rule.quantile) + rule.above)
    after = series.loc[0:]
    wrong = ~(after <= limit).to_numpy()
    if not wrong.any():
        return np.nan
    first = int(np.argmax(wrong))
    calm = np.convolve(wrong[first:], np.ones(rule.hold_s), "valid") == 0  # none wrong in the next hold_s seconds
    return float(np.argmax(calm)) if calm.any() else np.nan


@dataclass(frozen=True, slots=True)
class Course:
    """What became of a source around one failure: by second since then, `begun_s` = when it reads again (None: never)."""

    begun_s: int | None
    gone_s: int  # when it stopped
    consumed: pd.Series[float]  # records in the second that ends here
    backlog: pd.Series[float]  # records due and not read


def course(scenario: Scenario, *, source: str) -> Course:
    """Simulate a scenario in which one TaskManager is lost once."""
    (failed_ns,) = (
        at_ns for fault in scenario.faults if isinstance(fault.what, TaskManagerLost) for at_ns in fault.when.at_ns
    )
    result = simulate(scenario, check=False)
    recovery = result.recoveries.iloc[0]
    of_source = result.series.loc[result.series["vertex"] == source].copy()
    of_source.index = (of_source["time"] - failed_ns / 1e9).round().astype(int)
    begun_ms = recovery["running"] - failed_ns / 1e6
    return Course(
        begun_s=None if recovery["running"] < 0 else int(np.ceil(begun_ms / 1e3)),
        gone_s=int(np.ceil(recovery["cancelled"] / 1e3 - failed_ns / 1e9)),
        consumed=of_source["numRecordsInPerSecond"],
        backlog=of_source["backlog"].astype(float),
    )
