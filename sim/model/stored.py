"""What lies in checkpoint storage, as nouns: a state file, a completed snapshot, and how a job takes one over.

Who writes files and how long that takes is the business of others; what becomes of them is `sim.protocol.shared_state`'s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

__all__ = ["ClaimMode", "PathPolicy", "Scope", "SnapshotType", "StateFile", "StoredSnapshot"]

Scope = Literal["exclusive", "shared", "savepoint"]
"""Where a file lies (CheckpointedStateScope): in the directory of its checkpoint, in the job's directory of shared files, or in the
directory of its savepoint."""

SnapshotType = Literal["checkpoint", "full", "canonical", "native"]
"""CheckpointType.CHECKPOINT (reuses files, may be reused), FULL_CHECKPOINT (reuses nothing, may be reused), and the two savepoint formats
(SavepointType: exclusive files only; canonical = one sorted key-value file, native = files of the state backend)."""

ClaimMode = Literal["claim", "no-claim", "legacy"]
"""Who owns the snapshot a job starts from (RecoveryClaimMode, FLIP-193)."""


PathPolicy = Literal["absolute", "relative-to-metadata", "relative-to-job"]
"""How metadata names files.  absolute: as Flink does, relative only inside the snapshot's own directory; relative-to-metadata: all of them;
relative-to-job: all inside the job's directory, absolute beyond it."""


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


@dataclass(frozen=True, slots=True)
class StoredSnapshot:
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
