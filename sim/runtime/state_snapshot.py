"""One subtask's state as processes: what its backend freezes in the synchronous part is written in the asynchronous one.

Keyed state and operator state of a subtask go one after the other through the task's one asynchronous thread
(OperatorSnapshotFinalizer), so two files cost two latencies.  Which files a snapshot has is `sim.state`'s business.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import simpy

from sim.model.job import Snapshot, Vertex
from sim.model.random import draw, stream
from sim.model.state import StateOptions
from sim.model.stored import SnapshotType
from sim.runtime.side_by_side import side_by_side
from sim.state.backends import backend
from sim.state.files import File, Handle, Step, Taken
from sim.state.rocksdb import RocksDb
from sim.storage import CheckpointStorage
from sim.storage.work import Work

__all__ = ["StateSnapshot", "SubtaskState"]

_NOTHING = Taken()


@dataclass(slots=True)
class StateSnapshot:
    """What one subtask stores for one checkpoint; complete when both parts are written."""

    keyed: Taken
    operator_bytes: int
    handles: list[Handle] = field(default_factory=list)  # written so far; files reused come first

    @property
    def full_bytes(self) -> int:
        return self.keyed.full_bytes + self.operator_bytes

    @property
    def written_bytes(self) -> int:
        return self.keyed.written_bytes + self.operator_bytes


class SubtaskState:
    """`host`: the task manager it runs on."""

    def __init__(self, vertex: Vertex, index: int, seed: int, options: StateOptions = StateOptions(), host: int = 0) -> None:  # noqa: B008  # frozen
        self.vertex = vertex
        self.index = index
        self.seed = seed
        self.options = options
        self.host = host
        self.backend = None if vertex.state is None or not self.keyed_bytes else backend(vertex.state, self.keyed_bytes, options)
        self.snapshots: dict[int, StateSnapshot] = {}  # taken, and not yet acknowledged or cancelled
        self._updates = 0  # entries rewritten so far
        self._types: dict[int, SnapshotType] = {}

    @property
    def keyed_bytes(self) -> int:
        """This subtask's share of the keyed state, by key groups (KeyGroupRangeAssignment)."""
        if self.vertex.state is None:
            return 0
        groups, p = self.vertex.max_parallelism, self.vertex.parallelism
        first = (self.index * groups + p - 1) // p
        last = ((self.index + 1) * groups - 1) // p
        return self.vertex.state.bytes * (last - first + 1) // groups

    def work_ns(self, phase: Literal["pre_barrier", "sync", "async"], checkpoint: int) -> int:
        """The operator's own work in a phase of this snapshot: paid with its probability, drawn per phase, subtask and snapshot."""
        cost = {"pre_barrier": self._own.pre_barrier_ns, "sync": self._own.sync_ns, "async": self._own.async_ns}[phase]
        if not cost:
            return 0
        share = self._own.probability
        u = draw(stream(self.seed, "snapshot-work", phase, self.vertex.name, self.index), checkpoint)
        return cost if u * share.denominator < share.numerator << 32 else 0

    @property
    def counts_records(self) -> bool:
        """Whether the records served make a difference."""
        return self.backend is not None and self.vertex.state is not None and self.vertex.state.update_share > 0

    @property
    def listens(self) -> bool:
        """Whether the notice of a completed checkpoint makes a difference."""
        return self.options.incremental and isinstance(self.backend, RocksDb)

    def begin(self, checkpoint: int, type_: SnapshotType) -> None:
        """The barrier is on its way; `type_` is what it asks for."""
        self._types[checkpoint] = type_

    def take(self, checkpoint: int, served: int, now_ns: int) -> int:
        """The synchronous part: freeze the state after `served` records; returns what it costs the task thread [ns]."""
        keyed = _NOTHING
        if self.backend is not None and self.vertex.state is not None:
            updates = int(served * self.vertex.state.update_share)
            self.backend.update(updates - self._updates, now_ns)
            self._updates = updates
            keyed = self.backend.take(checkpoint, self._types[checkpoint])
        self.snapshots[checkpoint] = StateSnapshot(keyed, self._own.operator_state_bytes)
        return keyed.sync_ns

    def write(self, storage: CheckpointStorage, part: Literal["keyed", "operator"], checkpoint: int) -> Work[None]:
        """Process: one part of the asynchronous phase.  Raises StorageFailed."""
        snapshot = self.snapshots[checkpoint]
        if part == "operator":
            if snapshot.operator_bytes:
                scope = "savepoint" if self._types[checkpoint] in ("canonical", "native") else "exclusive"
                file = File("operator", snapshot.operator_bytes, scope)  # type: ignore[arg-type]  # one of three words
                yield from self._write(storage, snapshot, file, ("operator", self.vertex.name, self.index, checkpoint))
            return
        for step in snapshot.keyed.steps:
            yield from self._write_step(storage, snapshot, step, checkpoint)
        if self.backend is not None:
            self.backend.stored(checkpoint, [*snapshot.keyed.reused, *snapshot.handles])

    def close(self, checkpoint: int) -> StateSnapshot:
        """Everything is written: what this snapshot holds."""
        self._types.pop(checkpoint, None)
        snapshot = self.snapshots.pop(checkpoint)
        snapshot.handles[:0] = snapshot.keyed.reused
        return snapshot

    def cancel(self, checkpoint: int) -> None:
        """The snapshot comes to nothing; its files are left behind."""
        self._types.pop(checkpoint, None)
        self.snapshots.pop(checkpoint, None)

    def notify_complete(self, checkpoint: int) -> None:
        """The notice of a completed checkpoint, on the task thread."""
        if self.backend is not None:
            self.backend.notify_complete(checkpoint)

    def _write_step(self, storage: CheckpointStorage, snapshot: StateSnapshot, step: Step, checkpoint: int) -> Work[None]:
        name = ("keyed", self.vertex.name, self.index, checkpoint)
        own = [(*name, file.name) if step.threads > 1 or len(snapshot.keyed.steps) > 1 else name for file in step.files]
        pieces = [_piece(self._write, storage, snapshot, file, path) for file, path in zip(step.files, own, strict=True)]
        if not step.work_ns:
            yield from side_by_side(storage.env, pieces, step.threads)
            return
        writing = lambda: side_by_side(storage.env, pieces, step.threads)  # noqa: E731
        yield from side_by_side(storage.env, [writing, lambda: _wait(storage.env, step.work_ns)], 2)

    def _write(self, storage: CheckpointStorage, snapshot: StateSnapshot, file: File, path: tuple[str | int, ...]) -> Work[None]:
        """One file; small ones travel in the acknowledgement, in no time."""
        written = None if storage.is_inlined(file.size_bytes) else (yield from storage.write(file.size_bytes, *path, host=self.host))
        snapshot.handles.append(Handle(file.name, file.size_bytes, file.scope, written))

    @property
    def _own(self) -> Snapshot:
        return self.vertex.snapshot


def _piece(write: Callable[..., Work[None]], *arguments: object) -> Callable[[], Work[None]]:
    return lambda: write(*arguments)


def _wait(env: simpy.Environment, delay_ns: int) -> Work[None]:
    yield env.timeout(delay_ns)
