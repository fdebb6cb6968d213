"""Completed checkpoints: shared files, relocation, what may be deleted."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from typing import NamedTuple

from sim.model.storage import ClaimMode, Directories, SnapshotType, StateFile, StoredSnapshot, Verdict, inside
from sim.protocol.machine import InvalidTransition, value_class

# ---- Which files of earlier snapshots are still needed: SharedStateRegistryImpl, without reference counts.
#
# Every acknowledgement registers the shared files it names, which moves their `last_used` forward.  When the lowest
# retained checkpoint becomes L, entries last used before L are dropped.  The file itself goes only if this job owns it
# (`created_by` beyond the highest checkpoint it did not claim).  Files of a native savepoint that was claimed go
# together with its directory, when none of them is used.

Key = tuple[int, int]


class SharedFile(NamedTuple):
    """An entry of the registry: a file that several snapshots may name."""

    file: StateFile
    created_by: int  # the checkpoint that brought it; for everything restored: the restored snapshot
    last_used: int  # the newest checkpoint that names it


class Released(NamedTuple):
    """Files that no snapshot needs any more."""

    registry: SharedStateRegistry
    files: tuple[StateFile, ...]  # to be deleted
    still_whole: frozenset[int]  # claimed native savepoints of which a file is in use: their directories stay


@value_class
class SharedStateRegistry:
    """The registry of shared files of one job instance."""

    entries: Mapping[Key, SharedFile] = field(default_factory=dict)
    highest_not_claimed: int = -1  # files of this checkpoint and older ones belong to another job
    # restored snapshots that share nothing: deleted as one directory or not at all
    indivisible: frozenset[int] = frozenset()

    def registered(self, files: Iterable[StateFile], checkpoint: int) -> SharedStateRegistry:
        """The shared files of one acknowledgement, also of a late one (registerAll)."""
        changes: dict[Key, SharedFile] = {}
        for file in files:
            old = self.entries.get(file.key)
            if old is None:
                changes[file.key] = SharedFile(file, checkpoint, checkpoint)
            elif old.last_used < checkpoint:
                changes[file.key] = SharedFile(file, old.created_by, checkpoint)
        return replace(self, entries={**self.entries, **changes}) if changes else self

    def restored(self, snapshot: StoredSnapshot, claim: ClaimMode) -> SharedStateRegistry:
        """Register the files of the restored snapshot (registerAllAfterRestored)."""
        number = snapshot.checkpoint
        after = self.registered(reusable_files(snapshot), number)
        if claim != "claim":
            return replace(after, highest_not_claimed=max(self.highest_not_claimed, number))
        return replace(after, indivisible=self.indivisible | {number}) if snapshot.is_savepoint else after

    def read_again(self, retained: Iterable[StoredSnapshot]) -> SharedStateRegistry:
        """The registry that another JobManager makes of the completed checkpoints, oldest first.

        Files that only unfinished checkpoints named are in no registry any more, and stay for ever.
        """
        last_used = {file.key: snapshot.checkpoint for snapshot in retained for file in reusable_files(snapshot)}
        entries = {
            key: entry._replace(last_used=last_used[key]) for key, entry in self.entries.items() if key in last_used
        }
        return replace(self, entries=entries)

    def released(self, lowest_retained: int) -> Released:
        """Entries no checkpoint from `lowest_retained` on has named are dropped (unregisterUnusedState)."""
        unused = [entry for entry in self.entries.values() if entry.last_used < lowest_retained]
        kept = (
            {key: entry for key, entry in self.entries.items() if entry.last_used >= lowest_retained}
            if unused
            else self.entries
        )
        in_use = self.indivisible
        if in_use:
            in_use = in_use.intersection(entry.created_by for entry in kept.values())
        mine = (
            entry
            for entry in unused
            if entry.created_by > self.highest_not_claimed and entry.created_by not in self.indivisible
        )
        return Released(replace(self, entries=kept) if unused else self, tuple(entry.file for entry in mine), in_use)


def reusable_files(snapshot: StoredSnapshot) -> tuple[StateFile, ...]:
    """The files of a restored snapshot that later snapshots may name.

    A changelog refers to what it was restored from until it is materialised, so these are all files of a savepoint.
    """
    return snapshot.files if snapshot.is_savepoint else shared_files(snapshot.files, snapshot)


def shared_files(files: Iterable[StateFile], snapshot: StoredSnapshot) -> tuple[StateFile, ...]:
    """The files that other snapshots may name, too: all outside of the snapshot's own directory."""
    instance, checkpoint = snapshot.instance, snapshot.checkpoint
    return tuple(
        file for file in files if file.scope == "shared" or file.checkpoint != checkpoint or file.instance != instance
    )


