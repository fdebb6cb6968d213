"""Scenarios -> cells: single runs, named by content.  Replications get their own seeds, baselines have no checkpoints."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace

from sim.model.checkpoint import CheckpointOptions
from sim.model.cluster import Storage
from sim.model.directories import Directories
from sim.model.faults import Fault, JobManagerDown, Kill, NetworkOutage, TaskManagerLost
from sim.model.instances import Instances
from sim.model.scenario import Overheads, Scenario
from sim.runtime.run.manifest import identity


@dataclass(frozen=True, slots=True)
class Cell:
    """A single run.  The same id gives the same outcome on any engine, process or cluster, under any name."""

    scenario: Scenario  # run.replications is 1
    id: str  # hash of effective scenario, seed and code version
    replication: int = 0

    @property
    def is_baseline(self) -> bool:
        return self.scenario.checkpoint.interval_ns is None


def cells(scenarios: Iterable[Scenario]) -> list[Cell]:
    """All replications of all scenarios, in the given order; equal runs share an id."""
    return [Cell(single, identity(single), k) for scenario in scenarios for k, single in enumerate(replicated(scenario))]


def distinct(planned: Iterable[Cell]) -> list[Cell]:
    """A cell per run, the first."""
    runs: dict[str, Cell] = {}
    for cell in planned:
        runs.setdefault(cell.id, cell)
    return list(runs.values())


def replicated(scenario: Scenario) -> list[Scenario]:
    """A scenario per replication; strategies that share a seed meet the same workload in each."""
    seeds = (_seed(scenario.run.seed, k) for k in range(scenario.run.replications))
    return [replace(scenario, run=replace(scenario.run, seed=seed, replications=1)) for seed in seeds]


def baseline(scenario: Scenario) -> Scenario:
    """The same job and workload without checkpoints, shared by all strategies of a workload."""
    return replace(
        scenario,
        checkpoint=CheckpointOptions(interval_ns=None),
        storage=Storage(),  # nothing is written
        overheads=Overheads(),
        actions=tuple(action for action in scenario.actions if action.stop is not None),  # savepoints cost time, too
        instances=Instances(),
        directories=Directories(),
        expect=(),
        axes=(),
    )


def with_baselines(planned: Iterable[Cell]) -> list[Cell]:
    """The plan with each cell's baseline before the first cell that is compared with it.

    A job that is sure to fail has no baseline: without checkpoints it would read everything again, and that would count as throughput.
    """
    planned = list(planned)
    own = {cell.id for cell in planned if cell.is_baseline}
    together: dict[str, Cell] = {}
    for i, cell in enumerate(planned):
        bare = baseline(cell.scenario)
        name = identity(bare)
        if name not in own and not _sure_to_fail(cell.scenario):
            together.setdefault(name, Cell(bare, name, cell.replication))
        together[f"{cell.id} {i}"] = cell
    return list(together.values())


def _sure_to_fail(scenario: Scenario) -> bool:
    def fatal(fault: Fault) -> bool:
        if isinstance(fault.what, NetworkOutage):
            return fault.what.lasts_ns >= scenario.restart.heartbeat_timeout_ns
        return isinstance(fault.what, Kill | TaskManagerLost | JobManagerDown)

    return any(at_ns < scenario.run.duration_ns for fault in scenario.faults if fatal(fault) for at_ns in fault.when.at_ns)


def _seed(seed: int, replication: int) -> int:
    """The seed of a replication.  Replication 0 keeps the seed; others are hashed, as seed + k of one study may be the seed of the next."""
    if replication == 0:
        return seed
    return int.from_bytes(hashlib.blake2b(repr((seed, "replication", replication)).encode(), digest_size=4).digest(), "little") >> 1
