"""Khaos: recovery times of two Flink jobs by load and checkpoint interval; published, simulated, and by a formula of two parameters.

    python -m benchmarks.published.khaos [--jobs N] [--cells | --splits]

Every cell is a killed TaskManager in the real load around it.  `simulated`: with four numbers per job found from all
its failures;
`left out`: with those found without the cell's interval.  Bars: mean error of the published times at most 10 % (iot), 7 % (ysb), left out
12 %; the order of ysb's intervals by the 99 % quantile of lag exact.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd

from benchmarks.measure import print_table
from benchmarks.published import khaos_data as data
from benchmarks.published.khaos_data import failures, recorded, recorded_s
from benchmarks.published.khaos_fit import expected_s, fit, formula_fit, formula_s, outage_s
from benchmarks.published.khaos_windows import windows as simulated_windows
from benchmarks.published.recovery import recovery_s

__all__ = ["BARS", "LEFT_OUT_BAR", "between_runs", "compare", "main", "mean_error", "p99_lag", "read_twice_s", "splits"]

RUNS = (("iot", 1), ("ysb", 1), ("iot", 2))
BARS = {"iot": 0.10, "ysb": 0.07}
LEFT_OUT_BAR = 0.12
_DAY_S = 86_041  # seconds of ysb's recording


def compare(job: str, run: int = 1, *, jobs: int = 1, intervals: Sequence[int] = ()) -> pd.DataFrame:
    """One row per failure: what is known of its recovery time [s], and the simulated window.  `intervals`: only these are simulated."""
    usable, everything = failures(job, run), failures(job, run, all_of_them=True)
    numbers, formula = fit(usable), formula_fit(usable)
    left_out = sorted({failure.interval_s for failure in usable})
    others = {left: [failure for failure in usable if failure.interval_s != left] for left in left_out}
    fits, formulas = (
        {left: fit(rest) for left, rest in others.items()},
        {left: formula_fit(rest) for left, rest in others.items()},
    )
    chosen = [failure for failure in everything if failure.interval_s in (intervals or others)]
    cells = [(failure, numbers) for failure in chosen] + [
        (failure, fits[failure.interval_s]) for failure in chosen if not failure.note
    ]
    unique = list(dict.fromkeys(cells))
    windows = dict(zip(unique, simulated_windows(unique, jobs), strict=True))

    def simulated_s(*cell: object) -> float:
        return recovery_s(windows[cell]["lag"], data.rule(cell[0])) if cell in windows else np.nan  # type: ignore[index, arg-type]

    table = pd.DataFrame(
        [
            {
                "interval": failure.interval_s,
                "rate": failure.rate,
                "note": failure.note,
                "published": failure.published_s,
                "recorded": np.nan if failure.note.startswith("behind") else recorded_s(failure),
                "formula": formula_s(failure, *formula),
                "simulated": simulated_s(failure, numbers),
                "formula_left_out": formula_s(failure, *formulas[failure.interval_s]),
                "left_out": simulated_s(failure, fits[failure.interval_s]),
                "own_outage": expected_s(failure, replace(numbers, outage_s=float(outage_s(failure)))),
                "failure": failure,
                "window": windows[failure, numbers],
            }
            for failure in chosen
        ]
    )
    table.attrs.update(job=job, run=run, fit=numbers, formula=formula, fits=fits)
    return table


def mean_error(table: pd.DataFrame, found: str, truth: str = "published") -> float:
    """Mean absolute relative error; only of cells without a note."""
    usable = table[table["note"] == ""]
    errors = (usable[found] / usable[truth] - 1).abs()
    return float(errors.mean())


def read_twice_s(window: pd.DataFrame, offered: pd.Series[float]) -> float:
    """Input that seems to be read twice [s of input]: throughput shown minus offered rate, over 700 s from just before the kill."""
    throughput = window["throughput"].loc[-10:689].fillna(0.0)
    return float((throughput - offered.to_numpy()[: len(throughput)]).sum() / offered.iloc[0])


def p99_lag(table: pd.DataFrame) -> dict[int, float]:
    """interval -> 99 % of the lag shown over a day that has these failures and is at rest else."""
    found = {}
    for interval, rows in table.groupby("interval"):
        lags = np.sort(np.concatenate([window["lag"].loc[0:].dropna().to_numpy() for window in rows["window"]]))[::-1]
        found[int(interval)] = float(lags[min(_DAY_S // 100, len(lags) - 1)])  # type: ignore[call-overload]
    return found


def between_runs(job: str = "iot") -> tuple[int, float, float]:
    """(pairs, mean difference of published times, of recorded ones) of failures of both runs with one interval and nearly one load."""
    rows = []
    for second in failures(job, 2):
        same = [failure for failure in failures(job, 1) if failure.interval_s == second.interval_s]
        near = [failure for failure in same if abs(failure.rate / second.rate - 1) < 0.05]
        if near:
            first = min(near, key=lambda failure: abs(failure.rate - second.rate))
            rows.append(
                (abs(second.published_s / first.published_s - 1), abs(recorded_s(second) / recorded_s(first) - 1))
            )
    differences = np.array(rows)
    return len(rows), *(float(x) for x in np.nanmean(differences, axis=0))


def splits(job: str, run: int = 1) -> list[tuple[object, ...]]:
    """Mean errors of published times for every choice of two intervals or more to find the numbers with, in the backlog's arithmetic.

    (run, intervals fitted, error there, error on those left out, the formula's errors there and there).
    """
    published = [failure for failure in failures(job, run) if not np.isnan(failure.published_s)]
    intervals = sorted({failure.interval_s for failure in published})
    rows: list[tuple[object, ...]] = []
    for chosen in (x for size in range(2, len(intervals)) for x in combinations(intervals, size)):
        numbers = fit([failure for failure in failures(job, run) if failure.interval_s in chosen])
        formula = formula_fit([failure for failure in published if failure.interval_s in chosen])
        found = {
            which: {failure: abs(time(failure) / failure.published_s - 1) for failure in published}
            for which, time in (
                ("ours", lambda f: expected_s(f, numbers)),  # noqa: B023
                ("formula", lambda f: formula_s(f, *formula)),  # noqa: B023
            )
        }
        errors = [
            float(
                np.mean([error for failure, error in found[which].items() if (failure.interval_s in chosen) == there])
            )
            for which in ("ours", "formula")
            for there in (True, False)
        ]
        rows.append((f"{job} {run}", " ".join(map(str, chosen)), *(f"{error:.1%}" for error in errors)))
    return rows


def _print_cells(table: pd.DataFrame) -> None:
    def rounded(value: float) -> object:
        return "" if np.isnan(value) else round(value)

    rows = [
        (
            row.interval,
            row.rate,
            *(rounded(x) for x in (row.published, row.recorded, row.formula, row.simulated)),
            *(
                "" if np.isnan(x) else f"{x:+.0%}"
                for x in (row.simulated / row.published - 1, row.simulated / row.recorded - 1)
            ),
            rounded(row.left_out),
            row.note,
        )
        for row in table.itertuples()
    ]
    heads = [
        "interval s",
        "records/s",
        "published",
        "recorded",
        "formula",
        "simulated",
        "of publ.",
        "of rec.",
        "left out",
        "",
    ]
    print_table(heads, rows)


def _error_rows(table: pd.DataFrame) -> list[tuple[object, ...]]:
    """Mean errors, of all cells and of each interval."""
    job, run = table.attrs["job"], table.attrs["run"]
    rows: list[tuple[object, ...]] = []
    for name, part in [("all", table), *((f"{interval} s", rest) for interval, rest in table.groupby("interval"))]:
        columns = [("recorded",), ("formula",), ("simulated",), ("formula_left_out",), ("left_out",)]
        against = [("simulated", "recorded"), ("left_out", "recorded"), ("own_outage", "recorded")]
        errors = [mean_error(part, *which) for which in columns + against]  # type: ignore[operator]
        rows.append((f"{job} {run}", name, int((part["note"] == "").sum()), *(f"{error:.1%}" for error in errors)))
    return rows


def main() -> None:
    """All tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--cells", action="store_true", help="every failure")
    parser.add_argument(
        "--splits", action="store_true", help="only this: every choice of intervals to find the numbers with"
    )
    given = parser.parse_args()
    if given.splits:
        heads = ["run", "fitted on", "simulated", "left out", "formula", "formula left out"]
        print_table(heads, [row for job, run in RUNS for row in splits(job, run)])
        return
    tables = [compare(job, run, jobs=given.jobs) for job, run in RUNS]
    for table in tables:
        if given.cells:
            print(f"\n{table.attrs['job']} {table.attrs['run']}")
            _print_cells(table)
    print("\nMean errors of recovery times: of the published ones, then of those recorded, by our rule")
    heads = ["run", "interval", "n", "recorded", "formula", "simulated", "formula l. o.", "left out"]
    print_table(
        [*heads, "| simulated", "left out", "own outage"], [row for table in tables for row in _error_rows(table)]
    )
    print("\nWhat was found from all failures")
    print_table(
        ["run", "outage s", "records/s", "lost s", "per checkpoint s", "formula: s", "records/s"],
        [
            (
                f"{t.attrs['job']} {t.attrs['run']}",
                t.attrs["fit"].outage_s,
                round(t.attrs["fit"].capacity),
                t.attrs["fit"].lost_s,
                t.attrs["fit"].checkpoint_s,
                t.attrs["formula"][0],
                round(t.attrs["formula"][1]),
            )
            for t in tables
        ],
    )
    pairs, published, rec = between_runs()
    print(
        f"\nThe two runs of iot differ by {published:.1%} (published), {rec:.1%} (recorded) in {pairs} pairs of like load and interval."
    )
    ysb = tables[1]
    print("\nysb: 99 % of the lag over the day [records, mean over consumers]: interval, recorded, simulated")
    simulated, recorded_lag = p99_lag(ysb), data.p99_lag("ysb")
    lags = [(interval, recorded_lag[interval], round(simulated[interval])) for interval in recorded_lag]
    print_table(["interval s", "recorded", "simulated"], lags)
    print("\nInput that seems read twice [s, median]: run, interval, recorded, simulated")
    print_table(["run", "interval s", "recorded", "simulated"], [row for table in tables for row in _read_twice(table)])


def _read_twice(table: pd.DataFrame) -> list[tuple[object, ...]]:
    offered = data.load(table.attrs["job"], table.attrs["run"])
    rows: list[tuple[object, ...]] = []
    for interval, part in table[table["note"] == ""].groupby("interval"):
        of = [offered.loc[failure.kill_epoch_s - 10 : failure.kill_epoch_s + 689] for failure in part["failure"]]
        recorded_twice = np.median(
            [read_twice_s(recorded(failure), rate) for failure, rate in zip(part["failure"], of, strict=True)]
        )
        found = np.median([read_twice_s(failure, rate) for failure, rate in zip(part["window"], of, strict=True)])
        rows.append((f"{table.attrs['job']} {table.attrs['run']}", interval, round(recorded_twice), round(found)))
    return rows


if __name__ == "__main__":
    main()