# ---- What a stored snapshot depends on: what breaks when something is deleted, copied or moved (FLINK-24149).
#
# Paths and the rules by which metadata names files are `sim.model.storage`'.


def verdict(snapshot: StoredSnapshot, directories: Directories) -> Verdict:
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
    old_readable: bool = False,
    exists: Callable[[StateFile], bool] = lambda _: True,
) -> bool:
    """Whether a job can start from the snapshot where it lies, or from a copy of the directory `copied` elsewhere.

    A copy keeps the name of its directory, what lies beside it is not copied, and old paths are gone unless
    `old_readable`.
    `exists`: whether a file was still there when the copy was made.
    """
    own = directories.directory(snapshot)
    if copied is None:
        return all(map(exists, snapshot.files))
    if not inside(own, copied):
        return False  # the metadata stays behind
    new_own = _moved(own, copied)
    for file in snapshot.files:
        path = directories.path(file)
        meant = directories.resolved(directories.reference(path, snapshot), new_own, snapshot)
        there = (old_readable and meant == path) or (inside(path, copied) and meant == _moved(path, copied))
        if not (there and exists(file)):
            return False
    return True


def find_unrestorable_snapshots(
    snapshots: Iterable[StoredSnapshot], directories: Directories, removed: StoredSnapshot | str
) -> tuple[StoredSnapshot, ...]:
    """Which other snapshots can no longer be restored once `removed` is gone.

    A snapshot goes with everything its metadata names, as the command line disposes of savepoints; a directory with all
    that lies in it.
    """
    return tuple(_broken(snapshots, directories, removed))


def _broken(
    snapshots: Iterable[StoredSnapshot], directories: Directories, removed: StoredSnapshot | str
) -> Iterator[StoredSnapshot]:
    if isinstance(removed, StoredSnapshot):
        gone = {file.key for file in removed.files}
        yield from (
            snapshot
            for snapshot in snapshots
            if snapshot != removed and any(file.key in gone for file in snapshot.files)
        )
        return
    for snapshot in snapshots:
        if not inside(directories.directory(snapshot), removed) and any(
            inside(directories.path(file), removed) for file in snapshot.files
        ):
            yield snapshot


def _moved(path: str, copied: str) -> str:
    """Where a path inside a copied directory is found afterwards."""
    return posixpath.normpath(f"/elsewhere/{posixpath.basename(copied)}/{posixpath.relpath(path, copied)}")


# ---- The snapshots of a job instance, and the files to delete when one of them ends (CompletedCheckpointStore, CheckpointsCleaner).
#
# Joins the registry of shared files with the directories of single snapshots.  When a checkpoint ends is the
# coordinator's decision; what that does to files is decided here; how long deleting takes is for others to know.


@value_class
class SnapshotTriggered:
    """A checkpoint or savepoint got its id."""

    checkpoint: int
    type: SnapshotType


@value_class
class StateRegistered:
    """An acknowledgement names its files.  It may come after the end of its checkpoint."""

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
    """The tasks restart from this snapshot."""

    checkpoint: int


@value_class
class StoreLost:
    """The JobManager is gone with what it knew; the next one reads the completed snapshots (DefaultCompletedCheckpointStoreUtils)."""


StoreEvent = SnapshotTriggered | StateRegistered | SnapshotCompleted | SnapshotDiscarded | FailedOver | StoreLost


