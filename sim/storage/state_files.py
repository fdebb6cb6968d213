"""Files of state snapshots, incremental snapshots, the interface of state backends, and the heap backend."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import NamedTuple, Protocol

from sim.model.state import State, StateOptions
from sim.model.storage import Scope, SnapshotType
from sim.model.units import SECOND

# ---- Files that a snapshot writes, handles of stored files, and reads of a restore.
#
# Source: StateHandle, CheckpointedStateScope, SnapshotStrategy, RestoreOperation.


class File(NamedTuple):
    """A file to write."""

    name: str  # unique within one snapshot of a subtask
    size_bytes: int
    scope: Scope


class Handle(NamedTuple):
    """A file that is stored, by this snapshot or an earlier one (StreamStateHandle)."""

    name: str
    size_bytes: int
    scope: Scope
    file: int | None  # id in the ledger of storage; None: stored inline in the acknowledgement


class WriteStep(NamedTuple):
    """Files written in parallel by up to `threads`.  The next step begins when all are closed."""

    files: tuple[File, ...]
    threads: int = 1
    work_ns: int = 0  # processor time, which overlaps with writing
    slows_task: bool = False  # whether that work competes with the task for the processor


@dataclass(frozen=True)
class FrozenState:
    """State frozen in the synchronous part of a snapshot.  Sizes are cached because they are read often."""

    sync_ns: int = 0  # time that freezing takes the task thread
    steps: tuple[WriteStep, ...] = ()
    reused: tuple[Handle, ...] = ()  # files of earlier snapshots that this one refers to
    awaited: tuple[File, ...] = ()  # files of the changelog that are being uploaded
    ahead_bytes: int = 0  # bytes of these two written since the last snapshot
    image: Hashable = None  # state of the backend, for a restore
    held_ns: int = 0  # delay by a busy disk, in the synchronous or the asynchronous part

    @cached_property
    def written_bytes(self) -> int:
        """Flink's checkpointed size."""
        return self._own_bytes + self.ahead_bytes

    @cached_property
    def full_bytes(self) -> int:
        """Flink's state size: everything a restore reads."""
        other_bytes = sum(file.size_bytes for file in self.awaited) + sum(handle.size_bytes for handle in self.reused)
        return self._own_bytes + other_bytes

    @property
    def _own_bytes(self) -> int:
        return sum(file.size_bytes for step in self.steps for file in step.files)


class KeyedPart(NamedTuple):
    """The part of a subtask's keyed state in a snapshot that a restore reads."""

    type: SnapshotType
    image: Hashable
    handles: tuple[Handle, ...]
    share: Fraction = Fraction(1)  # of the key groups that the restoring subtask gets


class Restoring(NamedTuple):
    """The reads and the work of a restore."""

    reads: tuple[tuple[Handle, int], ...] = ()  # (file, bytes to read)
    threads: int = 1
    work_ns: int = 0  # processor time that overlaps with reading
    after_ns: int = 0  # processor time after reading


# ---- Files that an incremental snapshot need not write again (RocksIncrementalSnapshotStrategy).
#
# The base is the last checkpoint whose completion this task was notified of.  Files of a checkpoint that failed, or whose
# notification has not arrived yet, are uploaded again.


class Increments:
    """The stored files of one subtask that later snapshots may refer to."""

    def __init__(self) -> None:
        self._uploaded: dict[int, Mapping[str, Handle]] = {}  # checkpoint -> its files by name
        self._base = 0  # checkpoint of the base; 0: none

    @property
    def base(self) -> Mapping[str, Handle]:
        """Files that a snapshot may refer to, by name."""
        return self._uploaded.get(self._base, {})

    def store(self, number: int, files: Mapping[str, Handle]) -> None:
        """Record the durable files of a checkpoint, reused ones included."""
        self._uploaded[number] = files

    def notify_complete(self, number: int) -> None:
        """Make a completed checkpoint the base.  A savepoint, whose files are not recorded, does not change it (FLINK-23949)."""
        if number > self._base and number in self._uploaded:
            self._uploaded = {checkpoint: files for checkpoint, files in self._uploaded.items() if checkpoint >= number}
            self._base = number

    def forget(self) -> None:
        """Drop the base until the next checkpoint completes, as a savepoint did before FLINK-23949."""
        self.restart(0, {})

    def restart(self, number: int, files: Mapping[str, Handle]) -> None:
        """Reset the base to the restored files, if any."""
        self._uploaded = {number: files} if files else {}
        self._base = number if files else 0


# ---- The interface of state backends.


class CannotFreeze(Exception):
    """The synchronous part of a snapshot has failed, which fails the task."""


