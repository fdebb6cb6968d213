"""Compare the explanations of recorded and simulated checkpoints: does most of the time go to the same part?

Both explanations are derived from Flink's statistics by the same rules, although simulations have more data.  Single
checkpoints do not repeat, so checkpoints of equal rank are compared: the slowest recorded with the slowest simulated, and
so on.  If the part that takes longest is random, ranks do not agree even for a perfect model.  Therefore the simulation
is also compared with its repetition with another seed.

The leading part of a checkpoint is the one that takes most of its time, in classes that both Flink's statistics and the
journal of a simulation can distinguish.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from sim.jobs.evidence.prediction import scenario_of
from sim.jobs.history.history import History, SubtaskId, moments
from sim.jobs.history.path import PathStep, steps
from sim.jobs.history.reading import history_of
from sim.jobs.reading import read_any, read_source
from sim.jobs.source.recorded_job import RecordedCheckpoint, RecordedSubtask, RecordedTask
from sim.jobs.source.rest_answers import CheckpointConfig
from sim.jobs.source.rest_job import RestInput, RestVertex
from sim.model.units import MS
from sim.results.critical_path import PathKind
from sim.runtime.plane_spec import hosts
from sim.runtime.simulate import simulate

if TYPE_CHECKING:
    import pandas as pd

    from sim.model.scenario import Scenario
    from sim.runtime.result import Result

MIN_COMPARED_MS = 300
"""Shorter checkpoints are not compared, as they consist mostly of scheduling noise."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A recorded checkpoint and a simulated one of the same rank."""

    checkpoint: int
    duration_ms: int
    simulated_ms: int
    recorded: LeadingPart
    simulated: LeadingPart
    # Whether a part leads both: it is the longest, or nearly so, of the critical path or of one nearly as long.
    agrees: bool
    same_kind: bool  # whether the leading parts agree without regard to the vertex


@dataclass(frozen=True, slots=True)
class ComparedExplanations:
    """Pairs of recorded and simulated checkpoints."""

    pairs: tuple[Pair, ...]
    # Number of agreeing pairs with the best assignment of checkpoints: compares how often each part leads, without ranks.
    matched: int

    @property
    def agreeing(self) -> int:
        return sum(pair.agrees for pair in self.pairs)

    @property
    def same_kind(self) -> int:
        return sum(pair.same_kind for pair in self.pairs)


@dataclass(frozen=True, slots=True)
class SideBySide:
    """The leading parts of recorded and of simulated checkpoints."""

    recording: str
    comparison: ComparedExplanations
    # A repetition of the simulation instead of the recording: the agreement that a perfect model would reach.
    repetition: ComparedExplanations
    read: int  # number of simulated checkpoints whose statistics and journal give the same leading part
    simulated: int  # number of simulated checkpoints compared for `read`


def side_by_side(file: Path, progress: Callable[[int], None] | None = None) -> SideBySide:
    """Compare a recording with its simulation.  Raises `RecordingError` or `ScenarioError`."""
    recording = read_any(file)
    scenario = scenario_of(recording)
    result = simulate(scenario, check=False, progress=progress)
    again = simulate(
        replace(scenario, run=replace(scenario.run, seed=scenario.run.seed + 1)), check=False, progress=progress
    )
    statistics, journals = reported_history(result), _journals(result)
    long = [point for point in statistics.detailed if _is_judged(point) and point.id in journals]
    read = sum(bool(leading_parts(statistics, point) & journals[point.id]) for point in long)
    repetition = compare(reported_history(again), statistics)
    return SideBySide(recording.name, compare(history_of(read_source([file])), statistics), repetition, read, len(long))


def compare(history: History, simulated: History) -> ComparedExplanations:
    """Compare the checkpoints of a history with those of a simulation (see `reported_history`)."""
    found: list[Pair] = []
    matched = 0
    for status in ("COMPLETED", "FAILED"):
        pairs = list(_pairs_of_equal_rank(history, simulated, status))
        found += [_pair(first, other) for first, other in pairs]
        matched += _count_best_matching(pairs)
    return ComparedExplanations(tuple(found), matched)


def _journals(result: Result) -> dict[int, frozenset[LeadingPart]]:
    """Return the leading parts of each checkpoint of the first job instance, from the journal."""
    path = result.path[result.path["x_job"] == 0] if "x_job" in result.path else result.path
    return {int(str(number)): leading_parts_of_paths([parts_of_journal(rows)]) for number, rows in path.groupby("id")}


def _is_judged(point: RecordedCheckpoint) -> bool:
    return (
        point.status in ("COMPLETED", "FAILED")
        and not point.is_savepoint
        and point.end_to_end_duration >= MIN_COMPARED_MS
    )


