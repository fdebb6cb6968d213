"""Files of a snapshot of state: full, incremental; the interface of a backend; the heap."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import NamedTuple, Protocol

from sim.model.state import State, StateOptions
from sim.model.storage import Scope, SnapshotType
from sim.model.units import SECOND

# ---- The files of a snapshot: what is to be written in which order, what was stored where, what a restore reads.
#
# Flink: StateHandle, CheckpointedStateScope, SnapshotStrategy, RestoreOperation.


class File(NamedTuple):
    """A file to be written."""

    name: str  # unique within one snapshot of a subtask
    size_bytes: int
    scope: Scope


class Handle(NamedTuple):
    """A file that was written, for this snapshot or an earlier one (StreamStateHandle)."""

    name: str
    size_bytes: int
    scope: Scope
    file: int | None  # its id in the storage's ledger; None: small enough to travel inside the acknowledgement


class WriteStep(NamedTuple):
    """Files written side by side by up to `threads`; the next step begins when the last one is closed."""

    files: tuple[File, ...]
    threads: int = 1
    work_ns: int = 0  # processor time spent on the way: streams are pipelines, so it runs beside the writing
    slows_task: bool = False  # whether that work takes its share of the processor from the task


@dataclass(frozen=True)
class FrozenState:
    """State frozen in the synchronous part of a snapshot.  Its sizes are cached: they are read often."""

    sync_ns: int = 0  # what that cost the task thread
    steps: tuple[WriteStep, ...] = ()
    reused: tuple[Handle, ...] = ()  # written before this snapshot, referred to
    awaited: tuple[File, ...] = ()  # written independently of snapshots, and waited for
    ahead_bytes: int = 0  # of these two, written since the last snapshot
    image: Hashable = None  # what the backend needs to be restored to this moment
    held_ns: int = 0  # by which a busy disk holds up this snapshot, in the synchronous part or in the asynchronous one

    @cached_property
    def written_bytes(self) -> int:
        """Flink's checkpointed size."""
        return self._own_bytes + self.ahead_bytes

    @cached_property
    def full_bytes(self) -> int:
        """Flink's state size: everything a restore reads."""
        beside_bytes = sum(file.size_bytes for file in self.awaited) + sum(handle.size_bytes for handle in self.reused)
        return self._own_bytes + beside_bytes

    @property
    def _own_bytes(self) -> int:
        return sum(file.size_bytes for step in self.steps for file in step.files)


class KeyedPart(NamedTuple):
    """A part of the keyed state of one subtask in a snapshot, as a restore reads it."""

    type: SnapshotType
    image: Hashable
    handles: tuple[Handle, ...]
    share: Fraction = Fraction(1)  # of its key groups that go to the restoring subtask


class Restoring(NamedTuple):
    """The reads and the work of a restore."""

    reads: tuple[tuple[Handle, int], ...] = ()  # a file, and how many bytes of it
    threads: int = 1
    work_ns: int = 0  # processor time beside the reading
    after_ns: int = 0  # then


# ---- Which files an incremental snapshot need not write again (RocksIncrementalSnapshotStrategy).
#
# The base is the last checkpoint that is complete and of whose completion this task has heard.  What was uploaded for a
# checkpoint that failed, or whose notice has not come yet, is uploaded again.


class Increments:
    """The stored files of one subtask that later snapshots may refer to."""

    def __init__(self) -> None:
        self._uploaded: dict[int, Mapping[str, Handle]] = {}  # checkpoint -> its files by name
        self._base = 0  # number of the checkpoint built upon; 0: none

    @property
    def base(self) -> Mapping[str, Handle]:
        """The files that may be referred to, by name."""
        return self._uploaded.get(self._base, {})

    def store(self, number: int, files: Mapping[str, Handle]) -> None:
        """A checkpoint's files are all durable, reused ones included."""
        self._uploaded[number] = files

    def notify_complete(self, number: int) -> None:
        """`number` may be a savepoint, of which no files are kept: it leaves the base alone (FLINK-23949)."""
        if number > self._base and number in self._uploaded:
            self._uploaded = {checkpoint: files for checkpoint, files in self._uploaded.items() if checkpoint >= number}
            self._base = number

    def forget(self) -> None:
        """Forget the base until the next checkpoint is complete, as a savepoint did before FLINK-23949."""
        self.restart(0, {})

    def restart(self, number: int, files: Mapping[str, Handle]) -> None:
        """Begin from restored files: they are the base, or there is none."""
        self._uploaded = {number: files} if files else {}
        self._base = number if files else 0


# ---- What every state backend does, seen by the task that owns it.


class CannotFreeze(Exception):  # named like what it says of the state
    """The synchronous part of a snapshot fails, and so does its task.  The message says why."""