class Backend(Protocol):
    """The state backend of one subtask: its keyed state."""

    def update(self, writes: int, now_ns: int) -> None:
        """Rewrite `writes` entries, evenly spread over the time since the last call."""

    def resize(self, size_bytes: int, expired_bytes: int = 0, records: int = 0) -> None:
        """Set the size of the state after keys were added or a snapshot was restored.

        `expired_bytes`: expired since the last call; `records`: records processed since the last call.
        """

    def take(self, number: int, type_: SnapshotType, may_reuse: Callable[[int], bool]) -> FrozenState:
        """Freeze the state for snapshot `number`, and return what to write.  Raises CannotFreeze.

        `may_reuse`: returns whether the snapshot may refer to a stored file, by its id.
        """

    def stored(self, number: int, type_: SnapshotType, files: Sequence[Handle]) -> None:
        """Record that a snapshot is durable.  `files`: those written for it, then those reused."""

    def notify_complete(self, number: int) -> None: ...

    def stop(self) -> None:
        """Release resources when the task ends."""

    def restore(self, number: int, parts: Sequence[KeyedPart], now_ns: int) -> Restoring:
        """Restore a snapshot, which is empty without `parts`.  Return the reads and the work that this takes."""


def canonical(size_bytes: int, rate_bytes_per_second: int | None, sync_ns: int) -> FrozenState:
    """Return the write of a canonical savepoint: one sorted stream of all entries, bound by the processor (FLIP-203)."""
    if not size_bytes:
        return FrozenState(sync_ns)
    work_ns = 0 if rate_bytes_per_second is None else size_bytes * SECOND // rate_bytes_per_second
    return FrozenState(
        sync_ns, (WriteStep((File("savepoint", size_bytes, "savepoint"),), 1, work_ns, slows_task=True),)
    )


def keyed_bytes(parts: Sequence[KeyedPart]) -> int:
    """Return the bytes of these parts that the restoring subtask gets."""
    return sum(int(sum(handle.size_bytes for handle in part.handles) * part.share) for part in parts)


def streamed(parts: Sequence[KeyedPart], rate_bytes_per_second: int | None) -> Restoring:
    """Return the reads of a restore entry by entry.  Streams have offsets of key groups, so only the needed share is read."""
    reads = tuple((handle, int(handle.size_bytes * part.share)) for part in parts for handle in part.handles)
    work_ns = 0 if rate_bytes_per_second is None else keyed_bytes(parts) * SECOND // rate_bytes_per_second
    return Restoring(reads, 1, work_ns)


# ---- The heap backend: always a full snapshot, as one stream (HeapSnapshotStrategy, CopyOnWriteStateTable).
#
# The synchronous part freezes copy-on-write tables without copying entries, so its cost does not depend on the size.
# Expired entries stay until incremental cleanup, which checks some entries at each state access, removes them.


class Hashmap:
    """The heap backend of one subtask."""

    def __init__(self, state: State, size_bytes: int, options: StateOptions) -> None:
        self.state = state
        self.size_bytes = size_bytes
        self.options = options
        self._dead_bytes = 0  # expired but not removed yet
        self._restored_bytes: int | None = None  # restored size, including an unknown part that has expired

    def update(self, writes: int, now_ns: int) -> None:
        """Rewrite entries in place: the size does not change."""

    def resize(self, size_bytes: int, expired_bytes: int = 0, records: int = 0) -> None:
        """Set the size of live entries; expired ones that are not removed yet come on top."""
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
        work_ns = 0 if rate is None else self.size_bytes * SECOND // rate  # expired entries are read, too
        return _one_stream(self.state.sync_ns, size_bytes, work_ns)

    def stored(self, number: int, type_: SnapshotType, files: Sequence[Handle]) -> None:
        """Do nothing: the heap backend reuses no files."""

    def notify_complete(self, number: int) -> None:
        """Do nothing: the heap backend reuses no files."""

    def stop(self) -> None:
        """Do nothing: the heap backend has no background work."""

    def restore(self, number: int, parts: Sequence[KeyedPart], now_ns: int) -> Restoring:
        self._restored_bytes = keyed_bytes(parts)
        return streamed(parts, self.options.load_bytes_per_second)

    def _clean_up(self, expired_bytes: int, checked_bytes: int) -> None:
        """Let the cleanup check `checked_bytes`, after `expired_bytes` more have expired.

        The cleanup cycles through all entries.  Entries just ahead of it were last checked a whole cycle ago, against half
        a cycle on average, so expired entries are twice as dense there.  The division makes the result independent of how
        often this is called.
        """
        if self._restored_bytes is None:
            dead_bytes = self._dead_bytes + expired_bytes
        else:
            dead_bytes, self._restored_bytes = max(self._restored_bytes - self.size_bytes, 0), None
        all_bytes = self.size_bytes + dead_bytes
        self._dead_bytes = dead_bytes * all_bytes // (all_bytes + 2 * checked_bytes) if dead_bytes else 0


@lru_cache(maxsize=256)
def _one_stream(sync_ns: int, size_bytes: int, work_ns: int) -> FrozenState:
    """Return a snapshot of one stream, cached by its size."""
    if not size_bytes:
        return FrozenState(sync_ns)
    return FrozenState(sync_ns, (WriteStep((File("state", size_bytes, "exclusive"),), 1, work_ns),))
