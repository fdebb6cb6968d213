"""Simulate a scenario: run the instances of its job one after the other, and tabulate the results."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from statistics import fmean
from types import MappingProxyType

import pandas as pd

from sim.model.scenario import Scenario
from sim.model.storage import Directories, StoredSnapshot
from sim.model.units import SECOND, format_duration
from sim.plane import Engine, PlaneFactory
from sim.protocol.messages import SchedulerStopped
from sim.protocol.options import FailureReason
from sim.protocol.snapshot_store import find_unrestorable_snapshots, restorable
from sim.results.columns import Row, frame, ms, span_ms
from sim.results.journal import EventType, Journal
from sim.results.tables import (
    CheckpointStats,
    FileRow,
    checkpoints_table,
    commits_table,
    files_table,
    recoveries_table,
    stopped_with,
    subtasks_table,
    tasks_table,
)
from sim.runtime.host_loop import without_task_managers
from sim.runtime.job_instance import InitialState, JobInstance
from sim.runtime.jobmanager.faults import request
from sim.runtime.jobmanager.restore import move_captured_output_downstream
from sim.runtime.jobmanager.snapshot_files import snapshot_rows
from sim.runtime.plane_spec import hosts
from sim.runtime.redistribution import redistribute, served_before
from sim.runtime.result import NOT_STOPPED, Result, Segment, segments
from sim.runtime.sampling import Paths, Sampler
from sim.runtime.standstill import endless, standstill
from sim.storage.ledger import Name

# ---- Chains of job instances: each instance is restored from a snapshot of an earlier one.
#
# An instance ends as if its cluster was lost or its user stopped it.  Retained checkpoints and savepoints remain.

STOP_AGAIN_NS = 10_000_000_000
"""Time after which a failed stop-with-savepoint is requested again [ns].

