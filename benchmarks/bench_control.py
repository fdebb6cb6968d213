"""What a checkpoint costs per task as the parallelism grows: CPU time outside ``advance``, and the time to build the job.

    python -m benchmarks.bench_control [--rounds 5] [--parallelism 4 16 64 256] [--against OTHER_CHECKOUT]

A chain of four stages with few records, a checkpoint every five seconds, watched by the checkers.  Each run is a
process of its own.  Outside are the protocol machines, SimPy, storage, sampling, accounts and the calls of verbs.
`--against`: another checkout, whose kernel is warm, in the same rounds.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from benchmarks.measure import cpu_seconds, measured_in, print_table, record
from benchmarks.scenarios import scenario_text
from sim.model.schema.study import loads
from sim.plane import warm
from sim.runtime.job_instance import JobInstance
from sim.runtime.sampling import Sampler

ROOT = Path(__file__).resolve().parent.parent
INTERVAL_S = 5
STAGES = 4
T = TypeVar("T")


def timed(advance: Callable[..., T], spent: list[float]) -> Callable[..., T]:
    """``advance`` or ``look`` that adds its CPU seconds to the last entry of `spent`."""

    def run(*times: int) -> T:
        begin = time.process_time()
        notice = advance(*times)
        spent[-1] += time.process_time() - begin
        return notice

    return run


def measured(parallelism: int, barriers: str, checkpoints: int) -> dict[str, float]:
    """One run, in this process."""
    text = scenario_text(
        STAGES,
        parallelism,
        record_bytes=32768,
        load=0.05,
        barriers=barriers,
        interval_s=INTERVAL_S,
        duration_s=INTERVAL_S * checkpoints + INTERVAL_S - 1,
    )
    scenario = loads(text).scenarios[0]
    warm()
    gc.set_threshold(50_000)  # as `simulate` does
    building_s, instance = cpu_seconds(lambda: JobInstance(scenario, "compiled"))
    Sampler(instance.context, instance.counters, None)
    spent = [0.0]
    # a version before had no looks
    for verb in ("advance", "sample_served") if hasattr(instance.plane, "sample_served") else ("advance",):
        vars(instance.plane)[verb] = timed(getattr(instance.plane, verb), spent)
    instance.start()
    total_s, _ = cpu_seconds(lambda: instance.env.run(until=scenario.run.duration_ns))
    check_s, _ = cpu_seconds(instance.violations)
    outside_s = total_s - spent[0]
    return {
        "outside_ms": outside_s * 1e3 / (len(instance.stats) * STAGES * parallelism),
        "building_s": building_s,
        "check_s": check_s,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def main() -> None:
    """One row per parallelism and checkout."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--parallelism", type=int, nargs="*", default=[4, 16, 64, 256])
    parser.add_argument("--barriers", default="aligned")
    parser.add_argument(
        "--checkpoints", type=int, help="by default so many that each run has about a thousand of a task"
    )
    parser.add_argument("--against", type=Path, help="A checkout of another version, whose kernel is warm.")
    parser.add_argument("--one", type=int, help="run this parallelism only, in this process, and print JSON")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measured(options.one, options.barriers, options.checkpoints)))
        return
    checkouts = {"": ROOT} | ({} if options.against is None else {", before": options.against.resolve()})
    rows, history = [], []
    for parallelism in options.parallelism:
        checkpoints = options.checkpoints or max(2, 1000 // (STAGES * parallelism))
        runs: dict[str, list[dict[str, float]]] = {whose: [] for whose in checkouts}
        for _ in range(options.rounds):
            for whose, checkout in checkouts.items():
                given = ["--one", str(parallelism), "--barriers", options.barriers, "--checkpoints", str(checkpoints)]
                runs[whose].append(measured_in(checkout, "bench_control.py", *given))
        for whose, measures in runs.items():
            median = {name: statistics.median(run[name] for run in measures) for name in measures[0]}
            rows.append((f"{STAGES}x{parallelism} {options.barriers}{whose}", *median.values()))
            history.append(
                (
                    f"{STAGES}x{parallelism} {options.barriers}{whose}",
                    "CPU per task and checkpoint",
                    median["outside_ms"],
                    "ms",
                )
            )
    print_table(["run", "ms per task and checkpoint", "building s", "check s", "peak MB"], rows)
    record("control", history)


if __name__ == "__main__":
    main()
