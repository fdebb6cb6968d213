"""What every state backend does, seen by the task that owns it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from sim.model.stored import SnapshotType
from sim.state.files import File, FrozenState, Handle, KeyedPart, Restoring, WriteStep
from sim.units import SECOND


class CannotFreeze(Exception):  # noqa: N818  # named like what it says of the state
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
    return FrozenState(sync_ns, (WriteStep((File("savepoint", size_bytes, "savepoint"),), 1, work_ns, slows_task=True),))


def keyed_bytes(parts: Sequence[KeyedPart]) -> int:
    """The bytes of these parts that the restoring subtask gets."""
    return sum(int(sum(handle.size_bytes for handle in part.handles) * part.share) for part in parts)


def streamed(parts: Sequence[KeyedPart], rate_bytes_per_second: int | None) -> Restoring:
    """Entries read one by one; every stream says where its key groups begin, so only the share that is needed is read."""
    reads = tuple((handle, int(handle.size_bytes * part.share)) for part in parts for handle in part.handles)
    work_ns = 0 if rate_bytes_per_second is None else keyed_bytes(parts) * SECOND // rate_bytes_per_second
    return Restoring(reads, 1, work_ns)
