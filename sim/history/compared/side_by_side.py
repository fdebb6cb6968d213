"""The sharpest test of the model: a recording's checkpoints explained from what happened, beside those of its simulation.

Both are told from statistics, by the same rules: what a journal knows beyond them is in no recording.  Single checkpoints do not repeat, so
those of equal rank are compared: the slowest recorded with the slowest simulated, and so on.  Where what leads is decided by chance, ranks
do not agree for the best of models.  So the simulation with another seed is held to the same rules in the recording's place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from sim.evidence.truth import scenario_of
from sim.history.compared import simulated as simulated_run
from sim.history.compared.leading import WAY, LeadingPart, leaders, leading, of_journal, of_near_paths, of_statistics
from sim.history.reading import history_of
from sim.recordings import read_any
from sim.recordings.reading import read_source
from sim.runtime.run.simulate import simulate

if TYPE_CHECKING:
    from collections.abc import Callable

    from sim.history.history import History
    from sim.recordings.source.recorded_job import RecordedCheckpoint
    from sim.runtime.run.result import Result

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
    agrees: bool  # a part leads both: it is the longest of a path that is as long as the critical one, or as long as the longest
    same_kind: bool  # ... at whatever vertex


@dataclass(frozen=True, slots=True)
class ComparedExplanations:
    """Checkpoints of a history beside those of a simulation."""

    pairs: tuple[Pair, ...]
    matched: int  # most pairs that agree if each checkpoint is paired with any other once: how often each part leads, without ranks

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
    itself: ComparedExplanations  # the simulation with another seed, in the recording's place: what a model that is right would reach
    read: int  # simulated checkpoints whose statistics name the leading part that their journal names ...
    simulated: int  # ... of so many: how well statistics can be read at all


def side_by_side(file: Path, progress: Callable[[int], None] | None = None) -> SideBySide:
    """RecordingError, ScenarioError: it cannot be read, or not simulated."""
    recording = read_any(file)
    scenario = scenario_of(recording)
    result = simulate(scenario, check=False, progress=progress)
    again = simulate(replace(scenario, run=replace(scenario.run, seed=scenario.run.seed + 1)), check=False, progress=progress)
    statistics, journals = simulated_run.reported(result), _journals(result)
    long = [point for point in statistics.detailed if _is_judged(point) and point.id in journals]
    read = sum(bool(of_near_paths(statistics, point) & journals[point.id]) for point in long)
    itself = compare(simulated_run.reported(again), statistics)
    return SideBySide(recording.name, compare(history_of(read_source([file])), statistics), itself, read, len(long))


def compare(history: History, simulated: History) -> ComparedExplanations:
    """`simulated`: as `sim.history.compared.simulated` reports it."""
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
    parts = [(point, leading(of_statistics(history, point))) for point in sorted(alike, key=lambda point: -point.end_to_end_duration)]
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
        first.point.id, first.point.end_to_end_duration, other.point.end_to_end_duration, first.leading, other.leading,
        bool(first.leaders & other.leaders), bool(kinds & others),
    )  # fmt: skip
