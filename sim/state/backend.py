"""What every state backend does, seen by the task that owns it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from sim.model.stored import SnapshotType
from sim.state.files import File, Handle, Step, Taken

__all__ = ["Backend", "canonical"]

_SECOND = 1_000_000_000


class Backend(Protocol):
    """The keyed state of one subtask."""

    def update(self, writes: int, now_ns: int) -> None:
        """So many entries were rewritten since the last call."""

    def take(self, number: int, type_: SnapshotType) -> Taken:
        """Freeze the state as it stands after the last `update`; says what is to be written."""

    def stored(self, number: int, files: Sequence[Handle]) -> None:
        """All files of a snapshot are durable: those written for it, then those reused."""

    def notify_complete(self, number: int) -> None: ...


def canonical(size_bytes: int, rate_bytes_per_second: int | None, sync_ns: int) -> Taken:
    """A canonical savepoint: one sorted stream over all entries, bound by the processor whatever the backend (FLIP-203)."""
    work_ns = 0 if rate_bytes_per_second is None else size_bytes * _SECOND // rate_bytes_per_second
    return Taken(sync_ns, (Step((File("savepoint", size_bytes, "savepoint"),), 1, work_ns, slows_task=True),))
