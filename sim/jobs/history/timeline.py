"""Checkpoints of a real job -> the events of their timeline, from Flink's statistics: what each subtask did, and the critical paths.

Tracks and names are those of a simulated run.  What statistics do not tell is not drawn: threads, queues, files, and
ways of barriers that are on no critical path.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sim.explain.timeline import Drawing, Timeline, TimelineSlice, WindowError, trace_text
from sim.jobs.history.causes import name_of, place
from sim.jobs.history.history import History, Moments, SubtaskId, asked_for, moments
from sim.jobs.history.path import PathStep, steps
from sim.jobs.source.recorded_job import RecordedCheckpoint
from sim.model.text import one_line
from sim.model.units import MS, format_duration

_INSTANT_NS = 1
"""An instant is as long as it must be to be seen and to end an arrow."""


@dataclass(frozen=True, slots=True)
class JobWindow:
    """A part of a history; times are ns since its first known trigger."""

    begin_ns: int
    end_ns: int


def window_of(history: History, checkpoint: int | None, begin_ns: int, end_ns: int | None) -> JobWindow:
    """All of a history, or one checkpoint.  MissingCheckpointError: it is not there.  WindowError: nothing lies in the window."""
    if checkpoint is not None:
        point = asked_for(history, checkpoint)
        at_ns = _since_ns(history, point)
        return JobWindow(at_ns, at_ns + max(_length_ns(point), _INSTANT_NS))
    last_ns = max((_since_ns(history, point) + _length_ns(point) for point in history.checkpoints), default=0)
    end_ns = last_ns if end_ns is None else min(end_ns, last_ns)
    if begin_ns >= end_ns:
        raise WindowError("begin", f"the history ends at {format_duration(end_ns)}: nothing lies behind it")
    return JobWindow(begin_ns, end_ns)


def job_timeline(history: History, window: JobWindow, limit: int) -> Timeline:
    """The timeline of a window.  `limit`: the largest number of events, names apart."""
    page = Drawing(window.begin_ns, window.end_ns)
    points = [point for point in history.checkpoints if _overlaps(history, point, window)]
    paths = {point.id: steps(history, point) for point in points}
    found = {point.id: moments(history, point) for point in points}
    page.process("coordinator", [("checkpoints", [_checkpoint(history, point) for point in points])])
    page.process(
        "critical paths", [("parts", [row for point in points for row in _parts(history, point, paths[point.id])])]
    )
    where = _vertices(page, history, points, found)
    work = {name: list(_asynchronous(history, points, found, name)) for name in where}
    page.process("asynchronous threads", [(name_of(name), work[name]) for name in where if work[name]])
    for point in points:
        path = paths[point.id]
        for step, after in pairwise((*path, None)):
            if step is not None and (after is None or (after.writer, after.subtask) != (step.writer, step.subtask)):
                _arrow(page, history, point, step, found, where)
    return page.cut(limit)


def job_document(history: History, drawn: Timeline) -> str:
    """The timeline as Trace Event JSON, on one line."""
    first_ms = history.checkpoints[0].trigger_timestamp if history.checkpoints else 0
    about = {
        "run": f"{history.name}, {history.strategy or 'barriers not known'}",
        "flink": history.flink_version,
        "begins_ms": first_ms,
        "left_out": drawn.left_out,
    }
    return trace_text(drawn, about)


_Where = dict[SubtaskId, tuple[int, dict[tuple[str, int], int]]]
"""By subtask: its process, and the tracks of (slice, begin)."""
_Found = dict[int, dict[SubtaskId, Moments]]


def _vertices(page: Drawing, history: History, points: Sequence[RecordedCheckpoint], found: _Found) -> _Where:
    where: _Where = {}
    for vertex in history.vertices:
        names = sorted({name for rows in found.values() for name in rows if name[0] == vertex.name})
        if not names:
            continue
        tracks: list[tuple[str, Sequence[TimelineSlice]]] = []
        for name in names:
            tracks.append((f"{name_of(name)} snapshots", list(_snapshots(history, points, found, name))))
            tracks.append((f"{name_of(name)} barriers", list(_barriers(history, points, found, name))))
        drawn = page.process(vertex.name, tracks)
        where |= dict.fromkeys(names, drawn)
    return where


def _checkpoint(history: History, point: RecordedCheckpoint) -> TimelineSlice:
    name = f"savepoint {point.id}" if point.is_savepoint else f"checkpoint {point.id}"
    values = {"status": point.status, "failure": one_line(point.failure_message, 200), "bytes": point.checkpointed_size}
    return _slice(history, point, name, 0, max(_length_ns(point), _INSTANT_NS), **values)


def _parts(history: History, point: RecordedCheckpoint, path: Sequence[PathStep]) -> Iterator[TimelineSlice]:
    for step in path:
        yield _slice(
            history, point, f"{step.kind.value}, {place(step)}", step.begin_ns, step.end_ns, checkpoint=point.id
        )


def _snapshots(
    history: History, points: Sequence[RecordedCheckpoint], found: _Found, name: SubtaskId
) -> Iterator[TimelineSlice]:
    for point in points:
        row = found[point.id].get(name)
        if row is None:
            continue
        for text, begin_ns, end_ns in (
            (f"waits for alignment {point.id}", row.first_ns, row.begun_ns),
            (f"before barrier {point.id}", row.begun_ns, row.forwarded_ns),
            (f"sync {point.id}", row.forwarded_ns, row.synced_ns),
        ):
            if end_ns > begin_ns:
                yield _slice(history, point, text, begin_ns, end_ns)


def _asynchronous(
    history: History, points: Sequence[RecordedCheckpoint], found: _Found, name: SubtaskId
) -> Iterator[TimelineSlice]:
    for point in points:
        row = found[point.id].get(name)
        if row is not None and row.written_ns > row.synced_ns:
            written = next(
                (task.checkpointed_size for task in point.tasks[name[0]].subtasks if task.index == name[1]), 0
            )
            yield _slice(history, point, f"async {point.id}", row.synced_ns, row.written_ns, bytes=written)


def _barriers(
    history: History, points: Sequence[RecordedCheckpoint], found: _Found, name: SubtaskId
) -> Iterator[TimelineSlice]:
    """The first and the last that come, and its own that leave: Flink does not say from whom they come."""
    reads = bool(history.vertex(name[0]).inputs)
    for point in points:
        row = found[point.id].get(name)
        if row is None:
            continue
        arrivals = (
            {f"first barrier {point.id} arrives": row.first_ns, f"last barrier {point.id} arrives": row.last_ns}
            if reads
            else {}
        )
        for text, time_ns in (arrivals | {f"barrier {point.id} leaves": row.forwarded_ns}).items():
            yield _slice(history, point, text, time_ns, time_ns + _INSTANT_NS)


def _arrow(
    page: Drawing, history: History, point: RecordedCheckpoint, step: PathStep, found: _Found, where: _Where
) -> None:
    """The way of a barrier on the critical path ends where the reader's wait for it does."""
    if step.writer is None or step.subtask is None or step.writer not in where or step.subtask not in where:
        return
    at_ns = _since_ns(history, point)
    (start, starts), (end, ends) = where[step.writer], where[step.subtask]
    left_ns, came_ns = at_ns + found[point.id][step.writer].forwarded_ns, at_ns + step.end_ns
    tail = starts.get((f"barrier {point.id} leaves", left_ns))
    head = ends.get(
        (f"last barrier {point.id} arrives", came_ns), ends.get((f"first barrier {point.id} arrives", came_ns))
    )
    if tail is not None and head is not None and page.inside(left_ns) and page.inside(came_ns + _INSTANT_NS):
        page.arrow(f"barrier {point.id}", (start, tail, left_ns), (end, head, came_ns))


def _slice(
    history: History, point: RecordedCheckpoint, text: str, begin_ns: int, end_ns: int, **values: object
) -> TimelineSlice:
    """A slice of a track.  Times count from the trigger."""
    at_ns = _since_ns(history, point)
    return TimelineSlice(text, at_ns + begin_ns, at_ns + end_ns, values)


def _since_ns(history: History, point: RecordedCheckpoint) -> int:
    return (point.trigger_timestamp - history.checkpoints[0].trigger_timestamp) * MS


def _length_ns(point: RecordedCheckpoint) -> int:
    return max(point.end_to_end_duration, 0) * MS


def _overlaps(history: History, point: RecordedCheckpoint, window: JobWindow) -> bool:
    begin_ns = _since_ns(history, point)
    return begin_ns < window.end_ns and begin_ns + max(_length_ns(point), _INSTANT_NS) > window.begin_ns
