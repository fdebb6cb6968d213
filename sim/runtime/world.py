"""One run being simulated: the plane, the clock, the hosts, and what they note down."""

from __future__ import annotations

from sim.metrics.journal import Journal
from sim.metrics.stats import CheckpointStats
from sim.model.scenario import Scenario
from sim.plane import build
from sim.plane.interface import Kind, Notice
from sim.plane.layout import layout
from sim.protocol.coordinator import Coordinator
from sim.protocol.forced import forced_aligned_edges
from sim.protocol.strategies import strategy
from sim.protocol.task import TaskCheckpointing
from sim.protocol.vocabulary import Plan
from sim.runtime.barriers_in_transit import BarriersInTransit
from sim.runtime.channel_state import ChannelStateWriter
from sim.runtime.clock import TwoPlaneEnvironment
from sim.runtime.coordinator_host import CoordinatorHost
from sim.runtime.cut_recorder import CutRecorder
from sim.runtime.in_flight import InFlightData
from sim.runtime.lowering import hosts, plane_spec
from sim.runtime.state_snapshot import SubtaskState
from sim.runtime.task_host import TaskHost
from sim.storage.filesystem import CheckpointStorage

__all__ = ["World"]


class World:
    """Built from a scenario; `simulate` runs it."""

    def __init__(self, scenario: Scenario, engine: str, *, digests: bool = False, record_cuts: bool = False) -> None:
        spec = plane_spec(scenario, digests=digests)
        self.scenario = scenario
        self.layout = layout(spec)
        self.plane = build(spec, engine)
        self.env = TwoPlaneEnvironment(self.plane, self._on_notice)
        self.storage = CheckpointStorage(self.env, scenario.storage, scenario.run.seed)
        self.journal = Journal()
        self.stats: dict[int, CheckpointStats] = {}
        self.transit = BarriersInTransit()
        self.failed = self.env.event()
        self.job_status = "RUNNING"
        self.recorder = CutRecorder(self.plane, self.layout) if record_cuts else None
        self._forced = self._forced_edges()
        writers = self._channel_state_writers()
        self.tasks = [self._task(t, writers[t]) for t in range(len(self.layout.vertex))]
        self.coordinator = CoordinatorHost(self, self._coordinator(), self._plan())

    def fail(self, reason: str) -> None:
        """The job fails; nothing restarts it."""
        self.job_status = f"FAILED: {reason}"
        if not self.failed.triggered:
            self.failed.succeed()

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
        if notice.kind is not Kind.EXHAUSTED:  # an exhausted source idles on and still takes part in checkpoints
            self.tasks[notice.task].on_notice(notice)
