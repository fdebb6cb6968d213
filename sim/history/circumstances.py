"""What had happened when a checkpoint was triggered: a failure, a restart, another one under way."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from statistics import median

from sim.analysis.number_texts import ms_text
from sim.history.history import History
from sim.recordings.source.recorded_job import RecordedCheckpoint

_LATE = 1.5
"""A trigger is late from so many times the usual distance on."""
_FEWEST = 4


def circumstances(history: History, point: RecordedCheckpoint) -> Iterator[str]:
    """Sentences about one checkpoint."""
    before = previous(history, point)
    if point.id == 1:
        yield "It is the job's first: code is not compiled yet, files and connections are new, and no earlier file can be used again."
    if point.is_savepoint:
        yield "It is a savepoint: all state is written anew, in a format and to a folder of its own, which may be slower."
    if before is not None and before.status == "FAILED":
        yield f"Checkpoint {before.id} before it did not complete."
    if failures := _failures_since(history, point, before):
        yield f"Tasks of the job had failed {ms_text(point.trigger_timestamp - max(failures))} before it was triggered."
    elif before is not None and before.is_savepoint and _ended_ms(before) > before.trigger_timestamp + _usual_distance_ms(history) > 0:
        passed = ms_text(max(0, point.trigger_timestamp - _ended_ms(before)))
        took = ms_text(before.end_to_end_duration)
        yield f"Savepoint {before.id} had taken {took} until {passed} before it was triggered: periodic checkpoints wait for savepoints."
    elif before is not None and is_after_gap(history, point):
        distance, usual = ms_text(point.trigger_timestamp - before.trigger_timestamp), ms_text(_usual_distance_ms(history))
        yield f"It was triggered {distance} after the one before, usually {usual} pass: the job may have been restarted in between."
    for other in history.checkpoints:
        if overlaps(point, other):
            yield f"{'Savepoint' if other.is_savepoint else 'Checkpoint'} {other.id} was under way at the same time."


def previous(history: History, point: RecordedCheckpoint) -> RecordedCheckpoint | None:
    return max((other for other in history.checkpoints if other.id < point.id), key=lambda other: other.id, default=None)


def follows_failure(history: History, point: RecordedCheckpoint) -> bool:
    before = previous(history, point)
    return before is not None and before.status == "FAILED"


def follows_fault(history: History, point: RecordedCheckpoint) -> bool:
    """Whether tasks had failed since the checkpoint before."""
    return bool(_failures_since(history, point, previous(history, point)))


def is_after_gap(history: History, point: RecordedCheckpoint) -> bool:
    """Whether triggers paused before it, and no long checkpoint was why."""
    before, usual_ms = previous(history, point), _usual_distance_ms(history)
    if before is None or before.id != point.id - 1 or not usual_ms or before.is_savepoint or point.is_savepoint:
        return False
    return point.trigger_timestamp - before.trigger_timestamp > _LATE * usual_ms and before.end_to_end_duration < usual_ms


def overlaps(point: RecordedCheckpoint, other: RecordedCheckpoint) -> bool:
    """Whether both, which are not the same, were under way at one time."""
    begin, end = point.trigger_timestamp, point.trigger_timestamp + point.end_to_end_duration
    return other.id != point.id and other.trigger_timestamp < end and other.trigger_timestamp + max(other.end_to_end_duration, 0) > begin


def _ended_ms(point: RecordedCheckpoint) -> int:
    return point.trigger_timestamp + max(point.end_to_end_duration, 0)


def _failures_since(history: History, point: RecordedCheckpoint, before: RecordedCheckpoint | None) -> list[int]:
    since_ms = 0 if before is None else before.trigger_timestamp
    return [failure for failure in history.failures_ms if since_ms <= failure <= point.trigger_timestamp]


def _usual_distance_ms(history: History) -> float:
    """The median distance of triggers that follow one another; 0: too few are known."""
    points = [point for point in history.checkpoints if not point.is_savepoint]
    distances = [after.trigger_timestamp - before.trigger_timestamp for before, after in pairwise(points) if after.id == before.id + 1]
    return float(median(distances)) if len(distances) >= _FEWEST else 0.0
