"""A changelog that lies in memory: which jobs have one, and what copying a change costs, read off the history of checkpoints.

`state.changelog.storage` of a job does not tell: TaskManagers read their own configuration.  Sizes do.  What a checkpoint refers to beside
what was written for it stays the same from one materialisation to the next, because each writes the whole log.  With files it is all that
the checkpoint before had.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median

from sim.recordings.infer.draft import Draft
from sim.recordings.infer.file_history import acknowledged, own_bytes, written_bytes
from sim.recordings.source.recorded_job import RecordedCheckpoint, RecordedSubtask
from sim.units import format_duration, parse_size

_FEWEST_CHANGES = 1000
"""Fewer are copied within less than a millisecond or a few, which Flink's whole milliseconds do not tell."""


def is_in_memory(points: Iterable[RecordedCheckpoint], vertex: str) -> bool:
    """Whether most checkpoints of a vertex with a changelog wrote the whole log again."""
    same = [kept for own in acknowledged(points, vertex).values() for kept in _kept([subtask for _, subtask in own])]
    return sum(same) * 2 > len(same)


def _kept(own: Sequence[RecordedSubtask]) -> Iterable[bool]:
    """For each checkpoint with more state than the one before: whether it refers to as much beside what it wrote."""
    for before, after in pairwise(own):
        if own_bytes(after) > own_bytes(before):
            yield own_bytes(after) - written_bytes(after) == own_bytes(before) - written_bytes(before)


def infer_copying(draft: Draft, points: Iterable[RecordedCheckpoint], vertex: str) -> None:
    """Set what one change costs on the task thread: the synchronous part over the changes that were written."""
    value_bytes = parse_size(draft.document["job"][vertex]["state"].get("value", "1 kB"))
    found = [
        subtask.checkpoint.sync * 10**6 * value_bytes / written_bytes(subtask)
        for own in acknowledged(points, vertex).values() for _, subtask in own
        if subtask.checkpoint.sync >= 0 and written_bytes(subtask) >= _FEWEST_CHANGES * value_bytes
    ]  # fmt: skip
    if found:
        each_ns = round(median(found))
        origin = f"median over {len(found)} snapshots of sync duration / (written bytes / {value_bytes:,} bytes)"
        draft.put("state.changelog.change-copy", format_duration(max(each_ns, 1)), origin, job=vertex)
