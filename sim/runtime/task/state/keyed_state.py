"""The keyed state of one subtask as processes: what its backend freezes is written, copied to the local disk, and read again.

Which files a snapshot has is `sim.state`'s business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction

from sim.checkers.state import Brought, Kind
from sim.model.randomness.streams import draw, stream
from sim.model.state import State
from sim.model.stored import SnapshotType
from sim.runtime.background import begin
from sim.runtime.contents import StateSnapshot
from sim.runtime.task.slot import Slot
from sim.runtime.task.state.subtask import StateOwner, merge_of
from sim.runtime.task.state.turnover import turnover
from sim.runtime.taskmanager.processor import on_own_core
from sim.state.backends import backend
from sim.state.expiry import Ages, together
from sim.state.files import File, FrozenState, Handle, KeyedPart, Restoring, WriteStep
from sim.storage import CheckpointStorage, FileId, FileSystem, StorageFailed
from sim.storage.parallel import in_parallel
from sim.storage.work import Work

Part = tuple[StateSnapshot, Fraction]
"""The state of a subtask in a checkpoint, and the share of its key groups that comes here."""
_NOTHING = FrozenState()


class NoLog:
    """The uploads of the changelog of a subtask that keeps none."""

    def start(self) -> None:
        """The task has its state."""

    def stop(self) -> None:
        """The task is gone."""

    def claim(self, files: Iterable[File]) -> None:
        """A snapshot needs these files until it calls `forget`."""

    def forget(self, files: Iterable[File]) -> None:
        """A snapshot that needed these is over."""

    def wait(self, file: File) -> Work[Handle]:
        """Process: until a file that was claimed is durable.  Raises StorageFailed."""
        raise LookupError(f"{file.name} is of no changelog")


class NoKeyedState:
    """A subtask without keyed state, and the interface of keyed state."""

    counts_records = False  # whether it makes a difference how many records were served
    listens = False  # whether the notice of a completed checkpoint makes a difference
    ages: Ages = ()  # of keys that expire

    def __init__(self) -> None:
        self.stands_after = 0  # records served, as far as it was told
        self.brought: list[Brought] = []  # what it was restored from

    def start(self) -> None:
        """The task runs."""

    def stop(self) -> None:
        """The task is gone, and what works for it in the background."""

    def served(self, slot: Slot) -> int:
        """Records that the task has served by now; 0 if they make no difference."""
        return slot.context.plane.position(slot.task).served if self.counts_records else 0

    def count(self, served: int, now_ns: int) -> None:
        """The task has served so many records in all."""

    def take(self, checkpoint: int, type_: SnapshotType, may_reuse: Callable[[FileId], bool]) -> FrozenState:  # noqa: ARG002
        """Freeze the state as it was counted last.  Raises CannotFreeze."""
        return _NOTHING

    def held_ns(self, keyed: FrozenState, checkpoint: int) -> int:  # noqa: ARG002
        """The part of a wait for the disk that falls into the synchronous part."""
        return 0

    def files(self, storage: CheckpointStorage, snapshot: StateSnapshot, checkpoint: int) -> list[Work[None]]:  # noqa: ARG002
        """Processes that write the files of a snapshot.  They raise StorageFailed."""
        return []

    def copies(self, storage: CheckpointStorage, snapshot: StateSnapshot, checkpoint: int) -> list[Work[None]]:  # noqa: ARG002
        """Processes that keep a copy on the disk of the task manager."""
        return []

    def durable(self, snapshot: StateSnapshot, checkpoint: int) -> Work[None]:  # noqa: ARG002
        """Process: its files are written; wait for what is written beside the snapshot.  Raises StorageFailed."""
        yield from ()

    def forget(self, snapshot: StateSnapshot) -> None:
        """The snapshot is over, complete or not."""

    def notify_complete(self, checkpoint: int) -> None:
        """The notice of a completed checkpoint, on the task thread."""

    def restore(self, storage: CheckpointStorage, checkpoint: int, parts: Sequence[Part], served: int) -> Work[int]:  # noqa: ARG002
        """Process: bring the state back from these parts; returns how many bytes were read.  Raises StorageFailed."""
        self.stands_after = served
        yield from ()
        return 0


class KeyedState(NoKeyedState):
    """The keyed state of one subtask."""

    def __init__(self, subtask: StateOwner, state: State) -> None:
        super().__init__()
        self.subtask = subtask
        self.state = state
        self.backend = backend(state, subtask.keyed_bytes, subtask.options, subtask.compaction)
        self.turnover = turnover(state, subtask.keyed_bytes, subtask.share)
        self.log = NoLog()
        tells_updates = state.kind.keeps_files or state.changelog is not None  # the heap does not
        self.counts_records = (tells_updates and state.update_share > 0) or state.turns_over
        incremental = subtask.options.incremental and state.kind.keeps_files
        self.listens = subtask.options.local_recovery or incremental or state.changelog is not None
        self._updates = 0  # entries rewritten so far
        self._copies: dict[int, tuple[FileSystem, FileId]] = {}  # checkpoint -> on the local disk

    @property
    def ages(self) -> Ages:  # type: ignore[override]
        return self.turnover.ages

    def start(self) -> None:
        self.log.start()

    def stop(self) -> None:
        self.log.stop()
        self.backend.stop()

    def count(self, served: int, now_ns: int) -> None:
        records, rewritten = served - self.stands_after, self._rewritten(served)
        self.turnover.resize(self.backend, served, records, rewritten, now_ns)
        self.backend.update(rewritten, now_ns)

    # ------------------------------------------------------------------------------------------ snapshots

    def take(self, checkpoint: int, type_: SnapshotType, may_reuse: Callable[[FileId], bool]) -> FrozenState:
        keyed = self.backend.take(checkpoint, type_, lambda file: may_reuse(FileId(file)))
        self.log.claim(keyed.awaited)
        return keyed

    def held_ns(self, keyed: FrozenState, checkpoint: int) -> int:
        """The part of a wait for the disk that falls into the synchronous part, drawn uniformly."""
        if not keyed.held_ns:
            return 0
        return keyed.held_ns * draw(stream(self.subtask.seed, "disk-wait", *self.name), checkpoint) >> 32

    def files(self, storage: CheckpointStorage, snapshot: StateSnapshot, checkpoint: int) -> list[Work[None]]:
        return [self._write(storage, snapshot, checkpoint)]

    def copies(self, storage: CheckpointStorage, snapshot: StateSnapshot, checkpoint: int) -> list[Work[None]]:
        is_copied = self.subtask.options.local_recovery and snapshot.type in ("checkpoint", "full")
        return [self._copy(storage, snapshot, checkpoint)] if is_copied else []

    def durable(self, snapshot: StateSnapshot, checkpoint: int) -> Work[None]:
        for file in snapshot.keyed.awaited:
            snapshot.logged.append((yield from self.log.wait(file)))
        self.backend.stored(checkpoint, snapshot.type, [*snapshot.keyed.reused, *snapshot.handles])

    def forget(self, snapshot: StateSnapshot) -> None:
        self.log.forget(snapshot.keyed.awaited)

    def notify_complete(self, checkpoint: int) -> None:
        """Older local copies go (TaskLocalStateStore)."""
        self.backend.notify_complete(checkpoint)
        for older in [number for number in self._copies if number < checkpoint]:
            disk, copy = self._copies.pop(older)
            begin(disk.attempts.env, disk.delete([copy], host=self.subtask.host), lambda _: None)

    # ------------------------------------------------------------------------------------------ restore

    def restore(self, storage: CheckpointStorage, checkpoint: int, parts: Sequence[Part], served: int) -> Work[int]:
        now_ns = int(storage.env.now)
        self._updates = 0
        self._rewritten(served)
        self.turnover.stand(together((snapshot.ages, share) for snapshot, share in parts), now_ns)
        stored = [(snapshot, share) for snapshot, share in parts if snapshot.handles]
        keyed = [KeyedPart(snapshot.type, snapshot.keyed.image, tuple(snapshot.handles), share) for snapshot, share in stored]
        restoring = self.backend.restore(checkpoint, keyed, now_ns)
        self.turnover.resize(self.backend, served, 0, 0, now_ns)
        if not stored:
            return 0
        self.brought += [brought("keyed", snapshot, share, snapshot.handles) for snapshot, share in stored]
        if (yield from self._from_local_copy(storage, checkpoint, parts, restoring.work_ns)):
            return 0
        return (yield from self._download(storage, restoring))

    def _download(self, storage: CheckpointStorage, restoring: Restoring) -> Work[int]:
        reads = [self.subtask.read(storage, handle, size_bytes) for handle, size_bytes in restoring.reads]
        yield from on_own_core(storage.env, in_parallel(storage.env, reads, restoring.threads), restoring.work_ns)
        if restoring.after_ns:
            yield storage.env.timeout(restoring.after_ns)
        return sum(size_bytes for _, size_bytes in restoring.reads)

    def _from_local_copy(self, storage: CheckpointStorage, checkpoint: int, parts: Sequence[Part], work_ns: int) -> Work[bool]:
        """Process: the copy on the own disk, if it is there: hard links, or a file that is read like the other."""
        host, ((snapshot, share), *others) = self.subtask.host, parts
        if others or share != 1 or snapshot.local is None or not storage.files.exists(snapshot.local):
            return False
        copy = storage.files[snapshot.local]
        if copy.host != host:
            return False
        self._copies[checkpoint] = storage.disk(host), snapshot.local
        self.brought = [part._replace(copied_from=copy.name[1:]) for part in self.brought]
        if copy.size_bytes:
            yield from on_own_core(storage.env, storage.disk(host).read(copy.size_bytes, *copy.name, host=host), work_ns)
        return True

    # ------------------------------------------------------------------------------------------ files

    @property
    def name(self) -> tuple[str, int]:
        """The name of the subtask in file names and random streams."""
        return self.subtask.vertex.name, self.subtask.index

    def _write(self, storage: CheckpointStorage, snapshot: StateSnapshot, checkpoint: int) -> Work[None]:
        name, steps = ("keyed", *self.name, checkpoint), snapshot.keyed.steps
        if rest_ns := snapshot.keyed.held_ns - self.held_ns(snapshot.keyed, checkpoint):
            yield storage.env.timeout(rest_ns)
        alone = len(steps) == 1 and len(steps[0].files) == 1
        for step in steps:
            yield from self.write_step(storage, snapshot.handles, step, name, merge_of(snapshot.type, checkpoint), alone=alone)

    def _copy(self, storage: CheckpointStorage, snapshot: StateSnapshot, checkpoint: int) -> Work[None]:
        """A second stream to the local disk; RocksDB keeps the links it has.  A full disk costs the copy, not the checkpoint."""
        host = self.subtask.host
        disk = storage.disk(host)
        try:
            size_bytes = 0 if self.state.kind.keeps_files else snapshot.keyed.written_bytes
            snapshot.local = yield from disk.write(size_bytes, "local", *self.name, checkpoint, host=host)
        except StorageFailed:
            return
        self._copies[checkpoint] = disk, snapshot.local

    def write_step(
        self, storage: CheckpointStorage, handles: list[Handle], step: WriteStep, name: tuple[str | int, ...], merge: int | None = None, *,
        alone: bool = False,
    ) -> Work[None]:  # fmt: skip
        """Process: the files of one step, `alone` under the name itself; `handles` grows as they are written.  Raises StorageFailed."""
        works = [self.subtask.write(storage, handles, file, name if alone else (*name, file.name), merge) for file in step.files]
        slowed = step.slows_task and step.work_ns and self.subtask.options.savepoint_cpu
        if slowed:
            self.subtask.slow(1 / (1 - self.subtask.options.savepoint_cpu))
        try:
            writing = in_parallel(storage.env, works, step.threads)
            yield from (self.subtask.work_on_core(storage.env, writing, step.work_ns) if step.work_ns else writing)
        except GeneratorExit:
            raise  # the run is over, and so is its plane
        except BaseException:
            if slowed:
                self.subtask.slow(Fraction(1))
            raise
        if slowed:
            self.subtask.slow(Fraction(1))

    def _rewritten(self, served: int) -> int:
        """Entries rewritten since the last call, the records served being these."""
        before, self.stands_after = self._updates, served
        self._updates = int(served * self.state.update_share)
        return self._updates - before


def brought(kind: Kind, snapshot: StateSnapshot, share: Fraction, handles: Iterable[Handle]) -> Brought:
    return Brought(kind, snapshot.stamp, share, sum(handle.size_bytes for handle in handles))


def keyed_state(subtask: StateOwner) -> NoKeyedState:
    """The keyed state of a subtask, by the options of its vertex.  The share of a subtask may be less than a byte."""
    state = subtask.vertex.state
    return KeyedState(subtask, state) if state is not None and (state.bytes or state.growth_bytes) else NoKeyedState()
