"""The sharpest test of the model: a recording's checkpoints explained from what happened, beside those of its simulation.

Both are told from statistics, by the same rules: what a journal knows beyond them is in no recording.  Single
checkpoints do not repeat, so those of equal rank are compared: the slowest recorded with the slowest simulated, and so
on.  Where what leads is decided by chance, ranks do not agree for the best of models.  So the simulation with another
seed is held to the same rules in the recording's place.

A part leads a checkpoint where most of its time went, in classes that both Flink's statistics and a journal can tell
apart.
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
from sim.jobs.history.history import History
from sim.jobs.history.path import NEAR_CRITICAL_SHARE, PathStep, near_paths, steps
from sim.jobs.history.reading import history_of
from sim.jobs.reading import read_any, read_source
from sim.jobs.source.recorded_job import RecordedCheckpoint, RecordedSubtask, RecordedTask
from sim.jobs.source.rest_answers import CheckpointConfig
from sim.jobs.source.rest_job import RestInput, RestVertex
from sim.model.units import MS
from sim.results.critical_path import PathKind
from sim.runtime.lowering import hosts
from sim.runtime.simulate import simulate

if TYPE_CHECKING:
    import pandas as pd

    from sim.model.scenario import Scenario
    from sim.runtime.result import Result

LEAST_MS = 300
"""Shorter checkpoints are mostly scheduling noise, whatever leads them."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A recorded checkpoint and a simulated one of the same rank."""

    checkpoint: int
    duration_ms: int
    simulated_ms: int
    recorded: LeadingPart
    simulated: LeadingPart
    # a part leads both: it is the longest of a path that is as long as the critical one, or as long as the longest
    agrees: bool
    same_kind: bool  # ... at whatever vertex


@dataclass(frozen=True, slots=True)
class ComparedExplanations:
    """Checkpoints of a history beside those of a simulation."""

    pairs: tuple[Pair, ...]
    # most pairs that agree if each checkpoint is paired with any other once: how often each part leads, without ranks
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
    # the simulation with another seed, in the recording's place: what a model that is right would reach
    itself: ComparedExplanations
    read: int  # simulated checkpoints whose statistics name the leading part that their journal names ...
    simulated: int  # ... of so many: how well statistics can be read at all


def side_by_side(file: Path, progress: Callable[[int], None] | None = None) -> SideBySide:
    """RecordingError, ScenarioError: it cannot be read, or not simulated."""
    recording = read_any(file)
    scenario = scenario_of(recording)
    result = simulate(scenario, check=False, progress=progress)
    again = simulate(
        replace(scenario, run=replace(scenario.run, seed=scenario.run.seed + 1)), check=False, progress=progress
    )
    statistics, journals = reported(result), _journals(result)
    long = [point for point in statistics.detailed if _is_judged(point) and point.id in journals]
    read = sum(bool(of_near_paths(statistics, point) & journals[point.id]) for point in long)
    itself = compare(reported(again), statistics)
    return SideBySide(recording.name, compare(history_of(read_source([file])), statistics), itself, read, len(long))


def compare(history: History, simulated: History) -> ComparedExplanations:
    """`simulated`: as `reported` has it."""
    found: list[Pair] = []
    matched = 0
    for status in ("COMPLETED", "FAILED"):
        pairs = list(_of_rank(history, simulated, status))
        found += [_pair(first, other) for first, other in pairs]
        matched += _matched(pairs)
    return ComparedExplanations(tuple(found), matched)


def _journals(result: Result) -> dict[int, frozenset[LeadingPart]]:
    """By checkpoint of the first job instance, what leads it."""
    path = result.path[result.path["x_job"] == 0] if "x_job" in result.path else result.path
    return {int(str(number)): leaders([of_journal(rows)]) for number, rows in path.groupby("id")}


def _is_judged(point: RecordedCheckpoint) -> bool:
    return point.status in ("COMPLETED", "FAILED") and not point.is_savepoint and point.end_to_end_duration >= LEAST_MS


class _Reading(NamedTuple):
    """A checkpoint with the parts that lead it."""

    point: RecordedCheckpoint
    leading: LeadingPart
    leaders: frozenset[LeadingPart]


