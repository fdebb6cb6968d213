"""What lies in checkpoint storage, as nouns: a state file, a completed snapshot, and how a job takes one over.

Storage and runtime write them; `sim.protocol.snapshots.shared_state` decides when they go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

Scope = Literal["exclusive", "shared", "savepoint"]
"""Where a file lies (CheckpointedStateScope): in the directory of its checkpoint, in the job's directory of shared files, or in the
directory of its savepoint."""

SnapshotType = Literal["checkpoint", "full", "canonical", "native"]
"""CheckpointType.CHECKPOINT (reuses files, may be reused), FULL_CHECKPOINT (reuses nothing, may be reused), and two savepoint formats.

Savepoints have exclusive files only (SavepointType): canonical ones a sorted key-value file, native ones the files of the state backend."""

ClaimMode = Literal["claim", "no-claim", "legacy"]
"""Who owns the snapshot a job starts from (RecoveryClaimMode, FLIP-193)."""


class StateFile(NamedTuple):
    """One file of a snapshot; (instance, number) names it."""

    instance: int  # the job instance that wrote it, from 0: its owner
    number: int  # among the files of that instance
    checkpoint: int  # the snapshot it was written for
    scope: Scope
    size_bytes: int

    @property
    def key(self) -> tuple[int, int]:
        return self.instance, self.number


class StoredSnapshot(NamedTuple):
    """A completed checkpoint or savepoint: the files its metadata names."""

    instance: int
    checkpoint: int
    type: SnapshotType
    files: tuple[StateFile, ...]

    @property
    def is_savepoint(self) -> bool:
        return self.type in ("canonical", "native")

    def owns(self, file: StateFile) -> bool:
        """Whether a file lies in the directory of this snapshot."""
        return file.scope != "shared" and (file.instance, file.checkpoint) == (self.instance, self.checkpoint)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The dependencies of one snapshot."""

    files_total: int  # that its metadata names
    bytes_total: int
    files_outside_chk_dir: int
    files_outside_job_dir: int  # a savepoint: outside its own directory
    owners: tuple[int, ...]  # job instances that wrote one of the files
    chain_length: int  # owners older than the snapshot's own job
    absolute_paths: int
    self_contained: bool  # every file lies in its own directory
    relocatable_own_dir: bool  # restorable from a copy of its own directory alone
    relocatable_job_dir: bool | None  # ... of its job's directory alone; None: a savepoint does not lie in one
