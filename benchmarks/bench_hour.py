"""FLINK-37375 at full scale: an hour of eight writers on 50 DFS nodes, watched by the checkers; CPU seconds (bar 60).

    python -m benchmarks.bench_hour

Each run ends with 120 checkpoints or as many as the writers allow.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.measure import cpu_seconds, print_table, record
from sim.model.schema.study import load
from sim.plane import warm
from sim.runtime.simulate import simulate

HOUR_NS = 3600 * 1_000_000_000
SCENARIO = Path(__file__).parent.parent / "scenarios" / "flink-37375-slow-dfs-nodes.yaml"


def main() -> None:
    """One row per share of slow nodes and way of flushing."""
    warm()
    rows, history = [], []
    for scenario in load(SCENARIO).scenarios:
        hour = replace(scenario, run=replace(scenario.run, duration_ns=HOUR_NS))
        seconds, result = cpu_seconds(lambda hour=hour: simulate(hour))
        slow = scenario.storage.dfs.slow.share if scenario.storage.dfs else 0
        name = f"{float(slow):.0%} slow, {scenario.checkpoint.operator_io}"
        rows.append((name, len(result.checkpoints), len(result.violations), seconds, 3600 / seconds))
        history.append((name, "CPU of an hour", seconds, "s"))
    print_table(["run", "checkpoints", "violations", "CPU s", "x real time"], rows)
    record("hour", history)


if __name__ == "__main__":
    main()
