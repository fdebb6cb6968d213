"""What does it cost to have every run watched?  CPU time of `simulate` with the checkers and without, interleaved.

    python -m benchmarks.bench_checks [--rounds N]

One checkpoint per 10 simulated s as everywhere, and one per 200 ms, where a run is little else than checkpoints.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator
from dataclasses import replace

from benchmarks.measure import cpu_seconds, print_table, record
from benchmarks.scenarios import everything_text, scenario_text
from sim.model.scenario import Scenario
from sim.model.schema.study import loads
from sim.plane import warm
from sim.runtime.simulate import simulate

__all__ = ["cases"]

MS = 1_000_000


def cases() -> Iterator[tuple[str, Scenario]]:
    """Chains at leisure and in a hurry."""
    texts = {
        "3x4 1000 B": scenario_text(3, 4, duration_s=40),
        "4x16 1000 B": scenario_text(4, 16, duration_s=20),
        "4x16 32768 B": scenario_text(4, 16, record_bytes=32768, duration_s=100),
        "3x4 1000 B everything": everything_text(4, duration_s=60),
        "3x16 1000 B everything": everything_text(16, duration_s=40),
    }
    for name, text in texts.items():
        aligned, unaligned, _ = loads(text).scenarios
        yield f"{name} aligned", aligned
        yield f"{name} unaligned", unaligned
    _, hurried, _ = loads(scenario_text(3, 16, record_bytes=32768, duration_s=20)).scenarios
    yield (
        "3x16 32768 B unaligned, 200 ms",
        replace(hurried, checkpoint=replace(hurried.checkpoint, interval_ns=200 * MS)),
    )


def main() -> None:
    """One row per run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    warm()
    rows, history = [], []
    for name, scenario in cases():
        simulate(scenario)
        pairs = [
            [
                cpu_seconds(lambda scenario=scenario, check=check: simulate(scenario, check=check))[0]
                for check in (True, False)
            ]
            for _ in range(rounds)
        ]
        share = statistics.median(1 - without / watched for watched, without in pairs)
        rows.append((name, statistics.median(watched for watched, _ in pairs), 100 * share))
        history.append((name, "share of the checkers", 100 * share, "%"))
    print_table(["run", "CPU s", "checkers %"], rows)
    record("checks", history)


if __name__ == "__main__":
    main()
