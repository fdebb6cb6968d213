"""Stored snapshots: the registry of shared files, relocation, and which files to delete."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import NamedTuple

from sim.model.storage import ClaimMode, Directories, SnapshotType, StateFile, StoredSnapshot, Verdict, inside
from sim.protocol.machine import InvalidTransition, replace, value_class

# ---- The registry of shared files (SharedStateRegistryImpl).  It needs no reference counts.
#
# Every acknowledgement registers the shared files that it refers to, which updates their `last_used`.  When L is the
# oldest retained checkpoint, entries last used before L are dropped.  A file is deleted only if this job owns it
# (`created_by` is newer than the newest checkpoint that was not claimed).  The files of a claimed native savepoint are
# deleted together with its directory, when no checkpoint refers to any of them.

Key = tuple[int, int]


class SharedFile(NamedTuple):
    """An entry of the registry: a file that several snapshots may refer to."""

    file: StateFile
    created_by: int  # the checkpoint that registered it first; restored files: the restored snapshot
    last_used: int  # the newest checkpoint that refers to it


class UnusedFiles(NamedTuple):
    """The registry without unused files, and the files to delete."""

    registry: SharedStateRegistry
    files: tuple[StateFile, ...]
    indivisible_in_use: frozenset[int]  # claimed savepoints with a file in use, whose directories are kept


@value_class
class SharedStateRegistry:
    """The registry of shared files of one job instance."""

    entries: Mapping[Key, SharedFile] = field(default_factory=dict)
    highest_not_claimed: int = -1  # files of this checkpoint and older ones belong to another job
    # claimed savepoints, whose directory is deleted as a whole
    indivisible: frozenset[int] = frozenset()

    def registered(self, files: Iterable[StateFile], checkpoint: int) -> SharedStateRegistry:
        """Register the shared files of an acknowledgement, even of a late one (SharedStateRegistry#registerAll)."""
        changes: dict[Key, SharedFile] = {}
        for file in files:
            old = self.entries.get(file.key)
            if old is None:
                changes[file.key] = SharedFile(file, checkpoint, checkpoint)
            elif old.last_used < checkpoint:
                changes[file.key] = SharedFile(file, old.created_by, checkpoint)
        return replace(self, entries={**self.entries, **changes}) if changes else self

    def restored(self, snapshot: StoredSnapshot, claim: ClaimMode) -> SharedStateRegistry:
        """Register the files of the restored snapshot (SharedStateRegistry#registerAllAfterRestored)."""
        number = snapshot.checkpoint
        after = self.registered(reusable_files(snapshot), number)
        if claim != "claim":
            return replace(after, highest_not_claimed=max(self.highest_not_claimed, number))
        return replace(after, indivisible=self.indivisible | {number}) if snapshot.is_savepoint else after

    def read_again(self, retained: Iterable[StoredSnapshot]) -> SharedStateRegistry:
        """Rebuild the registry from the completed checkpoints, oldest first, as a new JobManager does.

        Files that only pending checkpoints referred to are never deleted.
        """
        last_used = {file.key: snapshot.checkpoint for snapshot in retained for file in reusable_files(snapshot)}
        entries = {
            key: entry._replace(last_used=last_used[key]) for key, entry in self.entries.items() if key in last_used
        }
        return replace(self, entries=entries)

    def released(self, lowest_retained: int) -> UnusedFiles:
        """Drop entries that no checkpoint since `lowest_retained` refers to (SharedStateRegistry#unregisterUnusedState)."""
        unused = [entry for entry in self.entries.values() if entry.last_used < lowest_retained]
        kept = (
            {key: entry for key, entry in self.entries.items() if entry.last_used >= lowest_retained}
            if unused
            else self.entries
        )
        in_use = self.indivisible
        if in_use:
            in_use = in_use.intersection(entry.created_by for entry in kept.values())
        owned = (
            entry
            for entry in unused
            if entry.created_by > self.highest_not_claimed and entry.created_by not in self.indivisible
        )
        return UnusedFiles(
            replace(self, entries=kept) if unused else self, tuple(entry.file for entry in owned), in_use
        )


def reusable_files(snapshot: StoredSnapshot) -> tuple[StateFile, ...]:
    """Return the files of a restored snapshot that later snapshots may refer to.

    These are all files of a savepoint: a changelog refers to its restored snapshot until it is materialised.
    """
    return snapshot.files if snapshot.is_savepoint else shared_files(snapshot.files, snapshot)


def shared_files(files: Iterable[StateFile], snapshot: StoredSnapshot) -> tuple[StateFile, ...]:
    """Return the files that other snapshots may refer to as well: those outside of the snapshot's own directory."""
    instance, checkpoint = snapshot.instance, snapshot.checkpoint
    return tuple(
        file for file in files if file.scope == "shared" or file.checkpoint != checkpoint or file.instance != instance
    )


# ---- What a stored snapshot depends on: whether it survives that files are deleted, copied or moved (FLINK-24149).
#
# Paths, and how metadata refers to files, are in `sim.model.storage`.


def verdict(snapshot: StoredSnapshot, directories: Directories) -> Verdict:
    """Return the size of a snapshot, the job instances that own its files, and whether a copy of it can be restored."""
    paths = [directories.path(file) for file in snapshot.files]
    own = directories.directory(snapshot)
    job = own if snapshot.is_savepoint else directories.job_directory(snapshot.instance)
    owners = tuple(sorted({file.instance for file in snapshot.files}))
    foreign = sum(not inside(path, own) for path in paths)
    return Verdict(
        files_total=len(paths),
        bytes_total=sum(file.size_bytes for file in snapshot.files),
        files_outside_chk_dir=foreign,
        files_outside_job_dir=sum(not inside(path, job) for path in paths),
        owners=owners,
        chain_length=sum(owner < snapshot.instance for owner in owners),
        absolute_paths=sum(directories.reference(path, snapshot).startswith("/") for path in paths),
        self_contained=not foreign,
        relocatable_own_dir=restorable(snapshot, directories, copied=own),
        relocatable_job_dir=None if snapshot.is_savepoint else restorable(snapshot, directories, copied=job),
    )


def restorable(
    snapshot: StoredSnapshot,
    directories: Directories,
    *,
    copied: str | None = None,
    exists: Callable[[StateFile], bool] = lambda _: True,
) -> bool:
    """Return whether a job can start from the snapshot in place, or from a copy of the directory `copied` elsewhere.

    The copy has the directory's name.  Files outside of the directory are lost.
    `exists` tells whether a file existed when the copy was made.
    """
    own = directories.directory(snapshot)
    if copied is None:
        return all(map(exists, snapshot.files))
    if not inside(own, copied):
        return False  # the metadata is not copied
    new_own = _moved(own, copied)
    for file in snapshot.files:
        path = directories.path(file)
        resolved = directories.resolved(directories.reference(path, snapshot), new_own, snapshot)
        if not (inside(path, copied) and resolved == _moved(path, copied) and exists(file)):
            return False
    return True


def find_unrestorable_snapshots(
    snapshots: Iterable[StoredSnapshot], directories: Directories, removed: StoredSnapshot | str
) -> tuple[StoredSnapshot, ...]:
    """Return the other snapshots that can no longer be restored after `removed`, a snapshot or a directory, is deleted.

    A snapshot is deleted with all files that its metadata refers to, as `flink savepoint --dispose` does.
    """
    if isinstance(removed, StoredSnapshot):
        deleted = {file.key for file in removed.files}
        return tuple(
            snapshot
            for snapshot in snapshots
            if snapshot != removed and any(file.key in deleted for file in snapshot.files)
        )
    return tuple(
        snapshot
        for snapshot in snapshots
        if not inside(directories.directory(snapshot), removed)
        and any(inside(directories.path(file), removed) for file in snapshot.files)
    )


def _moved(path: str, copied: str) -> str:
    """Return the path of a file in the copy of the directory."""
    return posixpath.normpath(f"/elsewhere/{posixpath.basename(copied)}/{posixpath.relpath(path, copied)}")


# ---- The snapshots of a job instance, and the files to delete when one ends (CompletedCheckpointStore, CheckpointsCleaner).
#
# The coordinator decides when a checkpoint ends; this machine decides which files to delete then.


@value_class
class SnapshotTriggered:
    """A checkpoint or savepoint got its id."""

    checkpoint: int
    type: SnapshotType


@value_class
class StateRegistered:
    """An acknowledgement registers its files.  It may arrive after the end of its checkpoint."""

    checkpoint: int
    files: tuple[StateFile, ...]


@value_class
class SnapshotCompleted:
    """The metadata of a snapshot is durable."""

    checkpoint: int


@value_class
class SnapshotDiscarded:
    """A snapshot was aborted, or a newer checkpoint subsumed it."""

    checkpoint: int


@value_class
class FailedOver:
    """The tasks are restored from this snapshot."""

    checkpoint: int


@value_class
class StoreLost:
    """The JobManager is lost; the next one reads the completed snapshots (DefaultCompletedCheckpointStoreUtils)."""


StoreEvent = SnapshotTriggered | StateRegistered | SnapshotCompleted | SnapshotDiscarded | FailedOver | StoreLost


@value_class
class DeleteDirectory:
    """Delete the private files of one snapshot.  Triggers may wait for it (CheckpointsCleaner)."""

    checkpoint: int
    files: tuple[StateFile, ...]  # without _metadata


@value_class
class DeleteSharedFiles:
    """Delete shared files that no snapshot refers to, in the background (SharedStateRegistryImpl#scheduleAsyncDelete)."""

    files: tuple[StateFile, ...]


@value_class
class LoseAcknowledgement:
    """Lose an acknowledgement because it refers to a shared file that is no longer registered (FLINK-29913).

    With concurrent checkpoints a file may be stored twice, and the copy that a later checkpoint refers to is deleted
    with the checkpoint that wrote it.  SharedStateRegistry#registerReference fails ("Attempt to reference unknown
    state"), the acknowledgement is not counted, and the checkpoint expires.
    """

    checkpoint: int


StoreCommand = DeleteDirectory | DeleteSharedFiles | LoseAcknowledgement
_Answer = tuple["SnapshotStore", tuple[StoreCommand, ...]]


@value_class
class SnapshotStore:
    """The snapshots of one job instance, and the registry of their shared files."""

    instance: int = 0
    registry: SharedStateRegistry = SharedStateRegistry()
    pending: Mapping[int, StoredSnapshot] = field(default_factory=dict)  # with the files registered so far
    # completed checkpoints, oldest first, and the restored snapshot
    retained: Mapping[int, StoredSnapshot] = field(default_factory=dict)
    savepoints: tuple[StoredSnapshot, ...] = ()  # completed by this instance; the user owns them
    unclaimed: StoredSnapshot | None = None  # the restored snapshot, if this job must not delete it
    # claimed savepoints that are subsumed but have files in use: deleted later, as a whole
    kept_whole: Mapping[int, StoredSnapshot] = field(default_factory=dict)
    # files last used before this checkpoint are released already; -1: unknown, search again
    released_below: int = -1
    rearms_full: bool = False  # restored with no-claim: after a failover to it the next checkpoint must be full again
    full_required: bool = False  # the next checkpoint must be a full one (CheckpointCoordinator#forceFullSnapshot)

    @classmethod
    def restored(cls, instance: int, snapshot: StoredSnapshot, claim: ClaimMode) -> SnapshotStore:
        """Create the store of a job instance that starts from a snapshot (CheckpointCoordinator#restoreSavepoint)."""
        return cls(
            instance,
            registry=SharedStateRegistry().restored(snapshot, claim),
            retained={snapshot.checkpoint: snapshot},
            unclaimed=None if claim == "claim" else snapshot,
            rearms_full=claim == "no-claim",
            full_required=claim == "no-claim",
        )

    def type_for(self, requested: SnapshotType) -> SnapshotType:
        """Return the snapshot type to trigger: "full" instead of "checkpoint" if a full one is required."""
        return "full" if requested == "checkpoint" and self.full_required else requested

    def on(self, event: StoreEvent) -> _Answer:
        """Return the next store and its commands.  Raise InvalidTransition if the event is impossible in this state."""
        match event:
            case SnapshotTriggered():
                empty = StoredSnapshot(self.instance, event.checkpoint, event.type, ())
                return replace(self, pending={**self.pending, event.checkpoint: empty}), ()
            case StateRegistered():
                return self._register(event)
            case SnapshotCompleted():
                return self._complete_checkpoint(event)
            case SnapshotDiscarded():
                return self._discard(event)
            case FailedOver():
                return self._fail_over(event)
            case StoreLost():
                registry = self.registry.read_again(self.retained.values())
                return replace(self, pending={}, registry=registry, released_below=-1), ()

    def _register(self, event: StateRegistered) -> _Answer:
        """Register the files of an acknowledgement.

        If its checkpoint has ended, delete its private files.  The shared files stay: a later checkpoint may refer to them.
        """
        pending = self.pending.get(event.checkpoint)
        snapshot = pending or StoredSnapshot(self.instance, event.checkpoint, "checkpoint", event.files)
        shared = shared_files(event.files, snapshot)
        new = event.checkpoint, self.instance
        if not all((file.checkpoint, file.instance) == new or self._has(file) for file in shared):
            return self, (LoseAcknowledgement(event.checkpoint),)
        after = self
        if shared:
            is_released = event.checkpoint < self.released_below
            registry = self.registry.registered(shared, event.checkpoint)
            after = replace(self, registry=registry, released_below=-1 if is_released else self.released_below)
        if pending is None:
            return after, (DeleteDirectory(event.checkpoint, _private(snapshot)),)
        return replace(
            after, pending={**self.pending, event.checkpoint: pending._replace(files=pending.files + event.files)}
        ), ()

    def _has(self, file: StateFile) -> bool:
        """Return whether the file is registered, or belongs to a retained checkpoint, which a task may reuse."""
        return file.key in self.registry.entries or any(file in snapshot.files for snapshot in self.retained.values())

    def _complete_checkpoint(self, event: SnapshotCompleted) -> _Answer:
        """Complete a snapshot.  The user owns savepoints: they are not retained, and no checkpoint refers to them."""
        pending = dict(self.pending)
        completed = pending.pop(event.checkpoint, None)
        if completed is None:
            raise InvalidTransition(self, event, "it is not pending")
        if completed.is_savepoint:
            return replace(self, pending=pending, savepoints=(*self.savepoints, completed)), ()
        after = replace(
            self, pending=pending, retained={**self.retained, event.checkpoint: completed}, full_required=False
        )
        after, unused = _released(after)
        return after, ((DeleteSharedFiles(unused),) if unused else ())

    def _discard(self, event: SnapshotDiscarded) -> _Answer:
        """Remove an aborted or subsumed snapshot, and delete its private files and the shared files that are unused now."""
        if event.checkpoint in self.pending:
            pending = dict(self.pending)
            discarded = pending.pop(event.checkpoint)
            return replace(self, pending=pending), (DeleteDirectory(event.checkpoint, _private(discarded)),)
        retained = dict(self.retained)
        subsumed = retained.pop(event.checkpoint, None)
        if subsumed is None or not retained:
            raise InvalidTransition(self, event, "it is not retained" if subsumed is None else "it is the last one")
        indivisible = event.checkpoint in self.registry.indivisible
        kept_whole = {**self.kept_whole, event.checkpoint: subsumed} if indivisible else self.kept_whole
        after, unused = _released(replace(self, retained=retained, kept_whole=kept_whole))
        is_ours = self.unclaimed is None or self.unclaimed.checkpoint != event.checkpoint
        private = (
            tuple(file for file in _private(subsumed) if file.key not in after.registry.entries)
            if is_ours and not indivisible
            else ()
        )
        return after, (DeleteDirectory(event.checkpoint, private), *((DeleteSharedFiles(unused),) if unused else ()))

    def _fail_over(self, event: FailedOver) -> _Answer:
        """Fail over to a snapshot.  If the job does not own it (no-claim), the next checkpoint must be a full one again."""
        if event.checkpoint not in self.retained:
            raise InvalidTransition(self, event, "it is not retained")
        foreign = self.unclaimed is not None and self.unclaimed.checkpoint == event.checkpoint
        return replace(self, full_required=foreign and self.rearms_full), ()


def _private(snapshot: StoredSnapshot) -> tuple[StateFile, ...]:
    return tuple(file for file in snapshot.files if snapshot.owns(file))


def _released(store: SnapshotStore) -> tuple[SnapshotStore, tuple[StateFile, ...]]:
    """Drop files that no retained checkpoint refers to, and return them (addCheckpointAndSubsumeOldestOne)."""
    lowest = min(store.retained)
    if lowest == store.released_below:
        return store, ()
    released = store.registry.released(lowest)
    kept = {number: snapshot for number, snapshot in store.kept_whole.items() if number in released.indivisible_in_use}
    unused = (
        file for number, snapshot in store.kept_whole.items() if number not in kept for file in _private(snapshot)
    )
    after = replace(store, registry=released.registry, kept_whole=kept, released_below=lowest)
    return after, (*released.files, *unused)
