"""Simulates a scenario: one instance of its job after the other."""

from __future__ import annotations

import gc
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from types import MappingProxyType

import pandas as pd

from sim.model.scenario import Scenario
from sim.model.storage import Directories, StateFile, StoredSnapshot
from sim.model.units import format_duration
from sim.plane import Engine, PlaneFactory
from sim.protocol.coordinator_messages import SchedulerStopped
from sim.protocol.options import FailureReason
from sim.protocol.snapshot_store import find_unrestorable_snapshots, restorable
from sim.results.journal import Happening, Journal
from sim.results.tables import (
    CheckpointStats,
    FileRow,
    RestoreRow,
    checkpoints_table,
    commits_table,
    files_table,
    recoveries_table,
    requests_table,
    restores_table,
    snapshots_table,
    stopped_with,
    subtasks_table,
    tasks_table,
)
from sim.runtime.host_loop import without_task_managers
from sim.runtime.job_instance import InitialState, JobInstance
from sim.runtime.jobmanager.faults import request
from sim.runtime.jobmanager.restore import on_downstream
from sim.runtime.jobmanager.snapshot_files import snapshot_rows
from sim.runtime.lowering import hosts
from sim.runtime.redistribution import rescaled, served_before
from sim.runtime.result import Result, Segment, segments
from sim.runtime.sampling import Paths, Sampler
from sim.runtime.standstill import endless, standstill

# ---- Chains of job instances: one instance after the other, each beginning from a snapshot of the one before it.
#
# What an instance keeps when it ends is what the cluster's loss, or its user's stop, leaves behind: retained
# checkpoints and savepoints.

STOP_AGAIN_NS = 10_000_000_000
"""After so long a stop that failed is requested again: how often the Flink Kubernetes Operator looks after an upgrade in progress
(`kubernetes.operator.observer.progress-check.interval`)."""


NOT_STOPPED = "stops with was not complete at the end of the run"


class NothingToBeginFrom(Exception):  # a phrase
    """The next job instance cannot start: there is no snapshot.  The message says why."""