@value_class
class DeleteDirectory:
    """Delete the private files of one snapshot; triggers wait for it (CheckpointsCleaner)."""

    checkpoint: int
    files: tuple[StateFile, ...]  # without _metadata


@value_class
class DeleteSharedFiles:
    """Delete files that no snapshot names any more, beside everything else (SharedStateRegistryImpl#scheduleAsyncDelete)."""

    files: tuple[StateFile, ...]


@value_class
class LoseAcknowledgement:
    """Lose an acknowledgement: it names a file of an earlier checkpoint that is registered no more.

    SharedStateRegistry#registerReference says "Attempt to reference unknown state".  With several checkpoints at a time
    a file may be stored twice.  The copy that a later one builds on is then deleted with the checkpoint that wrote it
    (FLINK-29913).  Handling the message ends there, so the checkpoint waits in vain.
    """

    checkpoint: int


StoreCommand = DeleteDirectory | DeleteSharedFiles | LoseAcknowledgement
_Answer = tuple["SnapshotStore", tuple[StoreCommand, ...]]


@value_class
class SnapshotStore:
    """The snapshots that one job instance holds, and the registry of their shared files."""

    instance: int = 0
    registry: SharedStateRegistry = SharedStateRegistry()
    pending: Mapping[int, StoredSnapshot] = field(default_factory=dict)  # with the files acknowledged so far
    # oldest first; what was restored is one of them
    retained: Mapping[int, StoredSnapshot] = field(default_factory=dict)
    savepoints: tuple[StoredSnapshot, ...] = ()  # completed here: the user's
    unclaimed: StoredSnapshot | None = None  # restored, and not this job's to delete
    # subsumed native savepoints with files in use
    kept_whole: Mapping[int, StoredSnapshot] = field(default_factory=dict)
    # files last used before this checkpoint are released already; -1: not known, so they are looked for again
    released_below: int = -1
    rearms_full: bool = False  # restored without a claim: failing over to it needs a full checkpoint again
    full_required: bool = False  # the next checkpoint reuses nothing (CheckpointCoordinator#forceFullSnapshot)

    @classmethod
    def restored(cls, instance: int, snapshot: StoredSnapshot, claim: ClaimMode) -> SnapshotStore:
        """A new job instance that starts from a snapshot of an older one (CheckpointCoordinator#restoreSavepoint)."""
        return cls(
            instance,
            registry=SharedStateRegistry().restored(snapshot, claim),
            retained={snapshot.checkpoint: snapshot},
            unclaimed=None if claim == "claim" else snapshot,
            rearms_full=claim == "no-claim",
            full_required=claim == "no-claim",
        )

    def type_for(self, requested: SnapshotType) -> SnapshotType:
        """What tasks are asked for: an ordinary checkpoint may have to be a full one."""
        return "full" if requested == "checkpoint" and self.full_required else requested

    def on(self, event: StoreEvent) -> _Answer:
        match event:
            case SnapshotTriggered():
                after, commands = self._begun(event)
            case StateRegistered():
                after, commands = self._registered(event)
            case SnapshotCompleted():
                after, commands = self._complete_checkpoint(event)
            case SnapshotDiscarded():
                after, commands = self._discarded(event)
            case FailedOver():
                after, commands = self._failed_over(event)
            case StoreLost():
                registry = self.registry.read_again(self.retained.values())
                after, commands = replace(self, pending={}, registry=registry, released_below=-1), ()
        return after, commands

    def _begun(self, event: SnapshotTriggered) -> _Answer:
        empty = StoredSnapshot(self.instance, event.checkpoint, event.type, ())
        return replace(self, pending={**self.pending, event.checkpoint: empty}), ()

    def _registered(self, event: StateRegistered) -> _Answer:
        """Shared files count even if the checkpoint is gone: a later one may build on them.  Private ones of a late acknowledgement go."""
        begun = self.pending.get(event.checkpoint)
        snapshot = (
            StoredSnapshot(self.instance, event.checkpoint, "checkpoint", event.files) if begun is None else begun
        )
        shared = shared_files(event.files, snapshot)
        if not all(self._writes(file, event.checkpoint) or self._holds(file) for file in shared):
            return self, (LoseAcknowledgement(event.checkpoint),)
        after = self
        if shared:
            is_released = event.checkpoint < self.released_below
            registry = self.registry.registered(shared, event.checkpoint)
            after = replace(self, registry=registry, released_below=-1 if is_released else self.released_below)
        if begun is None:
            return after, (DeleteDirectory(event.checkpoint, _private(snapshot)),)
        return replace(
            after, pending={**self.pending, event.checkpoint: begun._replace(files=begun.files + event.files)}
        ), ()

    def _writes(self, file: StateFile, checkpoint: int) -> bool:
        return file.checkpoint == checkpoint and file.instance == self.instance

    def _holds(self, file: StateFile) -> bool:
        """Whether it is registered, or a private file of a retained checkpoint, which another one may keep a part of."""
        return file.key in self.registry.entries or any(file in snapshot.files for snapshot in self.retained.values())

    def _complete_checkpoint(self, event: SnapshotCompleted) -> _Answer:
        """Savepoints are the user's: neither retained nor a reason to build on them."""
        pending = dict(self.pending)
        completed = pending.pop(event.checkpoint, None)
        if completed is None:
            raise self._impossible(event, "it is not pending")
        if completed.is_savepoint:
            return replace(self, pending=pending, savepoints=(*self.savepoints, completed)), ()
        after = replace(
            self, pending=pending, retained={**self.retained, event.checkpoint: completed}, full_required=False
        )
        after, unused = _released(after)
        return after, ((DeleteSharedFiles(unused),) if unused else ())

    def _discarded(self, event: SnapshotDiscarded) -> _Answer:
        if event.checkpoint in self.pending:
            pending = dict(self.pending)
            discarded = pending.pop(event.checkpoint)
            return replace(self, pending=pending), (DeleteDirectory(event.checkpoint, _private(discarded)),)
        retained = dict(self.retained)
        old = retained.pop(event.checkpoint, None)
        if old is None or not retained:
            raise self._impossible(event, "it is not retained" if old is None else "it is the last one")
        indivisible = event.checkpoint in self.registry.indivisible
        kept_whole = {**self.kept_whole, event.checkpoint: old} if indivisible else self.kept_whole
        after, unused = _released(replace(self, retained=retained, kept_whole=kept_whole))
        is_ours = self.unclaimed is None or self.unclaimed.checkpoint != event.checkpoint
        private = (
            tuple(file for file in _private(old) if file.key not in after.registry.entries)
            if is_ours and not indivisible
            else ()
        )
        return after, (DeleteDirectory(event.checkpoint, private), *((DeleteSharedFiles(unused),) if unused else ()))

    def _failed_over(self, event: FailedOver) -> _Answer:
        """A job that falls back to a snapshot that it does not own builds on foreign files again: its next checkpoint is a full one."""
        if event.checkpoint not in self.retained:
            raise self._impossible(event, "it is not retained")
        foreign = self.unclaimed is not None and self.unclaimed.checkpoint == event.checkpoint
        return replace(self, full_required=foreign and self.rearms_full), ()

    def _impossible(self, event: StoreEvent, why: str) -> InvalidTransition:
        return InvalidTransition("snapshot store", self, event, why)


def _private(snapshot: StoredSnapshot) -> tuple[StateFile, ...]:
    return tuple(file for file in snapshot.files if snapshot.owns(file))


def _released(store: SnapshotStore) -> tuple[SnapshotStore, tuple[StateFile, ...]]:
    """Files that no checkpoint has named since the oldest retained one, that one included (addCheckpointAndSubsumeOldestOne)."""
    lowest = min(store.retained)
    if lowest == store.released_below:
        return store, ()
    released = store.registry.released(lowest)
    kept = {number: snapshot for number, snapshot in store.kept_whole.items() if number in released.still_whole}
    gone = (file for number, snapshot in store.kept_whole.items() if number not in kept for file in _private(snapshot))
    after = replace(store, registry=released.registry, kept_whole=kept, released_below=lowest)
    return after, (*released.files, *gone)
