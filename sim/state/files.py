"""The files of a snapshot: what is to be written in which order, what was stored where, what a restore reads.

Flink: StateHandle, CheckpointedStateScope, SnapshotStrategy, RestoreOperation.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from sim.model.stored import Scope, SnapshotType


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
