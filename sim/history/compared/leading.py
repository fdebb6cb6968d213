"""The leading part of a checkpoint: where most of its time went, in classes that both Flink's statistics and a journal can tell apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from sim.history.history import History
from sim.history.path import steps
from sim.metrics.critical_path import Kind
from sim.recordings.source.recorded_job import Checkpoint

if TYPE_CHECKING:
    import pandas as pd


CLASSES: Mapping[Kind, str] = {
    Kind.TRIGGER: "call",
    Kind.TASK_THREAD: "call",
    Kind.FLUSH: "work before barrier",
    Kind.PRE_BARRIER: "work before barrier",
    Kind.ASYNC_QUEUE: "asynchronous part",
    Kind.ASYNC_WORK: "asynchronous part",
    Kind.UPLOAD: "asynchronous part",
    Kind.OUTPUT: "asynchronous part",
    Kind.CHANNEL_STATE: "asynchronous part",
}
"""Kinds that statistics cannot tell apart; any other is a class by itself."""
WAY = dict.fromkeys((kind.value for kind in (Kind.QUEUE, Kind.ALIGNMENT, Kind.TIMEOUT)), "a barrier on its way")
"""Classes that are one where only the kind is asked for."""
NEAR = 0.1
"""Parts are equally long if they differ by no more than this share of the duration: then either may lead."""


class Part(NamedTuple):
    what: str
    vertex: str  # empty: the call, whichever source it is for


def of_statistics(history: History, point: Checkpoint) -> Counter[Part]:
    """What Flink's statistics say each took [ns]."""
    path = steps(history, point)
    return _summed((step.kind, "" if step.subtask is None else step.subtask[0], step.duration_ns) for step in path)


def of_journal(path: pd.DataFrame) -> Counter[Part]:
    """What the journal of a simulation says; `path`: the rows of one checkpoint in the table `path`."""
    rows = path[~path["acknowledged"]]
    return _summed(
        (Kind(part), str(vertex), int(took)) for part, vertex, took in zip(rows["part"], rows["vertex"], rows["duration"], strict=True)
    )


def leading(parts: Mapping[Part, int]) -> Part | None:
    """None: nothing is known."""
    return max(parts, key=lambda part: parts[part], default=None)


def agree(parts: Mapping[Part, int], other: Mapping[Part, int]) -> bool:
    """Whether the leading part of the one leads the other, or is as long there as what leads."""
    first, second = leading(parts), leading(other)
    return first is not None and second is not None and other.get(first, 0) >= other[second] - NEAR * sum(other.values())


def _summed(rows: Iterable[tuple[Kind, str, int]]) -> Counter[Part]:
    found: Counter[Part] = Counter()
    for kind, vertex, took_ns in rows:
        what = CLASSES.get(kind, kind.value)
        found[Part(what, "" if what == "call" else vertex)] += took_ns
    return found
