"""Windows around published failures, and quiet ones, for the ready sweeps: writes scenarios/sweeps/windows/*.csv.

    python -m benchmarks.failure_windows

In each the failure comes at a moment of its own between two checkpoints, evenly spread over what all intervals of the
sweep divide.  Nobody times failures by the checkpoints of a job.  A window ends when twice the time has passed that the
slowest setting should need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from benchmarks.published import khaos_data

__all__ = ["OUT", "Kind", "Row", "demeter", "iot", "main", "ysb"]

SCENARIOS = Path(__file__).parents[1] / "scenarios"
OUT = SCENARIOS / "sweeps" / "windows"
Row = tuple[str, int, str, str, str]
REST_S = 360
COLUMNS = ("window", "from_s", "load", "faults.0.at", "run.duration")


@dataclass(frozen=True, slots=True)
class Kind:
    """What windows of one job have in common."""

    common_s: int  # all intervals divide it
    before_s: int  # at least so long before the failure: there is a checkpoint to go back to
    high: int  # records/s from which on the load counts as high
    capacity: float  # records/s of the slowest setting
    down_s: float
    interval_s: int  # the longest


IOT = Kind(360, 150, 16_000, 34_000, 34, 120)
YSB = Kind(120, 150, 74_000, 132_000, 35, 120)
DEMETER = Kind(180, 120, 45_000, 96_000, 32, 90)


def rows(failures: Iterable[tuple[int, int]], kind: Kind) -> Iterator[Row]:
    """`failures`: (second of the trace, records/s).  Neighbouring loads meet moments far apart."""
    ordered = sorted(failures, key=lambda failure: failure[1])
    for i, (second, rate) in enumerate(ordered):
        share = (i * 0.6180339887 + 0.5) % 1  # the golden section: any stretch of it is spread evenly
        at_s = kind.before_s + round(share * kind.common_s)
        lost_s = kind.interval_s + kind.down_s
        after_s = min(60 + 2 * (kind.down_s + rate * lost_s / max(kind.capacity - rate, 1)), 900)
        load = "high" if rate >= kind.high else "low"
        name = f"{rate / 1000:.1f}k/s at {second} s"
        yield name, second - at_s, load, f"{at_s} s", f"{at_s + round(after_s)} s"


def iot() -> Iterator[Row]:
    return rows(_khaos("iot", 60), IOT)


def ysb() -> Iterator[Row]:
    return rows(_khaos("ysb", 60), YSB)


def demeter() -> Iterator[Row]:
    """Every other outage."""
    outages = pd.read_csv(SCENARIOS / "traces" / "demeter" / "outages.csv")[::2]
    return rows(outages[["second", "rate"]].itertuples(index=False, name=None), DEMETER)


def at_rest() -> Iterator[tuple[str, int, str]]:
    """Six minutes at each of ten loads of the traffic job, from the lowest to the highest, without a kill within a quarter of an hour."""
    load, kills = (
        khaos_data.load("iot", 1),
        [failure.kill_epoch_s for failure in khaos_data.failures("iot", 1, all_of_them=True)],
    )
    begins, mean = int(load.index[0]), load.rolling(REST_S).mean().shift(-REST_S).dropna()
    quiet = mean[[all(not -REST_S - 900 < at - kill < 900 for kill in kills) for at in mean.index]]
    for level in range(10):
        chosen_load = quiet.min() + (quiet.max() - quiet.min()) * (level + 0.5) / 10
        at = int((quiet - chosen_load).abs().idxmin())
        yield f"{quiet[at] / 1000:.1f}k/s at {at - begins} s", at - begins, "high" if quiet[at] >= IOT.high else "low"


def _khaos(job: str, interval_s: int) -> list[tuple[int, int]]:
    """The kills of one of the runs that went on side by side."""
    begins = int(khaos_data.load(job, 1).index[0])
    every = khaos_data.failures(job, 1, all_of_them=True)
    return [(failure.kill_epoch_s - begins, failure.rate) for failure in every if failure.interval_s == interval_s]


WRITTEN: dict[str, Callable[[], Iterator[tuple[object, ...]]]] = {
    "khaos-iot": iot,
    "khaos-iot-at-rest": at_rest,
    "khaos-ysb": ysb,
    "demeter": demeter,
}


def main() -> None:
    OUT.mkdir(exist_ok=True)
    for name, made in WRITTEN.items():
        windows = list(made())
        pd.DataFrame(windows, columns=list(COLUMNS[: len(windows[0])])).to_csv(OUT / f"{name}.csv", index=False)


if __name__ == "__main__":
    main()
