"""State whose files outlive a checkpoint (RocksDB, a changelog), read off the history of written and of referenced bytes.

`state_size` counts overwritten entries until they are merged.  From one checkpoint to the next it rises by what was written, and falls when
files were merged, or when a materialisation cut the log.  Right after a fall it is the state itself and one increment.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import linear_regression, median

from sim.jobs.source.recorded_job import RecordedCheckpoint, RecordedSubtask

_MIN_FALLS = 3
"""Fewer falls tell no growth."""
_LATEST_FALLS = 4
"""Growth is read off so many: a job that has just been filled grew faster before."""
_RISE = 1.02
"""From one fall to the next: less is no growth."""


def own_bytes(subtask: RecordedSubtask) -> int:
    """The state that a snapshot refers to, without in-flight data."""
    return max(subtask.state_size - max(subtask.alignment.persisted, 0), 0)


def written_bytes(subtask: RecordedSubtask) -> int:
    """The state that was written for this checkpoint, without in-flight data."""
    return max(subtask.checkpointed_size - max(subtask.alignment.persisted, 0), 0)


@dataclass(frozen=True, slots=True)
class Point:
    """The sizes of one subtask in one checkpoint."""

    checkpoint: int
    seconds: float
    full_bytes: int


@dataclass(frozen=True, slots=True)
class Files:
    """The files of one subtask, as its history shows them."""

    increment_bytes: float  # by which files grow between two checkpoints
    falls: tuple[Point, ...]  # checkpoints with merged files
    size_bytes: float  # of the state, right after the last fall
    bytes_per_second: float  # by which that grows

    @property
    def every(self) -> float:
        """Checkpoints from one fall to the next; NaN: there was one at most."""
        gaps = [after.checkpoint - before.checkpoint for before, after in pairwise(self.falls)]
        return median(gaps) if gaps else math.nan

    def size_at(self, seconds: float) -> float:
        return max(self.size_bytes - self.bytes_per_second * (self.falls[-1].seconds - seconds), 0.0)


def acknowledged(
    points: Iterable[RecordedCheckpoint], vertex: str
) -> dict[int, list[tuple[RecordedCheckpoint, RecordedSubtask]]]:
    """By subtask, the checkpoints that it acknowledged; in one pass, for jobs of a thousand subtasks."""
    found: dict[int, list[tuple[RecordedCheckpoint, RecordedSubtask]]] = {}
    for point in points:
        for subtask in point.tasks[vertex].subtasks if vertex in point.tasks else ():
            if subtask.status == "completed":
                found.setdefault(subtask.index, []).append((point, subtask))
    return found


def history(own: Iterable[tuple[RecordedCheckpoint, RecordedSubtask]]) -> list[Point]:
    """The history of a subtask.  `own`: its acknowledgements."""
    return [Point(point.id, point.trigger_timestamp / 1000, own_bytes(subtask)) for point, subtask in own]


def files_of(points: Sequence[Point]) -> Files | None:
    """The files of a subtask.  None: they never grew or never fell, so the part that is state is unknown."""
    rises = [
        after.full_bytes - before.full_bytes
        for before, after in pairwise(points)
        if after.full_bytes > before.full_bytes
    ]
    if not rises:
        return None
    increment = median(rises)
    falls = tuple(after for before, after in pairwise(points) if after.full_bytes < before.full_bytes + increment / 2)
    if not falls:
        return None
    latest = falls[-_LATEST_FALLS:]
    sizes = [max(point.full_bytes - increment, 0.0) for point in latest]
    grows = len(falls) >= _MIN_FALLS and all(after > _RISE * before for before, after in pairwise(sizes[-_MIN_FALLS:]))
    slope = linear_regression([point.seconds for point in latest], sizes).slope if grows else 0.0
    return Files(increment, falls, sizes[-1], max(slope, 0.0))


def below_log(files: Files, flushed_bytes: float) -> float:
    """The state in RocksDB below a changelog, of which a materialisation holds overwritten entries, too.

    Between two materialisations so many bytes are rewritten.  The smaller of the last two has one increment x beside
    the state s: s + s (1 - exp(-x / s)).
    """
    first_bytes = min(point.full_bytes for point in files.falls[-2:]) - files.increment_bytes
    size = first_bytes
    for _ in range(50):  # the right side grows with s, and less than s: the iteration falls to where both are equal
        size = first_bytes / (2 - math.exp(-flushed_bytes / max(size, 1.0)))
    return max(size, 0.0)


def rewritten_bytes(increment_bytes: float, size_bytes: float) -> float:
    """Bytes of entries rewritten between two checkpoints: keys are drawn alike, and an increment has each of them once.

    With n writes of v bytes into s bytes of state an increment has s (1 - exp(-n v / s)).
    """
    share = increment_bytes / size_bytes if size_bytes > 0 else 1.0
    return -size_bytes * math.log(1 - share) if share < 1 else increment_bytes


def increment_bytes(size_bytes: float, value_bytes: float, writes: float) -> float:
    """What an increment has after so many writes of entries, keys being drawn alike: the inverse of `rewritten_bytes`."""
    return size_bytes * -math.expm1(-writes * value_bytes / size_bytes) if size_bytes > 0 else 0.0


def seconds_between(points: Sequence[RecordedCheckpoint]) -> float:
    """From one checkpoint to the next; 0: there is one."""
    gaps = [after.trigger_timestamp - before.trigger_timestamp for before, after in pairwise(points)]
    return median(gaps) / 1000 if gaps else 0.0
