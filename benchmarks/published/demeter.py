"""Demeter's profiling runs (arXiv 2403.02129): recovery times of the Yahoo benchmark by checkpoint interval, simulated beside published.

    python -m benchmarks.published.demeter

Known: load, parallelism, CPUs, interval, when the failure comes, heartbeat timeout.  Two numbers are not known, and
fitted on the shortest and the longest interval only.  One is how many records a CPU serves per second in catch-up.  The
other is how much later than the job itself the authors' detector of anomalies calls it recovered: it reads smoothed
metrics and waits for 15 normal samples.  It never says less than the median of the shortest interval.  The other three
intervals are predicted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from statistics import fmean, median

import pandas as pd

from benchmarks.measure import print_table
from sim.model.faults import When
from sim.model.job import Distribution, Rate
from sim.model.scenario import Scenario
from sim.model.schema.study import load
from sim.runtime.simulate import simulate

__all__ = ["FITTED_MS", "Law", "by_interval", "fit", "profiles", "recovery_s", "reported_s"]

ROOT = Path(__file__).parents[2] / "scenarios" / "published"
FITTED_MS = (10_000, 90_000)
RECORDS = 200
"""One simulated record stands for so many."""
_SECOND = 1_000_000_000
_BEFORE_NS = 5 * _SECOND  # the next checkpoint: then the failure comes
_SATURATED_MS = 5000  # latency of jobs that could not keep up before anything failed: they never recover
_OUT_OF_WINDOW_S = 360


@dataclass(frozen=True, slots=True)
class Law:
    """What is fitted."""

    per_cpu: int  # records/s
    offset_s: float  # detector behind job
    floor_s: float


def profiles() -> pd.DataFrame:
    """Runs that kept up before the failure and were seen to recover; `cpus` = of all TaskManagers."""
    rows = pd.read_csv(ROOT / "data" / "demeter" / "profiles.csv")
    rows["cpus"] = rows.cpuVal * -(-rows.scaleOut // rows.taskSlots)
    return rows[(rows.avgLat < _SATURATED_MS) & (rows.recTime > 0) & (rows.recTime < _OUT_OF_WINDOW_S)].reset_index(
        drop=True
    )


def scenario(rate: float, capacity: float, interval_ms: int) -> Scenario:
    """One run: so many records/s offered and served at most; the failure comes after two checkpoints, before the third."""
    base = load(ROOT / "demeter.yaml").scenarios[0]
    source, reader = base.job.vertices
    assert source.source is not None
    (fault,), interval_ns = base.faults, interval_ms * 1_000_000
    rates = (Rate(0, Fraction(round(rate), RECORDS)),)
    service = Distribution(round(RECORDS * _SECOND / capacity))
    at_ns = 3 * interval_ns + base.overheads.first_trigger_ns - _BEFORE_NS
    return replace(
        base,
        job=replace(
            base.job,
            vertices=(
                replace(source, source=replace(source.source, rates=rates)),
                replace(
                    reader, service=service, inputs=tuple(replace(inlet, service=service) for inlet in reader.inputs)
                ),
            ),
        ),
        checkpoint=replace(base.checkpoint, interval_ns=interval_ns),
        faults=(replace(fault, when=When((at_ns,))),),
        run=replace(base.run, duration_ns=at_ns + _OUT_OF_WINDOW_S * _SECOND),
    )


def recovery_s(rate: float, capacity: float, interval_ms: int) -> float:
    """From the failure until the backlog is what it was [s]; the whole window if it is not by then."""
    (first, *_) = simulate(scenario(rate, capacity, interval_ms), check=False).recoveries.to_dict("records")
    return _OUT_OF_WINDOW_S if first["caught_up"] < 0 else float(first["caught_up"] - first["failed"]) / 1000


def reported_s(recovery: float, law: Law) -> float:
    """What the detector says of it."""
    return min(max(law.floor_s, recovery + law.offset_s), _OUT_OF_WINDOW_S)


def formula_s(rate: float, capacity: float, interval_ms: int, down_s: float = 31.0) -> float:
    """The same without a simulator: downtime, then what came since the last checkpoint at spare capacity; to fit with."""
    lost_s = interval_ms / 1000 - _BEFORE_NS / _SECOND + down_s
    return _OUT_OF_WINDOW_S if capacity <= rate else down_s + rate * lost_s / (capacity - rate)


def fit(rows: pd.DataFrame) -> Law:
    """Least mean relative error on the fitted intervals."""
    floor_s = float(median(rows[rows.chkInt == min(FITTED_MS)].recTime))
    known = rows[rows.chkInt.isin(FITTED_MS)]

    def error(law: Law) -> float:
        predicted = [
            reported_s(formula_s(row.avgThr, law.per_cpu * row.cpus, row.chkInt), law) for row in known.itertuples()
        ]
        return fmean(abs(value - seen) / seen for value, seen in zip(predicted, known.recTime, strict=True))

    return min(
        (Law(per_cpu, offset, floor_s) for per_cpu in range(6000, 16_001, 500) for offset in range(0, 81, 5)), key=error
    )


def predicted(rows: pd.DataFrame, law: Law) -> pd.DataFrame:
    """With a column `predicted` [s]."""
    predicted = [
        reported_s(recovery_s(row.avgThr, law.per_cpu * row.cpus, row.chkInt), law) for row in rows.itertuples()
    ]
    return rows.assign(predicted=predicted)


def by_interval(rows: pd.DataFrame) -> pd.DataFrame:
    """Per interval: how many runs, mean recovery published and predicted [s], error of the mean, mean relative error of single runs."""
    rows = rows.assign(error=(rows.predicted - rows.recTime).abs() / rows.recTime)
    table = rows.groupby("chkInt").agg(
        runs=("recTime", "size"),
        published=("recTime", "mean"),
        predicted=("predicted", "mean"),
        mape=("error", "mean"),
    )
    return table.assign(error=table.predicted / table.published - 1)


def main() -> None:
    rows = profiles()
    law = fit(rows)
    print(
        f"fitted on 10 s and 90 s: {law.per_cpu} records/s and CPU, detector {law.offset_s:g} s behind, never below {law.floor_s:g} s\n"
    )
    table = by_interval(predicted(rows, law))
    print_table(
        ("interval", "runs", "published s", "simulated s", "error %", "MAPE of runs %", ""),
        [
            (
                f"{ms // 1000} s",
                int(row.runs),
                row.published,
                row.predicted,
                100 * row.error,
                100 * row.mape,
                "fitted" if ms in FITTED_MS else "left out",
            )
            for ms, row in table.iterrows()
        ],
    )


if __name__ == "__main__":
    main()
