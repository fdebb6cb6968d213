"""A day as a cell of a sweep: resident memory after each phase of its process, and the CPU seconds of the run.

    python -m benchmarks.bench_day [--hours 24] [--rounds 1] [--against OTHER_CHECKOUT]

It is the day of `scenarios/sweeps/khaos-ysb-day.yaml` with a checkpoint every 30 s.  Each run is a process of its own,
which imports nothing before it is measured but what keeps pyarrow out of a cell (`sim.studies.sweeps.spark_task`).
`--against`: another checkout, whose kernel is warm, in the same rounds.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import sys
from pathlib import Path

__all__ = ["measured"]

ROOT = Path(__file__).resolve().parent.parent
SCENARIO = Path("scenarios/published/khaos-ysb.yaml")
KILLS = "data/khaos/failures.csv"
SETTINGS = (
    "job.events.source.rate.from=0 s",
    "checkpoint.interval=30 s",
    f"faults=[{{task-manager: 0, at: 3500 s, trace: {KILLS}, column: kill_epoch_s, where: {{job: ysb, interval_s: 60, run: 1}}}}]",
)
MB = 1_000_000


def resident_mb() -> float:
    """Now, where the system says so; else the most there ever was."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * resource.getpagesize() / MB if statm.exists() else _most_mb()


def peak_mb() -> float:
    """The most there ever was, now included: Linux counts pages per thread and adds them up late."""
    return max(_most_mb(), resident_mb())


def _most_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / MB


def measured(hours: float) -> dict[str, float]:
    """One cell, in this process.  AssertionError: it failed, or broke a promise."""
    sizes = {"bare": resident_mb()}
    from sim.studies.sweeps.spark_task import import_pandas_without_pyarrow

    import_pandas_without_pyarrow()

    sizes["libraries"] = resident_mb()
    from sim.model.schema.study import load
    from sim.studies.cells import timed, warm
    from sim.studies.plan import cells

    sizes["own modules"] = resident_mb()
    cell = cells(load(SCENARIO, overrides=[*SETTINGS, f"run.duration={hours:g} h"]).scenarios)[0]
    sizes["planned"] = resident_mb()
    warm()
    sizes["kernel"] = resident_mb()
    begun: list[float] = []
    row = timed(cell, progress=lambda _: None if begun else begun.append(resident_mb()))
    if row["status"] != "ok" or row["violations"]:
        raise AssertionError(row["error"] or row["violation"])
    return sizes | {"first second": begun[0], "row made": resident_mb(), "peak": peak_mb(), "CPU s": row["cpu_s"]}


def main() -> None:
    """One row per checkout: medians of all rounds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=24, help="simulated")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--against", type=Path, help="another checkout, whose kernel is warm")
    parser.add_argument("--one", type=float, help="run so many hours only, in this process, and print JSON")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measured(options.one)))
        return
    from benchmarks.measure import measured_in, print_table, record

    checkouts = {"": ROOT} | ({} if options.against is None else {", before": options.against.resolve()})
    runs: dict[str, list[dict[str, float]]] = {whose: [] for whose in checkouts}
    for _ in range(options.rounds):
        for whose, measures in runs.items():
            measures.append(measured_in(checkouts[whose], "bench_day.py", "--one", str(options.hours)))
    rows, history = [], []
    for whose, measures in runs.items():
        median = {name: statistics.median(run[name] for run in measures) for name in measures[0]}
        case = f"{options.hours:g} h{whose}"
        rows.append((case, *median.values()))
        history += [(case, name, value, "CPU s" if name == "CPU s" else "MB") for name, value in median.items()]
    print_table(["resident MB", *median], rows)
    record("day", history)


if __name__ == "__main__":
    main()
