"""One job instance: its plane, clock, tasks and JobManager."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from sim.model.scenario import Scenario
from sim.model.storage import ClaimMode, StoredSnapshot
from sim.plane import Engine, PlaneFactory, build
from sim.protocol.options import forced_aligned_edges
from sim.results.violations import Violation
from sim.runtime.clock import TwoPlaneEnvironment
from sim.runtime.context import Checks, CommittedOutput, Contents, Context, Origin, Outcome, TaskSnapshot
from sim.runtime.host_loop import Speed
from sim.runtime.invariants.registry import Invariants
from sim.runtime.jobmanager.coordinator_host import (
    CoordinatorHost,
    JobEnd,
    RegionalContents,
    RegionalCoordinatorHost,
    report_backlogs,
)
from sim.runtime.jobmanager.faults import Faults, schedule
from sim.runtime.jobmanager.recovery_host import RecoveryHost, RestartState
from sim.runtime.jobmanager.restore import RestoreContext
from sim.runtime.jobmanager.snapshot_files import SnapshotFiles
from sim.runtime.jobmanager.task_managers import Reachability, TaskManagers, WarmUp
from sim.runtime.plane_spec import hosts, plane_spec, service_factors
from sim.runtime.sampling import NormalBacklog
from sim.runtime.task.host import TaskHost
from sim.runtime.task.tasks import Tasks
from sim.storage.filesystem import CheckpointStorage

# ---- The JobManager: creates its components, and passes the calls of tasks to them.


class JobManager:
    """The JobManager of one job instance.  `before` are the faults of the previous job instance, or None for the first one."""

    def __init__(self, context: Context, tasks: Tasks, checks: Checks, before: Faults | None) -> None:
        reachability = Reachability(context)
        self.files = SnapshotFiles(context)
        self.job_end = JobEnd(context)
        is_regional = context.scenario.checkpoint.region.enabled
        host = RegionalCoordinatorHost if is_regional else CoordinatorHost
        self.coordinator = host(context, tasks, self.files, self.job_end, reachability, checks)
        self.warm_up = WarmUp(context)
        self.task_managers = TaskManagers(context)
        usual = NormalBacklog(context, lambda: {host.task for host in tasks if host.stopped} <= self.job_end.finished)
        cluster = RestoreContext(
            context, self.files, tasks, self.job_end, self.warm_up, self.task_managers, usual, checks
        )
        self.recovery = RecoveryHost(cluster, self.coordinator)
        # what tasks call goes to the component that handles it
        self.message, self.decline = self.coordinator.message, self.coordinator.decline
        self.acknowledge, self.rule = self.coordinator.acknowledge, self.job_end.rule
        self.abandon, self.task_runs = self.files.abandon, self.recovery.task_runs
        self.finished_in, self.data_ended = self.job_end.finished_in, self.job_end.data_ended
        self.task_finished = self.job_end.task_finished
        self.faults = Faults(context, tasks, self.recovery, reachability, before)

    def fail_task(self, task: int, reason: str) -> None:
        """Fail a task with an exception."""
        self.recovery.fail_tasks([task], reason)


# ---- The start of a later job instance: a snapshot and the files of the previous instance.


@dataclass(frozen=True, slots=True)
class InitialState:
    """The snapshot that a later job instance is restored from, and the state of the previous instance that it continues with."""

    instance: int
    at_ns: int
    snapshot: StoredSnapshot
    claim: ClaimMode
    parts: Mapping[int, TaskSnapshot]  # snapshots of the tasks of the new instance, by task
    # (vertex, subtask index) of the tasks that wrote the uncommitted transactions in `parts`
    names: Sequence[tuple[str, int]]
    files: SnapshotFiles  # of the previous instance
    storage: CheckpointStorage  # of the previous instance
    output: CommittedOutput  # committed so far
    faults: Faults  # of the previous instance
    served: np.ndarray  # records served at the end of the previous instance, by task of the new one
    kind: Literal["instance", "rescale"] = "instance"
    invariants: Invariants | None = None  # of the previous instance, if invariants are checked
    restarts: RestartState | None = None  # of the previous instance, if the JobMaster is the same

    @property
    def is_same_job(self) -> bool:
        """Whether the adaptive scheduler rescaled a running job, which still owns its checkpoints and needs no claim mode."""
        return self.restarts is not None

    @property
    def description(self) -> str:
        """Description of the snapshot, for the restart with which the instance starts."""
        if self.is_same_job:
            return f"rescaled by the adaptive scheduler, from checkpoint {self.snapshot.checkpoint}"
        return f"job {self.instance} begins from {self.snapshot.type} {self.snapshot.checkpoint} of job {self.snapshot.instance}"

    @property
    def origin(self) -> Origin:
        return Origin(self.instance, self.at_ns, self.snapshot.checkpoint, self.served)


# ---- The wiring of one job instance.  Only this module knows the classes that implement the ports.


class JobInstance:
    """A job instance with its plane, its clock, its tasks and its JobManager.  `simulate` runs it."""

    def __init__(
        self,
        scenario: Scenario,
        engine: Engine | PlaneFactory,
        *,
        digests: bool = False,
        check: bool = True,
        beginning: InitialState | None = None,
    ) -> None:
        begin_ns = 0 if beginning is None else beginning.at_ns
        self.beginning = beginning  # None: the first instance of the job
        self.scenario = scenario
        self.spec = plane_spec(scenario, digests=digests, begin_ns=begin_ns)
        self.plane = build(self.spec, engine)
        self.layout = self.plane.layout
        self.env = TwoPlaneEnvironment(self.plane, lambda notice: self.tasks[notice.task].on_notice(notice), begin_ns)
        self.context = self._context()
        self.names, self.storage = self.context.names, self.context.storage
        self.journal, self.stats, self.commits = self.context.journal, self.context.stats, self.context.commits
        self.contents, self.output, self.outcome = self.context.contents, self.context.output, self.context.outcome
        for task, factor in service_factors(scenario.job).items():
            self.context.speed.set_factor(task, "subtask", factor)
        self.tasks = Tasks(self.context)
        self.invariants: Invariants | None = None
        if check:
            self.invariants = Invariants(self.context, self.tasks)
            self.contents.on_cut = self.invariants.cut
        checks = self.invariants or Checks()
        earlier_faults = None if beginning is None else beginning.faults
        self.job = JobManager(self.context, self.tasks, checks, earlier_faults)
        self.tasks.deploy(self.job, self.job.files.channel_state, checks)
        if beginning is not None:
            self._take_over(beginning)

    @property
    def job_status(self) -> str:
        return self.outcome.status

    def start(self) -> None:
        """Start all tasks and periodic checkpoints."""
        schedule(self.context, self.job.coordinator)
        report_backlogs(self.context, self.job.coordinator)
        if self.beginning is not None:
            self._share_cores()
            self.job.recovery.begin(self.beginning.kind, self.beginning.description, self.beginning.restarts)
            return
        hosts = list(self.tasks)
        if (start_ns := self.scenario.run.cold_start_ns) == 0:
            self._run_tasks(hosts)
            return
        for task in range(len(hosts)):
            self.plane.hold(task)
        self.env.call_in(start_ns, lambda: self._run_cold(hosts))

    def _run_tasks(self, hosts: Sequence[TaskHost]) -> None:
        """Start the tasks, and then the checkpoint coordinator."""
        self._share_cores()
        for host in hosts:
            host.begin()
        self.job.coordinator.start()

    def _share_cores(self) -> None:
        for contention in self.tasks.contentions:
            contention.start()

    def _run_cold(self, hosts: Sequence[TaskHost]) -> None:
        """End the cold start, unless a failure during it has restarted tasks."""
        if list(self.tasks) != hosts or any(host.stopped for host in hosts):
            return
        for host in hosts:
            self.plane.release(host.task)
            self.job.warm_up.begin(host.task)
        self._run_tasks(hosts)

    def violations(self) -> tuple[Violation, ...]:
        """Return all violations of invariants.  To be called at the end."""
        if self.invariants is None:
            return ()
        finished = self.outcome.status == "FINISHED"
        return self.invariants.violations(self.job.coordinator.machine, self.job.files.kept(), finished=finished)

    def repetitions(self) -> tuple[Violation, ...]:
        """Return the permitted duplicates of at-least-once checkpoints."""
        return () if self.invariants is None else tuple(self.invariants.cuts.repetitions)

    def close(self) -> None:
        """Release the arrays of the data plane at once, without waiting for the cycle collector."""
        vars(self.plane).clear()

    def _context(self) -> Context:
        vertices = self.scenario.job.vertices
        names = [(vertices[v].name, i) for v, i in zip(self.layout.vertex, self.layout.subtask, strict=True)]
        storage = CheckpointStorage(
            self.env, self.scenario.storage, self.scenario.run.seed, self.scenario.overheads.file_ns
        )
        origin = None if self.beginning is None else self.beginning.origin
        return Context(
            self.scenario,
            self.spec,
            self.layout,
            self.plane,
            self.env,
            storage,
            hosts(self.scenario),
            names,
            (RegionalContents if self.scenario.checkpoint.region.enabled else Contents)(self.plane),
            CommittedOutput(storage, names),
            Outcome(self.env),
            Speed(self.plane),
            _forced_edges(self.scenario),
            origin,
        )

    def _take_over(self, beginning: InitialState) -> None:
        """Take over the snapshot as the latest completed one, and the committed output of the previous instance."""
        number = beginning.snapshot.checkpoint
        names = beginning.names, self.names
        for task, part in beginning.parts.items():
            self.contents.take_over(number, task, part, *names)
        self.storage.continue_from(beginning.storage)
        self.output.continue_from(
            beginning.output, number, {task: list(part.written) for task, part in beginning.parts.items()}
        )
        self.job.files.take_over(beginning.files, beginning.snapshot, beginning.claim)
        if self.invariants is not None and beginning.invariants is not None:
            self.invariants.continue_from(beginning.invariants, number)


def _forced_edges(scenario: Scenario) -> frozenset[int]:
    """Return the numbers of the forced aligned edges."""
    forced = forced_aligned_edges(scenario.job, scenario.checkpoint.forced_aligned, scenario.cluster.version)
    return frozenset(e for e, edge in enumerate(scenario.job.edges) if edge in forced)
