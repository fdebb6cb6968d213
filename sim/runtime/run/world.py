"""One run being simulated: the plane, the clock, the hosts, and what they note down."""

from __future__ import annotations

from collections import defaultdict

from sim.metrics.commits import CommitStats
from sim.metrics.journal import Journal
from sim.metrics.stats import CheckpointStats
from sim.model.random import draw, stream
from sim.model.scenario import Scenario
from sim.plane import Engine, build
from sim.plane.seam.interface import Notice
from sim.plane.seam.layout import layout
from sim.protocol.coordinator import Coordinator
from sim.protocol.finishing import FINISHING
from sim.protocol.forced import forced_aligned_edges
from sim.protocol.phases import async_operate
from sim.protocol.strategies import strategy
from sim.protocol.task import TaskCheckpointing
from sim.protocol.timer import first_trigger_delay
from sim.protocol.vocabulary import Plan
from sim.runtime.barriers_in_transit import BarriersInTransit
from sim.runtime.clock import TwoPlaneEnvironment
from sim.runtime.contents import Contents
from sim.runtime.counters import Counters
from sim.runtime.jobmanager.actions import schedule
from sim.runtime.jobmanager.coordinator_host import CoordinatorHost
from sim.runtime.jobmanager.faults import Faults
from sim.runtime.jobmanager.job_end import JobEnd
from sim.runtime.jobmanager.outside import Outside
from sim.runtime.jobmanager.recovery_host import RecoveryHost
from sim.runtime.jobmanager.snapshot_files import SnapshotFiles
from sim.runtime.jobmanager.warm_up import WarmUp
from sim.runtime.observe.checking import Checking
from sim.runtime.run.beginning import Beginning
from sim.runtime.setup.lowering import hosts, plane_spec
from sim.runtime.speed import Speed
from sim.runtime.task.channel_state import ChannelStateWriter
from sim.runtime.task.host import TaskHost
from sim.runtime.task.in_flight import InFlightData
from sim.runtime.task.log_uploads import LogUploads
from sim.runtime.task.staging import StagingSpace
from sim.runtime.task.state_snapshot import SubtaskState
from sim.state.compaction import CompactionThread
from sim.storage.filesystem import CheckpointStorage

__all__ = ["World"]


