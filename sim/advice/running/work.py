"""How much work a run was, by what it simulated: the same number on a quiet machine, on a busy one and on another one.

A budget that counted processor time would buy fewer runs on a busy machine, and the answer would be another one.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sim.cells.cell import Row
    from sim.model.scenario import Scenario

CELL_S = 0.06
PER_TASK_AND_SECOND_S = 4e-5
PER_TASK_AND_CHECKPOINT_S = 7e-4
PER_RECORD_AND_VERTEX_S = 1e-8
"""Processor time on a quiet machine, fitted to 649 runs of three jobs with six tasks each: sums of a job's runs are right within 12 %."""


def work_s(row: Row, scenario: Scenario) -> float:
    """Seconds of processor time that such a run takes on a machine that does nothing else."""
    vertices = scenario.job.vertices
    tasks, seconds = sum(vertex.parallelism for vertex in vertices), _number(row.get("ended_s")) or scenario.run.duration_ns / 1e9
    checkpoints, rate = (_number(row.get(name)) for name in ("completed", "emitted_per_second"))
    per_task_s = PER_TASK_AND_SECOND_S * seconds + PER_TASK_AND_CHECKPOINT_S * checkpoints
    return CELL_S + tasks * per_task_s + PER_RECORD_AND_VERTEX_S * rate * seconds * len(vertices)


def _number(value: object) -> float:
    """0: the run has no such value."""
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else 0.0