The Flink Kubernetes Operator checks an upgrade in progress at this interval
(`kubernetes.operator.observer.progress-check.interval`)."""


class NoSnapshotToStartFrom(Exception):  # a phrase, so without the suffix "Error"
    """Raised if there is no snapshot that the next job instance can be restored from.  The message gives the reason."""


class Chain:
    """The job instances of a run in order of time, with a sampler for each.

    With `check`, runs are checked for violations of invariants.  `progress` is called with the simulated time [ns] once per
    simulated second, `attach` with each instance before it runs.  `series` are the columns of the table `series` to
    record; None means all.
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
        """Run all instances.  Stop early at an instance that leaves no snapshot for the next one; `stopped` has the reason."""
        parts, beginning = segments(self.scenario), None
        for number, segment in enumerate(parts):  # `parts` grows when the scheduler rescales the job
            instance = self.instance(segment.scenario, beginning)
            self.instances.append(instance)
            self.samplers.append(Sampler(instance.context, self.progress, self.series))
            self.attach(instance)
            instance.start()
            self._run(instance, segment)
            if self._is_over(instance):
                return
            if instance.outcome.rescaled.triggered:
                parts.insert(number + 1, self._remaining_segment(segment, instance))
            if number + 1 < len(parts):
                ended = instance.outcome.failed.triggered or (
                    instance.outcome.finished.triggered and not stopped_with(instance.stats)
                )
                if (segment.kind == "rescale" or instance.outcome.rescaled.triggered) and ended:
                    return  # a job that has failed or finished is not rescaled
                if instance.env.now >= self.scenario.run.duration_ns:
                    if segment.stop is not None and not stopped_with(instance.stats):
                        since = format_duration(segment.stop.at_ns)
                        self.stopped = f"FAILED: job {number + 1} cannot start: the savepoint of {since} that job {number} {NOT_STOPPED}"
                    elif (
                        instance.job.recovery.election is not None and segment.until_ns < self.scenario.run.duration_ns
                    ):
                        since = format_duration(segment.until_ns)
                        self.stopped = f"FAILED: job {number + 1} cannot start: since {since} there has been no JobManager to rescale it"
                    return
                try:
                    beginning = self._prepare_next_instance(instance, parts[number + 1])
                except NoSnapshotToStartFrom as reason:
                    self.stopped = f"FAILED: job {number + 1} cannot start: {reason}"
                    return

    def _remaining_segment(self, segment: Segment, instance: JobInstance) -> Segment:
        """Return the rest of a segment, without the TaskManagers that are missing (`Outcome.rescale`).

        It is still the same job, which owns its checkpoints, but not a snapshot that it began from without claiming it.
        """
        missing = instance.outcome.missing
        fewer = (
            without_task_managers(self.scenario, hosts(self.scenario), missing) or self.scenario
        )  # the job is unchanged if it cannot be rescaled
        actions = tuple(action for action in segment.scenario.actions if action.at_ns >= instance.env.now)
        store, claim = instance.job.files.store, segment.scenario.instances.claim
        is_own = store.unclaimed is None or store.unclaimed.checkpoint != max(store.retained)
        instances = replace(segment.scenario.instances, claim="claim" if is_own and claim != "legacy" else claim)
        scenario = replace(segment.scenario, job=fewer.job, cluster=fewer.cluster, actions=actions, instances=instances)
        return segment._replace(scenario=scenario, start_from="checkpoint", kind="rescale")

    def instance(self, scenario: Scenario, beginning: InitialState | None) -> JobInstance:
        """Create a job instance, restored from `beginning`; None for the first instance."""
        return JobInstance(scenario, self.engine, check=self.check, beginning=beginning)

    @property
    def status(self) -> str:
        """The status of the last instance, or the reason why the next one could not start."""
        last = self.instances[-1]
        return (
            self.stopped
            or (last.job_status == "RUNNING" and endless(last.context, last.job.recovery.stats.values()))
            or last.job_status
        )

    def snapshots(self) -> tuple[StoredSnapshot, ...]:
        """Return the snapshots that exist at the end of the run, oldest first.

        A snapshot restored in claim mode CLAIM belongs to the newer instance, which may have deleted it.
        """
        gone = {
            (instance.beginning.snapshot.instance, instance.beginning.snapshot.checkpoint)
            for instance in self.instances
            if instance.beginning is not None
            and instance.beginning.claim == "claim"
            and instance.beginning.snapshot.checkpoint not in instance.job.files.store.retained
        }
        kept = (snapshot for instance in self.instances for snapshot in instance.job.files.kept_here())
        return tuple(snapshot for snapshot in kept if (snapshot.instance, snapshot.checkpoint) not in gone)

    def file_rows(self) -> list[FileRow]:
        """Return one row per file, from the newest instance that used the file.  Deletions by later instances are included."""
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

    def restore_rows(self) -> list[Row]:
        """Return one row per job that was restored from a snapshot of another job."""
        snapshots, directories = self.snapshots(), self.scenario.directories
        return [
            _restore_row(instance, instance.beginning, snapshots, directories)
            for instance in self.instances
            if instance.beginning is not None and not instance.beginning.is_same_job
        ]

    def _run(self, instance: JobInstance, segment: Segment) -> None:
        """Run an instance to the end of its segment.  Repeat a stop-with-savepoint that failed, e.g. because of a failover."""
        outcome = instance.outcome
        while True:
            # 0 if the previous segment exceeded its time
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
            if segment.stop is not None and not any(map(_is_stopping, instance.stats.values())):
                request(instance.context, instance.job.coordinator, segment.stop)

    def _is_over(self, instance: JobInstance) -> bool:
        """Return whether the run ends here because the job has caught up (`ends_caught_up`)."""
        return self.scenario.run.ends_caught_up and instance.outcome.caught_up.triggered

    def _await_job_manager(self, instance: JobInstance) -> None:
        """Wait until a JobManager is elected, the job ends, or the run is over.

        Only a JobManager can rescale a job; the user's request is repeated until there is one.
        """
        left_ns = self.scenario.run.duration_ns - instance.env.now
        if left_ns > 0 and (election := instance.job.recovery.election) is not None:
            instance.env.run(
                until=instance.env.timeout(left_ns) | election | instance.outcome.failed | instance.outcome.finished
            )

    def _prepare_next_instance(self, instance: JobInstance, segment: Segment) -> InitialState:
        """Cancel the job and return the initial state of the next instance.

        Pending checkpoints are aborted, completed ones are retained.  Raise NoSnapshotToStartFrom if no snapshot can be
        restored.
        """
        if segment.kind == "rescale":
            instance.context.note(EventType.RESCALED)
        instance.job.coordinator.dispatch(
            SchedulerStopped(instance.env.now, FailureReason.CHECKPOINT_COORDINATOR_SHUTDOWN)
        )
        snapshot = self._choose_snapshot(instance, segment.start_from)
        parts, served, names = instance.job.files.parts(snapshot), instance.plane.served(), instance.names
        if segment.scenario.job != instance.scenario.job:
            # redistribute the snapshot from the instance that took it: one in between may have had another parallelism
            taker = self.instances[snapshot.instance]
            parts, names = taker.job.files.parts(snapshot), taker.names
            if segment.scenario.job != taker.scenario.job:
                # output is recovered by its readers, so it is moved to the old ones before it is redistributed
                if segment.scenario.checkpoint.recover_output_on_downstream:
                    parts = move_captured_output_downstream(parts, taker.context.layout)
                parts = redistribute(parts, taker.spec, segment.scenario)
            served = served_before(served, instance.spec, segment.scenario)
        return InitialState(
            len(self.instances),
            instance.env.now,
            snapshot,
            segment.scenario.instances.claim,
            parts,
            names,
            instance.job.files,
            instance.storage,
            instance.output,
            instance.job.faults,
            served,
            segment.kind,
            instance.invariants,
            instance.job.recovery.restart_state() if instance.outcome.rescaled.triggered else None,
        )

    def _choose_snapshot(self, instance: JobInstance, start_from: str) -> StoredSnapshot:
        """Return the latest snapshot of the kind `start_from`, "checkpoint" or "savepoint".

        Without one of its own, an instance passes on the snapshot it was restored from.  Raise NoSnapshotToStartFrom if there
        is none, or if files of the snapshot were not copied.
        """
        chain, directories = self.scenario.instances, self.scenario.directories
        kept = [row for row in instance.job.files.kept_here() if row.is_savepoint == (start_from == "savepoint")]
        kept = [row for row in kept if row.checkpoint in stopped_with(instance.stats)] or kept
        if not kept:  # none of its own: use the one it was restored from, if it is still retained
            kept = [
                row
                for row in instance.job.files.store.retained.values()
                if row.instance != instance.job.files.store.instance
            ]
        if not kept:
            raise NoSnapshotToStartFrom(f"no {start_from} of job {len(self.instances) - 1} was completed")
        snapshot = kept[-1]
        if chain.copied == "nothing":
            return snapshot
        directory = directories.directory(snapshot)
        copied = {
            "own": directory,
            "job": directory if snapshot.is_savepoint else directories.job_directory(snapshot.instance),
        }.get(chain.copied, directories.savepoints if snapshot.is_savepoint else directories.root)
        if not restorable(snapshot, directories, copied=copied, exists=instance.job.files.exists):
            raise NoSnapshotToStartFrom(f"{directory} names files that a copy of {copied} does not bring along")
        return snapshot


