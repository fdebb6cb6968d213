"""Invariants of files: files that retained snapshots refer to exist, and unreferenced files are deleted."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from math import ceil
from typing import NamedTuple

from sim.invariants.violation import BEGIN_AND_END, JournalFormatter, Violation, number_of, time_text
from sim.model.storage import ObjectStore, SlowPlaces, Storage
from sim.model.units import SECOND
from sim.results.journal import Happening

# ---- Retained snapshots can be restored, because all files that they refer to are complete.

RETAINED_FILES_LAW = "all files that retained checkpoints and savepoints refer to are complete"


class KeptSnapshot(NamedTuple):
    """A checkpoint or savepoint that is retained, so that it may be restored."""

    what: str  # its name in messages
    files: int  # number of files that it refers to
    missing: tuple[str, ...]  # paths of missing files


def snapshot_errors(kept: Iterable[KeptSnapshot], time_ns: int) -> Iterator[Violation]:
    """Yield a violation for each snapshot with missing files that is retained at the end of a run."""
    for snapshot in kept:
        if snapshot.missing:
            story = (
                *(f"missing: {path}" for path in snapshot.missing[:3]),
                *(["..."] if len(snapshot.missing) > 3 else []),
            )
            yield Violation(
                RETAINED_FILES_LAW,
                time_ns,
                snapshot.what,
                f"{len(snapshot.missing)} of its {snapshot.files} files are gone",
                story,
            )


# ---- Files that no snapshot refers to are deleted soon (law 91).
#
# A file is unreferenced when the oldest retained checkpoint is newer than all checkpoints that refer to the file.

GOES = "a file is named by a snapshot that is kept or under way, or it is deleted soon"

_MIN_LATER_CHECKPOINTS = 3
"""Minimum checkpoints that completed since a file became unreferenced, before it is reported.

Checkpoints are not triggered while too many deletions are in progress, so the deletion should have ended by then.
"""
_MAX_UNREFERENCED_NS = 500_000_000
"""Maximum time from when a file becomes unreferenced until it is deleted [ns]."""
_MAX_REQUESTS_PER_DELETION = 2
"""Maximum requests of one deletion.

The Presto client checks whether the file exists, and the last merged file deletes its physical file, too.
"""
_MAX_LATENCY_FACTOR = 20
"""Upper bound of a random latency, as a multiple of its mean."""
_ENDS_OF_TASKS = frozenset(
    {Happening.TASK_FAILED, Happening.TASK_MANAGER_LOST, Happening.JOB_MANAGER_LOST, Happening.JOB_RESTARTING}
)


class OwnedFile(NamedTuple):
    """A file of a checkpoint that exists at the end of a run."""

    what: str  # its name in messages
    checkpoint: int  # checkpoint for which it was written
    task: int  # task whose acknowledgement refers to it; -1 if the JobManager wrote it
    last: int  # last checkpoint that refers to it
    size_bytes: int


def longest_deletion_ns(storage: Storage, files: int) -> int:
    """Return the maximum duration of a deletion [ns], or 0 if storage neither limits requests nor has slow parts.

    It includes the retries of the client.  On a distributed file system one request per file, each of up to twice the mean
    service time, may be in the queue before it.  `files`: number of files created in the run.
    """
    store, retry = storage.object_store or storage.dfs, storage.retry
    # data nodes of a distributed file system take no part in a deletion
    slow = store.slow if isinstance(store, ObjectStore) else None
    if store is None or (store.requests_per_second is None and slow is None):
        return 0
    attempt_ns = store.latency.mean * (1 if store.latency.kind == "constant" else _MAX_LATENCY_FACTOR)
    if isinstance(store, ObjectStore):
        attempt_ns *= 1 if slow is None else _most_slow(slow)
    elif store.requests_per_second is not None:
        attempt_ns += 2 * files * SECOND // store.requests_per_second
    backoffs_ns = sum(min(retry.backoff_ns << number, retry.most_backoff_ns) for number in range(retry.attempts - 1))
    return _MAX_REQUESTS_PER_DELETION * (retry.attempts * attempt_ns + backoffs_ns)


def _most_slow(slow: SlowPlaces) -> int:
    """Return the largest factor by which a part of storage is slow."""
    if slow.trace is None:
        return slow.factor
    return max((ceil(factor) for series in slow.trace.machines for _, factor in series), default=1)


def end_of_deletions_ns(since_ns: int, deletions: Iterable[tuple[int, int]]) -> int:
    """Return the time at which the deletions in progress at `since_ns`, and those that follow without a gap, have ended.

    Flink triggers no checkpoint while too many checkpoints are being cleaned up
    (CheckpointRequestDecider#chooseQueuedRequest).  `deletions`: (begin, end) [ns], sorted by begin.
    """
    for begin_ns, end_ns in deletions:
        if begin_ns <= since_ns:
            since_ns = max(since_ns, end_ns)
    return since_ns


def unreferenced_files(
    files: Iterable[OwnedFile],
    completed: Sequence[tuple[int, int]],
    num_retained: int,
    time_ns: int,
    formatter: JournalFormatter,
) -> Iterator[Violation]:
    """Check that no unreferenced files are left.  Report the one that has been unreferenced for longest.

    `completed`: (id, time of completion [ns]) of all completed checkpoints except savepoints, oldest first.
    `num_retained`: maximum number of retained checkpoints.  `time_ns`: end of the run.
    """
    free: list[tuple[OwnedFile, int]] = []
    for file in files:
        first = bisect_right(completed, file.last, key=lambda row: row[0])
        if len(completed) - first < num_retained + _MIN_LATER_CHECKPOINTS:
            continue
        free_ns = completed[first + num_retained - 1][1]
        if time_ns - free_ns > _MAX_UNREFERENCED_NS:
            free.append((file, free_ns))
    if free:
        # Flink's registry throws an exception for such an acknowledgement before the coordinator handles it. Its files
        # have no owner, in Flink either.
        unknown = {(row.checkpoint, row.task) for row in formatter.journal if row.happening is Happening.STATE_UNKNOWN}
        free = [row for row in free if (row[0].checkpoint, row[0].task) not in unknown]
    if free and any(row.happening in _ENDS_OF_TASKS for row in formatter.journal):
        # files of a task that failed before its acknowledgement was received have no owner, in Flink either
        restored_parts = {
            (row.checkpoint, row.task) for row in formatter.journal if row.happening is Happening.ACKNOWLEDGED
        }
        free = [row for row in free if row[0].task < 0 or (row[0].checkpoint, row[0].task) in restored_parts]
    if not free:
        return
    file, free_ns = min(free, key=lambda row: row[1])
    size_bytes = sum(row.size_bytes for row, _ in free)
    fact = (
        f"it is still there, no snapshot needs it since {time_text(free_ns)}; so are {number_of(len(free) - 1, 'other file')}, "
        f"{number_of(size_bytes, 'byte')} in all"
    )
    story = formatter.story(
        lambda row: row.happening in BEGIN_AND_END and file.last <= row.checkpoint <= file.last + num_retained + 1
    )
    yield Violation(GOES, free_ns, file.what, fact, story)
