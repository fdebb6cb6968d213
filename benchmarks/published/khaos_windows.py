"""A Khaos failure as twenty minutes of its job's scenario, simulated, and what its monitor would have shown."""

from __future__ import annotations

import multiprocessing
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.published import khaos_data as data
from benchmarks.published.consumer import consumed_rate, lag_max
from benchmarks.published.khaos_data import MONITOR, Failure
from benchmarks.published.khaos_fit import Fit, expected_s
from benchmarks.published.recovery import Course, course
from sim.model.scenario import Scenario
from sim.model.schema.study import load
from sim.plane import warm

__all__ = ["SCALE", "SCENARIOS", "scenario", "shown_lag", "shown_rate", "window", "windows"]

SCENARIOS = Path(__file__).parents[2] / "scenarios" / "published"
SCALE = {"iot": 200, "ysb": 1000}
"""Real records per simulated one."""
FAILED_S = 359
"""When the TaskManager is killed: a second before a checkpoint, whatever the interval."""
LONGEST_S = 840
_DEPLOY_S = 0.1  # rounded up: Overheads.deploy_ns


def scenario(failure: Failure, numbers: Fit, *, scale: int | None = None, overrides: Sequence[str] = ()) -> Scenario:
    """From six minutes before the kill until it should be over twice."""
    scale = scale or SCALE[failure.job]
    begins = failure.kill_epoch_s - FAILED_S - int(data.load(failure.job, failure.run).index[0])
    after_s = min(np.nan_to_num(120 + 2 * expected_s(failure, numbers), nan=LONGEST_S), LONGEST_S)
    (made,) = load(
        SCENARIOS / f"khaos-{failure.job}.yaml",
        [
            f"checkpoint.interval={failure.interval_s} s",
            f"job.events.source.rate.trace=data/khaos/{failure.job}-load-{failure.run}.csv.gz",
            f"job.events.source.rate.from={begins} s",
            f"job.events.source.rate.scale={1 / scale:.9f}",
            f"job.events.service={round(MONITOR.consumers * scale / numbers.capacity * 1e9)} ns",
            f"job.events.snapshot.sync={numbers.checkpoint_s} s",
            f"restart.replacement={numbers.outage_s - _DEPLOY_S} s",
            f"restart.warm-up={2 * numbers.lost_s} s",
            f"run.duration={FAILED_S + round(after_s)} s",
            *overrides,
        ],
    ).scenarios
    return made


def window(failure: Failure, numbers: Fit, *, scale: int | None = None, overrides: Sequence[str] = ()) -> pd.DataFrame:
    """lag (mean over consumers, records) and throughput (records/s) as shown, by second since the kill."""
    happened = course(scenario(failure, numbers, scale=scale, overrides=overrides), source="events")
    scale = scale or SCALE[failure.job]
    return pd.DataFrame({"lag": shown_lag(happened, scale), "throughput": shown_rate(happened, scale)})


def shown_lag(happened: Course, scale: int) -> pd.Series[float]:
    """NaN while no consumer is there to tell."""
    each_one = happened.backlog * scale / MONITOR.consumers
    lag = pd.Series(np.nan, each_one.index)
    lag.loc[: happened.gone_s - 1] = MONITOR.mean(lag_max(each_one.loc[: happened.gone_s - 1].to_numpy()))
    if happened.begun_s is not None:
        after = each_one.loc[happened.begun_s :].copy()
        # what the first look at the log tells
        after.iloc[0] += happened.consumed[happened.begun_s] * scale / MONITOR.consumers
        lag.loc[happened.begun_s :] = MONITOR.mean(lag_max(after.to_numpy()))
    return lag


def shown_rate(happened: Course, scale: int) -> pd.Series[float]:
    """The sum over those consumers that are there."""
    rate = pd.Series(0.0, happened.consumed.index)
    for span in (
        rate.loc[: happened.gone_s - 1],
        rate.loc[happened.begun_s :] if happened.begun_s is not None else rate.loc[:-1],
    ):
        each_one = happened.consumed.loc[span.index] * scale / MONITOR.consumers
        rate.loc[span.index] = MONITOR.total(consumed_rate(each_one.to_numpy()))
    return rate


def _window(of: tuple[Failure, Fit]) -> pd.DataFrame:
    return window(*of)


def windows(cells: Sequence[tuple[Failure, Fit]], jobs: int) -> list[pd.DataFrame]:
    """The window of every cell."""
    warm()
    for job, run in sorted({(failure.job, failure.run) for failure, _ in cells}):
        data.load(job, run)  # once, for all workers
    if jobs <= 1:
        return [window(*cell) for cell in cells]
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        return pool.map(_window, cells, chunksize=4)