def _is_stopping(stats: CheckpointStats) -> bool:
    """Return whether a savepoint can still stop the job: it is in progress or completed, and its JobManager knows of it."""
    return stats.stops and stats.status != "FAILED" and not stats.stop_forgotten


def _restore_row(
    instance: JobInstance, begun: InitialState, snapshots: Sequence[StoredSnapshot], directories: Directories
) -> Row:
    """Return the row of a restore, with statistics of the first checkpoint that completed after it, if any."""
    files, first = instance.job.files, instance.job.files.first_completed
    needed = any(
        snapshot.instance >= begun.instance
        for snapshot in find_unrestorable_snapshots(snapshots, directories, begun.snapshot)
    )
    deletable = files.free_ns >= 0 and not needed and begun.claim != "claim"
    row = {
        "job": begun.instance,
        "claim": begun.claim,
        "restored_job": begun.snapshot.instance,
        "restored_id": begun.snapshot.checkpoint,
        "restored_type": begun.snapshot.type,
        "begun": ms(begun.at_ns),
        "first_id": first or -1,
        "first_type": files.type_of(first) if first else "",
        "first_checkpointed_size": 0,
        "first_duration": -1.0,
        "bytes_reuploaded_first_full": 0,
        "first_full_duration": -1.0,
        "time_until_old_snapshot_deletable": span_ms(begun.at_ns, files.free_ns),
        "deletable": deletable,
    }
    if first:
        stats = instance.stats[first]
        written = sum(part.written_bytes + part.persisted_bytes for part in stats.subtasks.values())
        duration = span_ms(stats.trigger_ns, stats.latest_ack_ns)
        row |= {"first_checkpointed_size": written, "first_duration": duration}
        if row["first_type"] == "full":
            row |= {"bytes_reuploaded_first_full": written, "first_full_duration": duration}
    return row


# ---- `simulate` returns the result of a scenario.

_ALLOCATIONS_PER_COLLECTION = 50_000
"""Allocations between two collections of the youngest generation.  State machines create many short-lived values without cycles."""


