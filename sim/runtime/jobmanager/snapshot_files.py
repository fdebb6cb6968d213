"""The files of snapshots in simulated time: acknowledgements register them, completions and aborts have them deleted.

Decides nothing: which files may go is `sim.protocol.snapshot_store`'s, how long deleting takes is storage's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sim.invariants.files import KeptSnapshot
from sim.model.storage import ClaimMode, Directories, Scope, SnapshotType, StateFile, StoredSnapshot
from sim.protocol.machine import EventLog
from sim.protocol.snapshot_store import (
    DeleteDirectory,
    DeleteSharedFiles,
    FailedOver,
    LoseAcknowledgement,
    SnapshotCompleted,
    SnapshotDiscarded,
    SnapshotStore,
    SnapshotTriggered,
    StateRegistered,
    StoreEvent,
    StoreLost,
    find_unrestorable_snapshots,
    restorable,
    verdict,
)
from sim.results.tables import FileRow, SnapshotRow
from sim.runtime.clock import begin
from sim.storage.ledger import FileId

if TYPE_CHECKING:
    import simpy

    from sim.protocol.options import BarrierOptions
    from sim.runtime.context import Contents, Context, TaskSnapshot
    from sim.storage.state_files import Handle

_DELETING = 4
"""Files deleted at a time: cleaner.parallel-mode uses the I/O executor, four threads per core of the JobManager."""


class SnapshotFiles:
    """The files that the snapshots of one job instance name."""

    def __init__(self, context: Context, contents: Contents) -> None:
        self.context = context
        self.contents = contents
        self.store = SnapshotStore()
        # (checkpoint, task): acknowledgements on their way
        self._offered: dict[tuple[int, int], tuple[StateFile, ...]] = {}
        self._metadata: dict[int, FileId] = {}
        # file -> its id in this instance's ledger, until it is deleted
        self._stored: dict[tuple[int, int], FileId] = {}
        self._files: dict[FileId, StateFile] = {}
        self._types: dict[int, SnapshotType] = {}
        self._saved: dict[int, dict[int, TaskSnapshot]] = {}  # what savepoints hold, task by task
        self._log = EventLog()
        self._restored: StoredSnapshot | None = None
        self._followed = False  # another job instance has begun
        self.free_ns = -1  # when nothing kept here needed the restored snapshot any more
        self.first_completed = 0  # the first ordinary checkpoint completed here; 0: none yet
        self._deleting: list[simpy.Process] = []  # the JobManager's threads that delete
        self._uses: dict[tuple[int, int], tuple[int, int]] = {}  # file -> first and last checkpoint that named it

    def take_over(self, before: SnapshotFiles, snapshot: StoredSnapshot, claim: ClaimMode) -> None:
        """A job instance that begins from a snapshot of the one before it; all files stay where they are."""
        self.store = SnapshotStore.restored(before.store.instance + 1, snapshot, claim)
        self._stored, self._files, self._metadata = dict(before._stored), dict(before._files), {}
        if claim == "claim" and snapshot.checkpoint in before._metadata:
            self._metadata[snapshot.checkpoint] = before._metadata[snapshot.checkpoint]
        self._restored = snapshot
        before._followed = True

    # ------------------------------------------------------------------------------------------ what happens

    def begun(self, checkpoint: int, options: BarrierOptions) -> BarrierOptions:
        """A checkpoint begins.  Its tasks may have to write more than an increment."""
        type_ = self.store.type_for(options.snapshot_type)
        if type_ != options.snapshot_type:
            options = replace(options, type=type_)
        self._types[checkpoint] = type_
        self._tell(SnapshotTriggered(checkpoint, type_))
        return options

    def offer(self, checkpoint: int, task: int, handles: Iterable[Handle]) -> None:
        """A task sends an acknowledgement that names these files."""
        ledger = self.context.storage.files  # a handle may be to a part of a file
        stored = ((FileId(handle.file), handle.scope) for handle in handles if handle.file is not None)
        named = tuple(self._file(file, scope, ledger[file].size_bytes, checkpoint) for file, scope in stored)
        if named:
            self._offered[checkpoint, task] = named

    def acknowledged(self, checkpoint: int, task: int) -> bool:
        """An acknowledgement arrives, perhaps too late.  False: it names files that are gone, and is ignored."""
        return self._register(checkpoint, self._offered.pop((checkpoint, task), ()))

    def keep(self, checkpoint: int, task: int, part: TaskSnapshot) -> None:
        """This checkpoint names the files of a part that was taken for an earlier one."""
        self.offer(checkpoint, task, part.handles)
        self.acknowledged(checkpoint, task)

    def channel_state(self, checkpoint: int, tasks: Iterable[int], file: FileId, size_bytes: int) -> None:
        """The in-flight data of a group of subtasks is durable; one of their acknowledgements will name it."""
        self.contents.in_flight_stored(checkpoint, tasks, file)
        self._register(checkpoint, (self._file(file, "exclusive", size_bytes, checkpoint),))

    def metadata(self, checkpoint: int, file: FileId) -> None:
        """The metadata is durable.  The checkpoint may have been aborted meanwhile."""
        if checkpoint in self.store.pending:
            self._metadata[checkpoint] = file
        else:
            self._delete([file])

    def completed(self, checkpoint: int) -> None:
        self._tell(SnapshotCompleted(checkpoint))
        if self._types[checkpoint] in ("canonical", "native"):
            self._saved[checkpoint] = self.contents.checkpoints.get(checkpoint, {})
        elif not self.first_completed:
            self.first_completed = checkpoint
        self._check_unreferenced()

    def discard(self, checkpoint: int, done: Callable[[], None]) -> None:
        """A checkpoint was aborted or subsumed.  `done` is called when its private files are deleted."""
        if checkpoint in self.store.pending or checkpoint in self.store.retained:
            self._tell(SnapshotDiscarded(checkpoint), done)
            self._check_unreferenced()
        else:
            done()  # nothing of it was ever stored

    def failed_over(self, checkpoint: int) -> None:
        if checkpoint:
            self._tell(FailedOver(checkpoint))

    def lose_store(self) -> None:
        """The JobManager is lost: it deletes nothing more, and no metadata names the files of its pending checkpoints."""
        self._tell(StoreLost())
        for process in self._deleting:
            if process.is_alive:
                process.interrupt()
        self._deleting = []

    def abandon(self, handles: Iterable[Handle]) -> None:
        """A task gave its snapshot up: what it had written for it goes (StateUtil#bestEffortDiscardAllStateObjects)."""
        self._delete([FileId(handle.file) for handle in handles if handle.file is not None], by_task=True)

    # ------------------------------------------------------------------------------------------ what follows

    def _register(self, checkpoint: int, files: tuple[StateFile, ...]) -> bool:
        if not files:
            return True
        if not self._tell(StateRegistered(checkpoint, files)):
            return False
        for file in files:
            first, last = self._uses.get(file.key, (checkpoint, checkpoint))
            self._uses[file.key] = first, max(last, checkpoint)
        return True

    def _tell(self, event: StoreEvent, discarded: Callable[[], None] = lambda: None) -> bool:
        """Pass an event to the store of snapshots.  False: the event had no effect."""
        self.store, commands = self._log.step(SnapshotStore.on, self.store, event)
        for command in commands:
            match command:
                case DeleteDirectory():
                    ids = self._ids(command.files)
                    if isinstance(event, SnapshotDiscarded) and command.checkpoint not in self.store.kept_whole:
                        ids += [self._metadata.pop(command.checkpoint)] if command.checkpoint in self._metadata else []
                    self._delete(ids, discarded)
                case DeleteSharedFiles():
                    self._delete(self._ids(command.files))
                case LoseAcknowledgement():
                    return False
        return True

    def _check_unreferenced(self) -> None:
        if self._restored is None or self.free_ns >= 0 or self._restored.checkpoint in self.store.retained:
            return
        theirs = {file.key for file in self._restored.files}
        if not any(file.key in theirs for snapshot in self.store.retained.values() for file in snapshot.files):
            self.free_ns = self.context.env.now

    def _ids(self, files: Iterable[StateFile]) -> list[FileId]:
        """The ids of files that are not deleted yet."""
        return [self._stored.pop(file.key) for file in files if file.key in self._stored]

    def _delete(self, ids: list[FileId], done: Callable[[], None] = lambda: None, *, by_task: bool = False) -> None:
        """Begin to delete these, several at a time, best effort.  `done` is called in this turn if deleting takes no time."""
        left = min(_DELETING, len(ids))

        def ended(_: object = None) -> None:
            nonlocal left
            left -= 1
            if not left:
                done()

        if not ids:
            done()
        self._deleting = [process for process in self._deleting if process.is_alive]
        for thread in range(left):
            process = begin(self.context.env, self.context.storage.delete(ids[thread::_DELETING]), ended, ended)
            self._deleting += [] if process is None or by_task else [process]

    def _file(self, stored: FileId, scope: Scope, size_bytes: int, checkpoint: int) -> StateFile:
        """The file of this id, which this instance wrote unless it was restored."""
        file = self._files.get(stored)
        if file is None:
            own: Scope = "savepoint" if self._types.get(checkpoint) in ("canonical", "native") else "exclusive"
            file = StateFile(
                self.store.instance, int(stored), checkpoint, "shared" if scope == "shared" else own, size_bytes
            )
            self._files[stored], self._stored[file.key] = file, stored
        return file

    # ------------------------------------------------------------------------------------------ what is told of it

    def parts(self, snapshot: StoredSnapshot) -> dict[int, TaskSnapshot]:
        """The content of a snapshot that is still kept, task by task."""
        return self._saved.get(snapshot.checkpoint) or self.contents.checkpoints[snapshot.checkpoint]

    def type_of(self, checkpoint: int) -> SnapshotType:
        return self._types[checkpoint]

    def exists(self, file: StateFile) -> bool:
        return file.key in self._stored

    def kept(self) -> Iterator[KeptSnapshot]:
        """Everything that may be restored now, for those who check it; what becomes of it later is the next instance's doing."""
        directories = self.context.scenario.directories
        for snapshot in () if self._followed else (*self.store.retained.values(), *self.store.savepoints):
            missing = [file for file in snapshot.files if not self._is_whole(file)]
            what = f"{snapshot.type} {snapshot.checkpoint} of job {snapshot.instance}"
            yield KeptSnapshot(what, len(snapshot.files), tuple(directories.path(file) for file in missing))

    def _is_whole(self, file: StateFile) -> bool:
        return file.key in self._stored and self.context.storage.files.exists(self._stored[file.key])

    def kept_here(self) -> tuple[StoredSnapshot, ...]:
        """What this instance took and still keeps: retained checkpoints and savepoints, oldest first."""
        own = [snapshot for snapshot in self.store.retained.values() if snapshot.instance == self.store.instance]
        return tuple(sorted((*own, *self.store.savepoints), key=lambda snapshot: snapshot.checkpoint))

    def file_rows(self) -> list[FileRow]:
        """A row for every file that a snapshot named, or was to name."""
        directories, ledger, job = self.context.scenario.directories, self.context.storage.files, self.store.instance
        rows = []
        for stored, file in self._files.items():
            created_by, last_used = self._uses.get(file.key, (-1, -1))
            deleted_ns = ledger[stored].deleted_ns
            rows.append(
                FileRow(
                    file, directories.path(file), job, created_by, last_used, -1 if deleted_ns is None else deleted_ns
                )
            )
        return rows


def snapshot_rows(
    snapshots: Sequence[StoredSnapshot], directories: Directories, exists: Callable[[StateFile], bool]
) -> list[SnapshotRow]:
    """What each of these depends on, and what each of the others loses with it."""
    return [
        SnapshotRow(
            snapshot,
            directories.directory(snapshot),
            verdict(snapshot, directories),
            restorable(snapshot, directories, copied=directories.root),
            restorable(snapshot, directories, exists=exists),
            find_unrestorable_snapshots(snapshots, directories, snapshot),
            find_unrestorable_snapshots(snapshots, directories, directories.job_directory(snapshot.instance)),
        )
        for snapshot in snapshots
    ]
