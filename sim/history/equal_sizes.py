"""Whether checkpoints share files with earlier ones, by their two sizes: what was written for each, and all that it refers to."""

from __future__ import annotations

from collections.abc import Sequence

from sim.analysis.number_texts import bytes_text
from sim.model.catalogs.backends import BACKENDS, backend_named
from sim.model.storage import Storage
from sim.recordings.source.recorded_job import RecordedCheckpoint
from sim.recordings.source.rest.job import RestJob

INLINE_BYTES = Storage().inline_threshold_bytes
_LEAST = 3
"""Checkpoints that tell; the first one of a job has nothing to share."""
_EQUAL, _NEARLY_ALL = 0.98, 0.9
_THRESHOLD = "state.storage.fs.memory-threshold"


def sharing_of_job(job: RestJob, points: Sequence[RecordedCheckpoint], inline_bytes: int) -> str:
    """Of a job with its configuration.  Empty: increments are not configured, or the sizes differ."""
    wanted = job.options.get("execution.checkpointing.incremental", job.options.get("state.backend.incremental", "false"))
    backend = "" if job.checkpoint_config is None else job.checkpoint_config.state_backend or ""
    return sharing(points, inline_bytes, backend=backend) if wanted.lower() == "true" else ""


def sharing(points: Sequence[RecordedCheckpoint], inline_bytes: int = INLINE_BYTES, *, backend: str | None = None) -> str:
    """What equal sizes say.  Empty: they differ, or are not known.  `backend`: the class; None: nor is it known what is configured."""
    told = [
        point for point in points
        if point.status == "COMPLETED" and not point.is_savepoint and point.id > 1 and point.state_size > 0 and point.checkpointed_size >= 0
    ]  # fmt: skip
    equal = [point for point in told if point.checkpointed_size >= _EQUAL * point.state_size]
    if len(told) < _LEAST or len(equal) < _NEARLY_ALL * len(told):
        return ""
    count = f"all {len(told)}" if len(equal) == len(told) else f"{len(equal)} of {len(told)}"
    first = f"Checkpointed size equals full size in {count} checkpoints: they share no file with earlier ones."
    last = equal[-1]
    largest = max((subtask.state_size for task in last.tasks.values() for subtask in task.subtasks), default=-1)
    own = largest if largest >= 0 else last.state_size / max(last.num_subtasks, 1)
    size = f"{'at most ' if largest >= 0 else ''}{bytes_text(own)}{'' if largest >= 0 else ' on average'}"
    if own < inline_bytes:
        return (
            f"{first} A subtask has {size}: files below {bytes_text(inline_bytes)} ({_THRESHOLD}) are parts of _metadata, which is written "
            "whole each time, and operator state (offsets of sources) is never incremental. Equal sizes do not show that increments are "
            "off: differences are to be expected once keyed state in RocksDB is larger."
        )
    on_heap = backend is not None and (kind := backend_named(backend)) is not None and not BACKENDS[kind].keeps_files
    if on_heap:
        return f"{first} The job runs with {backend}, which has no increments: incremental checkpoints are of RocksDB."
    condition = "If incremental checkpoints are configured, they" if backend is None else "Incremental checkpoints are configured, and"
    return (
        f"{first} {condition} are not in effect: the program sets another backend or full checkpoints, what is large is operator state, or "
        f"RocksDB merges all its files between two checkpoints. A subtask has {size}, so it is not because state is small."
    )
