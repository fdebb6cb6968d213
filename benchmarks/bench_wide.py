"""A wide job: CPU seconds and resident memory to read it, to build it, and to run it for four seconds with its checkpoints.

    python -m benchmarks.bench_wide [--vertices 1000] [--parallelism 30] [--rounds 1] [--against OTHER_CHECKOUT]

It is a chain whose subtasks have one channel each, and few records: what it costs is the number of its tasks.
Each run is a process of its own.  `--against`: another checkout, whose kernel is warm, in the same rounds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

__all__ = ["chain_text", "measured"]


def chain_text(vertices: int, parallelism: int) -> str:
    """The scenario: a source and maps behind it, in parallel lanes."""
    rows = [f"  s0: {{source: {{rate-per-subtask: 10/s, record: 100 B}}, parallelism: {parallelism}}}"]
    for place in range(1, vertices):
        shape = f"input: {{s{place - 1}: forward}}, service: 10 us, record: 100 B, parallelism: {parallelism}"
        rows.append(f"  s{place}: {{{shape}}}")
    job = "\n".join(rows)
    return f"""# What does a job of {vertices:,} vertices cost?
version: 1
job:
{job}
checkpoint: {{interval: 3 s}}
run: {{duration: 4 s, warmup: 0 s}}
"""


def measured(vertices: int, parallelism: int) -> dict[str, float]:
    """One run, in this process.  AssertionError: a checkpoint was not completed, or a promise was broken."""
    from benchmarks.bench_day import peak_mb, resident_mb
    from sim.model.schema.study import loads
    from sim.runtime.simulate import simulate
    from sim.studies.cells import warm

    warm()
    kernel_mb = resident_mb()
    began = time.process_time()
    scenario = loads(chain_text(vertices, parallelism)).scenarios[0]
    read_s = time.process_time() - began
    built: list[float] = []
    began = time.process_time()
    result = simulate(scenario, attach=lambda _: built.extend((time.process_time() - began, resident_mb())))
    whole_s = time.process_time() - began
    if set(result.checkpoints["status"]) != {"COMPLETED"} or result.violations:
        raise AssertionError(str(result.violations[:1] or result.checkpoints["status"].tolist()))
    sizes = {"kernel MB": kernel_mb, "built MB": built[1], "peak MB": peak_mb()}
    times = {"read CPU s": read_s, "build CPU s": built[0], "run CPU s": whole_s}
    return sizes | times | {"checkpoints completed": float(len(result.checkpoints))}


def main() -> None:
    """One row per checkout: medians of all rounds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vertices", type=int, default=1000)
    parser.add_argument("--parallelism", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--against", type=Path, help="another checkout, whose kernel is warm")
    parser.add_argument("--one", action="store_true", help="run once, in this process, and print JSON")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measured(options.vertices, options.parallelism)))
        return
    from benchmarks.measure import measured_in, print_table, record

    size = ("--vertices", str(options.vertices), "--parallelism", str(options.parallelism))
    checkouts = {"": ROOT} | ({} if options.against is None else {", before": options.against.resolve()})
    runs: dict[str, list[dict[str, float]]] = {whose: [] for whose in checkouts}
    for _ in range(options.rounds):
        for whose, measures in runs.items():
            measures.append(measured_in(checkouts[whose], __file__, "--one", *size))
    rows: list[tuple[object, ...]] = []
    history: list[tuple[str, str, float, str]] = []
    for whose, measures in runs.items():
        median = {name: statistics.median(run[name] for run in measures) for name in measures[0]}
        case = f"{options.vertices}x{options.parallelism}{whose}"
        rows.append((case, *median.values()))
        for quantity, value in median.items():
            name, _, unit = quantity.partition(" ")
            history.append((case, name, value, unit))
    print_table(["job", *median], rows)
    record("wide", history)


if __name__ == "__main__":
    main()
