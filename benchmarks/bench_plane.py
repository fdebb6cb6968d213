"""How fast is the compiled plane, against SimPy (idiomatic, hand-tuned), its own text in C++, and its own text interpreted?

    python -m benchmarks.bench_plane [--rounds N] [--scale X] [--only 4x16] [--skip interpreted]

All engines run the same workloads in one process, one after the other in every round; medians of CPU time of the run,
construction apart.  A hop is a data buffer consumed by a task, a record one record served by a task.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks import cpp
from benchmarks.driver import drive, outcome
from benchmarks.measure import cpu_seconds, interleaved, print_table, record
from benchmarks.simpy_idiomatic import IdiomaticModel
from benchmarks.simpy_lean import LeanModel
from benchmarks.workloads import SIZES, Outcome, Workload, workload
from sim.plane import build, warm
from sim.plane.interface import PlaneSpec
from sim.plane.kernel import KernelPlane

ENGINES = ("compiled", "c++", "idiomatic", "lean", "interpreted")
REPEATS = {"compiled": 5, "c++": 5}  # per round: their runs are short
# Without checkpoints the models agree exactly.  Channels resumed at one instant send in turns in the plane and one
# after the other in SimPy, so that another channel gets the next floating buffer.  A saturated run drifts by up to
# this, either way.
TOLERANCE = 0.01
LATENCY_NS = 100_000


def standard(scale: float) -> Iterator[Workload]:
    """Every size at both loads with both kinds of records, then the variations at 3x4 and 4x16."""
    for stages, parallelism in SIZES:
        for big in (True, False):
            for load in (0.7, 1.3):
                yield workload(stages, parallelism, load=load, big_records=big, scale=scale)
            if parallelism in (4, 16):
                yield workload(stages, parallelism, load=None, big_records=big, scale=scale)
                yield workload(stages, parallelism, load=1.3, latency_ns=LATENCY_NS, big_records=big, scale=scale)
                yield workload(stages, parallelism, load=1.3, unaligned=True, big_records=big, scale=scale)
                yield workload(
                    stages, parallelism, load=1.3, unaligned=True, latency_ns=LATENCY_NS, big_records=big, scale=scale
                )


def plane_run(make: Callable[[PlaneSpec], KernelPlane], work: Workload) -> Callable[[], Any]:
    """Build a plane; what is returned drives it through the workload."""
    plane = make(work.spec)

    def run() -> tuple[KernelPlane, Outcome]:
        snapshots = drive(plane, work)
        return plane, outcome(plane, snapshots)

    return run


def preparations(work: Workload, skip: set[str]) -> dict[str, Callable[[], Callable[[], Any]]]:
    """By engine: build the model and return its run."""
    every: dict[str, Callable[[], Callable[[], Any]]] = {
        "compiled": lambda: plane_run(build, work),
        "c++": lambda: plane_run(cpp.cpp_plane, work),
        "idiomatic": lambda: IdiomaticModel(work).run,
        "lean": lambda: LeanModel(work).run,
        "interpreted": lambda: plane_run(lambda spec: build(spec, "interpreted"), work),
    }
    return {name: every[name] for name in ENGINES if name not in skip}


def check(name: str, results: dict[str, Any]) -> Outcome:
    """Same text, same tables; SimPy the same totals but for ties.  Returns what the compiled plane did."""
    plane, expected = results["compiled"]
    for engine in {"c++", "interpreted"} & set(results):
        twin = results[engine][0]
        for table in ("tasks", "channels", "partitions", "gates"):
            if not np.array_equal(getattr(plane, table)(), getattr(twin, table)()):
                raise AssertionError(f"{name}: {table} of {engine} differ from the compiled plane's")
    for engine in {"idiomatic", "lean"} & set(results):
        for quantity in ("records", "buffers"):
            there, here = getattr(results[engine], quantity), getattr(expected, quantity)
            if abs(there - here) > max(10, TOLERANCE * here):
                raise AssertionError(f"{name}: {there} {quantity} in {engine}, {here} in the plane")
    return expected


def measure(work: Workload, rounds: int, skip: set[str]) -> tuple[dict[str, float], dict[str, float], Outcome]:
    """CPU seconds by engine, CPU seconds of building by engine, what was done."""
    runs = preparations(work, skip)
    building = {name: cpu_seconds(prepare)[0] for name, prepare in runs.items() if name in ("compiled", "idiomatic")}
    done = interleaved(runs, rounds, REPEATS)
    return (
        {name: cpu for name, (cpu, _) in done.items()},
        building,
        check(work.name, {name: result for name, (_, result) in done.items()}),
    )


def main() -> None:
    """One row per workload."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="of the simulated time")
    parser.add_argument("--only", default="", help="workloads whose name contains this")
    parser.add_argument("--skip", action="append", default=[], choices=ENGINES[1:])
    options = parser.parse_args()
    skip = set(options.skip) | (set() if cpp.available() else {"c++"})
    warm()
    others = [name for name in ENGINES[1:] if name not in skip]
    rows = []
    for work in standard(options.scale):
        if options.only not in work.name:
            continue
        cpu, building, done = measure(work, options.rounds, skip)
        ratios = {name: cpu[name] / cpu["compiled"] for name in others}
        simulated = work.until_ns / 1e9 / cpu["compiled"]
        speeds = (done.buffers / cpu["compiled"] / 1e6, done.records / cpu["compiled"] / 1e6)
        rows.append((work.name, *speeds, simulated, *ratios.values(), building["compiled"] * 1e3))
        history = [(work.name, "hops", speeds[0] * 1e6, "1/s"), (work.name, "records", speeds[1] * 1e6, "1/s")]
        record("plane", history + [(work.name, f"compiled / {name}", ratio, "") for name, ratio in ratios.items()])
        print(f"  {work.name}: " + ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items()), flush=True)
    print()
    head = ["workload", "Mhops/s", "Mrecords/s", "simulated s/s", *(f"x {name}" for name in others), "building ms"]
    print_table(head, rows)


if __name__ == "__main__":
    main()
