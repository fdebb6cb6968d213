"""The state of one subtask: a snapshot freezes it in the synchronous part and writes it in the asynchronous part.

Keyed state and operator state are written one after the other by the only asynchronous thread of the task
(OperatorSnapshotFinalizer), so two files cost two latencies.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Literal

from sim.model.randomness import Stream, chance, stream
from sim.model.storage import SnapshotType
from sim.runtime.context import Kind, RestoredState, StateSnapshot
from sim.runtime.task.keyed_state import NoKeyedState, Part, StateOwner, keyed_state, restored_state
from sim.runtime.task.parts import WaitingBytes
from sim.runtime.task.thread import Slot
from sim.storage.requests import Work, in_parallel
from sim.storage.state_files import File, Handle


class SubtaskState:
    """The state of one subtask: keyed state, operator list state, and records in windows, each in separate files."""

    def __init__(self, slot: Slot) -> None:
        self.slot = slot
        self.subtask = StateOwner(slot)
        self.keyed = keyed_state(self.subtask)
        self.snapshots: dict[int, StateSnapshot] = {}  # taken, and neither acknowledged nor cancelled
        self._types: dict[int, SnapshotType] = {}  # snapshot that is not taken yet -> its type
        self._work_streams: dict[str, Stream] = {}  # by phase
        self._list_state: list[RestoredState] = []  # list state and windows that were restored
        self._union_bytes = slot.vertex.snapshot.operator_state_bytes if slot.vertex.union_state else 0

    @property
    def restored_parts(self) -> list[RestoredState]:
        """The state that the subtask was restored from, for the invariants."""
        return [*self.keyed.restored_parts, *self._list_state]

    def work_ns(self, phase: Literal["pre_barrier", "sync", "async"], checkpoint: int) -> int:
        """Return the time that the operator's own work takes in a phase of this snapshot [ns].

        The work occurs with a probability, which is drawn per phase, subtask and snapshot; otherwise it is 0.
        """
        snapshot = self.slot.vertex.snapshot
        cost = (
            snapshot.pre_barrier_ns
            if phase == "pre_barrier"
            else snapshot.sync_ns
            if phase == "sync"
            else snapshot.async_ns
        )
        if not cost:
            return 0
        if phase not in self._work_streams:
            self._work_streams[phase] = stream(self.subtask.seed, "snapshot-work", phase, *self.subtask.name)
        return cost if chance(snapshot.probability, self._work_streams[phase], checkpoint) else 0

    # ------------------------------------------------------------------------------------------ snapshots

    def begin(self, checkpoint: int, type_: SnapshotType) -> None:
        """Record the type of a snapshot, when its barrier has been forwarded."""
        self._types[checkpoint] = type_

    def take(self, checkpoint: int, waiting: WaitingBytes) -> int:
        """Freeze the state in the synchronous part.  Return the time that it takes the thread [ns].

        `waiting` is the size of records in windows and of asynchronous requests, which are state too.  Raises CannotFreeze.
        """
        type_, vertex = self._types.pop(checkpoint), self.slot.vertex
        self.keyed.count()
        keyed = self.keyed.take(checkpoint, type_)
        operator_bytes = waiting.operator + (0 if vertex.union_state else vertex.snapshot.operator_state_bytes)
        self.snapshots[checkpoint] = StateSnapshot(
            checkpoint, type_, keyed, operator_bytes, waiting.windows, self._union_bytes, ages=self.keyed.ages
        )
        self.slot.checks.state_taken(checkpoint, self.slot.task, self.snapshots[checkpoint])
        return keyed.sync_ns + self.keyed.held_ns(keyed, checkpoint)

    def write(self, part: Literal["keyed", "operator"], checkpoint: int) -> Work[None]:
        """Process: write the keyed state (with windows) or the operator state of a snapshot.  Raises StorageFailed."""
        snapshot = self.snapshots[checkpoint]
        if part == "operator":
            for work in (
                *self._file(snapshot, snapshot.operator, "operator", snapshot.operator_bytes),
                *self._file(snapshot, snapshot.union, "union", snapshot.union_bytes),
            ):
                yield from work
            return
        works = [
            *self.keyed.files(snapshot),
            *self._file(snapshot, snapshot.windows, "windows", snapshot.window_bytes),
            *self.keyed.copies(snapshot),
        ]
        if works:
            yield from in_parallel(self.subtask.storage.env, works, len(works))
        yield from self.keyed.durable(snapshot)

    def close(self, checkpoint: int) -> StateSnapshot:
        """Return the content of a snapshot whose files are all written, and forget the snapshot."""
        snapshot = self.snapshots.pop(checkpoint)
        snapshot.handles[:] = *snapshot.keyed.reused, *snapshot.handles, *snapshot.logged
        self.keyed.forget(snapshot)
        return snapshot

    def cancel(self, checkpoint: int) -> list[Handle]:
        """Cancel a snapshot.  Return the files that it has written, which the caller may delete."""
        self._types.pop(checkpoint, None)
        snapshot = self.snapshots.pop(checkpoint, None)
        if snapshot is None:
            return []
        self.keyed.forget(snapshot)
        return snapshot.all_handles

    def leave_closed_operators(self) -> None:
        """Drop the keyed state: the operators had finished, and are not opened again (TaskStateSnapshot.FINISHED_ON_RESTORE)."""
        self.keyed = NoKeyedState()

    def restore(
        self, checkpoint: int, parts: Iterable[Part], served: int, union: Iterable[StateSnapshot] = ()
    ) -> Work[int]:
        """Process: restore the state from these parts of a checkpoint, and the union list state of all subtasks.

        `served` is the number of records of this task that the state contains.  Returns the number of bytes read.  Raises
        StorageFailed.
        """
        parts = list(parts)
        read_bytes = yield from self.keyed.restore(checkpoint, parts, served)
        lists: list[tuple[Kind, StateSnapshot, Fraction, list[Handle]]] = [
            ("union", union_snapshot, Fraction(1), union_snapshot.union) for union_snapshot in union
        ]
        vertex = self.slot.vertex
        if lists and vertex.union_state and not vertex.union_state.clears:
            self._union_bytes = sum(snapshot.union_bytes for _, snapshot, _, _ in lists)
        for snapshot, share in parts:
            lists += ("windows", snapshot, share, snapshot.windows), ("operator", snapshot, share, snapshot.operator)
        for kind, snapshot, share, handles in lists:
            if handles:
                self._list_state.append(restored_state(kind, snapshot, share, handles))
            for handle in handles:
                size_bytes = int(handle.size_bytes * share)  # list state is redistributed after rescaling
                yield from self.subtask.read(handle, size_bytes)
                read_bytes += size_bytes
        return read_bytes

    def _file(self, snapshot: StateSnapshot, handles: list[Handle], kind: Kind, size_bytes: int) -> list[Work[None]]:
        """Return the process that writes a file of list state or windows, as a list; empty if there are 0 bytes."""
        if not size_bytes:
            return []
        file = File(kind, size_bytes, "savepoint" if snapshot.is_savepoint else "exclusive")
        return [self.subtask.write(handles, file, (kind, *self.subtask.name, snapshot.checkpoint), snapshot.merge)]
