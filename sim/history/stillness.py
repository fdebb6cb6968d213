"""Whether a process stood still during a checkpoint: no subtask of a task manager reached any stage, and more than one kind of work waited.

A full collection of garbage, a stopped or swapped process, or a host that runs something else all look like that in Flink's statistics.
Back-pressure does not: it keeps barriers behind data, but a source takes the coordinator's call, and files are written, as quickly as ever.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from sim.history.history import History, SubtaskId
from sim.history.moments import Moments, moments, writers_of
from sim.metrics.critical_path import PathKind
from sim.recordings.source.recorded_job import RecordedCheckpoint
from sim.units import MS

_LEAST_NS = 500 * MS
"""Shorter pauses are common where cores are busy."""
_LEAST = 0.25
"""A pause is a cause from this share of the duration on."""
_BEYOND = 3
"""Work has waited if it took so many times as long as usually."""
_FEWEST = 3
"""What is usual follows from so many other checkpoints."""
_FREE = frozenset({PathKind.TASK_THREAD, PathKind.SYNC, PathKind.ASYNC_WORK})
"""Work that no back-pressure makes longer."""


class DueWork(NamedTuple):
    """Work of a subtask that was due, and took until `end_ns` after the trigger."""

    subtask: SubtaskId
    kind: PathKind
    begin_ns: int
    end_ns: int


class Stillness(NamedTuple):
    """A time in which no subtask of a task manager reached a stage [ns after the trigger]."""

    manager: str
    begin_ns: int
    end_ns: int
    subtasks: int  # that waited
    moved: bool | None  # whether other task managers did meanwhile; None: there is none

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.begin_ns


def stillnesses(history: History, point: RecordedCheckpoint) -> Iterator[Stillness]:
    """The longest of each task manager that stood still.  Where subtasks run has to be known."""
    reached = moments(history, point)
    usual = _usual_ns(history, point.id)
    by_manager: dict[str, list[DueWork]] = defaultdict(list)
    for wait in waits(history, reached):
        by_manager[history.task_managers.get(wait.subtask, "")].append(wait)
    by_manager.pop("", None)
    stages = {manager: sorted({wait.end_ns for wait in found}) for manager, found in by_manager.items()}
    for manager, found in by_manager.items():
        still = max(_gaps(found, stages[manager], usual), key=lambda gap: gap[1] - gap[0], default=None)
        if still is not None and still[1] - still[0] >= max(_LEAST_NS, _LEAST * point.end_to_end_duration * MS):
            others = [time_ns for other, times in stages.items() if other != manager for time_ns in times]
            moved = any(still[0] < time_ns < still[1] for time_ns in others) if others else None
            yield Stillness(manager, *still, moved)


def waits(history: History, reached: Mapping[SubtaskId, Moments]) -> Iterator[DueWork]:
    """All that a subtask was given to do in a checkpoint, and when it was through.  Alignments are left out: others decide them."""
    for name, row in reached.items():
        sent = [reached[writer].forwarded_ns for writer in writers_of(history, name) if writer in reached]
        if not history.vertex(name[0]).inputs:
            yield DueWork(name, PathKind.TASK_THREAD, 0, row.first_ns)
        elif sent and min(sent) <= row.first_ns:
            yield DueWork(name, PathKind.QUEUE, min(sent), row.first_ns)
        yield DueWork(name, PathKind.SYNC, row.forwarded_ns, row.synced_ns)
        if not row.unaligned:
            yield DueWork(name, PathKind.ASYNC_WORK, row.synced_ns, row.written_ns)
        yield DueWork(name, PathKind.ACKNOWLEDGEMENT, row.written_ns, row.acknowledged_ns)


def _gaps(found: list[DueWork], stages: list[int], usual: Mapping[tuple[SubtaskId, PathKind], float]) -> Iterator[tuple[int, int, int]]:
    """(begin, end, subtasks that waited): times between two stages in which all that was due took far longer than usually."""
    for begin_ns, end_ns in pairwise([0, *stages]):
        if end_ns - begin_ns < _LEAST_NS:
            continue
        late = end_ns - (end_ns - begin_ns) // 2
        during = [wait for wait in found if wait.begin_ns <= late and wait.end_ns >= end_ns]
        if not during or not all(_overran(wait, end_ns - begin_ns, usual) for wait in during):
            continue
        subtasks = {wait.subtask for wait in during}
        if len(subtasks) > 1 and len({wait.kind for wait in during}) > 1 and _FREE & {wait.kind for wait in during}:
            yield begin_ns, end_ns, len(subtasks)


def _overran(wait: DueWork, pause_ns: int, usual: Mapping[tuple[SubtaskId, PathKind], float]) -> bool:
    usual_ns = usual.get((wait.subtask, wait.kind))
    took_ns = wait.end_ns - wait.begin_ns
    return usual_ns is not None and took_ns >= _BEYOND * usual_ns and took_ns - usual_ns >= pause_ns / 2


def _usual_ns(history: History, but: int) -> Mapping[tuple[SubtaskId, PathKind], float]:
    """The median of each kind of work over the other checkpoints."""
    seen: dict[tuple[SubtaskId, PathKind], list[int]] = defaultdict(list)
    for number, found in _all_waits(history).items():
        for wait in found if number != but else ():
            seen[wait.subtask, wait.kind].append(wait.end_ns - wait.begin_ns)
    return {what: median(times) for what, times in seen.items() if len(times) >= _FEWEST}


@lru_cache(maxsize=1)
def _all_waits(history: History) -> Mapping[int, tuple[DueWork, ...]]:
    """By checkpoint.  Each checkpoint is compared with all others; they are read once."""
    return {point.id: tuple(waits(history, moments(history, point))) for point in history.detailed if not point.is_savepoint}
