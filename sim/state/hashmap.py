"""State on the heap: always written in full, as one stream (HeapSnapshotStrategy, CopyOnWriteStateTable).

The synchronous part freezes copy-on-write tables and copies no entry, so its cost does not depend on the size.
Expired entries stay until the incremental cleanup comes by: each access to state moves it on by some entries.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from sim.model.state import State, StateOptions
from sim.model.stored import SnapshotType
from sim.state.backend import canonical, keyed_bytes, streamed
from sim.state.files import File, FrozenState, Handle, KeyedPart, Restoring, WriteStep
from sim.units import SECOND


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

    def take(self, number: int, type_: SnapshotType, may_reuse: Callable[[int], bool]) -> FrozenState:  # noqa: ARG002
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

    def restore(self, number: int, parts: Sequence[KeyedPart], now_ns: int) -> Restoring:  # noqa: ARG002
        self._restored_bytes = keyed_bytes(parts)
        return streamed(parts, self.options.load_bytes_per_second)

    def _clean_up(self, expired_bytes: int, checked_bytes: int) -> None:
        """Move the cleanup on past `checked_bytes`, after `expired_bytes` more have expired.

        The cleanup goes round and round.  What lies ahead of it has waited for a whole round, on average half of one: expired entries
        are twice as dense there.  The division keeps that balance however long ago the last call was.
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
