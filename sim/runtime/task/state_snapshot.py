"""One subtask's state as processes: what its backend freezes in the synchronous part is written in the asynchronous one.

Keyed state and operator state of a subtask go one after the other through the task's one asynchronous thread
(OperatorSnapshotFinalizer), so two files cost two latencies.  Which files a snapshot has is `sim.state`'s business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Literal, Protocol

import simpy

from sim.checkers.state import Brought, Kind
from sim.model.job import Snapshot, Vertex
from sim.model.key_groups import key_groups
from sim.model.randomness.streams import chance, draw, stream
from sim.model.state import StateOptions
from sim.model.stored import Scope, SnapshotType
from sim.runtime.background import begin
from sim.runtime.contents import StateSnapshot
from sim.runtime.task.operator.part import WaitingBytes
from sim.runtime.task.slot import Slot
from sim.runtime.taskmanager.processor import Processor
from sim.state.backends import backend
from sim.state.compaction import CompactionThread
from sim.state.expiry import Expiry, together
from sim.state.files import File, FrozenState, Handle, KeyedPart, WriteStep
from sim.storage import CheckpointStorage, FileId, FileSystem, StorageFailed
from sim.storage.parallel import in_parallel
from sim.storage.work import Work

_NOTHING = FrozenState()


class StateLog(Protocol):
    """What uploads the changelog of a subtask."""

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def claim(self, files: Iterable[File]) -> None:
        """A snapshot needs these, until it says `forget`."""

    def forget(self, files: Iterable[File]) -> None: ...

    def wait(self, file: File) -> Work[Handle]:
        """Process: until a file is durable.  Raises StorageFailed."""


class SubtaskState:
    """`host`: the task manager it runs on; `slow`: told by how much its asynchronous work slows the task down.

    `compaction`: the thread that compacts for all subtasks of that task manager.
    `counts_records`: whether it makes a difference how many records were served.
    """

    def __init__(
        self, vertex: Vertex, index: int, seed: int, options: StateOptions = StateOptions(), host: int = 0,  # noqa: B008  # frozen
        slow: Callable[[Fraction], None] = lambda _: None, compaction: CompactionThread | None = None,
    ) -> None:  # fmt: skip
        self.vertex = vertex
        self.index = index
        self.seed = seed
        self.options = options
        self.host = host
        self.slow = slow
        state, mine = vertex.state, self.keyed_bytes
        has_some = state is not None and bool(state.bytes or state.growth_bytes)  # its own share may be less than a byte
        self.backend = backend(state, mine, options, compaction) if state is not None and has_some else None
        tells_updates = state is not None and (state.kind.keeps_files or state.changelog is not None)  # the heap does not
        self.counts_records = (
            self.backend is not None and state is not None and ((tells_updates and state.update_share > 0) or state.turns_over)
        )
        self.expiry = None if state is None or state.ttl is None else Expiry(state.ttl.after_ns, mine, state.value_bytes)
        self.snapshots: dict[int, StateSnapshot] = {}  # taken, and not yet acknowledged or cancelled
        self._updates = 0  # entries rewritten so far
        self.stands_after = 0  # records served, as far as it was told
        self._types: dict[int, SnapshotType] = {}
        self.log: StateLog | None = None  # what uploads the changelog, if there is one
        self.processor: Processor | None = None  # of its task manager, if cores are scarce
        self._copies: dict[int, tuple[FileSystem, FileId]] = {}  # checkpoint -> on the local disk
        self.on_taken: Callable[[int, StateSnapshot], None] = lambda *_: None  # told of each snapshot
        self.brought: list[Brought] = []  # what it was restored from

    @property
    def keyed_bytes(self) -> int:
        """This subtask's share of the keyed state, by key groups."""
        return 0 if self.vertex.state is None else int(self.vertex.state.bytes * self._share)

    @property
    def _share(self) -> Fraction:
        """Its part of the key groups."""
        groups = self.vertex.max_parallelism
        return Fraction(len(key_groups(self.index, self.vertex.parallelism, groups)), groups)

    def work_ns(self, phase: Literal["pre_barrier", "sync", "async"], checkpoint: int) -> int:
        """The operator's own work in a phase of this snapshot: paid with its probability, drawn per phase, subtask and snapshot."""
        own = self._own
        cost = own.pre_barrier_ns if phase == "pre_barrier" else own.sync_ns if phase == "sync" else own.async_ns
        if not cost:
            return 0
        key = stream(self.seed, "snapshot-work", phase, self.vertex.name, self.index)
        return cost if chance(self._own.probability, key, checkpoint) else 0

    @property
    def listens(self) -> bool:
        """Whether the notice of a completed checkpoint makes a difference."""
        if self.backend is None or self.vertex.state is None:
            return False
        incremental = self.options.incremental and self.vertex.state.kind.keeps_files
        return self.options.local_recovery or incremental or self.vertex.state.changelog is not None

    def start(self) -> None:
        """The task runs: its changelog is uploaded from now on."""
        if self.log is not None:
            self.log.start()

    def stop(self) -> None:
        """The task is gone, and what works for it in the background."""
        if self.log is not None:
            self.log.stop()
        if self.backend is not None:
            self.backend.stop()

    # ------------------------------------------------------------------------------------------ snapshots

    def begin(self, checkpoint: int, type_: SnapshotType) -> None:
        """The barrier is on its way; `type_` is what it asks for."""
        self._types[checkpoint] = type_

    def take(
        self, checkpoint: int, served: int, now_ns: int, may_reuse: Callable[[FileId], bool] = lambda _: True,
        waiting: WaitingBytes = WaitingBytes(),  # noqa: B008  # frozen
    ) -> int:  # fmt: skip
        """The synchronous part: freeze the state after `served` records; returns what it costs the thread [ns].

        `waiting`: state of the operator beside that of its backend.

        Raises CannotFreeze.
        """
        keyed, type_ = _NOTHING, self._types.pop(checkpoint)
        if self.backend is not None:
            self.count(served, now_ns)
            keyed = self.backend.take(checkpoint, type_, lambda file: may_reuse(FileId(file)))
            if self.log is not None:
                self.log.claim(keyed.awaited)
        operator_bytes = self._own.operator_state_bytes + waiting.operator
        ages = () if self.expiry is None else self.expiry.ages
        self.snapshots[checkpoint] = StateSnapshot(type_, keyed, operator_bytes, waiting.windows, ages=ages)
        self.on_taken(checkpoint, self.snapshots[checkpoint])
        return keyed.sync_ns + self._held_ns(keyed, checkpoint)

    def served(self, slot: Slot) -> int:
        """Records that the task has served by now; 0 if they make no difference to its state."""
        return slot.context.plane.position(slot.task).served if self.counts_records else 0

    def count(self, served: int, now_ns: int) -> None:
        """The task has served so many records in all."""
        if self.backend is not None:
            records, rewritten = served - self.stands_after, self._rewritten(served)
            self._resize(served, records, rewritten, now_ns)
            self.backend.update(rewritten, now_ns)

    def write(self, storage: CheckpointStorage, part: Literal["keyed", "operator"], checkpoint: int) -> Work[None]:
        """Process: one part of the asynchronous phase.  Raises StorageFailed."""
        snapshot = self.snapshots[checkpoint]
        if part == "operator":
            if snapshot.operator_bytes:
                yield from self._write_beside(storage, snapshot.operator, ("operator", snapshot.operator_bytes), snapshot, checkpoint)
            return
        works = [] if self.backend is None else [self._write_keyed(storage, snapshot, checkpoint)]
        if snapshot.window_bytes:
            works.append(self._write_beside(storage, snapshot.windows, ("windows", snapshot.window_bytes), snapshot, checkpoint))
        if self.backend is None:
            yield from in_parallel(storage.env, works, 1)
        else:
            if self.options.local_recovery and snapshot.type in ("checkpoint", "full"):
                works.append(self._copy(storage, snapshot, checkpoint))
            yield from in_parallel(storage.env, works, len(works))
            if self.log is not None:
                for file in snapshot.keyed.awaited:
                    snapshot.logged.append((yield from self.log.wait(file)))
            self.backend.stored(checkpoint, snapshot.type, [*snapshot.keyed.reused, *snapshot.handles])

    def close(self, checkpoint: int) -> StateSnapshot:
        """Everything is written: what this snapshot holds."""
        snapshot = self.snapshots.pop(checkpoint)
        snapshot.handles[:] = *snapshot.keyed.reused, *snapshot.handles, *snapshot.logged
        if self.log is not None:
            self.log.forget(snapshot.keyed.awaited)
        return snapshot

    def cancel(self, checkpoint: int) -> list[Handle]:
        """The snapshot comes to nothing; the files written for it so far have no owner."""
        self._types.pop(checkpoint, None)
        snapshot = self.snapshots.pop(checkpoint, None)
        if snapshot is None:
            return []
        if self.log is not None:
            self.log.forget(snapshot.keyed.awaited)
        return snapshot.all_handles

    def notify_complete(self, checkpoint: int) -> None:
        """The notice of a completed checkpoint, on the task thread; older local copies go (TaskLocalStateStore)."""
        if self.backend is not None:
            self.backend.notify_complete(checkpoint)
        for older in [number for number in self._copies if number < checkpoint]:
            disk, copy = self._copies.pop(older)
            begin(disk.attempts.env, disk.delete([copy], host=self.host), lambda _: None)

    # ------------------------------------------------------------------------------------------ restore

    def restore(
        self, storage: CheckpointStorage, checkpoint: int, parts: Iterable[tuple[StateSnapshot, Fraction]], served: int,
    ) -> Work[int]:  # fmt: skip
        """Process: bring back the state that lies in these parts of a checkpoint, each with the share of its key groups that comes here.

        The state then stands after `served` records of this task.  Returns how many bytes were read.  Raises StorageFailed.
        """
        parts = list(parts)
        self._updates = 0
        self._rewritten(served)
        if self.expiry is not None:
            self.expiry.stand(together((snapshot.ages, share) for snapshot, share in parts), int(storage.env.now))
        read_bytes = 0
        if self.backend is not None and (keyed := [_part(snapshot, share) for snapshot, share in parts if snapshot.handles]):
            restoring = self.backend.restore(checkpoint, keyed, int(storage.env.now))
            self._resize(served, 0, 0, int(storage.env.now))
            self.brought += [_brought("keyed", snapshot, share, snapshot.handles) for snapshot, share in parts if snapshot.handles]
            if not (yield from self._from_local_copy(storage, checkpoint, parts, restoring.work_ns)):
                reads = [_read(storage, handle, size_bytes, self.host) for handle, size_bytes in restoring.reads]
                reading = in_parallel(storage.env, reads, restoring.threads)
                yield from _both(storage.env, reading, restoring.work_ns)
                if restoring.after_ns:
                    yield storage.env.timeout(restoring.after_ns)
                read_bytes += sum(size_bytes for _, size_bytes in restoring.reads)
        for snapshot, share in parts:
            files: tuple[tuple[Kind, list[Handle]], ...] = (("windows", snapshot.windows), ("operator", snapshot.operator))
            for kind, handles in files:
                if handles:
                    self.brought.append(_brought(kind, snapshot, share, handles))
                for handle in handles:
                    size_bytes = int(handle.size_bytes * share)  # list state is dealt out anew
                    yield from _read(storage, handle, size_bytes, self.host)
                    read_bytes += size_bytes
        return read_bytes

    def _from_local_copy(
        self, storage: CheckpointStorage, checkpoint: int, parts: list[tuple[StateSnapshot, Fraction]], work_ns: int,
    ) -> Work[bool]:  # fmt: skip
        """Process: the copy on the own disk, if it is there: hard links, or a file that is read like the other."""
        (snapshot, share), *others = parts
        if others or share != 1 or snapshot.local is None or not storage.files.exists(snapshot.local):
            return False
        copy = storage.files[snapshot.local]
        if copy.host != self.host:
            return False
        self._copies[checkpoint] = storage.disk(self.host), snapshot.local
        self.brought = [part._replace(copied_from=copy.name[1:]) for part in self.brought]
        if copy.size_bytes:
            yield from _both(storage.env, storage.disk(self.host).read(copy.size_bytes, *copy.name, host=self.host), work_ns)
        return True

    # ------------------------------------------------------------------------------------------ files

    def _write_keyed(self, storage: CheckpointStorage, snapshot: StateSnapshot, checkpoint: int) -> Work[None]:
        name = ("keyed", self.vertex.name, self.index, checkpoint)
        if rest_ns := snapshot.keyed.held_ns - self._held_ns(snapshot.keyed, checkpoint):
            yield storage.env.timeout(rest_ns)
        alone = len(snapshot.keyed.steps) == 1 and len(snapshot.keyed.steps[0].files) == 1
        for step in snapshot.keyed.steps:
            yield from self.write_step(storage, snapshot.handles, step, name, self._merge(snapshot, checkpoint), alone=alone)

    def _write_beside(
        self, storage: CheckpointStorage, handles: list[Handle], what: tuple[Kind, int], snapshot: StateSnapshot, checkpoint: int,
    ) -> Work[None]:  # fmt: skip
        """One file beside those of the backend: its kind and its bytes."""
        kind, size_bytes = what
        if size_bytes:
            scope: Scope = "savepoint" if snapshot.type in ("canonical", "native") else "exclusive"
            name = (kind, self.vertex.name, self.index, checkpoint)
            yield from self._write(storage, handles, File(kind, size_bytes, scope), name, self._merge(snapshot, checkpoint))

    def _copy(self, storage: CheckpointStorage, snapshot: StateSnapshot, checkpoint: int) -> Work[None]:
        """A second stream to the local disk; RocksDB keeps the links it has.  A full disk costs the copy, not the checkpoint."""
        linked = self.vertex.state is not None and self.vertex.state.kind.keeps_files
        disk = storage.disk(self.host)
        try:
            size_bytes = 0 if linked else snapshot.keyed.written_bytes
            snapshot.local = yield from disk.write(size_bytes, "local", self.vertex.name, self.index, checkpoint, host=self.host)
        except StorageFailed:
            return
        self._copies[checkpoint] = disk, snapshot.local

    def write_step(
        self, storage: CheckpointStorage, handles: list[Handle], step: WriteStep, name: tuple[str | int, ...], merge: int | None = None, *,
        alone: bool = False,
    ) -> Work[None]:  # fmt: skip
        """Process: the files of one step, `alone` under the name itself; `handles` grows as they are written.  Raises StorageFailed."""
        works = [self._write(storage, handles, file, name if alone else (*name, file.name), merge) for file in step.files]
        slowed = step.slows_task and step.work_ns and self.options.savepoint_cpu
        if slowed:
            self.slow(1 / (1 - self.options.savepoint_cpu))
        try:
            writing = in_parallel(storage.env, works, step.threads)
            if self.processor is None or not step.work_ns:
                yield from _both(storage.env, writing, step.work_ns)
            else:
                yield from self.processor.share(writing, step.work_ns)
        except GeneratorExit:
            raise  # the run is over, and so is its plane
        except BaseException:
            if slowed:
                self.slow(Fraction(1))
            raise
        if slowed:
            self.slow(Fraction(1))

    def _write(
        self, storage: CheckpointStorage, handles: list[Handle], file: File, name: tuple[str | int, ...], merge: int | None,
    ) -> Work[None]:  # fmt: skip
        """One file; small ones travel in the acknowledgement, in no time."""
        written = None
        if not storage.is_inlined(file.size_bytes):
            owner = f"{self.vertex.name}/{self.index}" if file.scope == "shared" else ""
            written = yield from storage.write(file.size_bytes, *name, host=self.host, merge=merge, owner=owner)
        handles.append(Handle(file.name, file.size_bytes, file.scope, written))

    def _held_ns(self, keyed: FrozenState, checkpoint: int) -> int:
        """The part of a wait for the disk that falls into the synchronous part: any is as likely."""
        if not keyed.held_ns:
            return 0
        return keyed.held_ns * draw(stream(self.seed, "disk-wait", self.vertex.name, self.index), checkpoint) >> 32

    def _merge(self, snapshot: StateSnapshot, checkpoint: int) -> int | None:
        """Savepoints never share physical files."""
        return None if snapshot.type in ("canonical", "native") else checkpoint

    def _resize(self, served: int, records: int, rewritten: int, now_ns: int) -> None:
        """The backend holds what it held at the beginning, and what `served` records added, the last `records` since it was told.

        Keys that expire come and go by the clock, whatever `served` says.
        """
        if self.backend is None or self.vertex.state is None or not self.vertex.state.turns_over:
            return
        if self.expiry is None:
            self.backend.resize(self.keyed_bytes + self.vertex.state.added_bytes(self.keyed_bytes, served, self._share))
        else:
            turnover = self.expiry.advance(self.vertex.state.growth_bytes * records, rewritten, now_ns)
            self.backend.resize(turnover.live_bytes, turnover.expired_bytes, records)

    def _rewritten(self, served: int) -> int:
        """Entries rewritten since the last call, the records served being these."""
        before, self.stands_after = self._updates, served
        self._updates = 0 if self.vertex.state is None else int(served * self.vertex.state.update_share)
        return self._updates - before

    @property
    def _own(self) -> Snapshot:
        return self.vertex.snapshot


def _brought(kind: Kind, snapshot: StateSnapshot, share: Fraction, handles: Iterable[Handle]) -> Brought:
    return Brought(kind, snapshot.stamp, share, sum(handle.size_bytes for handle in handles))


def _part(snapshot: StateSnapshot, share: Fraction) -> KeyedPart:
    return KeyedPart(snapshot.type, snapshot.keyed.image, tuple(snapshot.handles), share)


def _read(storage: CheckpointStorage, handle: Handle, size_bytes: int, host: int) -> Work[None]:
    """Process: part of a file; what travelled in an acknowledgement is in the metadata."""
    if handle.file is not None and size_bytes:
        yield from storage.read(size_bytes, *storage.files[FileId(handle.file)].name, host=host)


def _both(env: simpy.Environment, work: Work[object], beside_ns: int) -> Work[None]:
    """Process: work, and so much time beside it; over when both are."""
    began_ns = env.now
    yield from work
    if (rest_ns := began_ns + beside_ns - env.now) > 0:
        yield env.timeout(rest_ns)
