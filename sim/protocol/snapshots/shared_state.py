"""Which files of earlier snapshots are still needed: SharedStateRegistryImpl, without reference counts.

Every acknowledgement registers the shared files it names, which moves their `last_used` forward.  When the lowest retained checkpoint
becomes L, entries last used before L are dropped.  The file itself goes only if this job owns it (`created_by` beyond the highest
checkpoint it did not claim).  Files of a native savepoint that was claimed go together with its directory, when none of them is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import NamedTuple

from sim.model.stored import ClaimMode, StateFile, StoredSnapshot
from sim.protocol.machine import changed
from sim.protocol.value_class import value_class

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
    indivisible: frozenset[int] = frozenset()  # restored snapshots that share nothing: deleted as one directory or not at all

    def registered(self, files: Iterable[StateFile], checkpoint: int) -> SharedStateRegistry:
        """The shared files of one acknowledgement, also of a late one (registerAll)."""
        changes: dict[Key, SharedFile] = {}
        for file in files:
            old = self.entries.get(file.key)
            if old is None:
                changes[file.key] = SharedFile(file, checkpoint, checkpoint)
            elif old.last_used < checkpoint:
                changes[file.key] = SharedFile(file, old.created_by, checkpoint)
        return changed(self, entries={**self.entries, **changes}) if changes else self

    def restored(self, snapshot: StoredSnapshot, claim: ClaimMode) -> SharedStateRegistry:
        """Register the files of the restored snapshot (registerAllAfterRestored)."""
        number = snapshot.checkpoint
        after = self.registered(reusable_files(snapshot), number)
        if claim != "claim":
            return changed(after, highest_not_claimed=max(self.highest_not_claimed, number))
        return changed(after, indivisible=self.indivisible | {number}) if snapshot.is_savepoint else after

    def read_again(self, retained: Iterable[StoredSnapshot]) -> SharedStateRegistry:
        """The registry that another JobManager makes of the completed checkpoints, oldest first.

        Files that only unfinished checkpoints named are in no registry any more, and stay for ever.
        """
        last_used = {file.key: snapshot.checkpoint for snapshot in retained for file in reusable_files(snapshot)}
        entries = {key: entry._replace(last_used=last_used[key]) for key, entry in self.entries.items() if key in last_used}
        return changed(self, entries=entries)

    def released(self, lowest_retained: int) -> Released:
        """Entries no checkpoint from `lowest_retained` on has named are dropped (unregisterUnusedState)."""
        unused = [entry for entry in self.entries.values() if entry.last_used < lowest_retained]
        kept = {key: entry for key, entry in self.entries.items() if entry.last_used >= lowest_retained} if unused else self.entries
        in_use = self.indivisible
        if in_use:
            in_use = in_use.intersection(entry.created_by for entry in kept.values())
        mine = (entry for entry in unused if entry.created_by > self.highest_not_claimed and entry.created_by not in self.indivisible)
        return Released(changed(self, entries=kept) if unused else self, tuple(entry.file for entry in mine), in_use)


def reusable_files(snapshot: StoredSnapshot) -> tuple[StateFile, ...]:
    """The files of a restored snapshot that later snapshots may name.

    A changelog refers to what it was restored from until it is materialised, so these are all files of a savepoint.
    """
    return snapshot.files if snapshot.is_savepoint else shared_files(snapshot.files, snapshot)


def shared_files(files: Iterable[StateFile], snapshot: StoredSnapshot) -> tuple[StateFile, ...]:
    """The files that other snapshots may name, too: all outside of the snapshot's own directory."""
    instance, checkpoint = snapshot.instance, snapshot.checkpoint
    return tuple(file for file in files if file.scope == "shared" or file.checkpoint != checkpoint or file.instance != instance)
