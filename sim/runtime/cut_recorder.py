"""Notes the offsets a consistent cut is judged by, at the moments a snapshot is taken (`sim.checkers.cut`)."""

from __future__ import annotations

import numpy as np

from sim.checkers.cut import Cuts
from sim.plane.interface import DataPlane
from sim.plane.layout import Layout

__all__ = ["CutRecorder"]


class CutRecorder:
    def __init__(self, plane: DataPlane, layout: Layout) -> None:
        self.plane = plane
        self.cuts = Cuts(list(zip(layout.writer, layout.reader, strict=True)))
        tasks = range(len(layout.vertex))
        self._inputs = [np.array([c for g in layout.task_gates[t] for c in layout.gates[g][2]], np.int64) for t in tasks]
        self._outputs = [np.array([c for p in layout.task_partitions[t] for c in layout.partitions[p][2]], np.int64) for t in tasks]

    def snapshot_begun(self, checkpoint: int, task: int) -> None:
        mine = self._inputs[task]
        self.cuts.of(checkpoint).consumed[mine] = self.plane.channels()["consumed"][mine]

    def barrier_forwarded(self, checkpoint: int, task: int) -> None:
        mine = self._outputs[task]
        self.cuts.of(checkpoint).written[mine] = self.plane.channels()["written"][mine]

    def output_captured(self, checkpoint: int, task: int) -> None:
        mine = self._outputs[task]
        self.cuts.of(checkpoint).captured_output[mine] = self.plane.channels()["cap_out"][mine]

    def input_captured(self, checkpoint: int, task: int) -> None:
        mine = self._inputs[task]
        self.cuts.of(checkpoint).captured_input[mine] = self.plane.channels()["cap_in"][mine]
