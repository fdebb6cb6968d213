"""The snapshots of a job instance, and the files to delete when one of them ends (CompletedCheckpointStore, CheckpointsCleaner).

Joins the registry of shared files with the directories of single snapshots.  When a checkpoint ends is the coordinator's decision;
what that does to files is decided here; how long deleting takes is for others to know.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from sim.model.stored import ClaimMode, SnapshotType, StateFile, StoredSnapshot
from sim.protocol.machine import InvalidTransition, changed, heard
from sim.protocol.snapshots.shared_state import SharedStateRegistry, shared_files
from sim.protocol.value_class import value_class


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

    SharedStateRegistry#registerReference says "Attempt to reference unknown state".  With several checkpoints at a time a file may be
    stored twice.  The copy that a later one builds on is then deleted with the checkpoint that wrote it (FLINK-29913).  Handling the
    message ends there, so the checkpoint waits in vain.
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
    retained: Mapping[int, StoredSnapshot] = field(default_factory=dict)  # oldest first; what was restored is one of them
    savepoints: tuple[StoredSnapshot, ...] = ()  # completed here: the user's
    unclaimed: StoredSnapshot | None = None  # restored, and not this job's to delete
    kept_whole: Mapping[int, StoredSnapshot] = field(default_factory=dict)  # subsumed native savepoints with files in use
    released_below: int = -1  # files last used before this checkpoint are released already; -1: not known, so they are looked for again
    rearms_full: bool = False  # restored without a claim: failing over to it needs a full checkpoint again
    full_required: bool = False  # the next checkpoint reuses nothing (CheckpointCoordinator#forceFullSnapshot)
    story: tuple[object, ...] = field(default=(), compare=False, repr=False)

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
                after, commands = self._completed(event)
            case SnapshotDiscarded():
                after, commands = self._discarded(event)
            case FailedOver():
                after, commands = self._failed_over(event)
            case StoreLost():
                registry = self.registry.read_again(self.retained.values())
                after, commands = changed(self, pending={}, registry=registry, released_below=-1), ()
        return heard(self, after, event), commands

    def _begun(self, event: SnapshotTriggered) -> _Answer:
        empty = StoredSnapshot(self.instance, event.checkpoint, event.type, ())
        return changed(self, pending={**self.pending, event.checkpoint: empty}), ()

    def _registered(self, event: StateRegistered) -> _Answer:
        """Shared files count even if the checkpoint is gone: a later one may build on them.  Private ones of a late acknowledgement go."""
        begun = self.pending.get(event.checkpoint)
        snapshot = StoredSnapshot(self.instance, event.checkpoint, "checkpoint", event.files) if begun is None else begun
        shared = shared_files(event.files, snapshot)
        if not all(self._writes(file, event.checkpoint) or self._holds(file) for file in shared):
            return self, (LoseAcknowledgement(event.checkpoint),)
        after = self
        if shared:
            is_released = event.checkpoint < self.released_below
            registry = self.registry.registered(shared, event.checkpoint)
            after = changed(self, registry=registry, released_below=-1 if is_released else self.released_below)
        if begun is None:
            return after, (DeleteDirectory(event.checkpoint, _private(snapshot)),)
        return changed(after, pending={**self.pending, event.checkpoint: begun._replace(files=begun.files + event.files)}), ()

    def _writes(self, file: StateFile, checkpoint: int) -> bool:
        return file.checkpoint == checkpoint and file.instance == self.instance

    def _holds(self, file: StateFile) -> bool:
        """Whether it is registered, or a private file of a retained checkpoint, which another one may keep a part of."""
        return file.key in self.registry.entries or any(file in snapshot.files for snapshot in self.retained.values())

    def _completed(self, event: SnapshotCompleted) -> _Answer:
        """Savepoints are the user's: neither retained nor a reason to build on them."""
        pending = dict(self.pending)
        completed = pending.pop(event.checkpoint, None)
        if completed is None:
            raise self._impossible(event, "it is not pending")
        if completed.is_savepoint:
            return changed(self, pending=pending, savepoints=(*self.savepoints, completed)), ()
        after = changed(self, pending=pending, retained={**self.retained, event.checkpoint: completed}, full_required=False)
        after, unused = _released(after)
        return after, ((DeleteSharedFiles(unused),) if unused else ())

    def _discarded(self, event: SnapshotDiscarded) -> _Answer:
        if event.checkpoint in self.pending:
            pending = dict(self.pending)
            discarded = pending.pop(event.checkpoint)
            return changed(self, pending=pending), (DeleteDirectory(event.checkpoint, _private(discarded)),)
        retained = dict(self.retained)
        old = retained.pop(event.checkpoint, None)
        if old is None or not retained:
            raise self._impossible(event, "it is not retained" if old is None else "it is the last one")
        indivisible = event.checkpoint in self.registry.indivisible
        kept_whole = {**self.kept_whole, event.checkpoint: old} if indivisible else self.kept_whole
        after, unused = _released(changed(self, retained=retained, kept_whole=kept_whole))
        is_ours = self.unclaimed is None or self.unclaimed.checkpoint != event.checkpoint
        private = tuple(file for file in _private(old) if file.key not in after.registry.entries) if is_ours and not indivisible else ()
        return after, (DeleteDirectory(event.checkpoint, private), *((DeleteSharedFiles(unused),) if unused else ()))

    def _failed_over(self, event: FailedOver) -> _Answer:
        """A job that falls back to a snapshot that it does not own builds on foreign files again: its next checkpoint is a full one."""
        if event.checkpoint not in self.retained:
            raise self._impossible(event, "it is not retained")
        foreign = self.unclaimed is not None and self.unclaimed.checkpoint == event.checkpoint
        return changed(self, full_required=foreign and self.rearms_full), ()

    def _impossible(self, event: StoreEvent, why: str) -> InvalidTransition:
        return InvalidTransition("snapshot store", self, event, self.story, why)


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
    after = changed(store, registry=released.registry, kept_whole=kept, released_below=lowest)
    return after, (*released.files, *gone)
