"""The leading part of a checkpoint: where most of its time went, in classes that both Flink's statistics and a journal can tell apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from sim.history.history import History
from sim.history.path import steps
from sim.metrics.critical_path import PathKind
from sim.recordings.source.recorded_job import RecordedCheckpoint

if TYPE_CHECKING:
    import pandas as pd


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
WAY = dict.fromkeys((kind.value for kind in (PathKind.QUEUE, PathKind.ALIGNMENT, PathKind.TIMEOUT)), "a barrier on its way")
"""Classes that are one where only the kind is asked for."""
NEAR = 0.1
"""Parts are equally long if they differ by no more than this share of the duration: then either may lead."""


class LeadingPart(NamedTuple):
    what: str
    vertex: str  # empty: the call, whichever source it is for


def of_statistics(history: History, point: RecordedCheckpoint) -> Counter[LeadingPart]:
    """What Flink's statistics say each took [ns]."""
    path = steps(history, point)
    return _summed((step.kind, "" if step.subtask is None else step.subtask[0], step.duration_ns) for step in path)


def of_journal(path: pd.DataFrame) -> Counter[LeadingPart]:
    """What the journal of a simulation says; `path`: the rows of one checkpoint in the table `path`."""
    rows = path[~path["acknowledged"]]
    return _summed(
        (PathKind(part), str(vertex), int(took)) for part, vertex, took in zip(rows["part"], rows["vertex"], rows["duration"], strict=True)
    )


def leading(parts: Mapping[LeadingPart, int]) -> LeadingPart | None:
    """None: nothing is known."""
    return max(parts, key=lambda part: parts[part], default=None)


def agree(parts: Mapping[LeadingPart, int], other: Mapping[LeadingPart, int]) -> bool:
    """Whether the leading part of the one leads the other, or is as long there as what leads."""
    first, second = leading(parts), leading(other)
    return first is not None and second is not None and other.get(first, 0) >= other[second] - NEAR * sum(other.values())


def _summed(rows: Iterable[tuple[PathKind, str, int]]) -> Counter[LeadingPart]:
    found: Counter[LeadingPart] = Counter()
    for kind, vertex, took_ns in rows:
        what = CLASSES.get(kind, kind.value)
        found[LeadingPart(what, "" if what == "call" else vertex)] += took_ns
    return found
