"""Estimate the size of state kept in files that outlive a checkpoint (RocksDB, a changelog) from the checkpoint history.

Flink's `state_size` includes overwritten entries until compaction merges them:

    state_size
      |        .'|      .'|         rises by one increment per checkpoint,
      |     .'   |   .'   |   .'    falls when a compaction merged files or a materialization truncated the changelog.
      |  .'      |.'      |.'       Right after a fall it is the state plus one increment.
      +----------------------------> checkpoints
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import linear_regression, median

from sim.jobs.source.recorded_job import RecordedCheckpoint, RecordedSubtask
from sim.jobs.source.rest_job import RestJob
from sim.model.storage import Storage
from sim.model.units import UnitError, parse_flink_size

_MIN_FALLS_FOR_GROWTH = 3
"""Minimum falls from which growth is inferred."""
FALLS_FOR_GROWTH = 4
"""Latest falls from which growth is computed.  Older ones would show the faster growth of a job that was still filling."""
_MIN_GROWTH_FACTOR = 1.02
"""Minimum ratio of the sizes after consecutive falls for the state to be growing."""


def own_bytes(subtask: RecordedSubtask) -> int:
    """Return the bytes of state that a snapshot refers to, without in-flight data."""
    return max(subtask.state_size - max(subtask.alignment.persisted, 0), 0)


def written_bytes(subtask: RecordedSubtask) -> int:
    """Return the bytes of state written for this checkpoint, without in-flight data."""
    return max(subtask.checkpointed_size - max(subtask.alignment.persisted, 0), 0)


def inline_bytes(job: RestJob) -> int:
    """Return the largest state [bytes] that is sent in the acknowledgement instead of being written to a file."""
    threshold = job.options.get("execution.checkpointing.data-inline-threshold")
    try:
        return Storage().inline_threshold_bytes if threshold is None else parse_flink_size(threshold)
    except UnitError:
        return Storage().inline_threshold_bytes


# ---- Do checkpoints share files with earlier ones?  The checkpointed size (written) is compared with the full size (referenced).

_MIN_CHECKPOINTS = 3
"""Minimum number of checkpoints, without the job's first, which has no earlier files to share."""
_EQUAL_SIZE_SHARE, _MIN_SHARE_OF_CHECKPOINTS = 0.98, 0.9
"""Minimum checkpointed size / full size that counts as equal, and minimum share of checkpoints with equal sizes."""


def written_whole(
    points: Iterable[RecordedCheckpoint],
) -> tuple[Sequence[RecordedCheckpoint], Sequence[RecordedCheckpoint]]:
    """Return (completed checkpoints with sizes, those of them that wrote all that they refer to), or nothing if few did.

    In-flight data is left out: it is part of both sizes, and never shared.
    """
    sized = [point for point in points if point.state_size > point.persisted_data and point.checkpointed_size >= 0]
    sized = [point for point in sized if point.status == "COMPLETED" and not point.is_savepoint and point.id > 1]
    whole = [
        point
        for point in sized
        if point.checkpointed_size - point.persisted_data
        >= _EQUAL_SIZE_SHARE * (point.state_size - point.persisted_data)
    ]
    is_usual = len(sized) >= _MIN_CHECKPOINTS and len(whole) >= _MIN_SHARE_OF_CHECKPOINTS * len(sized)
    return (sized, whole) if is_usual else ((), ())


Acknowledgement = tuple[RecordedCheckpoint, RecordedSubtask]
"""A checkpoint, and a subtask that acknowledged it."""


@dataclass(frozen=True, slots=True)
class Files:
    """The state files of one subtask, estimated from its history."""

    increment_bytes: float  # growth of the files from one checkpoint to the next
    falls: tuple[Acknowledgement, ...]  # the checkpoints whose files had been merged
    size_bytes: float  # of the state, right after the last fall
    bytes_per_second: float  # growth of the state

    def size_at(self, seconds: float) -> float:
        """Return the size of the state at a time [s since the epoch], extrapolated from the last fall."""
        return max(
            self.size_bytes - self.bytes_per_second * (self.falls[-1][0].trigger_timestamp / 1000 - seconds), 0.0
        )


