"""Files: references are alive, garbage is deleted."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from math import ceil
from typing import NamedTuple

from sim.invariants.violation import BEGIN_AND_END, JournalFormatter, Violation, number_of, time_text
from sim.model.storage import ObjectStore, SlowPlaces, Storage
from sim.model.units import SECOND
from sim.results.journal import Happening

# ---- Kept snapshots can be restored: every file that a retained checkpoint or a savepoint names is complete.

RETAINED_FILES_LAW = "every file a retained checkpoint or a savepoint names is there in full"


class KeptSnapshot(NamedTuple):
    """A snapshot that may be restored."""

    what: str  # its name in a sentence
    files: int  # that it names
    missing: tuple[str, ...]  # paths


def broken_snapshots(kept: Iterable[KeptSnapshot], time_ns: int) -> Iterator[Violation]:
    """At the end of a run."""
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


# ---- Files that no snapshot needs are deleted, and soon.  Law 91.
#
# A file belongs to the checkpoints that name it; it is free when the oldest checkpoint that is retained is newer than
# all of them.

GOES = "a file is named by a snapshot that is kept or under way, or it is deleted soon"

_MIN_LATER_CHECKPOINTS = 3
"""So many checkpoints have completed since: triggers wait for files that are to be deleted."""
_SOON_NS = 500_000_000
_REQUESTS = 2
"""So many has one deletion: a client may look first (presto), and the last of merged files takes the file along that held them."""
_TAIL = 20
"""No latency is so many times its mean."""
_ENDS_OF_TASKS = frozenset(
    {Happening.TASK_FAILED, Happening.TASK_MANAGER_LOST, Happening.JOB_MANAGER_LOST, Happening.JOB_RESTARTING}
)


class OwnedFile(NamedTuple):
    """A file of a checkpoint that is there at the end of a run."""

    what: str
    checkpoint: int  # that it was written for
    task: int  # whose acknowledgement brings it; -1: it is the JobManager's from the beginning
    last: int  # the last checkpoint that names it
    size_bytes: int


def longest_deletion_ns(storage: Storage, files: int) -> int:
    """The longest that a deletion may take where requests are limited or slow [ns]; 0: neither.  `files`: so many were ever created.

    A client insists as `Retry` says.  On a file system a request of each file may be before it, twice as long as their
    mean.
    """
    store, retry = storage.object_store or storage.dfs, storage.retry
    slow = store.slow if isinstance(store, ObjectStore) else None  # no node of a file system has a part in a deletion
    if store is None or (store.requests_per_second is None and slow is None):
        return 0
    attempt_ns = store.latency.mean * (1 if store.latency.kind == "constant" else _TAIL)
    if isinstance(store, ObjectStore):
        attempt_ns *= 1 if slow is None else _most_slow(slow)
    elif store.requests_per_second is not None:
        attempt_ns += 2 * files * SECOND // store.requests_per_second
    backoffs_ns = sum(min(retry.backoff_ns << number, retry.most_backoff_ns) for number in range(retry.attempts - 1))
    return _REQUESTS * (retry.attempts * attempt_ns + backoffs_ns)


def _most_slow(slow: SlowPlaces) -> int:
    if slow.trace is None:
        return slow.factor
    return max((ceil(factor) for series in slow.trace.machines for _, factor in series), default=1)


def cleaned_up(since_ns: int, deletions: Iterable[tuple[int, int]]) -> int:
    """When no deletion was under way any more: those of `since_ns` are over, and those that follow them without a gap.

    `deletions`: (begin, end), by begin.  Flink triggers nothing while it cleans up too many checkpoints
    (CheckpointRequestDecider#chooseQueuedRequest).
    """
    for begin_ns, end_ns in deletions:
        if begin_ns <= since_ns:
            since_ns = max(since_ns, end_ns)
    return since_ns


def garbage(
    files: Iterable[OwnedFile],
    completed: Sequence[tuple[int, int]],
    num_retained: int,
    time_ns: int,
    teller: JournalFormatter,
) -> Iterator[Violation]:
    """`completed`: (number, time) of all completed checkpoints that are no savepoints, oldest first."""
    free: list[tuple[OwnedFile, int]] = []
    for file in files:
        first = bisect_right(completed, file.last, key=lambda row: row[0])
        if len(completed) - first < num_retained + _MIN_LATER_CHECKPOINTS:
            continue
        free_ns = completed[first + num_retained - 1][1]
        if time_ns - free_ns > _SOON_NS:
            free.append((file, free_ns))
    if free:
        # Flink's registry throws at such an acknowledgement before the coordinator takes it over: nothing owns its files
        unknown = {(row.checkpoint, row.task) for row in teller.journal if row.happening is Happening.STATE_UNKNOWN}
        free = [row for row in free if (row[0].checkpoint, row[0].task) not in unknown]
    if free and any(row.happening in _ENDS_OF_TASKS for row in teller.journal):
        # a task that was gone before its acknowledgement came has left files behind that nothing owns
        restored_parts = {
            (row.checkpoint, row.task) for row in teller.journal if row.happening is Happening.ACKNOWLEDGED
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
    story = teller.story(
        lambda row: row.happening in BEGIN_AND_END and file.last <= row.checkpoint <= file.last + num_retained + 1
    )
    yield Violation(GOES, free_ns, file.what, fact, story)
