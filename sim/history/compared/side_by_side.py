"""The sharpest test of the model: a recording's checkpoints explained from what happened, beside those of its simulation.

Single checkpoints do not repeat, so those of equal rank are compared: the slowest recorded with the slowest simulated, and so on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sim.evidence.truth import scenario_of
from sim.history.compared import simulated as simulated_run
from sim.history.compared.leading import WAY, LeadingPart, agree, leading, of_journal, of_statistics
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
    agrees: bool  # the leading part of the one leads the other, or is as long there
    same_kind: bool  # ... at whatever vertex
    same_statistics: bool  # as `agrees`, with both told from statistics: what these cannot tell is left out


@dataclass(frozen=True, slots=True)
class SideBySide:
    recording: str
    pairs: tuple[Pair, ...]
    read: int  # simulated checkpoints whose statistics name the leading part that their journal names ...
    simulated: int  # ... of so many: how well statistics can be read at all

    @property
    def agreeing(self) -> int:
        return sum(pair.agrees for pair in self.pairs)

    @property
    def same_kind(self) -> int:
        return sum(pair.same_kind for pair in self.pairs)

    @property
    def same_statistics(self) -> int:
        return sum(pair.same_statistics for pair in self.pairs)


def side_by_side(file: Path, progress: Callable[[int], None] | None = None) -> SideBySide:
    """RecordingError, ScenarioError: it cannot be read, or not simulated."""
    recording = read_any(file)
    history = history_of(read_source([file]))
    result = simulate(scenario_of(recording), check=False, progress=progress)
    journals = _journals(result)
    statistics = simulated_run.reported(result)
    long = [point for point in statistics.detailed if _is_judged(point) and point.id in journals]
    read = sum(agree(of_statistics(statistics, point), journals[point.id]) for point in long)
    return SideBySide(recording.name, tuple(_pairs(history, statistics, journals)), read, len(long))


def _journals(result: Result) -> dict[int, Counter[LeadingPart]]:
    """By checkpoint of the first job instance, where its time went."""
    path = result.path[result.path["x_job"] == 0] if "x_job" in result.path else result.path
    return {int(str(number)): of_journal(rows) for number, rows in path.groupby("id")}


def _is_judged(point: RecordedCheckpoint) -> bool:
    return point.status in ("COMPLETED", "FAILED") and not point.is_savepoint and point.end_to_end_duration >= LEAST_MS


def _pairs(history: History, statistics: History, journals: Mapping[int, Counter[LeadingPart]]) -> list[Pair]:
    found = []
    for status in ("COMPLETED", "FAILED"):
        recorded, simulated = (_by_rank(points, status) for points in (history.detailed, statistics.detailed))
        simulated = [point for point in simulated if point.id in journals]
        for rank, point in enumerate(recorded):
            parts = of_statistics(history, point)
            if not simulated or not _is_judged(point) or not parts:
                continue
            other = simulated[round(rank * (len(simulated) - 1) / max(len(recorded) - 1, 1))]
            found.append(_pair(point, other, parts, journals[other.id], of_statistics(statistics, other)))
    return found


def _by_rank(points: Sequence[RecordedCheckpoint], status: str) -> list[RecordedCheckpoint]:
    """The slowest first."""
    alike = [point for point in points if point.status == status and not point.is_savepoint]
    return sorted(alike, key=lambda point: -point.end_to_end_duration)


def _pair(
    point: RecordedCheckpoint,
    other: RecordedCheckpoint,
    parts: Counter[LeadingPart],
    journal: Counter[LeadingPart],
    statistics: Counter[LeadingPart],
) -> Pair:
    first, second = leading(parts), leading(journal)
    nothing = LeadingPart("", "")
    kinds = {WAY.get(part.what, part.what) for part in (first or nothing, second or nothing)}
    return Pair(
        point.id, point.end_to_end_duration, other.end_to_end_duration, first or nothing, second or nothing, agree(parts, journal),
        len(kinds) == 1, agree(parts, statistics),
    )  # fmt: skip
