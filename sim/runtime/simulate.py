"""`simulate`: one scenario in, one result out."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sim.metrics.commits import commits_table
from sim.metrics.files import files_table, restores_table, snapshots_table
from sim.metrics.recoveries import recoveries_table
from sim.metrics.tables import checkpoints_table, series_table, subtasks_table, tasks_table
from sim.runtime.manifest import manifest
from sim.runtime.result import Result
from sim.runtime.sampling import Sampler
from sim.runtime.snapshot_files import snapshot_rows
from sim.runtime.world import World

if TYPE_CHECKING:
    from sim.model.scenario import Scenario
    from sim.plane import Engine

__all__ = ["ENGINES", "simulate"]

ENGINES: tuple[Engine, ...] = ("compiled", "interpreted", "reference")

_COLLECT_AFTER = 50_000
"""Allocations between two young collections: machines make short-lived values by the thousand, none of them cyclic."""


def simulate(
    scenario: Scenario, *, engine: Engine = "compiled", progress: Callable[[int], None] | None = None, check: bool = True
) -> Result:
    """Run a scenario for `run.duration` and tabulate what happened.

    `engine` chooses how the data plane is executed; the result is the same to the byte.  `progress` is called with the
    simulated time [ns] once per simulated second.  `check`: whether the run is watched for violations of what checkpoints promise.
    ValueError: unknown engine.
    """
    if engine not in ENGINES:
        raise ValueError(f"unknown engine {engine!r}: one of {', '.join(ENGINES)}")
    world = World(scenario, engine, check=check)
    sampler = Sampler(world, progress)
    world.start()
    with _few_collections():
        world.env.run(until=world.env.timeout(scenario.run.duration_ns) | world.failed | world.finished)
    stats = [world.stats[number] for number in sorted(world.stats)]
    return Result(
        scenario=scenario,
        checkpoints=checkpoints_table(stats),
        subtasks=subtasks_table(stats, world.names()),
        tasks=tasks_table(world.counters.rows(), world.names()),
        series=series_table(sampler.rows),
        commits=commits_table(world.commits, world.names()),
        recoveries=recoveries_table(world.recovery.stats.values()),
        files=files_table(world.files.file_rows()),
        snapshots=snapshots_table(snapshot_rows(world.files.held(), scenario.directories, world.files.exists)),
        restores=restores_table([]),
        journal=world.journal,
        manifest=manifest(scenario),
        job_status=world.job_status,
        ended_ns=world.env.now,
        violations=() if world.checking is None else world.checking.violations(),
    )


@contextmanager
def _few_collections() -> Iterator[None]:
    """Looking for cycles among values that have none costs up to a quarter of a run."""
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], _COLLECT_AFTER), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
