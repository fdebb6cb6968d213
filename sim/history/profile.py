"""Where the time of several checkpoints goes: for each kind of step and vertex what it takes, of the slow ones and of the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from sim.history.history import History
from sim.history.path import steps
from sim.metrics.critical_path import PathKind
from sim.recordings.source.recorded_job import RecordedCheckpoint

Where = tuple[PathKind, str]
"""Kind of step, vertex; "": the coordinator."""


@dataclass(frozen=True, slots=True)
class Row:
    """A kind of step at a vertex, with its time in slow checkpoints and in others."""

    where: Where
    slow_ns: float  # mean
    others_ns: float  # median


def spent(history: History, point: RecordedCheckpoint) -> Counter[Where]:
    """What a checkpoint spent on each kind of step at each vertex [ns]."""
    found: Counter[Where] = Counter()
    for step in steps(history, point):
        found[step.kind, "" if step.subtask is None else step.subtask[0]] += step.duration_ns
    return found


def usual(history: History, points: Iterable[RecordedCheckpoint]) -> dict[Where, float]:
    """The median of each over the checkpoints; 0 where it is not on the path."""
    rows = [spent(history, point) for point in points if point.tasks]
    return {where: float(median(row[where] for row in rows)) for where in dict.fromkeys(where for row in rows for where in row)}


def profile(history: History, slow: Sequence[RecordedCheckpoint], others: Sequence[RecordedCheckpoint]) -> list[Row]:
    """What takes longest in the slow ones first; without slow ones in the others."""
    rows = [spent(history, point) for point in slow if point.tasks]
    of_others = usual(history, others)
    names = dict.fromkeys([*(where for row in rows for where in row), *of_others])
    found = [Row(where, fmean(row[where] for row in rows) if rows else 0.0, of_others.get(where, 0.0)) for where in names]
    return sorted(found, key=lambda row: (-row.slow_ns, -row.others_ns) if rows else (-row.others_ns, 0))