class World:
    """Built from a scenario; `simulate` runs it."""

    def __init__(
        self, scenario: Scenario, engine: Engine, *,
        digests: bool = False, check: bool = True, record_cuts: bool = False, beginning: Beginning | None = None,
    ) -> None:  # fmt: skip
        begin_ns = 0 if beginning is None else beginning.at_ns
        spec = plane_spec(scenario, digests=digests, begin_ns=begin_ns)
        self.beginning = beginning  # None: the job's first instance, which begins with nothing
        self.scenario = scenario
        self.spec = spec
        self.hosts = hosts(scenario)  # task manager of each task
        self.layout = layout(spec)
        self.plane = build(spec, engine)
        self.env = TwoPlaneEnvironment(self.plane, self._on_notice, begin_ns)
        self.storage = CheckpointStorage(self.env, scenario.storage, scenario.run.seed, scenario.overheads.file_ns)
        self.files = SnapshotFiles(self)
        self.journal = Journal()
        self.stats: dict[int, CheckpointStats] = {}
        self.commits: list[CommitStats] = []
        self.outside = Outside(self.storage, self.names())
        self.staging: dict[int, StagingSpace] = {}  # by task manager
        self.log_uploads: dict[int, LogUploads] = {}  # likewise
        self.compaction = defaultdict[int, CompactionThread](CompactionThread)  # likewise
        self.transit = BarriersInTransit()
        self.failed = self.env.event()
        self.finished = self.env.event()
        self.job_end = JobEnd(self, FINISHING[scenario.checkpoint.finish])
        self.job_status = "RUNNING"
        self.checking = Checking(self, keep_cuts=record_cuts) if check or record_cuts else None
        self._forced = self._forced_edges()
        self.contents = Contents(self.plane)
        self._writers = self._channel_state_writers()
        if self.checking is not None:
            self.contents.on_cut = self.checking.accounts.cut
        self.speed = Speed(self.plane)
        self.warm_up = WarmUp(self.env, scenario.restart, self.speed)
        self.counters = Counters(self.plane, len(self.layout.vertex))
        self.tasks = [self._task(t) for t in range(len(self.layout.vertex))]
        self.recovery = RecoveryHost(self)
        self.faults = Faults(self)
        self.coordinator = CoordinatorHost(self, Coordinator.configured(scenario.checkpoint, num_retained=scenario.checkpoint.num_retained))
        if beginning is not None:
            beginning.enter(self)

    def fail(self, reason: str) -> None:
        """The job fails; nothing restarts it."""
        self.job_status = f"FAILED: {reason}"
        if not self.failed.triggered:
            self.failed.succeed()

    def finish(self) -> None:
        """All tasks have finished."""
        self.job_status = "FINISHED"
        if not self.finished.triggered:
            self.finished.succeed()

    def dissolve(self) -> None:
        """Let go of the data plane.  Everything here knows everything else, and its arrays would stay until cycles are looked for."""
        vars(self.plane).clear()

    def names(self) -> list[tuple[str, int]]:
        """(vertex, subtask index) of each task."""
        vertices = self.scenario.job.vertices
        return [(vertices[v].name, i) for v, i in zip(self.layout.vertex, self.layout.subtask, strict=True)]

    def gate_edge(self, task: int, gate: int) -> int:
        """The edge of a gate, given by its position among the task's gates."""
        return self.layout.gates[self.layout.task_gates[task][gate]][1]

    def outputs(self, task: int) -> list[tuple[int, bool]]:
        """(edge, whether it forces barriers to be aligned) of each output of a task."""
        edges = [self.layout.partitions[p][1] for p in self.layout.task_partitions[task]]
        return [(edge, edge in self._forced) for edge in edges]

    def _on_notice(self, notice: Notice) -> None:
        self.tasks[notice.task].on_notice(notice)

    def start(self) -> None:
        """All tasks run: periodic checkpoints begin."""
        schedule(self)
        if self.beginning is not None:
            self.recovery.begin(self.beginning.words, self.beginning.kind)
            return
        for host in self.tasks:
            host.begin()
        run, options = self.scenario.run, self.scenario.checkpoint
        if options.interval_ns is None:
            return
        delay_ns = first_trigger_delay(
            self.scenario.cluster.profile,
            interval_ns=options.interval_ns,
            min_pause_ns=options.min_pause_ns,
            first_trigger_ns=self.scenario.overheads.first_trigger_ns,
            draw=draw(stream(run.seed, "first-trigger"), 0),
        )
        self.coordinator.start(delay_ns)

    def plan(self) -> Plan | None:
        """Who takes part in a checkpoint decided on now; None: a required task does not run."""
        return self.job_end.plan(frozenset(host.task for host in self.tasks if not host.running))

    def renew(self, task: int) -> None:
        """A restarted task begins with nothing but what it is given."""
        self.job_end.renewed(task)
        self._writers[task].join(task)
        self.tasks[task] = self._task(task)
        self.tasks[task].running = False

    def fail_task(self, task: int, reason: str) -> None:
        """An exception ends a task; its region is restarted, or the job fails."""
        self.recovery.fail_tasks([task], reason)

    def _task(self, task: int) -> TaskHost:
        chosen, gates = strategy(self.scenario.checkpoint.barriers), len(self.layout.task_gates[task])
        phases = async_operate(chosen.phases) if self.scenario.checkpoint.operator_io == "async" else None
        machine = TaskCheckpointing.configured(chosen, gates, phases)
        vertex = self.scenario.job.vertices[self.layout.vertex[task]]
        run, options = self.scenario.run, self.scenario.checkpoint.state
        slow = lambda factor: self.speed.slow(task, "snapshot", factor)  # noqa: E731
        host = self.hosts[task]
        state = SubtaskState(vertex, self.layout.subtask[task], run.seed, options, host, slow, self.compaction[host])
        if (checking := self.checking) is not None:
            state.on_taken = lambda checkpoint, snapshot: checking.accounts.state.taken(checkpoint, task, snapshot)
        return TaskHost(self, task, machine, state, InFlightData(self.plane, self._writers[task], task))

    def _forced_edges(self) -> frozenset[int]:
        """Numbers of the edges whose barriers are forced to be aligned."""
        job = self.scenario.job
        forced = forced_aligned_edges(job, self.scenario.checkpoint.forced_aligned)
        ends = [(inlet.upstream, reader.name) for reader in job.vertices for inlet in reader.inputs]  # in the plane's order of edges
        return frozenset(e for e, edge in enumerate(ends) if edge in forced)

    def _channel_state_writers(self) -> list[ChannelStateWriter]:
        """The writer of each task: groups of subtasks of one task manager share one (max-subtasks-per-channel-state-file)."""
        size, on_host = self.scenario.checkpoint.subtasks_per_channel_state_file, dict[int, list[int]]()
        for task, host in enumerate(self.hosts):
            on_host.setdefault(host, []).append(task)
        writer_of: dict[int, ChannelStateWriter] = {}
        for host, members in on_host.items():
            for first in range(0, len(members), size):
                group = members[first : first + size]
                writer = ChannelStateWriter(self.env, self.storage, group, host)
                writer.on_file, writer.on_inlined = self.files.channel_state, self.contents.in_flight_inlined
                writer_of |= dict.fromkeys(group, writer)
        return [writer_of[task] for task in range(len(self.layout.vertex))]
