"""Whole runs from 3x1 to 4x1024: CPU seconds of building, of the data plane, of control, checks and tables, and memory per channel.

    python -m benchmarks.bench_whole [--only 4x256] [--rounds 1] [--against OTHER_CHECKOUT]

Each run is a process of its own that calls `simulate` with the checkers.  The parts sum to the call: what is neither
building, `advance`, last checks nor tables is the control plane.  `--against`: another checkout, whose kernel is warm,
in the same rounds.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.measure import cpu_seconds, measured_in, print_table, record
from benchmarks.scenarios import scenario_text
from sim.app.verbs.study import simulate
from sim.model.schema.study import loads
from sim.plane import warm
from sim.runtime.job_instance import JobInstance
from sim.runtime.simulate import Chain

__all__ = ["CASES", "PARTS", "channels"]

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("building", "advance", "control", "checks", "tables")
WIDE_STAGES, WIDE, RATE = 8, 200, 10_000  # vertices, subtasks of each, records per second of a source's subtask

# name -> stages, parallelism, simulated seconds, interval of checkpoints in seconds, barriers
CASES = {
    "3x1, 20 s, aligned": (3, 1, 20, 5, "aligned"),
    "3x4, 20 s, aligned": (3, 4, 20, 5, "aligned"),
    "4x16, 20 s, aligned": (4, 16, 20, 5, "aligned"),
    "4x64, 20 s, aligned": (4, 64, 20, 5, "aligned"),
    "4x256, 20 s, aligned": (4, 256, 20, 5, "aligned"),
    "4x256, 20 s, unaligned": (4, 256, 20, 5, "unaligned"),
    "4x1024, 3 s, aligned": (4, 1024, 3, 2, "aligned"),
    "4x1024, 20 s, aligned": (4, 1024, 20, 5, "aligned"),
    "8x200, 2 s, aligned": (WIDE_STAGES, WIDE, 2, 1, "aligned"),
}
"""Records fill a buffer each and sinks are busy at 0.7.  Those of 8x200 have 100 B, and two million of them arrive per second."""
OF_THIS_VERSION = {"4x1024, 20 s, aligned"}
"""The version before takes seven minutes and 10 GB."""


def wide_text(seconds: int, interval_s: int) -> str:
    """Eight vertices of 200 subtasks that all serve two million records of 100 B per second, and are busy at most at 0.7."""
    rows = [f"  s0: {{source: {{rate-per-subtask: {RATE}/s, record: 100 B}}, parallelism: {WIDE}}}"]
    for i in range(1, WIDE_STAGES):
        out = "" if i == WIDE_STAGES - 1 else "record: 100 B, "
        rows.append(
            f"  s{i}: {{input: {{s{i - 1}: hash}}, service: {70 if i == WIDE_STAGES - 1 else 40} us, {out}parallelism: {WIDE},"
            " state: {size: 64 MB, update: 10 %}}"
        )
    job = "\n".join(rows)
    return f"""# What does a second of two million records cost?
version: 1
job:
{job}
checkpoint: {{interval: {interval_s} s, barriers: aligned}}
storage: {{bandwidth: 100 MB/s, file-latency: 20 ms, metadata-latency: 20 ms}}
run: {{duration: {seconds} s, seed: 7}}
"""


def channels(case: str) -> int:
    """All connections between subtasks."""
    stages, parallelism, *_ = CASES[case]
    return (stages - 1) * parallelism**2


def measured(case: str) -> dict[str, float]:
    """One run, in this process."""
    stages, parallelism, seconds, interval_s, barriers = CASES[case]
    text = (
        wide_text(seconds, interval_s)
        if stages == WIDE_STAGES
        else scenario_text(
            stages, parallelism, record_bytes=32768, barriers=barriers, interval_s=interval_s, duration_s=seconds
        )
    )
    scenario = loads(text).scenarios[0]
    warm()
    simulate(loads(scenario_text(3, 1, barriers="aligned", duration_s=1)).scenarios[0])  # what is loaded late is loaded
    before_b = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    spent: Counter[str] = Counter()

    def counted(part: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any, **named: Any) -> Any:
            begin = time.process_time()
            result = call(*given, **named)
            spent[part] += time.process_time() - begin
            return result

        return run

    build = JobInstance.__init__

    def built(instance: Any, *given: Any, **named: Any) -> None:
        counted("building", build)(instance, *given, **named)
        # a version before had no looks
        for verb in ("advance", "sample_served") if hasattr(instance.plane, "sample_served") else ("advance",):
            vars(instance.plane)[verb] = counted("advance", getattr(instance.plane, verb))

    JobInstance.__init__ = built  # type: ignore[method-assign]
    JobInstance.violations = counted("checks", JobInstance.violations)  # type: ignore[method-assign]
    Chain.run = counted("run", Chain.run)  # type: ignore[method-assign]
    total_s, result = cpu_seconds(lambda: simulate(scenario))
    if result.violations:
        raise AssertionError(f"{case}: {result.violations[0]}")
    grown_b = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before_b
    return {
        "building": spent["building"],
        "advance": spent["advance"],
        "control": spent["run"] - spent["building"] - spent["advance"],
        "checks": spent["checks"],
        "tables": total_s - spent["run"] - spent["checks"],
        "whole": total_s,
        "peak": (before_b + grown_b) / 1e6,
        "memory per channel": grown_b / channels(case),
        "checkpoints": int((result.checkpoints["status"] == "COMPLETED").sum()),
    }


def main() -> None:
    """One row per job and checkout."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--against", type=Path, help="A checkout of another version, whose kernel is warm.")
    parser.add_argument("--one", choices=list(CASES), help="run this case only, in this process, and print JSON")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measured(options.one)))
        return
    checkouts = {"": ROOT} | ({} if options.against is None else {", before": options.against.resolve()})
    rows = []
    for case in (case for case in CASES if options.only in case):
        runs: dict[str, list[dict[str, float]]] = {
            whose: [] for whose in checkouts if not whose or case not in OF_THIS_VERSION
        }
        for _ in range(options.rounds):
            for whose, measures in runs.items():
                measures.append(measured_in(checkouts[whose], "bench_whole.py", "--one", case))
        history = []
        for whose, measures in runs.items():
            median = {name: statistics.median(run[name] for run in measures) for name in measures[0]}
            rows.append((case + whose, *median.values()))
            units = {"peak": "MB", "memory per channel": "B", "checkpoints": ""}
            history += [(case + whose, name, value, units.get(name, "CPU s")) for name, value in median.items()]
        record("whole", history)
        print(f"  {case}: {rows[-1]}", flush=True)
    print_table(["run", *PARTS, "whole s", "peak MB", "B per channel", "checkpoints"], rows)


if __name__ == "__main__":
    main()
