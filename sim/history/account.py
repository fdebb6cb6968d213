"""A real checkpoint as an account: the same values, and so the same waterfall and the same words, as a simulated one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from sim.explain.account import Account, AccountLine
from sim.explain.what_if import bound
from sim.foreign import one_line
from sim.history.causes import HistoryCauses, place
from sim.history.history import History, SubtaskId
from sim.history.path import PathStep, steps
from sim.metrics.critical_path import CriticalPath, PathPart
from sim.metrics.stats import CheckpointStats
from sim.recordings.source.recorded_job import RecordedCheckpoint
from sim.units import MS


def account(history: History, point: RecordedCheckpoint) -> Account:
    """An account has no lines if Flink kept no statistics of the subtasks."""
    found, stats = steps(history, point), _stats(point)
    numbers: dict[SubtaskId, int] = {}
    parts = [_part(step, numbers, stats.trigger_ns) for step in found]
    path = CriticalPath(point.id, tuple(parts), is_open=point.status != "COMPLETED")
    return Account(history.strategy or "barriers not known", 0, stats, path, tuple(_lines(history, point, found, parts)), ())


def _lines(history: History, point: RecordedCheckpoint, found: Sequence[PathStep], parts: Sequence[PathPart]) -> Iterator[AccountLine]:
    causes = HistoryCauses(history, point)
    for _, group in groupby(zip(found, parts, strict=True), key=lambda pair: (pair[0].kind, pair[0].subtask, pair[0].writer)):
        alike = list(group)
        step = alike[0][0]
        spent_ns = sum(part.duration_ns for _, part in alike)
        change = None if step.is_open else bound(step.kind, spent_ns, overtakes=history.overtakes)
        yield AccountLine(tuple(part for _, part in alike), place(step), causes.text(step), change)


def _part(step: PathStep, numbers: dict[SubtaskId, int], trigger_ns: int) -> PathPart:
    """Subtasks are numbered as they come; a channel has the number of its writer."""
    task, writer = (-1 if name is None else numbers.setdefault(name, len(numbers)) for name in (step.subtask, step.writer))
    return PathPart(step.kind, trigger_ns + step.begin_ns, trigger_ns + step.end_ns, task, writer)


def _stats(point: RecordedCheckpoint) -> CheckpointStats:
    trigger_ns = point.trigger_timestamp * MS
    end_ns = trigger_ns + max(point.end_to_end_duration, 0) * MS
    savepoint = "" if not point.is_savepoint else "stopping" if point.checkpoint_type.startswith("SYNC") else "requested"
    return CheckpointStats(
        point.id, trigger_ns, point.num_subtasks, point.status, end_ns if point.status == "COMPLETED" else -1,
        point.num_acknowledged_subtasks, end_ns if point.status == "FAILED" else -1,
        one_line(point.failure_message.rstrip(". "), 200), savepoint_format=savepoint,
    )  # fmt: skip