class _RankedCheckpoint(NamedTuple):
    """A checkpoint with its leading parts."""

    point: RecordedCheckpoint
    leading_part: LeadingPart
    leading_parts_of_paths: frozenset[LeadingPart]


def _pairs_of_equal_rank(
    history: History, simulated: History, status: str
) -> Iterator[tuple[_RankedCheckpoint, _RankedCheckpoint]]:
    """Yield each checkpoint that is long enough, with the simulated one of its rank."""
    recorded, others = (_by_rank(of, status) for of in (history, simulated))
    for rank, first in enumerate(recorded):
        if others and _is_judged(first.point):
            yield first, others[round(rank * (len(others) - 1) / max(len(recorded) - 1, 1))]


def _by_rank(history: History, status: str) -> list[_RankedCheckpoint]:
    """Return the checkpoints of a status, the slowest first."""
    alike = [point for point in history.detailed if point.status == status and not point.is_savepoint]
    parts = [
        (point, leading_part(parts_of_statistics(history, point)))
        for point in sorted(alike, key=lambda point: -point.end_to_end_duration)
    ]
    return [
        _RankedCheckpoint(point, first, leading_parts(history, point)) for point, first in parts if first is not None
    ]


def _count_best_matching(pairs: Sequence[tuple[_RankedCheckpoint, _RankedCheckpoint]]) -> int:
    """Return the number of agreeing pairs with the best assignment of the same checkpoints."""
    if not pairs:
        return 0
    agree = np.array(
        [
            [bool(first.leading_parts_of_paths & other.leading_parts_of_paths) for _, other in pairs]
            for first, _ in pairs
        ]
    )
    return int(agree[linear_sum_assignment(agree, maximize=True)].sum())


def _pair(first: _RankedCheckpoint, other: _RankedCheckpoint) -> Pair:
    kinds, others = (
        {BARRIER_IN_TRANSIT.get(part.what, part.what) for part in reading.leading_parts_of_paths}
        for reading in (first, other)
    )
    return Pair(
        first.point.id,
        first.point.end_to_end_duration,
        other.point.end_to_end_duration,
        first.leading_part,
        other.leading_part,
        bool(first.leading_parts_of_paths & other.leading_parts_of_paths),
        bool(kinds & others),
    )


def reported_history(result: Result) -> History:
    """Return the history of the first job instance of a run, as Flink would report it."""
    scenario = result.scenario
    barriers = scenario.checkpoint.barriers
    config = CheckpointConfig(
        unaligned_checkpoints=barriers.record.overtakes, aligned_checkpoint_timeout=barriers.timeout_ns // MS
    )
    names = [(vertex.name, index) for vertex in scenario.job.vertices for index in range(vertex.parallelism)]
    places = {name: f"task manager {host}" for name, host in zip(names, hosts(scenario), strict=True)}
    return History("simulated", "", _vertices(scenario), tuple(_checkpoints(result)), config, places)


def _vertices(scenario: Scenario) -> tuple[RestVertex, ...]:
    return tuple(
        RestVertex(
            vertex.name,
            vertex.name,
            (vertex.name,),
            vertex.parallelism,
            -1,
            tuple(RestInput(edge.upstream, edge.ship.upper()) for edge in vertex.inputs),
        )
        for vertex in scenario.job.vertices
    )


def _checkpoints(result: Result) -> list[RecordedCheckpoint]:
    tasks: dict[int, dict[str, list[RecordedSubtask]]] = {}
    subtasks, points = result.subtasks, result.checkpoints
    if "x_job" in points:
        subtasks, points = subtasks[subtasks["x_job"] == 0], points[points["x_job"] == 0]
    for row in subtasks.to_dict("records"):
        tasks.setdefault(int(row["id"]), {}).setdefault(str(row["vertex"]), []).append(_subtask(row))
    return [_checkpoint(row, tasks.get(int(row["id"]), {})) for row in points.to_dict("records")]


def _checkpoint(row: Mapping[Hashable, Any], tasks: dict[str, list[RecordedSubtask]]) -> RecordedCheckpoint:
    values = {
        name: round(row[name]) if isinstance(row[name], float) else row[name]
        for name in RecordedCheckpoint.model_fields
        if name in row
    }
    built = {name: RecordedTask(subtasks=tuple(rows)) for name, rows in tasks.items()}
    return RecordedCheckpoint.model_validate(values | {"is_savepoint": bool(row["savepointFormat"]), "tasks": built})


def _subtask(row: Mapping[Hashable, Any]) -> RecordedSubtask:
    values = {name: round(value) if isinstance(value, float) else value for name, value in row.items()}
    alignment = {name: values[f"alignment_{name}"] for name in ("duration", "processed", "persisted")}
    phases = {"sync": values["sync_duration"], "async": values["async_duration"]}
    return RecordedSubtask.model_validate(values | {"alignment": alignment, "checkpoint": phases})


