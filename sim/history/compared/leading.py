"""The leading part of a checkpoint: where most of its time went, in classes that both Flink's statistics and a journal can tell apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from sim.history.history import History
from sim.history.path import NEAR, PathStep, near_paths, steps
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
        (PathKind(part), str(vertex), int(took)) for part, vertex, took in zip(rows["part"], rows["vertex"], rows["duration"], strict=True)
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
        least_ns = parts[first] - NEAR * sum(parts.values())
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
