"""The beginning of a later job instance: a snapshot of the instance before it, and all files which that one left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from sim.model.stored import ClaimMode, StoredSnapshot
from sim.runtime.accounts.accounts import Accounts
from sim.runtime.committed_output import CommittedOutput
from sim.runtime.contents import TaskSnapshot
from sim.runtime.context import Origin
from sim.runtime.jobmanager.faults import Faults
from sim.runtime.jobmanager.recovery_host import RestartsSoFar
from sim.runtime.jobmanager.snapshot_files import SnapshotFiles
from sim.storage import FileLedger


@dataclass(frozen=True, slots=True)
class Beginning:
    """The snapshot that a later job instance begins with, and what it takes over from the instance before it."""

    instance: int
    at_ns: int
    snapshot: StoredSnapshot
    claim: ClaimMode
    parts: Mapping[int, TaskSnapshot]  # of the snapshot, by task
    names: Sequence[tuple[str, int]]  # of the tasks that wrote what these parts have to commit
    files: SnapshotFiles  # of the instance before it
    ledger: FileLedger
    output: CommittedOutput  # what that instance committed
    faults: Faults  # what befell it
    served: np.ndarray  # where its tasks stood in the end
    kind: Literal["instance", "rescale"] = "instance"
    accounts: Accounts | None = None  # of that instance, if it was watched
    restarts: RestartsSoFar | None = None  # of that instance, if the same JobMaster goes on

    @property
    def description(self) -> str:
        """The snapshot in words, for the row of the restart that the instance begins with."""
        return f"job {self.instance} begins from {self.snapshot.type} {self.snapshot.checkpoint} of job {self.snapshot.instance}"

    @property
    def origin(self) -> Origin:
        return Origin(self.instance, self.at_ns, self.snapshot.checkpoint, self.served)