class Chain:
    """Job instances in the order of time, one if the scenario has one job instance; each has a sampler.

    `attach` is called with each instance before it runs; `series`: columns of the samples that are asked for, None: all.
    """

    def __init__(
        self,
        scenario: Scenario,
        engine: Engine | PlaneFactory,
        *,
        check: bool,
        progress: Callable[[int], None] | None = None,
        attach: Callable[[JobInstance], None] = lambda _: None,
        series: Collection[str] | None = None,
    ) -> None:
        self.scenario = scenario
        self.engine = engine
        self.check = check
        self.progress = progress
        self.attach = attach
        self.series = series
        self.instances: list[JobInstance] = []
        self.samplers: list[Sampler] = []
        self.stopped: str | None = None  # why the chain ended early

    def run(self) -> None:
        """Run all instances, up to the last one or to one that leaves no snapshot."""
        parts, beginning = segments(self.scenario), None
        for number, segment in enumerate(parts):  # which grows when the scheduler rescales the job
            instance = self.instance(segment.scenario, beginning)
            self.instances.append(instance)
            self.samplers.append(Sampler(instance.context, instance.counters, self.progress, self.series))
            self.attach(instance)
            instance.start()
            self._run(instance, segment)
            if self._is_over(instance):
                return
            if instance.outcome.rescaled.triggered:
                parts.insert(number + 1, self._rest(segment, instance))
            if number + 1 < len(parts):
                ended = instance.outcome.failed.triggered or (
                    instance.outcome.finished.triggered and not stopped_with(instance.stats)
                )
                if (segment.kind == "rescale" or instance.outcome.rescaled.triggered) and ended:
                    return  # a job that has failed, or has come to its end, is not rescaled
                if instance.env.now >= self.scenario.run.duration_ns:
                    if segment.stop is not None and not stopped_with(instance.stats):
                        since = format_duration(segment.stop.at_ns)
                        self.stopped = f"FAILED: job {number + 1} cannot begin: the savepoint of {since} that job {number} {NOT_STOPPED}"
                    elif instance.job.recovery.elected is not None and segment.until_ns < self.scenario.run.duration_ns:
                        since = format_duration(segment.until_ns)
                        self.stopped = f"FAILED: job {number + 1} cannot begin: since {since} there has been no JobManager to rescale it"
                    return
                try:
                    beginning = self._next(instance, parts[number + 1])
                except NothingToBeginFrom as reason:
                    self.stopped = f"FAILED: job {number + 1} cannot begin: {reason}"
                    return

    def _rest(self, segment: Segment, instance: JobInstance) -> Segment:
        """The rest of a segment, on all task managers but those that are missing (`Outcome.rescale`).

        The job stays the same, so that its checkpoints remain its own: as if it claimed the one that it goes on from.
        """
        missing = instance.outcome.missing
        fewer = (
            without_task_managers(self.scenario, hosts(self.scenario), missing) or self.scenario
        )  # only what can be rescaled is
        actions = tuple(action for action in segment.scenario.actions if action.at_ns >= instance.env.now)
        instances = replace(segment.scenario.instances, claim="claim")
        scenario = replace(segment.scenario, job=fewer.job, cluster=fewer.cluster, actions=actions, instances=instances)
        return segment._replace(scenario=scenario, start_from="checkpoint", kind="rescale")

    def instance(self, scenario: Scenario, beginning: InitialState | None) -> JobInstance:
        """Make a job instance.  `beginning`: None for the first."""
        return JobInstance(scenario, self.engine, check=self.check, beginning=beginning)

    @property
    def status(self) -> str:
        """The status of the last job, unless the next one could not begin."""
        last = self.instances[-1]
        return (
            self.stopped
            or (last.job_status == "RUNNING" and endless(last.context, last.job.recovery.stats.values()))
            or last.job_status
        )

    def snapshots(self) -> tuple[StoredSnapshot, ...]:
        """Snapshots that no instance subsumed, oldest first.  What was claimed is the newer job's, to delete as well."""
        gone = {
            (instance.beginning.snapshot.instance, instance.beginning.snapshot.checkpoint)
            for instance in self.instances
            if instance.beginning is not None
            and instance.beginning.claim == "claim"
            and instance.beginning.snapshot.checkpoint not in instance.job.files.store.retained
        }
        kept = (snapshot for instance in self.instances for snapshot in instance.job.files.kept_here())
        return tuple(snapshot for snapshot in kept if (snapshot.instance, snapshot.checkpoint) not in gone)

    def exists(self, file: StateFile) -> bool:
        """At the end."""
        return self.instances[-1].job.files.exists(file)

    def file_rows(self) -> list[FileRow]:
        """The rows of all files, one per file.  The newest instance that named a file decides."""
        needed_by: dict[tuple[int, int], tuple[StoredSnapshot, ...]] = {}
        for snapshot in self.snapshots():
            for file in snapshot.files:
                needed_by[file.key] = (*needed_by.get(file.key, ()), snapshot)
        rows: dict[tuple[int, int], FileRow] = {}
        for instance in self.instances:
            for row in instance.job.files.file_rows():
                before = rows.get(row.file.key)
                named = row if row.last_used >= 0 or before is None else before._replace(deleted_ns=row.deleted_ns)
                rows[row.file.key] = named
        return [row._replace(needed_by=needed_by.get(key, ())) for key, row in rows.items()]

    def restore_rows(self) -> list[RestoreRow]:
        """One per job that began from a snapshot of another."""
        snapshots, directories = self.snapshots(), self.scenario.directories
        return [
            _restore_row(instance, instance.beginning, snapshots, directories)
            for instance in self.instances
            if instance.beginning is not None and not instance.beginning.is_same_job
        ]

    def _run(self, instance: JobInstance, segment: Segment) -> None:
        """Run to the end of the segment.  A stop that did not come to pass, because a task failed meanwhile, is requested again."""
        outcome = instance.outcome
        while True:
            # none, if the segment before it took longer than it was to
            left_ns = max(0, segment.until_ns - instance.env.now)
            wait_ns = (
                left_ns
                if segment.stop is None
                else min(left_ns, max(segment.stop.at_ns - instance.env.now, 0) + STOP_AGAIN_NS)
            )
            ends = instance.env.timeout(wait_ns) | outcome.failed | outcome.finished | outcome.rescaled
            instance.env.run(until=ends | outcome.caught_up if self.scenario.run.ends_caught_up else ends)
            ended = outcome.failed.triggered or outcome.finished.triggered or outcome.rescaled.triggered
            if ended or self._is_over(instance):
                return
            if instance.env.now >= segment.until_ns:
                if segment.kind == "rescale":
                    self._await_job_manager(instance)
                return
            if segment.stop is not None and not any(map(_still_stops, instance.stats.values())):
                request(instance.context, instance.job.coordinator, segment.stop)

    def _is_over(self, instance: JobInstance) -> bool:
        """Whether the scenario asks for no more than it has shown."""
        return self.scenario.run.ends_caught_up and instance.outcome.caught_up.triggered

    def _await_job_manager(self, instance: JobInstance) -> None:
        """Wait for a JobManager, as only it can rescale a job.  The request is repeated until there is one, or the run is over."""
        left_ns = self.scenario.run.duration_ns - instance.env.now
        if left_ns > 0 and (elected := instance.job.recovery.elected) is not None:
            instance.env.run(
                until=instance.env.timeout(left_ns) | elected | instance.outcome.failed | instance.outcome.finished
            )

    def _next(self, instance: JobInstance, segment: Segment) -> InitialState:
        """The job is cancelled: what it was about to do comes to nothing, completed checkpoints are retained."""
        if segment.kind == "rescale":
            instance.context.note(Happening.RESCALED)
        instance.job.coordinator.dispatch(
            SchedulerStopped(instance.env.now, FailureReason.CHECKPOINT_COORDINATOR_SHUTDOWN)
        )
        snapshot = self._chosen(instance, segment.start_from)
        parts, served, names = instance.job.files.parts(snapshot), instance.plane.served(), instance.names
        if segment.scenario.job != instance.scenario.job:
            # the snapshot is dealt out as it was taken, not as a job in between had it
            taker = self.instances[snapshot.instance]
            parts, names = taker.job.files.parts(snapshot), taker.names
            if segment.scenario.job != taker.scenario.job:
                # each new reader reads what its old ones would
                if segment.scenario.checkpoint.recover_output_on_downstream:
                    parts = on_downstream(parts, taker.context.layout)
                parts = rescaled(parts, taker.spec, segment.scenario)
            served = served_before(served, instance.spec, segment.scenario)
        return InitialState(
            len(self.instances),
            instance.env.now,
            snapshot,
            segment.scenario.instances.claim,
            parts,
            names,
            instance.job.files,
            instance.storage.files,
            instance.output,
            instance.job.faults,
            served,
            segment.kind,
            instance.accounts,
            instance.job.recovery.left() if instance.outcome.rescaled.triggered else None,
        )

    def _chosen(self, instance: JobInstance, start_from: str) -> StoredSnapshot:
        """The latest snapshot of the kind asked for, if it can be read."""
        chain, directories = self.scenario.instances, self.scenario.directories
        kept = [row for row in instance.job.files.kept_here() if row.is_savepoint == (start_from == "savepoint")]
        kept = [row for row in kept if row.checkpoint in stopped_with(instance.stats)] or kept
        if not kept:  # nothing of its own: what it began from is there still
            kept = [
                row
                for row in instance.job.files.store.retained.values()
                if row.instance != instance.job.files.store.instance
            ]
        if not kept:
            raise NothingToBeginFrom(f"no {start_from} of job {len(self.instances) - 1} was completed")
        snapshot = kept[-1]
        if chain.copied == "nothing":
            return snapshot
        own = directories.directory(snapshot)
        copied = {
            "own": own,
            "job": own if snapshot.is_savepoint else directories.job_directory(snapshot.instance),
        }.get(chain.copied, directories.savepoints if snapshot.is_savepoint else directories.root)
        if not restorable(snapshot, directories, copied=copied, exists=instance.job.files.exists):
            raise NothingToBeginFrom(f"{own} names files that a copy of {copied} does not bring along")
        return snapshot


