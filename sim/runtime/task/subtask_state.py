"""One subtask's state as processes: what is frozen in the synchronous part of a snapshot is written in the asynchronous one.

Keyed state and operator state of a subtask go one after the other through the task's one asynchronous thread
(OperatorSnapshotFinalizer), so two files cost two latencies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Literal

from sim.invariants.state import Kind, RestoredState
from sim.model.job import Snapshot
from sim.model.randomness import Stream, chance, stream
from sim.model.storage import Scope, SnapshotType
from sim.runtime.context import StateSnapshot
from sim.runtime.task.keyed_state import NoKeyedState, Part, StateOwner, keyed_state, merge_of, restored_state
from sim.runtime.task.parts import WaitingBytes
from sim.storage.filesystem import CheckpointStorage
from sim.storage.ledger import FileId
from sim.storage.requests import Work, in_parallel
from sim.storage.state_files import File, Handle


class SubtaskState:
    """The state of one subtask: keyed state, list state of operators, and records in windows, each in files of its own."""

    def __init__(self, subtask: StateOwner) -> None:
        self.subtask = subtask
        self.keyed = keyed_state(subtask)
        self.snapshots: dict[int, StateSnapshot] = {}  # taken, and not yet acknowledged or cancelled
        self.on_taken: Callable[[int, StateSnapshot], None] = lambda *_: None  # told of each snapshot
        self._types: dict[int, SnapshotType] = {}
        self._work_streams: dict[str, Stream] = {}  # by phase
        self._list_state: list[RestoredState] = []  # restored beside keyed state
        self._union_bytes = self._own.operator_state_bytes if subtask.vertex.union_state else 0

    @property
    def restored_parts(self) -> list[RestoredState]:
        """What it was restored from."""
        return [*self.keyed.restored_parts, *self._list_state]

    def work_ns(self, phase: Literal["pre_barrier", "sync", "async"], checkpoint: int) -> int:
        """The operator's own work in a phase of this snapshot: paid with its probability, drawn per phase, subtask and snapshot."""
        own = self._own
        cost = own.pre_barrier_ns if phase == "pre_barrier" else own.sync_ns if phase == "sync" else own.async_ns
        if not cost:
            return 0
        if phase not in self._work_streams:
            self._work_streams[phase] = stream(
                self.subtask.seed, "snapshot-work", phase, self.subtask.vertex.name, self.subtask.index
            )
        return cost if chance(own.probability, self._work_streams[phase], checkpoint) else 0

    # ------------------------------------------------------------------------------------------ snapshots

    def begin(self, checkpoint: int, type_: SnapshotType) -> None:
        """The barrier is on its way; `type_` is what it asks for."""
        self._types[checkpoint] = type_

    def take(
        self,
        checkpoint: int,
        served: int,
        now_ns: int,
        may_reuse: Callable[[FileId], bool] = lambda _: True,
        waiting: WaitingBytes = WaitingBytes(),  # noqa: B008  # frozen
    ) -> int:
        """The synchronous part: freeze the state after `served` records; returns what it costs the thread [ns].

        `waiting`: state of the operator beside that of its backend.

        Raises CannotFreeze.
        """
        type_ = self._types.pop(checkpoint)
        self.keyed.count(served, now_ns)
        keyed = self.keyed.take(checkpoint, type_, may_reuse)
        operator_bytes = waiting.operator + (0 if self.subtask.vertex.union_state else self._own.operator_state_bytes)
        self.snapshots[checkpoint] = StateSnapshot(
            type_, keyed, operator_bytes, waiting.windows, self._union_bytes, ages=self.keyed.ages
        )
        self.on_taken(checkpoint, self.snapshots[checkpoint])
        return keyed.sync_ns + self.keyed.held_ns(keyed, checkpoint)

    def write(self, storage: CheckpointStorage, part: Literal["keyed", "operator"], checkpoint: int) -> Work[None]:
        """Process: one part of the asynchronous phase.  Raises StorageFailed."""
        snapshot = self.snapshots[checkpoint]
        if part == "operator":
            for work in (
                *self._file(storage, snapshot.operator, ("operator", snapshot.operator_bytes), snapshot, checkpoint),
                *self._file(storage, snapshot.union, ("union", snapshot.union_bytes), snapshot, checkpoint),
            ):
                yield from work
            return
        works = [
            *self.keyed.files(storage, snapshot, checkpoint),
            *self._file(storage, snapshot.windows, ("windows", snapshot.window_bytes), snapshot, checkpoint),
            *self.keyed.copies(storage, snapshot, checkpoint),
        ]
        if works:
            yield from in_parallel(storage.env, works, len(works))
        yield from self.keyed.durable(snapshot, checkpoint)

    def close(self, checkpoint: int) -> StateSnapshot:
        """All files are written: returns the content of the snapshot."""
        snapshot = self.snapshots.pop(checkpoint)
        snapshot.handles[:] = *snapshot.keyed.reused, *snapshot.handles, *snapshot.logged
        self.keyed.forget(snapshot)
        return snapshot

    def cancel(self, checkpoint: int) -> list[Handle]:
        """The snapshot is cancelled.  Its files have no owner any more."""
        self._types.pop(checkpoint, None)
        snapshot = self.snapshots.pop(checkpoint, None)
        if snapshot is None:
            return []
        self.keyed.forget(snapshot)
        return snapshot.all_handles

    def leave_closed_operators(self) -> None:
        """The operators had finished, and are not opened again: their backend holds nothing (TaskStateSnapshot.FINISHED_ON_RESTORE)."""
        self.keyed = NoKeyedState()

    def restore(
        self,
        storage: CheckpointStorage,
        checkpoint: int,
        parts: Iterable[Part],
        served: int,
        union: Iterable[StateSnapshot] = (),
    ) -> Work[int]:
        """Process: bring back the state that is in these parts of a checkpoint, and the union list state of all subtasks.

        The state then stands after `served` records of this task.  Returns how many bytes were read.  Raises
        StorageFailed.
        """
        parts = list(parts)
        read_bytes = yield from self.keyed.restore(storage, checkpoint, parts, served)
        lists: list[tuple[Kind, StateSnapshot, Fraction, list[Handle]]] = [
            ("union", own, Fraction(1), own.union) for own in union
        ]
        if lists and self.subtask.vertex.union_state and not self.subtask.vertex.union_state.clears:
            self._union_bytes = sum(snapshot.union_bytes for _, snapshot, _, _ in lists)
        for snapshot, share in parts:
            lists += ("windows", snapshot, share, snapshot.windows), ("operator", snapshot, share, snapshot.operator)
        for kind, snapshot, share, handles in lists:
            if handles:
                self._list_state.append(restored_state(kind, snapshot, share, handles))
            for handle in handles:
                size_bytes = int(handle.size_bytes * share)  # list state is dealt out anew
                yield from self.subtask.read(storage, handle, size_bytes)
                read_bytes += size_bytes
        return read_bytes

    def _file(
        self,
        storage: CheckpointStorage,
        handles: list[Handle],
        what: tuple[Kind, int],
        snapshot: StateSnapshot,
        checkpoint: int,
    ) -> list[Work[None]]:
        """A file beside those of keyed state, of so many bytes if there are any."""
        kind, size_bytes = what
        if not size_bytes:
            return []
        scope: Scope = "savepoint" if snapshot.type in ("canonical", "native") else "exclusive"
        name, file = (kind, self.subtask.vertex.name, self.subtask.index, checkpoint), File(kind, size_bytes, scope)
        return [self.subtask.write(storage, handles, file, name, merge_of(snapshot.type, checkpoint))]

    @property
    def _own(self) -> Snapshot:
        return self.subtask.vertex.snapshot
