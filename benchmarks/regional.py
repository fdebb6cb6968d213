"""What regional checkpoints (FLIP-600, a proposal) change: completed checkpoints, ages, replay after a failure, bytes that are kept.

    python -m benchmarks.regional

Prints the tables of docs/flip-600.md.  A failure is that of one task, which restarts its region.  Bytes are those of files that exist
when a checkpoint has completed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from benchmarks.measure import print_table
from sim.model.faults import Fault, Kill, When
from sim.model.scenario import Scenario
from sim.model.schema.study import load
from sim.results.formats import MISSING, bytes_text, count_text, ms_text
from sim.results.journal import EventType
from sim.runtime.result import Result
from sim.runtime.simulate import simulate

__all__ = ["FAILURES", "SCENARIOS", "Cost", "cost", "failure_rows", "retained", "slow_node_rows"]

SCENARIOS = Path(__file__).parents[1] / "scenarios" / "flip-600"
SLOW, HEALTHY = 12, 20
"""Subtasks of `slow-node.yaml` on the slow node and on another one."""
FAILURES = {
    "one node's storage is slow": [],
    "one task is slow": ["faults=[{slow: 'count[12]', factor: 5000, at: 55 s, lasts: 120 s}]"],
    "all storage is away": ["faults=[{storage: outage, at: 55 s, lasts: 120 s}]"],
    "a task fails every 30 s": ["faults=[{kill: 'count[12]', every: 30 s}]"],
    "a TaskManager is lost": ["faults=[{kill: task-manager, at: 60500 ms}]"],
}
"""Fault -> changes of `slow-node.yaml`, whose storage is not slow otherwise."""
_NOT_SLOW = "storage.dfs={nodes: 10, replication: 1, local-first: true, bandwidth: 100 MB/s, nic: 1 GB/s}"


class Cost(NamedTuple):
    """What a run with one setting costs."""

    completed: int
    failed: int
    oldest_ms: float  # of the part of a region in a completed checkpoint, when that completed
    retained_bytes: int  # most


def cost(result: Result) -> Cost:
    """Return what a run has cost."""
    table = result.checkpoints
    begun = dict(zip(table.id, table.trigger_timestamp, strict=True))
    replaced = result.journal.only({EventType.PART_REPLACED})
    oldest_ms = max((row.time_ns / 1e6 - begun[row.number] for row in replaced), default=0.0)
    completed = int((table.status == "COMPLETED").sum())
    return Cost(completed, len(table) - completed, oldest_ms, max(retained(result).values(), default=0))


def retained(result: Result) -> Mapping[int, int]:
    """Return the bytes of all state files at the end of each completed checkpoint."""
    files = result.files
    ends = {row.checkpoint: row.time_ns / 1e6 for row in result.journal.only({EventType.COMPLETED})}
    return {
        number: int(
            files[(files.created_by <= number) & ((files.deleted < 0) | (files.deleted > at_ms + _DELETED_MS))][
                "size"
            ].sum()
        )
        for number, at_ms in ends.items()
    }


_DELETED_MS = 200.0
"""Files of a subsumed checkpoint are deleted by then."""


def replayed(scenario: Scenario, subtask: int, at_ns: int) -> int:
    """Return the records that a region processes again if its task fails."""
    fault = Fault(Kill("count", subtask), When((at_ns,)))
    rows = simulate(replace(scenario, faults=(*scenario.faults, fault)), check=False).recoveries
    return int(rows.iloc[0]["replayed_records"])


def slow_node_rows(at_ns: int = 175_000_000_000) -> dict[str, list[str]]:
    """Return {setting: cells of the table} of `slow-node.yaml`, with failures at `at_ns`."""
    found = {}
    for scenario in load(SCENARIOS / "slow-node.yaml").scenarios:
        costs = cost(simulate(scenario, check=False))
        on = scenario.checkpoint.region.enabled
        found["regional" if on else "global"] = [
            f"{costs.completed} of {costs.completed + costs.failed}",
            ms_text(costs.oldest_ms) if on else MISSING,
            *(count_text(replayed(scenario, subtask, at_ns)) for subtask in (SLOW, HEALTHY)),
            bytes_text(costs.retained_bytes),
        ]
    return found


def failure_rows() -> dict[str, list[int]]:
    """Return {fault: completed checkpoints without and with regions}."""
    found = {}
    for name, changes in FAILURES.items():
        overrides = [_NOT_SLOW, *changes] if changes else []
        scenarios = load(SCENARIOS / "slow-node.yaml", overrides).scenarios
        found[name] = [cost(simulate(scenario, check=False)).completed for scenario in scenarios]
    return found


def main() -> None:
    """Print the tables of the page."""
    head = ["checkpoints", "completed", "oldest part", "replay, slow node", "replay, another", "retained at most"]
    print_table(head, [[name, *cells] for name, cells in slow_node_rows().items()])
    print()
    print_table(["fault", "global", "regional"], [[name, *cells] for name, cells in failure_rows().items()])
    print()
    result = simulate(load(SCENARIOS / "f09-chains.yaml").scenarios[0], check=False)
    print_table(["checkpoint", "retained"], [[number, bytes_text(size)] for number, size in retained(result).items()])


if __name__ == "__main__":
    main()
