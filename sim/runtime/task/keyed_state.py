"""Keyed state of a subtask: backend, changelog, local copies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import simpy

from sim.invariants.state import Kind, RestoredState
from sim.model.job import Vertex, key_groups
from sim.model.randomness import draw, stream
from sim.model.state import State, StateOptions
from sim.model.storage import SnapshotType
from sim.runtime.clock import begin
from sim.runtime.context import StateSnapshot
from sim.runtime.task.slot import Slot
from sim.runtime.task_manager import LogPart, WorkOnCore, on_own_core
from sim.storage.changelog import Ages, ChangelogBackend, Expiry, together
from sim.storage.filesystem import CheckpointStorage, FileSystem
from sim.storage.ledger import FileId, Name, StorageFailed
from sim.storage.lsm import CompactionThread
from sim.storage.requests import Work, in_parallel
from sim.storage.state_backends import backend
from sim.storage.state_files import Backend, File, FrozenState, Handle, KeyedPart, Restoring, WriteStep

# ---- How much keyed state a subtask holds as records are served: always the same, more with each record, or keys that come and go.


class Turnover:
    """The size of state that neither grows nor expires."""

    @property
    def ages(self) -> Ages:
        """The last writes of the keys that expire."""
        return ()

    def stand(self, ages: Ages, now_ns: int) -> None:
        """Take over the keys of a snapshot."""

    def resize(self, backend: Backend, served: int, records: int, rewritten: int, now_ns: int) -> None:
        """Tell the backend what it holds after `served` records in all, the last `records` since it was told."""


class Growing(Turnover):
    """The size of state to which records add keys that stay."""

    def __init__(self, state: State, begun_bytes: int, share: Fraction) -> None:
        self.state = state
        self.begun_bytes = begun_bytes
        self.share = share

    def resize(self, backend: Backend, served: int, records: int, rewritten: int, now_ns: int) -> None:
        backend.resize(self.begun_bytes + self.state.added_bytes(self.begun_bytes, served, self.share))


class Expiring(Turnover):
    """The size of state whose keys expire by the clock."""

    def __init__(self, state: State, expiry: Expiry) -> None:
        self.state = state
        self.expiry = expiry

    @property
    def ages(self) -> Ages:
        return self.expiry.ages

    def stand(self, ages: Ages, now_ns: int) -> None:
        self.expiry.stand(ages, now_ns)

    def resize(self, backend: Backend, served: int, records: int, rewritten: int, now_ns: int) -> None:
        turnover = self.expiry.advance(self.state.growth_bytes * records, rewritten, now_ns)
        backend.resize(turnover.live_bytes, turnover.expired_bytes, records)


def turnover(state: State, begun_bytes: int, share: Fraction) -> Turnover:
    """The turnover of a subtask that holds `share` of the key groups and begins with so many bytes."""
    if state.ttl is not None:
        return Expiring(state, Expiry(state.ttl.after_ns, begun_bytes, state.value_bytes))
    return Growing(state, begun_bytes, share) if state.turns_over else Turnover()


# ---- The owner of state: a subtask, its task manager, and its files in storage.


@dataclass(frozen=True, slots=True)
class StateOwner:
    """The subtask that owns state.  `host`: its task manager.

    `slow` is called with the factor by which its asynchronous work slows its thread down.
    `work_on_core`: a process for work and the processor time beside it.  `compaction`: the thread that compacts for the host.
    """

    vertex: Vertex
    index: int
    seed: int
    options: StateOptions = StateOptions()
    host: int = 0
    slow: Callable[[Fraction], None] = lambda _: None
    work_on_core: WorkOnCore = on_own_core
    compaction: CompactionThread | None = None

    @property
    def share(self) -> Fraction:
        """The share of the subtask in the key groups."""
        groups = self.vertex.max_parallelism
        return Fraction(len(key_groups(self.index, self.vertex.parallelism, groups)), groups)

    @property
    def keyed_bytes(self) -> int:
        """The share of the subtask in the keyed state that the job begins with [bytes]."""
        return 0 if self.vertex.state is None else int(self.vertex.state.bytes * self.share)

    def write(
        self,
        storage: CheckpointStorage,
        handles: list[Handle],
        file: File,
        name: tuple[str | int, ...],
        merge: int | None,
    ) -> Work[None]:
        """Process: one file; small ones travel in the acknowledgement, in no time.  Raises StorageFailed."""
        written = None
        if not storage.is_inlined(file.size_bytes):
            owner = f"{self.vertex.name}/{self.index}" if file.scope == "shared" else ""
            written = yield from storage.write(file.size_bytes, *name, host=self.host, merge=merge, owner=owner)
        handles.append(Handle(file.name, file.size_bytes, file.scope, written))

    def read(self, storage: CheckpointStorage, handle: Handle, size_bytes: int) -> Work[None]:
        """Process: part of a file; what travelled in an acknowledgement is in the metadata.  Raises StorageFailed."""
        if handle.file is not None and size_bytes:
            yield from storage.read(size_bytes, *storage.files[FileId(handle.file)].name, host=self.host)


def merge_of(type_: SnapshotType, checkpoint: int) -> int | None:
    """The checkpoint whose physical files a snapshot may share.  None: a savepoint shares none."""
    return None if type_ in ("canonical", "native") else checkpoint


# ---- The keyed state of one subtask as processes: what its backend freezes is written, copied to the local disk, and read again.
#
# Which files a snapshot has is `sim.storage`'s business.

Part = tuple[StateSnapshot, Fraction]
"""The state of a subtask in a checkpoint, and the share of its key groups that comes here."""
_EMPTY_STATE = FrozenState()


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
        self.restored_record_count = 0  # records served, as far as it was told
        self.restored_parts: list[RestoredState] = []  # what it was restored from

    def start(self) -> None:
        """The task runs."""

    def stop(self) -> None:
        """The task is gone, and what works for it in the background."""

    def served(self, slot: Slot) -> int:
        """Records that the task has served by now; 0 if they make no difference."""
        return slot.context.plane.position(slot.task).served if self.counts_records else 0

    def count(self, served: int, now_ns: int) -> None:
        """The task has served so many records in all."""

    def take(self, checkpoint: int, type_: SnapshotType, may_reuse: Callable[[FileId], bool]) -> FrozenState:
        """Freeze the state as it was counted last.  Raises CannotFreeze."""
        return _EMPTY_STATE

    def held_ns(self, keyed: FrozenState, checkpoint: int) -> int:
        """The part of a wait for the disk that falls into the synchronous part."""
        return 0

    def files(self, storage: CheckpointStorage, snapshot: StateSnapshot, checkpoint: int) -> list[Work[None]]:
        """Processes that write the files of a snapshot.  They raise StorageFailed."""
        return []

    def copies(self, storage: CheckpointStorage, snapshot: StateSnapshot, checkpoint: int) -> list[Work[None]]:
        """Processes that keep a copy on the disk of the task manager."""
        return []

    def durable(self, snapshot: StateSnapshot, checkpoint: int) -> Work[None]:
        """Process: its files are written; wait for what is written beside the snapshot.  Raises StorageFailed."""
        yield from ()

    def forget(self, snapshot: StateSnapshot) -> None:
        """The snapshot is over, complete or not."""

    def notify_complete(self, checkpoint: int) -> None:
        """The notice of a completed checkpoint, on the task thread."""

    def restore(self, storage: CheckpointStorage, checkpoint: int, parts: Sequence[Part], served: int) -> Work[int]:
        """Process: bring the state back from these parts; returns how many bytes were read.  Raises StorageFailed."""
        self.restored_record_count = served
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
        records, rewritten = served - self.restored_record_count, self._rewritten(served)
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
        keyed = [
            KeyedPart(snapshot.type, snapshot.keyed.image, tuple(snapshot.handles), share) for snapshot, share in stored
        ]
        restoring = self.backend.restore(checkpoint, keyed, now_ns)
        self.turnover.resize(self.backend, served, 0, 0, now_ns)
        if not stored:
            return 0
        self.restored_parts += [
            restored_state("keyed", snapshot, share, snapshot.handles) for snapshot, share in stored
        ]
        if (yield from self._from_local_copy(storage, checkpoint, parts, restoring.work_ns)):
            return 0
        return (yield from self._download(storage, restoring))

    def _download(self, storage: CheckpointStorage, restoring: Restoring) -> Work[int]:
        reads = [self.subtask.read(storage, handle, size_bytes) for handle, size_bytes in restoring.reads]
        yield from on_own_core(storage.env, in_parallel(storage.env, reads, restoring.threads), restoring.work_ns)
        if restoring.after_ns:
            yield storage.env.timeout(restoring.after_ns)
        return sum(size_bytes for _, size_bytes in restoring.reads)

    def _from_local_copy(
        self, storage: CheckpointStorage, checkpoint: int, parts: Sequence[Part], work_ns: int
    ) -> Work[bool]:
        """Process: the copy on the own disk, if it is there: hard links, or a file that is read like the other."""
        host, ((snapshot, share), *others) = self.subtask.host, parts
        if others or share != 1 or snapshot.local is None or not storage.files.exists(snapshot.local):
            return False
        copy = storage.files[snapshot.local]
        if copy.host != host:
            return False
        self._copies[checkpoint] = storage.disk(host), snapshot.local
        self.restored_parts = [part._replace(copied_from=copy.name[1:]) for part in self.restored_parts]
        if copy.size_bytes:
            yield from on_own_core(
                storage.env, storage.disk(host).read(copy.size_bytes, *copy.name, host=host), work_ns
            )
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
            yield from self.write_step(
                storage, snapshot.handles, step, name, merge_of(snapshot.type, checkpoint), alone=alone
            )

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
        self,
        storage: CheckpointStorage,
        handles: list[Handle],
        step: WriteStep,
        name: tuple[str | int, ...],
        merge: int | None = None,
        *,
        alone: bool = False,
    ) -> Work[None]:
        """Process: the files of one step, `alone` under the name itself; `handles` grows as they are written.  Raises StorageFailed."""
        works = [
            self.subtask.write(storage, handles, file, name if alone else (*name, file.name), merge)
            for file in step.files
        ]
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
        before, self.restored_record_count = self._updates, served
        self._updates = self.state.rewrites(self.subtask.keyed_bytes, served, self.subtask.share)
        return self._updates - before


def restored_state(kind: Kind, snapshot: StateSnapshot, share: Fraction, handles: Iterable[Handle]) -> RestoredState:
    return RestoredState(kind, snapshot.stamp, share, sum(handle.size_bytes for handle in handles))


def keyed_state(subtask: StateOwner) -> NoKeyedState:
    """The keyed state of a subtask, by the options of its vertex.  The share of a subtask may be less than a byte."""
    state = subtask.vertex.state
    return KeyedState(subtask, state) if state is not None and (state.bytes or state.growth_bytes) else NoKeyedState()


# ---- The changelog of one subtask as processes: its log is uploaded while the job runs, the backend below materialised now and then.
#
# Flink:  FsStateChangelogWriter, PeriodicMaterializationManager.  What is in which file, and which snapshot refers to
# it, is
# `sim.storage.changelog`'s business; how files get into storage, several subtasks' as one, is `log_uploads`'.

_MIN_LOOK_NS, _MAX_LOOK_NS = 1_000_000, 100_000_000  # between two looks at how much was logged
_PACE_NS = 10_000_000_000  # the pace of the log is taken over so long, or twice that


class LogWriter(NoLog):
    """The changelog of one subtask, and its uploads."""

    def __init__(self, slot: Slot, state: KeyedState, backend: ChangelogBackend) -> None:
        self.slot = slot
        self.state = state
        self.env = slot.context.env
        self.storage = slot.context.storage
        self.backend = backend
        self._running: list[simpy.Process] = []
        self._closed = False  # a mail that is still to come freezes nothing
        self._uploads: dict[str, simpy.Event] = {}  # name of a file -> its handle, in time; None: it failed
        self._claims = Counter[str]()  # name of a file -> snapshots that need it and are not over
        self._materialisations = 0
        self._loaded_bytes = 0  # not written yet: the state a run begins with, which no log was kept of

    def start(self) -> None:
        """The task has its state."""
        self._loaded_bytes = self.backend.pending_bytes
        self._running = [self.env.process(self._materialise())]
        if not self.backend.options.in_memory:
            self._running.append(self.env.process(self._upload_early()))

    def stop(self) -> None:
        self._closed = True
        for process in self._running:
            if process.is_alive:
                process.interrupt()

    def upload(self, files: Iterable[File]) -> None:
        """See that these files of the log are written; those under way already are left alone."""
        for file in files:
            if file.name not in self._uploads:
                self._uploads[file.name] = self.env.event()
                if file.size_bytes >= self._loaded_bytes > 0:
                    self._loaded_bytes = 0
                    self.env.process(self._write(file, self._uploads[file.name]))
                else:
                    self._hand_in(file, self._uploads[file.name])

    def claim(self, files: Iterable[File]) -> None:
        """A snapshot needs these files until it calls `forget`."""
        files = tuple(files)
        self._claims.update(file.name for file in files)
        self.upload(files)

    def wait(self, file: File) -> Work[Handle]:
        """Process: until a file that was claimed is durable.  Raises StorageFailed."""
        handle = yield self._uploads[file.name]
        if handle is None:
            raise StorageFailed(f"{file.name} of the changelog could not be written")
        return handle  # type: ignore[no-any-return]

    def forget(self, files: Iterable[File]) -> None:
        """A snapshot that needed these is over."""
        for file in files:
            self._claims[file.name] -= 1
            self._forget_ended(file)

    def _forget_ended(self, file: File) -> None:
        """The outcomes of these uploads are no longer needed.  While one is, a durable file is not written again."""
        if self._claims[file.name] > 0:
            return
        del self._claims[file.name]
        if file.name in self._uploads and self._uploads[file.name].triggered:
            del self._uploads[file.name]

    def _hand_in(self, file: File, done: simpy.Event) -> None:
        """Hand a file to the uploads of the task manager.  Uploads outlive snapshots and their failures."""
        options = self.backend.options
        uploads = self.slot.manager.log_uploads(options.upload_threads)
        uploads.hand_in(
            LogPart(self._name(file), file.size_bytes, lambda stored: self._written(file, done, stored)), options
        )

    def _write(self, file: File, done: simpy.Event) -> Work[None]:
        """Process: write the log that the run begins with, in one stream and without a timeout."""
        if self.backend.options.batch_delay_ns:
            yield self.env.timeout(self.backend.options.batch_delay_ns)
        try:
            stored = yield from self.storage.write(file.size_bytes, *self._name(file), host=self.slot.manager.number)
        except StorageFailed:
            self._written(file, done, None)
        else:
            self._written(file, done, stored)

    def _written(self, file: File, done: simpy.Event, stored: FileId | None) -> None:
        """An upload has ended: the file is durable, or the upload was given up."""
        handle = None if stored is None else Handle(file.name, file.size_bytes, file.scope, stored)
        if handle is None:
            self.backend.given_up(file)
        else:
            self.backend.logged(handle)
        done.succeed(handle)
        self._forget_ended(file)

    def _name(self, file: File) -> Name:
        return "changelog", *self.state.name, file.name

    def _upload_early(self) -> Work[None]:
        """Process: upload the log when enough is new.  The time of the next look follows from the pace of the log."""
        enough = self.backend.options.preemptive_bytes
        earlier = latest = self._look()
        try:
            while True:
                now_ns, end_bytes = self._look()
                if self.backend.active_bytes >= enough and (file := self.backend.cut()) is not None:
                    self.upload([file])
                if now_ns - latest[0] > _PACE_NS:
                    earlier, latest = latest, (now_ns, end_bytes)
                took_ns, grown_bytes = now_ns - earlier[0], end_bytes - earlier[1]
                look_ns = (enough - self.backend.active_bytes) * took_ns // grown_bytes if grown_bytes else _MAX_LOOK_NS
                yield self.env.timeout(min(max(look_ns, _MIN_LOOK_NS), _MAX_LOOK_NS))
        except simpy.Interrupt:
            return

    def _count(self) -> None:
        """Pass the number of records served so far to the state."""
        self.state.count(self.state.served(self.slot), self.env.now)

    def _look(self) -> tuple[int, int]:
        """(now, where the log ends)."""
        self._count()
        return int(self.env.now), self.backend.end_bytes

    def _materialise(self) -> Work[None]:
        """Process: the backend below is snapshotted once per interval, at a phase of this subtask's own."""
        interval_ns, state = self.backend.options.materialize_ns, self.state
        key = stream(state.subtask.seed, "materialize", *state.name)
        try:
            if self.backend.options.in_memory:  # else acknowledgements would carry what the run begins with
                yield from self._materialise_once()
            yield self.env.timeout(draw(key, 0) * interval_ns >> 32)
            while True:
                yield from self._materialise_once()
                yield self.env.timeout(interval_ns)
        except simpy.Interrupt:
            return

    def _materialise_once(self) -> Work[None]:
        if not self.backend.may_materialise:
            return
        self._materialisations += 1
        number, state = self._materialisations, self.state
        frozen = self.env.event()

        def freeze() -> None:
            if self._closed:
                return
            self._count()
            frozen_state = self.backend.materialise(number)
            self.slot.checks.materialising(self.slot.task, number)
            if frozen_state.sync_ns:
                self.slot.thread.occupy()
                self.env.call_in(frozen_state.sync_ns, self.slot.thread.vacate)
            frozen.succeed(frozen_state)

        self.slot.thread.post(freeze)
        frozen_state: FrozenState = yield frozen
        handles: list[Handle] = []
        try:
            for step in frozen_state.steps:
                yield from state.write_step(self.storage, handles, step, ("materialized", *state.name, number))
        except StorageFailed:
            self.backend.materialisation_failed(number)
            return  # the next materialisation tries again
        handles = [*frozen_state.reused, *handles]
        self.backend.materialised(number, frozen_state, handles)
        self._loaded_bytes = 0  # it holds them, if no log does
        self.slot.checks.materialised(self.slot.task, number, handles)


def attach(slot: Slot, state: NoKeyedState) -> None:
    """Give state its changelog, if its backend keeps one."""
    if isinstance(state, KeyedState) and isinstance(state.backend, ChangelogBackend):
        state.log = LogWriter(slot, state, state.backend)
