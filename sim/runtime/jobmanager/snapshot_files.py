"""The files of snapshots in simulated time: registered by acknowledgements, deleted after completions and aborts.

`sim.protocol.snapshot_store` decides which files are deleted, and `sim.storage` how long it takes.  This module passes
events to the former and requests to the latter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from sim.model.storage import ClaimMode, Directories, Scope, SnapshotType, StateFile, StoredSnapshot
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
from sim.results.columns import Row
from sim.results.tables import FileRow, snapshot_names
from sim.runtime.clock import begin
from sim.runtime.context import KeptSnapshot
from sim.storage.ledger import FileId

if TYPE_CHECKING:
    import simpy

    from sim.protocol.options import BarrierOptions
    from sim.runtime.context import Context, TaskSnapshot
    from sim.storage.state_files import Handle

_MAX_PARALLEL_DELETIONS = 4
"""Maximum number of files deleted in parallel.

`execution.checkpointing.cleaner.parallel-mode` uses the I/O executor, which has four threads per core of the JobManager.
"""


class SnapshotFiles:
    """The files that the snapshots of one job instance refer to."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.store = SnapshotStore()
        # (checkpoint, task) -> files of an acknowledgement that is being sent
        self._offered: dict[tuple[int, int], tuple[StateFile, ...]] = {}
        self._metadata: dict[int, FileId] = {}  # checkpoint -> its _metadata file
        # key of a file -> its id in the storage ledger, until it is deleted
        self._stored: dict[tuple[int, int], FileId] = {}
        self._files: dict[FileId, StateFile] = {}
        self._types: dict[int, SnapshotType] = {}  # checkpoint -> the type that was triggered
        self._saved: dict[int, dict[int, TaskSnapshot]] = {}  # savepoint -> its content, by task
        self._restored: StoredSnapshot | None = None  # the snapshot that this job instance started from
        self._followed = False  # the next job instance has taken over
        # when the last retained checkpoint stopped referring to files of the restored snapshot [ns]; -1 before
        self.free_ns = -1
        self.first_completed = 0  # the first checkpoint (not savepoint) that this instance completed; 0 before
        self._deleting: list[simpy.Process] = []  # threads of the JobManager that delete files
        # key of a file -> first and last checkpoint that referred to it
        self._uses: dict[tuple[int, int], tuple[int, int]] = {}

    def take_over(self, before: SnapshotFiles, snapshot: StoredSnapshot, claim: ClaimMode) -> None:
        """Start from a snapshot of the previous job instance.  The files stay where they are."""
        self.store = SnapshotStore.restored(before.store.instance + 1, snapshot, claim)
        self._stored, self._files, self._metadata = dict(before._stored), dict(before._files), {}
        if claim == "claim" and snapshot.checkpoint in before._metadata:
            self._metadata[snapshot.checkpoint] = before._metadata[snapshot.checkpoint]
        self._restored = snapshot
        before._followed = True

    # ------------------------------------------------------------------------------------------ events

    def begun(self, checkpoint: int, options: BarrierOptions) -> BarrierOptions:
        """Handle that a checkpoint is triggered.  Return its options, with a full snapshot if the store requires one."""
        type_ = self.store.type_for(options.snapshot_type)
        if type_ != options.snapshot_type:
            options = replace(options, type=type_)
        self._types[checkpoint] = type_
        self._dispatch(SnapshotTriggered(checkpoint, type_))
        return options

    def offer(self, checkpoint: int, task: int, handles: Iterable[Handle]) -> None:
        """Record the files of an acknowledgement that a task sends."""
        if named := self._named(checkpoint, handles):
            self._offered[checkpoint, task] = named

    def acknowledged(self, checkpoint: int, task: int) -> bool:
        """Register the files of an acknowledgement that has arrived, possibly after the end of its checkpoint.

        Return False if it refers to a file that is no longer registered: the acknowledgement is then lost (FLINK-29913).
        """
        return self._register(checkpoint, self._offered.pop((checkpoint, task), ()))

    def keep(self, checkpoint: int, part: TaskSnapshot) -> None:
        """Register the files of `part`, which a task took for an earlier checkpoint, for this checkpoint too."""
        self._register(checkpoint, self._named(checkpoint, part.handles))

    def channel_state(self, checkpoint: int, tasks: Iterable[int], file: FileId, size_bytes: int) -> None:
        """Register the file that stores the channel state of a group of subtasks."""
        self.context.contents.in_flight_stored(checkpoint, tasks, file)
        self._register(checkpoint, (self._file(file, "exclusive", size_bytes, checkpoint),))

    def metadata(self, checkpoint: int, file: FileId) -> None:
        """Record that the metadata file is durable, or delete it if the checkpoint was aborted in the meantime."""
        if checkpoint in self.store.pending:
            self._metadata[checkpoint] = file
        else:
            self._delete([file])

    def completed(self, checkpoint: int) -> None:
        """Handle the completion of a checkpoint or savepoint."""
        self._dispatch(SnapshotCompleted(checkpoint))
        if self._types[checkpoint] in ("canonical", "native"):
            self._saved[checkpoint] = self.context.contents.checkpoints.get(checkpoint, {})
        elif not self.first_completed:
            self.first_completed = checkpoint
        self._check_unreferenced()

    def discard(self, checkpoint: int, done: Callable[[], None]) -> None:
        """Handle that a checkpoint was aborted or subsumed.  Call `done` when its private files are deleted."""
        if checkpoint in self.store.pending or checkpoint in self.store.retained:
            self._dispatch(SnapshotDiscarded(checkpoint), done)
            self._check_unreferenced()
        else:
            done()  # it has no files

    def failed_over(self, checkpoint: int) -> None:
        """Handle that tasks are restored from a checkpoint; 0 if they restart from the beginning."""
        if checkpoint:
            self._dispatch(FailedOver(checkpoint))

    def lose_store(self) -> None:
        """Handle the loss of the JobManager: deletion stops, and files of pending checkpoints are left behind."""
        self._dispatch(StoreLost())
        for process in self._deleting:
            if process.is_alive:
                process.interrupt()
        self._deleting = []

    def abandon(self, handles: Iterable[Handle]) -> None:
        """Delete the files of a snapshot that its task has cancelled (StateUtil#bestEffortDiscardAllStateObjects)."""
        self._delete([FileId(handle.file) for handle in handles if handle.file is not None], by_task=True)

    # ------------------------------------------------------------------------------------------ execution of commands

    def _register(self, checkpoint: int, files: tuple[StateFile, ...]) -> bool:
        """Register files for a checkpoint.  Return False if the acknowledgement is lost."""
        if not files:
            return True
        if not self._dispatch(StateRegistered(checkpoint, files)):
            return False
        for file in files:
            first, last = self._uses.get(file.key, (checkpoint, checkpoint))
            self._uses[file.key] = first, max(last, checkpoint)
        return True

    def _dispatch(self, event: StoreEvent, discarded: Callable[[], None] = lambda: None) -> bool:
        """Pass an event to the snapshot store and execute its commands.  Return False if it loses an acknowledgement.

        Call `discarded` when the private files of a discarded snapshot are deleted.
        """
        self.store, commands = self.store.on(event)
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
        """Set `free_ns` when no retained checkpoint refers to files of the restored snapshot any more."""
        if self._restored is None or self.free_ns >= 0 or self._restored.checkpoint in self.store.retained:
            return
        theirs = {file.key for file in self._restored.files}
        if not any(file.key in theirs for snapshot in self.store.retained.values() for file in snapshot.files):
            self.free_ns = self.context.env.now

    def _ids(self, files: Iterable[StateFile]) -> list[FileId]:
        """Return the ids of the files that are not deleted yet, and remove them from `_stored`."""
        return [self._stored.pop(file.key) for file in files if file.key in self._stored]

    def _delete(self, ids: list[FileId], done: Callable[[], None] = lambda: None, *, by_task: bool = False) -> None:
        """Start to delete files, `_MAX_PARALLEL_DELETIONS` in parallel, and call `done` at the end.  A failure to delete is ignored.

        `done` is called before this method returns if deleting takes no time.  `by_task` means that a task deletes them,
        so that the loss of the JobManager does not stop it.
        """
        left = min(_MAX_PARALLEL_DELETIONS, len(ids))

        def ended(_: object = None) -> None:
            nonlocal left
            left -= 1
            if not left:
                done()

        if not ids:
            done()
        self._deleting = [process for process in self._deleting if process.is_alive]
        for thread in range(left):
            process = begin(
                self.context.env, self.context.storage.delete(ids[thread::_MAX_PARALLEL_DELETIONS]), ended, ended
            )
            self._deleting += [] if process is None or by_task else [process]

    def _named(self, checkpoint: int, handles: Iterable[Handle]) -> tuple[StateFile, ...]:
        """Return the files that handles of a snapshot refer to."""
        ledger = self.context.storage.files  # has the size of the file; a handle may refer to a part of it
        stored = ((FileId(handle.file), handle.scope) for handle in handles if handle.file is not None)
        return tuple(self._file(file, scope, ledger[file].size_bytes, checkpoint) for file, scope in stored)

    def _file(self, stored: FileId, scope: Scope, size_bytes: int, checkpoint: int) -> StateFile:
        """Return the file with this id.  If it is not known yet, this instance has written it for `checkpoint`."""
        file = self._files.get(stored)
        if file is None:
            own: Scope = "savepoint" if self._types.get(checkpoint) in ("canonical", "native") else "exclusive"
            file = StateFile(
                self.store.instance, int(stored), checkpoint, "shared" if scope == "shared" else own, size_bytes
            )
            self._files[stored], self._stored[file.key] = file, stored
        return file

    # ------------------------------------------------------------------------------------------ queries and results

    def parts(self, snapshot: StoredSnapshot) -> dict[int, TaskSnapshot]:
        """Return the content of a retained checkpoint or a savepoint, by task."""
        return self._saved.get(snapshot.checkpoint) or self.context.contents.checkpoints[snapshot.checkpoint]

    def type_of(self, checkpoint: int) -> SnapshotType:
        """Return the type with which a checkpoint was triggered."""
        return self._types[checkpoint]

    def exists(self, file: StateFile) -> bool:
        """Return whether a file is not deleted."""
        return file.key in self._stored

    def kept(self) -> Iterator[KeptSnapshot]:
        """Yield all snapshots that can be restored now, with their missing files, for the invariants.

        Yield nothing after the next job instance has taken over, because that instance may delete files.
        """
        directories = self.context.scenario.directories
        for snapshot in () if self._followed else (*self.store.retained.values(), *self.store.savepoints):
            missing = [file for file in snapshot.files if not self._is_whole(file)]
            what = f"{snapshot.type} {snapshot.checkpoint} of job {snapshot.instance}"
            yield KeptSnapshot(what, len(snapshot.files), tuple(directories.path(file) for file in missing))

    def _is_whole(self, file: StateFile) -> bool:
        """Return whether a file is in storage, and neither deleted nor incomplete."""
        return file.key in self._stored and self.context.storage.files.exists(self._stored[file.key])

    def kept_here(self) -> tuple[StoredSnapshot, ...]:
        """Return the retained checkpoints and the savepoints that this job instance took, oldest first."""
        snapshots = [snapshot for snapshot in self.store.retained.values() if snapshot.instance == self.store.instance]
        return tuple(sorted((*snapshots, *self.store.savepoints), key=lambda snapshot: snapshot.checkpoint))

    def file_rows(self) -> list[FileRow]:
        """Return a row for every file that was written for a snapshot, complete or not."""
        directories, ledger, job = self.context.scenario.directories, self.context.storage.files, self.store.instance
        rows = []
        for stored, file in self._files.items():
            created_by, last_used = self._uses.get(file.key, (-1, -1))
            deleted_ns, inside = ledger[stored].deleted_ns, ledger[stored].inside
            rows.append(
                FileRow(
                    file,
                    directories.path(file),
                    job,
                    created_by,
                    last_used,
                    -1 if deleted_ns is None else deleted_ns,
                    -1 if inside is None else inside,
                )
            )
        return rows


def snapshot_rows(
    snapshots: Sequence[StoredSnapshot], directories: Directories, exists: Callable[[StateFile], bool]
) -> Iterator[Row]:
    """Yield the rows of the table `snapshots`: dependencies of each, and others that cannot be restored without it."""
    for snapshot in snapshots:
        found, job_directory = verdict(snapshot, directories), directories.job_directory(snapshot.instance)
        lost, lost_with_job = (
            snapshot_names(find_unrestorable_snapshots(snapshots, directories, removed))
            for removed in (snapshot, job_directory)
        )
        yield {
            **asdict(found),
            "job": snapshot.instance,
            "id": snapshot.checkpoint,
            "type": snapshot.type,
            "directory": directories.directory(snapshot),
            "owners": " ".join(map(str, found.owners)),
            "relocatable_job_dir": {None: "n/a", True: "yes", False: "no"}[found.relocatable_job_dir],
            "relocatable_root": restorable(snapshot, directories, copied=directories.root),
            "restorable": restorable(snapshot, directories, exists=exists),
            "would_break": lost,
            "would_break_job": lost_with_job,
        }
