"""The state of a subtask in simulated time: keyed state, changelog, local recovery, list state, snapshots, restore.

`sim.storage` decides which files a snapshot has.  This module writes and reads them as processes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Literal

import simpy

from sim.model.job import key_groups
from sim.model.randomness import Stream, chance, draw, stream
from sim.model.state import State
from sim.model.storage import SnapshotType
from sim.runtime.clock import begin
from sim.runtime.context import Kind, RestoredState, StateSnapshot
from sim.runtime.task.parts import WaitingBytes
from sim.runtime.task.thread import Slot
from sim.runtime.task_manager import LogPart, on_own_core
from sim.storage.filesystem import FileSystem
from sim.storage.ledger import FileId, Name, StorageFailed
from sim.storage.requests import Work, in_parallel
from sim.storage.state_backends import Ages, ChangelogBackend, Expiry, backend, together
from sim.storage.state_files import File, FrozenState, Handle, KeyedPart, Restoring, WriteStep

# ---- The owner of state: a subtask, and access to its files in storage.


class StateOwner:
    """The subtask that owns state, and the files of its state in storage."""

    def __init__(self, slot: Slot) -> None:
        context, vertex = slot.context, slot.vertex
        self.slot = slot
        self.storage = context.storage
        self.host = slot.manager.number
        self.options = context.scenario.checkpoint.state
        self.seed = context.scenario.run.seed
        self.name = context.names[slot.task]  # in file names and random streams
        groups = key_groups(self.name[1], vertex.parallelism, vertex.max_parallelism)
        self.share = Fraction(len(groups), vertex.max_parallelism)  # of the key groups
        # the initial keyed state
        self.keyed_bytes = 0 if vertex.state is None else int(vertex.state.bytes * self.share)

    def slow(self, factor: Fraction) -> None:
        """Slow the task thread down by asynchronous work.  The factor 1 ends it."""
        self.slot.context.speed.set_factor(self.slot.task, "snapshot", factor)

    def write(self, handles: list[Handle], file: File, name: Name, merge: int | None) -> Work[None]:
        """Process: write a file and append its handle.  A small file is sent in the acknowledgement, which takes no time.

        `merge` is the checkpoint whose physical files it may share, or None.  Raises StorageFailed.
        """
        written = None
        if not self.storage.is_inlined(file.size_bytes):
            owner = "{}/{}".format(*self.name) if file.scope == "shared" else ""
            written = yield from self.storage.write(file.size_bytes, *name, host=self.host, merge=merge, owner=owner)
        handles.append(Handle(file.name, file.size_bytes, file.scope, written))

    def read(self, handle: Handle, size_bytes: int) -> Work[None]:
        """Process: read `size_bytes` of a file.  A file that was sent in an acknowledgement is in the metadata already.

        Raises StorageFailed.
        """
        if handle.file is not None and size_bytes:
            yield from self.storage.read(size_bytes, *self.storage.files[FileId(handle.file)].name, host=self.host)


# ---- The keyed state of one subtask: files of a snapshot are written, copied to the local disk, and read by a restore.

Part = tuple[StateSnapshot, Fraction]
"""The state of a former subtask in a checkpoint, and the share of its key groups that this subtask restores."""
_EMPTY_STATE = FrozenState()


class NoKeyedState:
    """The keyed state of a subtask that has none, and the interface of keyed state."""

    listens = False  # whether it needs notifications of completed checkpoints
    ages: Ages = ()  # the keys by the time of their last write, if they expire

    def __init__(self) -> None:
        self.restored_record_count = 0  # records served at the restore, or at the latest count after it
        self.restored_parts: list[RestoredState] = []  # what it was restored from, for the invariants

    def start(self) -> None:
        """Handle the start of the task."""

    def stop(self) -> None:
        """Handle that the task has stopped: end all background work."""

    def count(self) -> None:
        """Update the state to the records served so far."""

    def take(self, checkpoint: int, type_: SnapshotType) -> FrozenState:
        """Freeze the state as of the latest `count`, in the synchronous part of a snapshot.  Raises CannotFreeze."""
        return _EMPTY_STATE

    def held_ns(self, keyed: FrozenState, checkpoint: int) -> int:
        """Return the delay by a busy disk in the synchronous part of a snapshot [ns]."""
        return 0

    def files(self, snapshot: StateSnapshot) -> list[Work[None]]:
        """Return the processes that write the files of a snapshot.  They raise StorageFailed."""
        return []

    def copies(self, snapshot: StateSnapshot) -> list[Work[None]]:
        """Return the processes that write a copy to the disk of the TaskManager (local recovery)."""
        return []

    def durable(self, snapshot: StateSnapshot) -> Work[None]:
        """Process, after the files are written: wait for files of the changelog, which are uploaded independently.

        Raises StorageFailed.
        """
        yield from ()

    def forget(self, snapshot: StateSnapshot) -> None:
        """Handle that a snapshot has ended, successfully or not."""

    def notify_complete(self, checkpoint: int) -> None:
        """Handle the notification of a completed checkpoint on the task thread."""

    def restore(self, checkpoint: int, parts: Sequence[Part], served: int) -> Work[int]:
        """Process: restore the state from these parts, as of `served` records of this task.

        Returns the number of bytes downloaded.  Raises StorageFailed.
        """
        self.restored_record_count = served
        yield from ()
        return 0


class KeyedState(NoKeyedState):
    """The keyed state of one subtask."""

    def __init__(self, subtask: StateOwner, state: State) -> None:
        super().__init__()
        self.subtask = subtask
        self.state = state
        self.storage = subtask.storage
        self.backend = backend(state, subtask.keyed_bytes, subtask.options, subtask.slot.manager.compaction)
        self.expiry = None if state.ttl is None else Expiry(state.ttl.after_ns, subtask.keyed_bytes, state.value_bytes)
        self.log = LogWriter(self, self.backend) if isinstance(self.backend, ChangelogBackend) else None
        writes_changed_entries = state.kind.keeps_files or state.changelog is not None  # the heap does not
        # whether the state depends on the number of records served
        self.counts_records = (writes_changed_entries and state.update_share > 0) or state.turns_over
        incremental = subtask.options.incremental and state.kind.keeps_files
        self.listens = subtask.options.local_recovery or incremental or state.changelog is not None
        self._updates = 0  # entries rewritten up to the latest count
        self._copies: dict[int, tuple[FileSystem, FileId]] = {}  # checkpoint -> copy on the local disk

    @property
    def ages(self) -> Ages:  # type: ignore[override]
        return () if self.expiry is None else self.expiry.ages

    def start(self) -> None:
        if self.log is not None:
            self.log.start()

    def stop(self) -> None:
        if self.log is not None:
            self.log.stop()
        self.backend.stop()

    def count(self) -> None:
        slot = self.subtask.slot
        served, now_ns = slot.position.served if self.counts_records else 0, slot.now
        records, rewritten = served - self.restored_record_count, self._rewritten(served)
        self._resize(served, records, rewritten, now_ns)
        self.backend.update(rewritten, now_ns)

    # ------------------------------------------------------------------------------------------ snapshots

    def take(self, checkpoint: int, type_: SnapshotType) -> FrozenState:
        keyed = self.backend.take(checkpoint, type_, lambda file: self.storage.may_reuse(FileId(file)))
        if self.log is not None:
            self.log.claim(keyed.awaited)
        return keyed

    def held_ns(self, keyed: FrozenState, checkpoint: int) -> int:
        """Return the delay by a busy disk in the synchronous part [ns], drawn uniformly from 0 to the whole delay."""
        if not keyed.held_ns:
            return 0
        return keyed.held_ns * draw(stream(self.subtask.seed, "disk-wait", *self.subtask.name), checkpoint) >> 32

    def files(self, snapshot: StateSnapshot) -> list[Work[None]]:
        return [self._write(snapshot)]

    def copies(self, snapshot: StateSnapshot) -> list[Work[None]]:
        is_copied = self.subtask.options.local_recovery and not snapshot.is_savepoint
        return [self._copy(snapshot)] if is_copied else []

    def durable(self, snapshot: StateSnapshot) -> Work[None]:
        if self.log is not None:
            for file in snapshot.keyed.awaited:
                snapshot.logged.append((yield from self.log.wait(file)))
        self.backend.stored(snapshot.checkpoint, snapshot.type, [*snapshot.keyed.reused, *snapshot.handles])

    def forget(self, snapshot: StateSnapshot) -> None:
        if self.log is not None:
            self.log.forget(snapshot.keyed.awaited)

    def notify_complete(self, checkpoint: int) -> None:
        """Handle the notification of a completed checkpoint, and delete older local copies (TaskLocalStateStore)."""
        self.backend.notify_complete(checkpoint)
        for older in [number for number in self._copies if number < checkpoint]:
            disk, copy = self._copies.pop(older)
            begin(disk.attempts.env, disk.delete([copy], host=self.subtask.host), lambda _: None)

    # ------------------------------------------------------------------------------------------ restore

    def restore(self, checkpoint: int, parts: Sequence[Part], served: int) -> Work[int]:
        now_ns = self.subtask.slot.now
        self._updates = 0
        self._rewritten(served)
        if self.expiry is not None:
            self.expiry.stand(together((snapshot.ages, share) for snapshot, share in parts), now_ns)
        stored = [(snapshot, share) for snapshot, share in parts if snapshot.handles]
        keyed = [
            KeyedPart(snapshot.type, snapshot.keyed.image, tuple(snapshot.handles), share) for snapshot, share in stored
        ]
        restoring = self.backend.restore(checkpoint, keyed, now_ns)
        self._resize(served, 0, 0, now_ns)
        if not stored:
            return 0
        self.restored_parts += [
            restored_state("keyed", snapshot, share, snapshot.handles) for snapshot, share in stored
        ]
        is_local = yield from self._from_local_copy(checkpoint, parts, restoring.work_ns)
        read_bytes = 0 if is_local else (yield from self._download(restoring))
        if restoring.on_end is not None:
            restoring.on_end(self.subtask.slot.now)
        return read_bytes

    def _download(self, restoring: Restoring) -> Work[int]:
        """Process: download the files of a restore and load them.  Returns the number of bytes read."""
        env = self.storage.env
        reads = [self.subtask.read(handle, size_bytes) for handle, size_bytes in restoring.reads]
        yield from on_own_core(env, in_parallel(env, reads, restoring.threads), restoring.work_ns)
        for handle, size_bytes in restoring.then:
            yield from self.subtask.read(handle, size_bytes)
        if restoring.after_ns:
            yield env.timeout(restoring.after_ns)
        return sum(size_bytes for _, size_bytes in (*restoring.reads, *restoring.then))

    def _from_local_copy(self, checkpoint: int, parts: Sequence[Part], work_ns: int) -> Work[bool]:
        """Process: restore from the local copy, and return whether there is one on the disk of this TaskManager.

        The copy of RocksDB consists of hard links and takes no time; that of the heap is a file, which is read.
        """
        storage, host, ((snapshot, share), *others) = self.storage, self.subtask.host, parts
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

    def _write(self, snapshot: StateSnapshot) -> Work[None]:
        """Process: write the files of a snapshot in the asynchronous part."""
        name, steps = ("keyed", *self.subtask.name, snapshot.checkpoint), snapshot.keyed.steps
        if rest_ns := snapshot.keyed.held_ns - self.held_ns(snapshot.keyed, snapshot.checkpoint):
            yield self.storage.env.timeout(rest_ns)
        alone = len(steps) == 1 and len(steps[0].files) == 1
        for step in steps:
            yield from self.write_step(snapshot.handles, step, name, snapshot.merge, alone=alone)

    def _copy(self, snapshot: StateSnapshot) -> Work[None]:
        """Process: write a copy to the local disk.  RocksDB has hard links already, which need no space.

        If the disk is full there is no copy, but the checkpoint does not fail.
        """
        host = self.subtask.host
        disk = self.storage.disk(host)
        try:
            size_bytes = 0 if self.state.kind.keeps_files else snapshot.keyed.written_bytes
            snapshot.local = yield from disk.write(
                size_bytes, "local", *self.subtask.name, snapshot.checkpoint, host=host
            )
        except StorageFailed:
            return
        self._copies[snapshot.checkpoint] = disk, snapshot.local

    def write_step(
        self, handles: list[Handle], step: WriteStep, name: Name, merge: int | None = None, *, alone: bool = False
    ) -> Work[None]:
        """Process: write the files of one step and append their handles.  Raises StorageFailed.

        `alone` means that the step has the only file of the snapshot, which gets `name` without a suffix.
        """
        works = [self.subtask.write(handles, file, name if alone else (*name, file.name), merge) for file in step.files]
        slowed = step.slows_task and step.work_ns and self.subtask.options.savepoint_cpu
        if slowed:
            self.subtask.slow(1 / (1 - self.subtask.options.savepoint_cpu))
        try:
            writing = in_parallel(self.storage.env, works, step.threads)
            work_on_core = self.subtask.slot.manager.work_on_core
            yield from (work_on_core(writing, step.work_ns) if step.work_ns else writing)
        except GeneratorExit:
            raise  # the run is over: the speed of the task must not change any more
        except BaseException:
            if slowed:
                self.subtask.slow(Fraction(1))
            raise
        if slowed:
            self.subtask.slow(Fraction(1))

    def _resize(self, served: int, records: int, rewritten: int, now_ns: int) -> None:
        """Set the size of the backend after `served` records: they add keys, which expire if they have a time to live.

        `records` were served since the last call, which rewrote `rewritten` entries.
        """
        if self.expiry is not None:
            turnover = self.expiry.advance(self.state.growth_bytes * records, rewritten, now_ns)
            self.backend.resize(turnover.live_bytes, turnover.expired_bytes, records)
        elif self.state.turns_over:
            begun_bytes = self.subtask.keyed_bytes
            self.backend.resize(begun_bytes + self.state.added_bytes(begun_bytes, served, self.subtask.share))

    def _rewritten(self, served: int) -> int:
        """Return the number of entries rewritten since the last call, after `served` records."""
        before, self.restored_record_count = self._updates, served
        self._updates = self.state.rewrites(self.subtask.keyed_bytes, served, self.subtask.share)
        return self._updates - before


def restored_state(kind: Kind, snapshot: StateSnapshot, share: Fraction, handles: Iterable[Handle]) -> RestoredState:
    """Return the description of restored state that the invariants check."""
    return RestoredState(kind, snapshot.stamp, share, sum(handle.size_bytes for handle in handles))


# ---- The changelog of one subtask: the log is uploaded continuously, the wrapped backend is materialised periodically.
#
# Flink: FsStateChangelogWriter, PeriodicMaterializationManager.  `sim.storage.state_backends` decides which file contains
# what, and which files a snapshot refers to.  `TaskManager.log_uploads` batches the files of several subtasks.

_MIN_LOOK_NS, _MAX_LOOK_NS = 1_000_000, 100_000_000  # limits of the time between two checks of the size of the log
_PACE_NS = 10_000_000_000  # the growth rate of the log is measured over one to two times this period


class LogWriter:
    """Uploads the changelog of one subtask, and materialises the wrapped backend."""

    def __init__(self, state: KeyedState, backend: ChangelogBackend) -> None:
        self.slot = state.subtask.slot
        self.state = state
        self.env = self.slot.context.env
        self.storage = state.storage
        self.backend = backend
        self._running: list[simpy.Process] = []
        self._closed = False  # the task has stopped: a mail that is still queued must not freeze the state
        # name of a file -> event that fires with its handle, or with None if the upload failed
        self._uploads: dict[str, simpy.Event] = {}
        self._claims = Counter[str]()  # name of a file -> snapshots in progress that need it
        self._materialisations = 0
        self._loaded_bytes = 0  # initial state of the run that is in the log and not uploaded yet

    def start(self) -> None:
        """Start uploads and materialisations: the task has its state."""
        self._loaded_bytes = self.backend.pending_bytes
        self._running = [self.env.process(self._materialise())]
        if not self.backend.options.in_memory:
            self._running.append(self.env.process(self._upload_early()))

    def stop(self) -> None:
        """Stop uploads and materialisations: the task has stopped."""
        self._closed = True
        for process in self._running:
            if process.is_alive:
                process.interrupt()

    def upload(self, files: Iterable[File]) -> None:
        """Upload files of the log, except those whose upload has started.

        The file with the initial state of the run is written on its own (`_write`), because it is not a log of changes.
        """
        for file in files:
            if file.name not in self._uploads:
                self._uploads[file.name] = self.env.event()
                if file.size_bytes >= self._loaded_bytes > 0:
                    self._loaded_bytes = 0
                    self.env.process(self._write(file, self._uploads[file.name]))
                else:
                    self._hand_in(file, self._uploads[file.name])

    def claim(self, files: Iterable[File]) -> None:
        """Upload these files for a snapshot, and keep their handles until `forget`."""
        files = tuple(files)
        self._claims.update(file.name for file in files)
        self.upload(files)

    def wait(self, file: File) -> Work[Handle]:
        """Process: wait until a claimed file is durable.  Raises StorageFailed."""
        handle = yield self._uploads[file.name]
        if handle is None:
            raise StorageFailed(f"{file.name} of the changelog could not be written")
        return handle  # type: ignore[no-any-return]

    def forget(self, files: Iterable[File]) -> None:
        """Release the files of a snapshot that has ended."""
        for file in files:
            self._claims[file.name] -= 1
            self._forget_ended(file)

    def _forget_ended(self, file: File) -> None:
        """Forget the outcome of an upload if no snapshot needs the file.  Until then a durable file is not uploaded again."""
        if self._claims[file.name] > 0:
            return
        del self._claims[file.name]
        if file.name in self._uploads and self._uploads[file.name].triggered:
            del self._uploads[file.name]

    def _hand_in(self, file: File, done: simpy.Event) -> None:
        """Pass a file to the uploads of the TaskManager.  An upload continues when the snapshot that needs it fails."""
        options = self.backend.options
        uploads = self.slot.manager.log_uploads(options.upload_threads)
        uploads.submit_upload(
            LogPart(self._name(file), file.size_bytes, lambda stored: self._written(file, done, stored)), options
        )

    def _write(self, file: File, done: simpy.Event) -> Work[None]:
        """Process: write the initial state of the run, in one stream and without the timeout of uploads."""
        if self.backend.options.batch_delay_ns:
            yield self.env.timeout(self.backend.options.batch_delay_ns)
        try:
            stored = yield from self.storage.write(file.size_bytes, *self._name(file), host=self.slot.manager.number)
        except StorageFailed:
            self._written(file, done, None)
        else:
            self._written(file, done, stored)

    def _written(self, file: File, done: simpy.Event, stored: FileId | None) -> None:
        """Handle the end of an upload: the file is durable, or `stored` is None because the upload failed for good."""
        handle = None if stored is None else Handle(file.name, file.size_bytes, file.scope, stored)
        if handle is None:
            self.backend.given_up(file)
        else:
            self.backend.logged(handle)
        done.succeed(handle)
        self._forget_ended(file)

    def _name(self, file: File) -> Name:
        """Return the name of a file of the log in storage."""
        return "changelog", *self.state.subtask.name, file.name

    def _upload_early(self) -> Work[None]:
        """Process: upload the log when it has grown by `preemptive_bytes` (preemptive-persist-threshold).

        The time of the next check is estimated from the growth rate of the log.
        """
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

    def _look(self) -> tuple[int, int]:
        """Return the time [ns] and the end position of the log [bytes] after an update."""
        self.state.count()
        return self.env.now, self.backend.end_bytes

    def _materialise(self) -> Work[None]:
        """Process: materialise the wrapped backend once per interval, with a random phase per subtask."""
        interval_ns, state = self.backend.options.materialize_ns, self.state
        key = stream(state.subtask.seed, "materialize", *state.subtask.name)
        try:
            if self.backend.options.in_memory:  # otherwise acknowledgements would contain the initial state of the run
                yield from self._materialise_once()
            yield self.env.timeout(draw(key, 0) * interval_ns >> 32)
            while True:
                yield from self._materialise_once()
                yield self.env.timeout(interval_ns)
        except simpy.Interrupt:
            return

    def _materialise_once(self) -> Work[None]:
        """Process: freeze the wrapped backend on the task thread, and write its files.

        Do nothing if the previous materialisation is not in a completed checkpoint yet.
        """
        if not self.backend.may_materialise:
            return
        self._materialisations += 1
        number, state = self._materialisations, self.state
        frozen = self.env.event()

        def freeze() -> None:
            if self._closed:
                return
            state.count()
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
                yield from state.write_step(handles, step, ("materialized", *state.subtask.name, number))
        except StorageFailed:
            self.backend.materialisation_failed(number)
            return  # the next materialisation tries again
        handles = [*frozen_state.reused, *handles]
        self.backend.materialised(number, frozen_state, handles)
        self._loaded_bytes = 0  # the materialisation contains the initial state
        self.slot.checks.materialised(self.slot.task, number, handles)


# ---- The state of one subtask: a snapshot freezes it in the synchronous part and writes it in the asynchronous part.
#
# Keyed state and operator state are written one after the other by the only asynchronous thread of the task
# (OperatorSnapshotFinalizer), so two files cost two latencies.


class SubtaskState:
    """The state of one subtask: keyed state, operator list state, and records in windows, each in separate files."""

    def __init__(self, slot: Slot) -> None:
        self.slot = slot
        self.subtask = StateOwner(slot)
        state = slot.vertex.state
        has_keyed_state = state is not None and (state.bytes or state.growth_bytes)  # may be less than one byte
        self.keyed = KeyedState(self.subtask, state) if state is not None and has_keyed_state else NoKeyedState()
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