def _still_stops(stats: CheckpointStats) -> bool:
    return stats.stops and stats.status != "FAILED" and not stats.stop_forgotten


def _restore_row(
    instance: JobInstance, begun: InitialState, snapshots: Sequence[StoredSnapshot], directories: Directories
) -> RestoreRow:
    files, first = instance.job.files, instance.job.files.first_completed
    needed = any(
        snapshot.instance >= begun.instance
        for snapshot in find_unrestorable_snapshots(snapshots, directories, begun.snapshot)
    )
    row = RestoreRow(
        begun.instance,
        begun.claim,
        begun.snapshot,
        begun.at_ns,
        free_ns=files.free_ns,
        deletable=files.free_ns >= 0 and not needed and begun.claim != "claim",
    )
    if not first:
        return row
    stats = instance.stats[first]
    written = sum(part.written_bytes + part.persisted_bytes for part in stats.subtasks.values())
    duration_ns = stats.latest_ack_ns - stats.trigger_ns
    return row._replace(
        first_id=first,
        first_type=files.type_of(first),
        first_checkpointed_size=written,
        first_duration_ns=duration_ns,
    )


# ---- `simulate`: one scenario in, one result out.

_COLLECT_AFTER = 50_000
"""Allocations between two young collections: machines make short-lived values by the thousand, none of them cyclic."""


