"""The Khaos experiments as data: failures, what was recorded around them, offered loads (scenarios/published/data/khaos/README.md)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.published.consumer import Monitor
from benchmarks.published.recovery import Rule, recovery_s

__all__ = ["DATA", "MONITOR", "Failure", "failures", "load", "p99_lag", "recorded", "recorded_s", "rule"]

DATA = Path(__file__).parents[2] / "scenarios" / "published" / "data" / "khaos"
MONITOR = Monitor()


@dataclass(frozen=True, slots=True)
class Failure:
    """One TaskManager killed in one run of a job."""

    job: str  # iot or ysb
    run: int  # iot was run twice
    interval_s: int  # between checkpoints
    kill_epoch_s: int
    rate: int  # records/s read in the two minutes before
    published_s: float  # recovery time; NaN: none is known
    note: str  # why it says little; empty: it does not


@cache
def failures(job: str, run: int = 1, *, all_of_them: bool = False) -> tuple[Failure, ...]:
    """In the order of intervals and loads; without those that are not one failure of a job at rest."""
    table = pd.read_csv(DATA / "failures.csv", keep_default_na=False)
    rows = [
        Failure(
            row.job, row.run, row.interval_s, row.kill_epoch_s, row.rate, float(row.published_s or np.nan), row.note
        )
        for row in table.itertuples()
        if (row.job, row.run) == (job, run) and (all_of_them or not row.note)
    ]
    return tuple(sorted(rows, key=lambda row: (row.interval_s, row.rate)))


@cache
def _around_kills(job: str, run: int) -> pd.DataFrame:
    return pd.read_csv(DATA / f"{job}-{run}-around-kills.csv.gz").set_index(["interval_s", "kill_epoch_s"]).sort_index()


def recorded(failure: Failure) -> pd.DataFrame:
    """throughput, latency_ms and lag (mean over consumers, records) by second since the kill."""
    return _around_kills(failure.job, failure.run).loc[(failure.interval_s, failure.kill_epoch_s)].set_index("second")


def rule(failure: Failure) -> Rule:
    """A quarter of a second's load more than what was normal is no anomaly where next to nothing was."""
    return Rule(above=0.25 * failure.rate / MONITOR.consumers)


@cache
def recorded_s(failure: Failure) -> float:
    """Recovery time by our rule, from what was recorded."""
    return recovery_s(recorded(failure)["lag"], rule(failure))


@cache
def load(job: str, run: int = 1) -> pd.Series[float]:
    """Offered records/s by epoch second; every second of the file's range has a value."""
    table = pd.read_csv(DATA / f"{job}-load-{run}.csv.gz")
    given = table.set_index("epoch_s")["rate"].astype(float)
    return given.reindex(range(given.index[0], given.index[-1] + 1)).ffill()


def p99_lag(job: str, run: int = 1) -> dict[int, int]:
    """interval -> 99 % of the lag (mean over consumers, records) over the whole recording."""
    table = pd.read_csv(DATA / "p99-lag.csv")
    return dict(
        table[(table.job == job) & (table.run == run)][["interval_s", "p99_lag"]].itertuples(index=False, name=None)
    )