class Backend(Protocol):
    """The state backend of one subtask: its keyed state."""

    def update(self, writes: int, now_ns: int) -> None:
        """The number of entries that were rewritten since the last call."""

    def resize(self, size_bytes: int, expired_bytes: int = 0, records: int = 0) -> None:
        """The new size of the state: new keys came since the last call, or a snapshot was restored.

        `expired_bytes` are not among them any more since; `records`: served since.
        """

    def take(self, number: int, type_: SnapshotType, may_reuse: Callable[[int], bool]) -> FrozenState:
        """Freeze the state as it stands after the last `update`; says what is to be written.

        `may_reuse`: whether a stored file may be referred to, by its id.  Raises CannotFreeze.
        """

    def stored(self, number: int, type_: SnapshotType, files: Sequence[Handle]) -> None:
        """All files of a snapshot are durable: those written for it, then those reused."""

    def notify_complete(self, number: int) -> None: ...

    def stop(self) -> None:
        """The task is gone."""

    def restore(self, number: int, parts: Sequence[KeyedPart], now_ns: int) -> Restoring:
        """Restore a snapshot; without parts one that held no state.  Returns the reads and the work that this takes."""


def canonical(size_bytes: int, rate_bytes_per_second: int | None, sync_ns: int) -> FrozenState:
    """A canonical savepoint: one sorted stream over all entries, if any, bound by the processor with any backend (FLIP-203)."""
    if not size_bytes:
        return FrozenState(sync_ns)
    work_ns = 0 if rate_bytes_per_second is None else size_bytes * SECOND // rate_bytes_per_second
    return FrozenState(
        sync_ns, (WriteStep((File("savepoint", size_bytes, "savepoint"),), 1, work_ns, slows_task=True),)
    )


def keyed_bytes(parts: Sequence[KeyedPart]) -> int:
    """The bytes of these parts that the restoring subtask gets."""
    return sum(int(sum(handle.size_bytes for handle in part.handles) * part.share) for part in parts)


def streamed(parts: Sequence[KeyedPart], rate_bytes_per_second: int | None) -> Restoring:
    """Entries read one by one; every stream says where its key groups begin, so only the share that is needed is read."""
    reads = tuple((handle, int(handle.size_bytes * part.share)) for part in parts for handle in part.handles)
    work_ns = 0 if rate_bytes_per_second is None else keyed_bytes(parts) * SECOND // rate_bytes_per_second
    return Restoring(reads, 1, work_ns)


# ---- State on the heap: always written in full, as one stream (HeapSnapshotStrategy, CopyOnWriteStateTable).
#
# The synchronous part freezes copy-on-write tables and copies no entry, so its cost does not depend on the size.
# Expired entries stay until the incremental cleanup comes by: each access to state moves it on by some entries.


class Hashmap:
    """The heap backend of one subtask."""

    def __init__(self, state: State, size_bytes: int, options: StateOptions) -> None:
        self.state = state
        self.size_bytes = size_bytes
        self.options = options
        self._dead_bytes = 0  # expired, and still there
        self._restored_bytes: int | None = None  # it is not known yet how much of it has expired

    def update(self, writes: int, now_ns: int) -> None:
        """Entries are rewritten in place: the size stays."""

    def resize(self, size_bytes: int, expired_bytes: int = 0, records: int = 0) -> None:
        """Entries of new keys lie beside those that are there."""
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
        """A snapshot is stored.  The heap reuses no file."""

    def notify_complete(self, number: int) -> None:
        """A checkpoint is complete.  The heap reuses no file."""

    def stop(self) -> None:
        """The heap backend does no work in the background."""

    def restore(self, number: int, parts: Sequence[KeyedPart], now_ns: int) -> Restoring:
        self._restored_bytes = keyed_bytes(parts)
        return streamed(parts, self.options.load_bytes_per_second)

    def _clean_up(self, expired_bytes: int, checked_bytes: int) -> None:
        """Move the cleanup on past `checked_bytes`, after `expired_bytes` more have expired.

        The cleanup goes round and round.  What lies ahead of it has waited for a whole round, on average half of one:
        expired entries are twice as dense there.  The division keeps that balance however long ago the last call was.
        """
        if self._restored_bytes is None:
            dead_bytes = self._dead_bytes + expired_bytes
        else:
            dead_bytes, self._restored_bytes = max(self._restored_bytes - self.size_bytes, 0), None
        all_bytes = self.size_bytes + dead_bytes
        self._dead_bytes = dead_bytes * all_bytes // (all_bytes + 2 * checked_bytes) if dead_bytes else 0


@lru_cache(maxsize=256)
def _one_stream(sync_ns: int, size_bytes: int, work_ns: int) -> FrozenState:
    """The one stream of a snapshot, cached by its size."""
    if not size_bytes:
        return FrozenState(sync_ns)
    return FrozenState(sync_ns, (WriteStep((File("state", size_bytes, "exclusive"),), 1, work_ns),))
