"""The work of a run, estimated from what it simulates, so that it is the same on any machine.

If measured CPU time counted instead, `advise` would run fewer trials on a busy machine and give another answer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from sim.model.job import Rate
from sim.model.packed_records import PackedRecords
from sim.protocol.coordinator import effective_interval_ns

if TYPE_CHECKING:
    from sim.model.scenario import Scenario

CELL_S = 0.06
PER_TASK_AND_SECOND_S = 4e-5
PER_TASK_AND_CHECKPOINT_S = 7e-4
PER_RECORD_AND_VERTEX_S = 1e-8
"""CPU time [s] on an idle machine, fitted to 649 runs of three jobs with six tasks each; the sum over a job is within 12 %."""


def work_s(row: Mapping[str, Any], scenario: Scenario) -> float:
    """Return the estimated CPU time [s] of a run on an idle machine.  `row`: its results."""
    seconds = finite_number(row.get("ended_s")) or scenario.run.duration_ns / 1e9
    completed, per_second = (finite_number(row.get(name)) for name in ("completed", "emitted_per_second"))
    return _work_s(scenario, seconds, completed, per_second * seconds)


def planned_work_s(scenario: Scenario, per_second: float | None = None) -> float:
    """Return the estimated CPU time [s] of a run that lasts for its whole duration.

    `per_second`: records that sources emit; by default those that are due.
    """
    options, seconds = scenario.checkpoint, scenario.run.duration_ns / 1e9
    checkpoints = 0.0
    if options.interval_ns is not None:
        checkpoints = scenario.run.duration_ns / effective_interval_ns(options.interval_ns, options.min_pause_ns)
    records = _due_records(scenario) if per_second is None else per_second * seconds
    return _work_s(scenario, seconds, checkpoints, records)


def _work_s(scenario: Scenario, seconds: float, checkpoints: float, records: float) -> float:
    vertices = scenario.job.vertices
    per_task_s = PER_TASK_AND_SECOND_S * seconds + PER_TASK_AND_CHECKPOINT_S * checkpoints
    tasks = sum(vertex.parallelism for vertex in vertices)
    return CELL_S + tasks * per_task_s + PER_RECORD_AND_VERTEX_S * records * len(vertices)


def _due_records(scenario: Scenario) -> float:
    """Return the number of records that all sources have during a run; a source without a rate counts as empty."""
    sources = [(vertex.source, vertex.emitting) for vertex in scenario.job.vertices if vertex.source is not None]
    return sum(_due(source.rates, scenario.run.duration_ns) * subtasks for source, subtasks in sources)


def _due(rates: Sequence[Rate], until_ns: int) -> float:
    """Return the number of records that are due before a time [ns]."""
    steps = (
        [(start_ns, count / seconds) for start_ns, count, seconds in rates.integers(0, len(rates))]
        if isinstance(rates, PackedRecords)  # its items are created on each access
        else [(rate.start_ns, float(rate.per_second)) for rate in rates]
    )
    return sum(
        per_second * max(min(end_ns, until_ns) - start_ns, 0) / 1e9
        for (start_ns, per_second), (end_ns, _) in pairwise([*steps, (until_ns, 0.0)])
    )


def finite_number(value: object) -> float:
    """Return a number, or 0 if the value is missing or not finite."""
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else 0.0
