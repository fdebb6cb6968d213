"""Notes the offsets a consistent cut is judged by, at the moments a snapshot is taken (`sim.checkers.cut`)."""

from __future__ import annotations

from sim.checkers.cut import Cuts
from sim.plane.interface import DataPlane
from sim.plane.layout import Layout

__all__ = ["CutRecorder"]


class CutRecorder:
    def __init__(self, plane: DataPlane, layout: Layout) -> None:
        self.plane = plane
        self.layout = layout
        self.cuts = Cuts()

    def snapshot_begun(self, checkpoint: int, task: int) -> None:
        rows = self.plane.channels()
        for channel in self._inputs(task):
            self.cuts.of(checkpoint, channel).consumed = int(rows["consumed"][channel])

    def barrier_forwarded(self, checkpoint: int, task: int) -> None:
        rows = self.plane.channels()
        for channel in self._outputs(task):
            self.cuts.of(checkpoint, channel).written = int(rows["written"][channel])

    def output_captured(self, checkpoint: int, task: int) -> None:
        rows = self.plane.channels()
        for channel in self._outputs(task):
            self.cuts.of(checkpoint, channel).captured_output = int(rows["cap_out"][channel])

    def input_captured(self, checkpoint: int, task: int) -> None:
        rows = self.plane.channels()
        for channel in self._inputs(task):
            self.cuts.of(checkpoint, channel).captured_input = int(rows["cap_in"][channel])

    def _inputs(self, task: int) -> list[int]:
        return [channel for gate in self.layout.task_gates[task] for channel in self.layout.gates[gate][2]]

    def _outputs(self, task: int) -> list[int]:
        return [channel for partition in self.layout.task_partitions[task] for channel in self.layout.partitions[partition][2]]