def simulate(
    scenario: Scenario,
    *,
    engine: Engine | PlaneFactory = "compiled",
    progress: Callable[[int], None] | None = None,
    check: bool = True,
    attach: Callable[[JobInstance], None] = lambda _: None,
    only: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> Result:
    """Run a scenario for `run.duration` and tabulate what happened.

    `engine` chooses how the data plane is executed; the result is the same to the byte.  `progress` is called with the
    simulated time [ns] once per simulated second.  `check`: whether the run is watched for violations of what
    checkpoints promise.
    `attach` is called with each job instance before it runs.  An observer may look at it, and change nothing.
    `only`: of these tables these columns alone are asked for; of a table without columns not even rows are kept.
    ValueError: unknown engine.
    """
    chain = Chain(scenario, engine, check=check, progress=progress, attach=attach, series=only.get("series"))
    with _few_collections():
        try:
            chain.run()
        except Exception as error:  # an error of ckptsim: its report gives the simulated time
            error.add_note(
                f"after {chain.instances[-1].env.now / 1e9:.6f} s of simulated time"
                if chain.instances
                else "before it began"
            )
            raise
        tables = [
            _tables(instance, sampler, only) for instance, sampler in zip(chain.instances, chain.samplers, strict=True)
        ]
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
        instance.close()
    return result


def _tables(instance: JobInstance, sampler: Sampler, only: Mapping[str, Collection[str]]) -> dict[str, pd.DataFrame]:
    """The tables of one job instance; most runs have one."""
    stats = [instance.stats[number] for number in sorted(instance.stats)]
    for row in (row for row in stats if row.status == "IN_PROGRESS"):
        row.standstill = standstill(instance.context, instance.tasks)
    return {
        "checkpoints": checkpoints_table(stats),
        "subtasks": subtasks_table(stats, instance.names, only.get("subtasks")),
        "tasks": tasks_table(
            instance.counters.rows(), instance.names, [host.ending.machine.final for host in instance.tasks]
        ),
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
