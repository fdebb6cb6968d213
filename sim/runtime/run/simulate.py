"""`simulate`: one scenario in, one result out."""

from __future__ import annotations

import gc
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from types import MappingProxyType

import pandas as pd

from sim.metrics.commits import commits_table
from sim.metrics.files import files_table, requests_table, restores_table, snapshots_table
from sim.metrics.journal import Journal
from sim.metrics.recoveries import recoveries_table
from sim.metrics.tables import checkpoints_table, subtasks_table, tasks_table
from sim.model.scenario import Scenario
from sim.plane import Engine, PlaneFactory
from sim.runtime.jobmanager.snapshot_files import snapshot_rows
from sim.runtime.observe.paths import Paths
from sim.runtime.observe.sampling import Sampler
from sim.runtime.observe.standstill import standstill
from sim.runtime.run.instances import Chain
from sim.runtime.run.job_instance import JobInstance
from sim.runtime.run.result import Result

_COLLECT_AFTER = 50_000
"""Allocations between two young collections: machines make short-lived values by the thousand, none of them cyclic."""


def simulate(
    scenario: Scenario, *, engine: Engine | PlaneFactory = "compiled", progress: Callable[[int], None] | None = None, check: bool = True,
    attach: Callable[[JobInstance], None] = lambda _: None, only: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> Result:  # fmt: skip
    """Run a scenario for `run.duration` and tabulate what happened.

    `engine` chooses how the data plane is executed; the result is the same to the byte.  `progress` is called with the
    simulated time [ns] once per simulated second.  `check`: whether the run is watched for violations of what checkpoints promise.
    `attach` is called with each job instance before it runs.  An observer may look at it, and change nothing.
    `only`: of these tables these columns alone are asked for; of a table without columns not even rows are kept.
    ValueError: unknown engine.
    """
    chain = Chain(scenario, engine, check=check, progress=progress, attach=attach, series=only.get("series"))
    with _few_collections():
        try:
            chain.run()
        except Exception as error:  # an error of ckptsim: its report gives the simulated time
            error.add_note(f"after {chain.instances[-1].env.now / 1e9:.6f} s of simulated time" if chain.instances else "before it began")
            raise
        tables = [_tables(instance, sampler, only) for instance, sampler in zip(chain.instances, chain.samplers, strict=True)]
        violations = tuple(found for instance in chain.instances for found in instance.violations())
        repetitions = tuple(found for instance in chain.instances for found in instance.repetitions())
    journals = [instance.journal for instance in chain.instances]
    result = Result(
        scenario=scenario,
        **{name: _joined([of_instance[name] for of_instance in tables]) for name in tables[0]},
        files=files_table(() if only.get("files") == () else chain.file_rows()),
        snapshots=snapshots_table(snapshot_rows(chain.snapshots(), scenario.directories, chain.exists)),
        restores=restores_table(chain.restore_rows()),
        journal=journals[0] if len(journals) == 1 else Journal(entry for journal in journals for entry in journal),
        job_status=chain.status,
        ended_ns=chain.instances[-1].env.now,
        violations=violations,
        repetitions=repetitions,
        manifest_read=None,
    )
    for instance in chain.instances:
        instance.dissolve()
    return result


def _tables(instance: JobInstance, sampler: Sampler, only: Mapping[str, Collection[str]]) -> dict[str, pd.DataFrame]:
    """The tables of one job instance; most runs have one."""
    stats = [instance.stats[number] for number in sorted(instance.stats)]
    for row in (row for row in stats if row.status == "IN_PROGRESS"):
        row.standstill = standstill(instance.context, instance.tasks)
    return {
        "checkpoints": checkpoints_table(stats),
        "subtasks": subtasks_table(stats, instance.names, only.get("subtasks")),
        "tasks": tasks_table(instance.counters.rows(), instance.names, [host.ending.machine.final for host in instance.tasks]),
        "series": sampler.frame(),
        "commits": commits_table(instance.commits, instance.names),
        "recoveries": recoveries_table(instance.job.recovery.stats.values()),
        "path": Paths(instance.context).table(only.get("path")),
        "requests": requests_table(map(asdict, getattr(instance.storage.medium, "requests", ()))),
    }


def _joined(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Tables of instances below each other; the last column says which one, as each counts its checkpoints for itself."""
    if len(parts) == 1:
        return parts[0]
    numbered = [part.assign(x_job=number) for number, part in enumerate(parts)]
    return pd.concat([part for part in numbered if len(part)] or numbered[:1], ignore_index=True)


@contextmanager
def _few_collections() -> Iterator[None]:
    """Collect garbage seldom: the search for cycles costs up to a quarter of a run, and its values have none."""
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], _COLLECT_AFTER), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
