"""`simulate`: one scenario in, one result out."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from sim.metrics.commits import commits_table
from sim.metrics.files import files_table, restores_table, snapshots_table
from sim.metrics.journal import Journal
from sim.metrics.recoveries import recoveries_table
from sim.metrics.tables import checkpoints_table, series_table, subtasks_table, tasks_table
from sim.runtime.jobmanager.snapshot_files import snapshot_rows
from sim.runtime.observe.paths import Paths
from sim.runtime.observe.sampling import Sampler
from sim.runtime.observe.standstill import standstill
from sim.runtime.run.instances import Chain
from sim.runtime.run.manifest import manifest
from sim.runtime.run.result import Result
from sim.runtime.run.world import World

if TYPE_CHECKING:
    from sim.model.scenario import Scenario
    from sim.plane import Engine
    from sim.runtime.run.beginning import Beginning

__all__ = ["ENGINES", "simulate"]

ENGINES: tuple[Engine, ...] = ("compiled", "interpreted", "reference")

_COLLECT_AFTER = 50_000
"""Allocations between two young collections: machines make short-lived values by the thousand, none of them cyclic."""


def simulate(
    scenario: Scenario, *, engine: Engine = "compiled", progress: Callable[[int], None] | None = None, check: bool = True,
    attach: Callable[[World], None] = lambda _: None,
) -> Result:  # fmt: skip
    """Run a scenario for `run.duration` and tabulate what happened.

    `engine` chooses how the data plane is executed; the result is the same to the byte.  `progress` is called with the
    simulated time [ns] once per simulated second.  `check`: whether the run is watched for violations of what checkpoints promise.
    `attach` is called with each job instance before it runs: whoever looks closer may look at it, and change nothing.
    ValueError: unknown engine.
    """
    if engine not in ENGINES:
        raise ValueError(f"unknown engine {engine!r}: one of {', '.join(ENGINES)}")
    parts: list[_Part] = []

    def build(part: Scenario, beginning: Beginning | None) -> World:
        world = World(part, engine, check=check, beginning=beginning)
        parts.append(_Part(world, Sampler(world.context, world.counters, progress)))
        attach(world)
        return world

    chain = Chain(scenario, build)
    with _few_collections():
        try:
            chain.run()
        except Exception as error:  # of ours: whoever reports it says when it happened
            error.add_note(f"after {parts[-1].world.env.now / 1e9:.6f} s of simulated time" if parts else "before it began")
            raise
        tables = [part.tables() for part in parts]
        violations = tuple(found for part in parts for found in part.world.violations())
    result = Result(
        scenario=scenario,
        **{name: _joined([per_part[name] for per_part in tables]) for name in tables[0]},
        files=files_table(chain.file_rows()),
        snapshots=snapshots_table(snapshot_rows(chain.snapshots(), scenario.directories, chain.exists)),
        restores=restores_table(chain.restore_rows()),
        journal=parts[0].world.journal if len(parts) == 1 else Journal(entry for part in parts for entry in part.world.journal),
        manifest=manifest(scenario),
        job_status=chain.status,
        ended_ns=parts[-1].world.env.now,
        violations=violations,
    )
    for part in parts:
        part.world.dissolve()
    return result


@dataclass(frozen=True, slots=True)
class _Part:
    """One job instance; most runs have one."""

    world: World
    sampler: Sampler

    def tables(self) -> dict[str, pd.DataFrame]:
        world = self.world
        stats = [world.stats[number] for number in sorted(world.stats)]
        for row in (row for row in stats if row.status == "IN_PROGRESS"):
            row.standstill = standstill(world.context, world.tasks)
        return {
            "checkpoints": checkpoints_table(stats),
            "subtasks": subtasks_table(stats, world.names),
            "tasks": tasks_table(world.counters.rows(), world.names),
            "series": series_table(self.sampler.rows),
            "commits": commits_table(world.commits, world.names),
            "recoveries": recoveries_table(world.job.recovery.stats.values()),
            "path": Paths(world.context).table(),
        }


def _joined(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Tables of instances below each other; the last column says which one, as each counts its checkpoints for itself."""
    if len(parts) == 1:
        return parts[0]
    numbered = [part.assign(x_job=number) for number, part in enumerate(parts)]
    return pd.concat([part for part in numbered if len(part)] or numbered[:1], ignore_index=True)


@contextmanager
def _few_collections() -> Iterator[None]:
    """Looking for cycles among values that have none costs up to a quarter of a run."""
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], _COLLECT_AFTER), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