STATISTICS_CLASSES: Mapping[PathKind, str] = {
    PathKind.TRIGGER: "call",
    PathKind.TASK_THREAD: "call",
    PathKind.FLUSH: "work before barrier",
    PathKind.PRE_BARRIER: "work before barrier",
    PathKind.ASYNC_QUEUE: "asynchronous part",
    PathKind.ASYNC_WORK: "asynchronous part",
    PathKind.UPLOAD: "asynchronous part",
    PathKind.OUTPUT: "asynchronous part",
    PathKind.CHANNEL_STATE: "asynchronous part",
}
"""Classes of kinds that Flink's statistics cannot distinguish; any other kind is a class by itself."""
BARRIER_IN_TRANSIT = dict.fromkeys(
    (kind.value for kind in (PathKind.QUEUE, PathKind.ALIGNMENT, PathKind.TIMEOUT)), "a barrier on its way"
)
"""Classes that are combined if vertices are ignored."""


NEAR_CRITICAL_SHARE = 0.1
"""A path is nearly critical if it ends at most this share of the duration before the critical path."""


def near_paths(history: History, point: RecordedCheckpoint) -> Iterator[tuple[PathStep, ...]]:
    """Yield the critical path, and nearly critical ones, which would become critical if it were shorter.

    These end with another vertex that acknowledges at about the same time, or, if several barriers arrived at the same
    time, go through the barrier that was sent last.
    """
    if not point.tasks or point.end_to_end_duration < 0:
        return
    for last in (None, *_nearly_last(history, point)):
        for later in (False, True):
            yield steps(history, point, last, later=later)


def _nearly_last(history: History, point: RecordedCheckpoint) -> Iterator[SubtaskId]:
    """Yield the last subtask of each other vertex that acknowledges nearly as late as the last of all."""
    ends = {name: row.acknowledged_ns for name, row in moments(history, point).items()}
    if point.status != "COMPLETED" or not ends:
        return
    latest: dict[str, SubtaskId] = {}
    for name in sorted(ends, key=lambda name: (ends[name], name), reverse=True):
        latest.setdefault(name[0], name)
    first, *others = latest.values()
    longest_ns = NEAR_CRITICAL_SHARE * point.end_to_end_duration * MS
    yield from (name for name in others if ends[first] - ends[name] <= longest_ns)


class LeadingPart(NamedTuple):
    """A part of a path: its class and its vertex."""

    what: str
    vertex: str  # empty for the call, regardless of the source


def parts_of_statistics(history: History, point: RecordedCheckpoint) -> Counter[LeadingPart]:
    """Return the time of each part [ns], from Flink's statistics."""
    return _of_steps(steps(history, point))


def _of_steps(path: Iterable[PathStep]) -> Counter[LeadingPart]:
    return _summed((step.kind, "" if step.subtask is None else step.subtask[0], step.duration_ns) for step in path)


def parts_of_journal(path: pd.DataFrame) -> Counter[LeadingPart]:
    """Return the time of each part [ns], from the rows of one checkpoint in the table `path` of a simulation."""
    rows = path[~path["acknowledged"]]
    return _summed(
        (PathKind(part), str(vertex), int(took))
        for part, vertex, took in zip(rows["part"], rows["vertex"], rows["duration"], strict=True)
    )


def leading_part(parts: Mapping[LeadingPart, int]) -> LeadingPart | None:
    """Return the part that takes longest, or None without parts."""
    return max(parts, key=lambda part: parts[part], default=None)


def leading_parts_of_paths(paths: Iterable[Mapping[LeadingPart, int]]) -> frozenset[LeadingPart]:
    """Return the parts that are longest, or nearly so, in one of the paths."""
    return frozenset(part for parts in paths for part in _longest(parts))


def _longest(parts: Mapping[LeadingPart, int]) -> Iterator[LeadingPart]:
    first = leading_part(parts)
    if first is not None:
        min_ns = parts[first] - NEAR_CRITICAL_SHARE * sum(parts.values())
        yield from (part for part in parts if parts[part] >= min_ns)


def leading_parts(history: History, point: RecordedCheckpoint) -> frozenset[LeadingPart]:
    """Return the leading parts of a checkpoint: several if parts, or whole paths, are about equally long."""
    return leading_parts_of_paths(_of_steps(path) for path in near_paths(history, point))


def _summed(rows: Iterable[tuple[PathKind, str, int]]) -> Counter[LeadingPart]:
    found: Counter[LeadingPart] = Counter()
    for kind, vertex, took_ns in rows:
        what = STATISTICS_CLASSES.get(kind, kind.value)
        found[LeadingPart(what, "" if what == "call" else vertex)] += took_ns
    return found