def _of_rank(history: History, simulated: History, status: str) -> Iterator[tuple[_Reading, _Reading]]:
    """The checkpoints that last long enough, each with the simulated one of its rank."""
    recorded, others = (_by_rank(of, status) for of in (history, simulated))
    for rank, first in enumerate(recorded):
        if others and _is_judged(first.point):
            yield first, others[round(rank * (len(others) - 1) / max(len(recorded) - 1, 1))]


def _by_rank(history: History, status: str) -> list[_Reading]:
    """The slowest first."""
    alike = [point for point in history.detailed if point.status == status and not point.is_savepoint]
    parts = [
        (point, leading(of_statistics(history, point)))
        for point in sorted(alike, key=lambda point: -point.end_to_end_duration)
    ]
    return [_Reading(point, first, of_near_paths(history, point)) for point, first in parts if first is not None]


def _matched(pairs: Sequence[tuple[_Reading, _Reading]]) -> int:
    """Most pairs that agree, if the same checkpoints are paired anew."""
    if not pairs:
        return 0
    agree = np.array([[bool(first.leaders & other.leaders) for _, other in pairs] for first, _ in pairs])
    return int(agree[linear_sum_assignment(agree, maximize=True)].sum())


def _pair(first: _Reading, other: _Reading) -> Pair:
    kinds, others = ({WAY.get(part.what, part.what) for part in reading.leaders} for reading in (first, other))
    return Pair(
        first.point.id,
        first.point.end_to_end_duration,
        other.point.end_to_end_duration,
        first.leading,
        other.leading,
        bool(first.leaders & other.leaders),
        bool(kinds & others),
    )


def reported(result: Result) -> History:
    """The first job instance of a run: a restored one counts its checkpoints on."""
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


CLASSES: Mapping[PathKind, str] = {
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
"""Kinds that statistics cannot tell apart; any other is a class by itself."""
WAY = dict.fromkeys(
    (kind.value for kind in (PathKind.QUEUE, PathKind.ALIGNMENT, PathKind.TIMEOUT)), "a barrier on its way"
)
"""Classes that are one where only the kind is asked for."""


class LeadingPart(NamedTuple):
    """A part that leads a path: its kind and its vertex."""

    what: str
    vertex: str  # empty: the call, whichever source it is for


def of_statistics(history: History, point: RecordedCheckpoint) -> Counter[LeadingPart]:
    """What Flink's statistics say each took [ns]."""
    return _of_steps(steps(history, point))


def _of_steps(path: Iterable[PathStep]) -> Counter[LeadingPart]:
    return _summed((step.kind, "" if step.subtask is None else step.subtask[0], step.duration_ns) for step in path)


def of_journal(path: pd.DataFrame) -> Counter[LeadingPart]:
    """What the journal of a simulation says; `path`: the rows of one checkpoint in the table `path`."""
    rows = path[~path["acknowledged"]]
    return _summed(
        (PathKind(part), str(vertex), int(took))
        for part, vertex, took in zip(rows["part"], rows["vertex"], rows["duration"], strict=True)
    )


def leading(parts: Mapping[LeadingPart, int]) -> LeadingPart | None:
    """The leading part.  None: nothing is known."""
    return max(parts, key=lambda part: parts[part], default=None)


def leaders(paths: Iterable[Mapping[LeadingPart, int]]) -> frozenset[LeadingPart]:
    """What leads one of the paths, or is as long there."""
    return frozenset(part for parts in paths for part in _longest(parts))


def _longest(parts: Mapping[LeadingPart, int]) -> Iterator[LeadingPart]:
    first = leading(parts)
    if first is not None:
        least_ns = parts[first] - NEAR_CRITICAL_SHARE * sum(parts.values())
        yield from (part for part in parts if parts[part] >= least_ns)


def of_near_paths(history: History, point: RecordedCheckpoint) -> frozenset[LeadingPart]:
    """What leads a checkpoint as its statistics tell it: more than one part where parts, or whole paths, are as long as each other."""
    return leaders(_of_steps(path) for path in near_paths(history, point))


def _summed(rows: Iterable[tuple[PathKind, str, int]]) -> Counter[LeadingPart]:
    found: Counter[LeadingPart] = Counter()
    for kind, vertex, took_ns in rows:
        what = CLASSES.get(kind, kind.value)
        found[LeadingPart(what, "" if what == "call" else vertex)] += took_ns
    return found
