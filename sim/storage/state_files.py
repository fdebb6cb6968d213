"""What state backends have in common: files of snapshots, the base of incremental ones, the interface; and the heap backend."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import NamedTuple

from sim.model.state import State, StateOptions
from sim.model.storage import Scope, SnapshotType
from sim.model.units import SECOND

# ---- Files that a snapshot writes, handles of stored files, and reads of a restore (Flink: StateObject, StreamStateHandle,
# CheckpointedStateScope, SnapshotStrategy, RestoreOperation).


class File(NamedTuple):
    """A file that a snapshot writes."""

    name: str  # unique within one snapshot of one subtask
    size_bytes: int
    scope: Scope


class Handle(NamedTuple):
    """A stored file, written by this snapshot or an earlier one (StreamStateHandle)."""

    name: str
    size_bytes: int
    scope: Scope
    file: int | None  # id in the ledger of storage; None: stored inline in the acknowledgement


class WriteStep(NamedTuple):
    """A step of the asynchronous part: files that up to `threads` threads write.  The next step begins when all are closed."""

    files: tuple[File, ...]
    threads: int = 1
    work_ns: int = 0  # CPU time, which overlaps with writing
    slows_task: bool = False  # True: that work takes CPU time from the task


@dataclass(frozen=True)
class FrozenState:
    """The result of the synchronous part of a snapshot, and so the input of the asynchronous part.

    Sizes are cached, because they are read often.
    """

    sync_ns: int = 0  # time for which the synchronous part blocks the task thread
    steps: tuple[WriteStep, ...] = ()
    reused: tuple[Handle, ...] = ()  # files of earlier snapshots that this one refers to
    awaited: tuple[File, ...] = ()  # files of the changelog whose upload the snapshot waits for
    ahead_bytes: int = 0  # bytes of `reused` and `awaited` written since the last snapshot
    image: Hashable = None  # state of the backend, from which it is restored
    held_ns: int = 0  # delay by a busy disk, in the synchronous or the asynchronous part

    @cached_property
    def written_bytes(self) -> int:
        """Return what Flink calls checkpointed data size: the bytes written for this snapshot."""
        return self._own_bytes + self.ahead_bytes

    @cached_property
    def full_bytes(self) -> int:
        """Return what Flink calls full checkpoint data size: the bytes that a restore reads."""
        other_bytes = sum(file.size_bytes for file in self.awaited) + sum(handle.size_bytes for handle in self.reused)
        return self._own_bytes + other_bytes

    @property
    def _own_bytes(self) -> int:
        return sum(file.size_bytes for step in self.steps for file in step.files)


class KeyedPart(NamedTuple):
    """The keyed state of one old subtask in a snapshot, from which a new subtask restores a share."""

    type: SnapshotType
    image: Hashable  # `FrozenState.image` of the snapshot
    handles: tuple[Handle, ...]
    share: Fraction = Fraction(1)  # share of the part that is in key groups of the restoring subtask


class Restoring(NamedTuple):
    """The reads and the work of a restore."""

    reads: tuple[tuple[Handle, int], ...] = ()  # (file, bytes to read)
    threads: int = 1
    work_ns: int = 0  # CPU time, which overlaps with reading
    then: tuple[tuple[Handle, int], ...] = ()  # (file, bytes to read), one after the other when `reads` have ended
    after_ns: int = 0  # CPU time after all reads
    on_end: Callable[[int], None] | None = None  # called with the time at which the state is restored [ns]


# ---- Files that an incremental snapshot does not write again (RocksIncrementalSnapshotStrategy).
#
# A snapshot refers to files of its base: the latest checkpoint for which the task has received notifyCheckpointComplete.
# Files of a newer checkpoint, which failed or whose notification has not arrived yet, are uploaded again.


class Increments:
    """The stored files of one subtask that later snapshots may refer to, by checkpoint."""

    def __init__(self) -> None:
        self._uploaded: dict[int, Mapping[str, Handle]] = {}  # checkpoint -> its files by name
        self._base = 0  # id of the base checkpoint; 0: there is no base

    @property
    def base(self) -> Mapping[str, Handle]:
        """Return the files that the next snapshot may refer to, by name."""
        return self._uploaded.get(self._base, {})

    def store(self, number: int, files: Mapping[str, Handle]) -> None:
        """Record the durable files of a checkpoint, reused ones included."""
        self._uploaded[number] = files

    def notify_complete(self, number: int) -> None:
        """Make a completed checkpoint the base.

        Notifications of older checkpoints are ignored, and so are those of savepoints, whose files are not recorded
        (FLINK-23949).
        """
        if number > self._base and number in self._uploaded:
            self._uploaded = {checkpoint: files for checkpoint, files in self._uploaded.items() if checkpoint >= number}
            self._base = number

    def forget(self) -> None:
        """Drop the base until the next checkpoint completes, as a savepoint did before FLINK-23949."""
        self.restart(0, {})

    def restart(self, number: int, files: Mapping[str, Handle]) -> None:
        """Make the restored snapshot `number` the base.  Without files there is no base."""
        self._uploaded = {number: files} if files else {}
        self._base = number if files else 0


# ---- The interface of state backends.


class CannotFreeze(Exception):
    """Raised if the synchronous part of a snapshot fails, which fails the task."""


class Backend:
    """The state backend of one subtask: its keyed state.  What a backend does not override needs no work."""

    def update(self, writes: int, now_ns: int) -> None:
        """Rewrite `writes` entries, evenly spread over the time since the last call until `now_ns`."""

    def resize(self, size_bytes: int, expired_bytes: int = 0, records: int = 0) -> None:
        """Set the size of the live state, after keys were added or expired, or a snapshot was restored.

        `expired_bytes`: bytes that expired since the last call.  `records`: records processed since the last call.
        """
        raise NotImplementedError

    def take(self, number: int, type_: SnapshotType, may_reuse: Callable[[int], bool]) -> FrozenState:
        """Do the synchronous part of snapshot `number`, and return what the asynchronous part writes.

        `may_reuse`: function that tells, by the id of a stored file, whether the snapshot may refer to it.  Raises
        CannotFreeze.
        """
        raise NotImplementedError

    def stored(self, number: int, type_: SnapshotType, files: Sequence[Handle]) -> None:
        """Record that all files of a snapshot are durable.  `files`: first those written for it, then those it reuses."""

    def notify_complete(self, number: int) -> None:
        """Record that a checkpoint is complete (CheckpointListener#notifyCheckpointComplete)."""

    def stop(self) -> None:
        """Release resources when the task ends."""

    def restore(self, number: int, parts: Sequence[KeyedPart], now_ns: int) -> Restoring:
        """Restore snapshot `number` from `parts`.  Return the reads and the work that this takes.

        Without parts, the snapshot contains no state of this subtask.
        """
        raise NotImplementedError


def canonical(size_bytes: int, rate_bytes_per_second: int | None, sync_ns: int) -> FrozenState:
    """Return the snapshot of a canonical savepoint: one sorted stream of all entries (FLIP-203).

    `rate_bytes_per_second`: rate at which a CPU serializes entries; None: unlimited.
    """
    if not size_bytes:
        return FrozenState(sync_ns)
    work_ns = 0 if rate_bytes_per_second is None else size_bytes * SECOND // rate_bytes_per_second
    return FrozenState(
        sync_ns, (WriteStep((File("savepoint", size_bytes, "savepoint"),), 1, work_ns, slows_task=True),)
    )


def keyed_bytes(parts: Sequence[KeyedPart]) -> int:
    """Return the bytes in these parts that belong to the restoring subtask."""
    return sum(int(sum(handle.size_bytes for handle in part.handles) * part.share) for part in parts)


def streamed(parts: Sequence[KeyedPart], rate_bytes_per_second: int | None) -> Restoring:
    """Return the reads of a restore from streams of entries.

    Streams contain the offsets of their key groups, so only the needed share is read.  `rate_bytes_per_second`: rate at
    which a CPU inserts entries; None: unlimited.
    """
    reads = tuple((handle, int(handle.size_bytes * part.share)) for part in parts for handle in part.handles)
    work_ns = 0 if rate_bytes_per_second is None else keyed_bytes(parts) * SECOND // rate_bytes_per_second
    return Restoring(reads, 1, work_ns)


# ---- The heap backend. Every snapshot is a full one, written as one stream (HeapSnapshotStrategy, CopyOnWriteStateTable).
#
# The synchronous part freezes copy-on-write tables without copying entries, so its time does not depend on the size of the
# state.  Expired entries stay until the incremental cleanup removes them, which checks some entries at each state access.


class Hashmap(Backend):
    """The heap state backend of one subtask: it rewrites entries in place, reuses no files and has no background work."""

    def __init__(self, state: State, size_bytes: int, options: StateOptions) -> None:
        self.state = state
        self.size_bytes = size_bytes
        self.options = options
        self._dead_bytes = 0  # expired, but not removed yet; included in `size_bytes`
        # size of a restored snapshot, including expired entries; None: `resize` has been called since, or nothing was restored
        self._restored_bytes: int | None = None

    def resize(self, size_bytes: int, expired_bytes: int = 0, records: int = 0) -> None:
        """Set the size of live entries.  Expired entries that are not removed yet are added to it."""
        self.size_bytes = size_bytes
        if self.state.ttl is not None:
            self._clean_up(expired_bytes, records * self.state.ttl.checks * self.state.value_bytes)
            self.size_bytes += self._dead_bytes

    def take(self, number: int, type_: SnapshotType, may_reuse: Callable[[int], bool]) -> FrozenState:
        filters = self.state.ttl is not None and self.state.ttl.filters_snapshots
        size_bytes = self.size_bytes - self._dead_bytes if filters else self.size_bytes
        if type_ == "canonical":
            return canonical(size_bytes, self.options.savepoint_bytes_per_second, self.state.sync_ns)
        rate = self.state.serialize_bytes_per_second
        work_ns = 0 if rate is None else self.size_bytes * SECOND // rate  # filtered entries are read, too
        return _one_stream(self.state.sync_ns, size_bytes, work_ns)

    def restore(self, number: int, parts: Sequence[KeyedPart], now_ns: int) -> Restoring:
        self._restored_bytes = keyed_bytes(parts)
        return streamed(parts, self.options.load_bytes_per_second)

    def _clean_up(self, expired_bytes: int, checked_bytes: int) -> None:
        """Add `expired_bytes` to the expired entries, and remove those that the cleanup finds in `checked_bytes`.

        The cleanup cycles through all entries.  It last checked the entries just ahead of it a whole cycle ago, and entries
        in general half a cycle ago on average.  So expired entries are twice as dense ahead of it.  The form of the formula,
        a division, makes the result independent of how often this method is called.
        """
        if self._restored_bytes is None:
            dead_bytes = self._dead_bytes + expired_bytes
        else:
            dead_bytes, self._restored_bytes = max(self._restored_bytes - self.size_bytes, 0), None
        all_bytes = self.size_bytes + dead_bytes
        self._dead_bytes = dead_bytes * all_bytes // (all_bytes + 2 * checked_bytes) if dead_bytes else 0


@lru_cache(maxsize=256)
def _one_stream(sync_ns: int, size_bytes: int, work_ns: int) -> FrozenState:
    """Return a snapshot that is one stream, cached because many snapshots are equal."""
    if not size_bytes:
        return FrozenState(sync_ns)
    return FrozenState(sync_ns, (WriteStep((File("state", size_bytes, "exclusive"),), 1, work_ns),))
