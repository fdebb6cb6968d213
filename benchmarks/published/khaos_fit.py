"""What the settings of the Khaos jobs do not say, found from some failures and used for others.

Four numbers per job.  The outage (kill -> consumers read again) is read off the recordings: its median.  The other
three have the smallest mean error of the recorded recovery times of the failures given, on a grid, under the backlog's
arithmetic (`caught_up_s`).  They are what the slowest partition of the job can do (times the number of partitions),
seconds of it lost after a restart, seconds of it lost per checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from benchmarks.published.consumer import lag_seen_until
from benchmarks.published.khaos_data import MONITOR, Failure, load, recorded, recorded_s

_Array = npt.NDArray[np.float64]

__all__ = ["Fit", "caught_up_s", "expected_s", "fit", "formula_fit", "formula_s", "outage_s"]

GRID = {"iot": np.arange(33_000, 39_001, 250.0), "ysb": np.arange(125_000, 142_001, 1000.0)}  # records/s
LOST_S = np.arange(6, 21, 1.0)
# more would show in the lag of a job at rest, which is a second at every interval
CHECKPOINT_S = np.arange(0, 1.01, 0.25)
BLUR_S = (-6, -3, 0, 3, 6)
"""Recovery times come in steps of 30 s: what falls on one side of a step might as well have fallen on the other."""


@dataclass(frozen=True, slots=True)
class Fit:
    outage_s: float  # kill -> the consumers read again
    capacity: float  # records/s of all partitions, were all as slow as the slowest
    lost_s: float  # of the capacity, in all, while a restarted job is cold
    checkpoint_s: float  # of the capacity, per checkpoint


def outage_s(failure: Failure) -> int:
    """From the kill until the first consumer is seen again, as recorded."""
    gone = recorded(failure)["lag"].loc[5:].notna()
    return int(gone.idxmax()) - MONITOR.first_s


def caught_up_s(failure: Failure, numbers: Fit) -> float:
    """Second since the consumers read again in which the lag is normal again; NaN: within 15 minutes it is not."""
    (value,) = _caught_up_s(
        failure, numbers.outage_s, *(np.array([x]) for x in (numbers.capacity, numbers.lost_s, numbers.checkpoint_s))
    )
    return float(value)


def _caught_up_s(failure: Failure, outage: float, capacity: _Array, lost_s: _Array, checkpoint_s: _Array) -> _Array:
    offered = load(failure.job, failure.run)
    begun = failure.kill_epoch_s + round(outage)
    backlog = np.full(len(capacity), offered.loc[failure.kill_epoch_s - failure.interval_s + 1 : begun - 1].sum())
    found = np.full(len(capacity), np.nan)
    # what the rule allows a lag that every checkpoint causes
    normal_s = np.maximum(1.5 * checkpoint_s, checkpoint_s + 0.25)
    for second, rate in enumerate(offered.loc[begun : begun + 899].to_numpy()):
        served = capacity * np.where(second < 2 * lost_s, 0.5, 1.0)
        if second and second % failure.interval_s == 0:  # one interval after the restart the first checkpoint
            served = served - capacity * checkpoint_s
        backlog = np.maximum(backlog + rate - served, 0)
        found[np.isnan(found) & (backlog <= normal_s * failure.rate)] = second
        if second % 60 == 59 and not np.isnan(found).any():
            break
    return found


def _shown_s(caught_up: _Array, outage: float) -> _Array:
    """Recovery time by the rule: from the second the lag is missing to the last consumer's last look back at it."""
    return np.asarray(round(outage) + lag_seen_until(np.maximum(caught_up - 1, 0)) + MONITOR.last_s - 1 - GONE_S)


GONE_S = 2
"""Kill -> tasks are cancelled and their metrics are gone: a connection is reset, the job is told."""


def expected_s(failure: Failure, numbers: Fit) -> float:
    """Recovery time by the backlog's arithmetic."""
    return float(_shown_s(np.array([caught_up_s(failure, numbers)]), numbers.outage_s)[0])


def fit(failures: Sequence[Failure], truth_s: Callable[[Failure], float] = recorded_s) -> Fit:
    """From failures of one job."""
    outage = float(np.median([outage_s(failure) for failure in failures]))
    best = int(np.argmin(np.sum([_errors(failure, outage, truth_s) for failure in failures], axis=0)))
    return Fit(outage, *(float(axis[best]) for axis in _grid(failures[0].job)))


@cache
def _grid(job: str) -> tuple[_Array, _Array, _Array]:
    """capacity, lost_s and checkpoint_s of every point."""
    capacity, lost_s, checkpoint_s = (
        axis.ravel() for axis in np.meshgrid(GRID[job], LOST_S, CHECKPOINT_S, indexing="ij")
    )
    return capacity, lost_s, checkpoint_s


@cache
def _errors(failure: Failure, outage: float, truth_s: Callable[[Failure], float]) -> _Array:
    """Relative error of one recovery time at every point of the grid; 1 where it never recovers."""
    caught_up, error = _caught_up_s(failure, outage, *_grid(failure.job)), np.zeros(len(_grid(failure.job)[0]))
    for sooner in BLUR_S:
        expected = _shown_s(np.maximum(caught_up - sooner, 0), outage)
        error += np.nan_to_num(np.abs(expected / truth_s(failure) - 1), nan=1.0)
    return error / len(BLUR_S)


def formula_s(failure: Failure, downtime_s: float, capacity: float) -> float:
    """The two-parameter formula: downtime, one interval read again, the backlog served with what the load leaves of the capacity."""
    return downtime_s + failure.rate * (failure.interval_s + downtime_s) / (capacity - failure.rate)


def formula_fit(failures: Sequence[Failure]) -> tuple[float, float]:
    """(downtime, capacity) with the smallest mean error of published recovery times."""
    known = [failure for failure in failures if not np.isnan(failure.published_s)]
    rate, interval, published = (
        np.array([getattr(f, name) for f in known], float) for name in ("rate", "interval_s", "published_s")
    )
    best = (np.inf, 0.0, 0.0)
    for downtime in np.arange(40, 100, 0.5):
        for capacity in rate.max() * np.arange(1.1, 2.0, 0.005):
            error = np.abs((downtime + rate * (interval + downtime) / (capacity - rate)) / published - 1).mean()
            best = min(best, (error, downtime, capacity))
    return best[1], best[2]
