"""State on the heap: always written in full, as one stream (HeapSnapshotStrategy, CopyOnWriteStateTable).

The synchronous part freezes copy-on-write tables and copies no entry, so it costs the same whatever the size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sim.model.state import State, StateOptions
from sim.model.stored import SnapshotType
from sim.state.backend import canonical, streamed
from sim.state.files import File, FrozenState, Handle, KeyedPart, Restoring, WriteStep

__all__ = ["Hashmap"]

_SECOND = 1_000_000_000


class Hashmap:
    def __init__(self, state: State, size_bytes: int, options: StateOptions) -> None:
        self.state = state
        self.size_bytes = size_bytes
        self.options = options

    def update(self, writes: int, now_ns: int) -> None:
        """Entries are rewritten in place: the size stays."""

    def resize(self, size_bytes: int) -> None:
        """Entries of new keys lie beside those that are there."""
        self.size_bytes = size_bytes

    def take(self, number: int, type_: SnapshotType, may_reuse: Callable[[int], bool]) -> FrozenState:  # noqa: ARG002
        if type_ == "canonical":
            return canonical(self.size_bytes, self.options.savepoint_bytes_per_second, self.state.sync_ns)
        if not self.size_bytes:
            return FrozenState(self.state.sync_ns)
        rate = self.state.serialize_bytes_per_second
        work_ns = 0 if rate is None else self.size_bytes * _SECOND // rate
        return FrozenState(self.state.sync_ns, (WriteStep((File("state", self.size_bytes, "exclusive"),), 1, work_ns),))

    def stored(self, number: int, type_: SnapshotType, files: Sequence[Handle]) -> None:
        """Nothing is reused."""

    def notify_complete(self, number: int) -> None:
        """Nothing is reused."""

    def stop(self) -> None:
        """Nothing of it works in the background."""

    def restore(self, number: int, parts: Sequence[KeyedPart], now_ns: int) -> Restoring:  # noqa: ARG002
        return streamed(parts, self.options.load_bytes_per_second)