def acknowledged_by(point: RecordedCheckpoint, vertex: str) -> list[RecordedSubtask]:
    """Return the subtasks of a vertex that acknowledged a checkpoint."""
    subtasks = point.tasks[vertex].subtasks if vertex in point.tasks else ()
    return [subtask for subtask in subtasks if subtask.status == "completed"]


def acknowledged(points: Iterable[RecordedCheckpoint], vertex: str) -> dict[int, list[Acknowledgement]]:
    """Return the checkpoints that each subtask acknowledged.  One pass, because jobs may have thousands of subtasks."""
    pairs_by_subtask: dict[int, list[Acknowledgement]] = {}
    for point in points:
        for subtask in acknowledged_by(point, vertex):
            pairs_by_subtask.setdefault(subtask.index, []).append((point, subtask))
    return pairs_by_subtask


def files_of(acknowledgements: Sequence[Acknowledgement]) -> Files | None:
    """Estimate the files of a subtask.  Returns None if they never grew or never fell: then the share of state is unknown."""
    sizes = [own_bytes(subtask) for _, subtask in acknowledgements]
    rises = [rise for before, after in pairwise(sizes) if (rise := after - before) > 0]
    if not rises:
        return None
    increment = median(rises)
    falls = tuple(
        acknowledgement
        for acknowledgement, (before, after) in zip(acknowledgements[1:], pairwise(sizes), strict=True)
        if after < before + increment / 2
    )
    if not falls:
        return None
    latest = falls[-FALLS_FOR_GROWTH:]
    states = [max(own_bytes(subtask) - increment, 0.0) for _, subtask in latest]
    grows = len(falls) >= _MIN_FALLS_FOR_GROWTH and all(
        after > _MIN_GROWTH_FACTOR * before for before, after in pairwise(states[-_MIN_FALLS_FOR_GROWTH:])
    )
    slope = linear_regression([point.trigger_timestamp / 1000 for point, _ in latest], states).slope if grows else 0.0
    return Files(increment, falls, states[-1], max(slope, 0.0))


def state_below_changelog(files: Files, flushed_bytes: float) -> float:
    """Estimate the state in RocksDB below a changelog, whose materialization also contains overwritten entries.

    `flushed_bytes`, x, are written between two materializations.  The smaller of the last two materializations has a
    size of s + s (1 - exp(-x / s)), where s is the state.  This function solves the equation for s.
    """
    first_bytes = min(own_bytes(subtask) for _, subtask in files.falls[-2:]) - files.increment_bytes
    size = first_bytes
    for _ in range(50):  # fixed-point iteration: the right side increases with s, but more slowly than s
        size = first_bytes / (2 - math.exp(-flushed_bytes / max(size, 1.0)))
    return max(size, 0.0)


def rewritten_bytes(increment_bytes: float, size_bytes: float) -> float:
    """Return the bytes of all writes between two checkpoints, of which an increment contains each key once.

    Keys are assumed equally likely: n writes of v bytes into s bytes of state give an increment of
    s (1 - exp(-n v / s)) bytes.
    """
    share = increment_bytes / size_bytes if size_bytes > 0 else 1.0
    return -size_bytes * math.log(1 - share) if share < 1 else increment_bytes


def increment_bytes(size_bytes: float, value_bytes: float, writes: float) -> float:
    """Return the size of an increment after `writes` of `value_bytes` each; the inverse of `rewritten_bytes`."""
    return size_bytes * -math.expm1(-writes * value_bytes / size_bytes) if size_bytes > 0 else 0.0


def seconds_between(points: Sequence[RecordedCheckpoint]) -> float:
    """Return the median time between two triggers, or 0 with fewer than two checkpoints."""
    gaps = [after.trigger_timestamp - before.trigger_timestamp for before, after in pairwise(points)]
    return median(gaps) / 1000 if gaps else 0.0