def simulate(
    scenario: Scenario,
    *,
    engine: Engine | PlaneFactory = "compiled",
    progress: Callable[[int], None] | None = None,
    check: bool = True,
    attach: Callable[[JobInstance], None] = lambda _: None,
    only: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> Result:
    """Run a scenario for `run.duration` and return its result.

    `engine`: how the data plane is executed; results are identical to the byte.
    `progress`: called with the simulated time [ns] once per simulated second.
    `check`: whether the run is checked for violations of the guarantees of checkpoints.
    `attach`: called with each job instance before it runs.  It may add observers, which must not change the instance.
    `only`: columns to compute, by table.  Tables not named are complete; a table without columns has no rows either.

    Raise ValueError if the engine is unknown.
    """
    chain = Chain(scenario, engine, check=check, progress=progress, attach=attach, series=only.get("series"))
    with _few_collections():
        try:
            chain.run()
        except Exception as error:  # a bug in ckptsim: add the simulated time to the report
            error.add_note(
                f"after {chain.instances[-1].env.now / 1e9:.6f} s of simulated time"
                if chain.instances
                else "before it began"
            )
            raise
        tables = [
            _tables(instance, sampler, only) for instance, sampler in zip(chain.instances, chain.samplers, strict=True)
        ]
        violations = tuple(violation for instance in chain.instances for violation in instance.violations())
        repetitions = tuple(repetition for instance in chain.instances for repetition in instance.repetitions())
    journals = [instance.journal for instance in chain.instances]
    result = Result(
        scenario=scenario,
        **{name: _joined([of_instance[name] for of_instance in tables]) for name in tables[0]},
        files=files_table(() if only.get("files") == () else chain.file_rows()),
        snapshots=frame(
            "snapshots", snapshot_rows(chain.snapshots(), scenario.directories, chain.instances[-1].job.files.exists)
        ),
        restores=frame("restores", chain.restore_rows()),
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
    """Return the tables of one job instance."""
    stats = [instance.stats[number] for number in sorted(instance.stats)]
    for row in (row for row in stats if row.status == "IN_PROGRESS"):
        row.standstill = standstill(instance.context, instance.tasks)
    rows = instance.plane.tasks()
    rows["served"] = [instance.plane.counted(task).served for task in instance.context.tasks]  # replayed ones again
    return {
        "checkpoints": checkpoints_table(stats),
        "subtasks": subtasks_table(stats, instance.names, only.get("subtasks")),
        "tasks": tasks_table(
            rows,
            instance.names,
            [host.ending.machine.final for host in instance.tasks],
            instance.tasks.core_slowdowns(),
            _materialized_per_hour(instance),
        ),
        "series": sampler.frame(),
        "commits": commits_table(instance.commits, instance.names),
        "recoveries": recoveries_table(instance.job.recovery.stats.values()),
        "path": Paths(instance.context).table(only.get("path")),
        "requests": frame("requests", map(asdict, getattr(instance.storage.medium, "requests", ()))),
    }


def _materialized_per_hour(instance: JobInstance) -> dict[str, float]:
    """Return the bytes that materializations of a changelog write per hour and subtask, by vertex.

    The first one of a subtask with files is left out: it writes state that the job wrote before the run.
    """
    rates = {}
    for vertex, state in ((vertex.name, vertex.state) for vertex in instance.context.scenario.job.vertices):
        if state is None or state.changelog is None or state.changelog.reports_materialized:
            continue
        # (beginning of the names of a materialization's files, restarts, after which names come again) -> bytes
        sizes, seen = Counter[tuple[Name, int]](), Counter[Name]()
        for file in instance.storage.files:
            if file.complete and file.name[:2] == ("materialized", vertex):
                sizes[file.name[:4], seen[file.name]] += file.size_bytes
                seen[file.name] += 1
        counted = [size for (name, again), size in sizes.items() if name[3] != 1 or again or not state.kind.keeps_files]
        if counted:
            rates[vertex] = fmean(counted) * 3600 * SECOND / state.changelog.materialize_ns
    return rates


def _joined(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Concatenate the tables of job instances.

    If there are several, a column `x_job` has the number of the instance, because each counts its checkpoints from 1.
    """
    if len(parts) == 1:
        return parts[0]
    numbered = [part.assign(x_job=number) for number, part in enumerate(parts)]
    return pd.concat([part for part in numbered if len(part)] or numbered[:1], ignore_index=True)


@contextmanager
def _few_collections() -> Iterator[None]:
    """Make garbage collections rare: the search for cycles takes up to a quarter of a run, and there are hardly any."""
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], _ALLOCATIONS_PER_COLLECTION), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
