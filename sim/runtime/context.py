"""The context that all hosts of one job instance share: scenario, clock, data plane, storage, and the records of what happened.

Nothing here is replaced while the instance runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from sim.metrics.commits import CommitStats
from sim.metrics.journal import Happening, Journal
from sim.metrics.stats import CheckpointStats
from sim.model.randomness.residual_draws import drawn_ns
from sim.model.residuals import Part
from sim.model.scenario import Scenario
from sim.plane.seam.interface import DataPlane
from sim.plane.seam.layout import Layout
from sim.plane.seam.spec import PlaneSpec
from sim.runtime.clock import TwoPlaneEnvironment
from sim.storage.filesystem import CheckpointStorage


@dataclass(frozen=True, slots=True, eq=False)
class Origin:
    """The snapshot that a job instance begins from."""

    instance: int  # number of the instance that begins
    at_ns: int
    checkpoint: int
    served: np.ndarray  # records served by each task when the instance before it ended


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """Scenario, clock, data plane, storage and records of one job instance."""

    scenario: Scenario
    spec: PlaneSpec
    layout: Layout
    plane: DataPlane
    env: TwoPlaneEnvironment
    storage: CheckpointStorage
    hosts: Sequence[int]  # task manager of each task
    names: Sequence[tuple[str, int]]  # vertex and subtask index of each task
    forced: frozenset[int] = frozenset()  # edges whose barriers are forced to be aligned
    origin: Origin | None = None  # None: the job's first instance, which begins with nothing
    journal: Journal = field(default_factory=Journal)
    stats: dict[int, CheckpointStats] = field(default_factory=dict)  # by checkpoint
    commits: list[CommitStats] = field(default_factory=list)
    failing_commits: dict[str, int | None] = field(default_factory=dict)  # sink -> until when its commits fail; None: the next one does

    def note(self, happening: Happening, checkpoint: int = -1, task: int = -1, number: int = 0, detail: str = "") -> None:
        """Enter into the journal what happens now."""
        self.journal.note(self.env.now, happening, checkpoint, task, number, detail)

    @property
    def instance(self) -> int:
        """The number of the instance in its chain of jobs."""
        return 0 if self.origin is None else self.origin.instance

    @property
    def begun_from(self) -> int:
        """The checkpoint the instance begins from; 0: none."""
        return 0 if self.origin is None else self.origin.checkpoint

    def gate_edge(self, task: int, gate: int) -> int:
        """The edge of a gate, given by its position among the task's gates."""
        return self.layout.gates[self.layout.task_gates[task][gate]][1]

    def outputs(self, task: int) -> list[tuple[int, bool]]:
        """(edge, whether it forces barriers to be aligned) of each output of a task."""
        edges = [self.layout.partitions[p][1] for p in self.layout.task_partitions[task]]
        return [(edge, edge in self.forced) for edge in edges]

    def residual_ns(self, part: Part, task: int, checkpoint: int) -> int:
        """What this part of a checkpoint takes beyond the model."""
        if not self.scenario.residuals.of:
            return 0
        return drawn_ns(self.scenario.residuals, part, *self.names[task], checkpoint, self.scenario.run.seed)

    @property
    def periodic(self) -> bool:
        """Whether the job takes checkpoints by itself."""
        return self.scenario.checkpoint.interval_ns is not None
