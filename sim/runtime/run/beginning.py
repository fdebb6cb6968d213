"""How a job instance begins that is not the first: with a snapshot of the one before it, and all files that instance left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from sim.model.stored import ClaimMode, StoredSnapshot
from sim.protocol.machine import changed

if TYPE_CHECKING:
    from sim.runtime.contents import Held
    from sim.runtime.jobmanager.faults import Faults
    from sim.runtime.jobmanager.outside import Outside
    from sim.runtime.jobmanager.snapshot_files import SnapshotFiles
    from sim.runtime.observe.accounts import Accounts
    from sim.runtime.run.world import World
    from sim.storage import FileLedger

__all__ = ["Beginning"]


@dataclass(frozen=True, slots=True)
class Beginning:
    instance: int
    at_ns: int
    snapshot: StoredSnapshot
    claim: ClaimMode
    held: Mapping[int, Held]  # task -> its part of the snapshot
    files: SnapshotFiles  # of the instance before it
    ledger: FileLedger
    outside: Outside  # what that instance committed
    faults: Faults  # what befell it
    served: np.ndarray  # where its tasks stood in the end
    kind: str = "instance"  # or rescale
    accounts: Accounts | None = None  # of that instance, if it was watched

    @property
    def words(self) -> str:
        return f"job {self.instance} begins from {self.snapshot.type} {self.snapshot.checkpoint} of job {self.snapshot.instance}"

    def enter(self, world: World) -> None:
        """Ids go on after the snapshot's; it is the latest completed one, to be subsumed like any other."""
        number = self.snapshot.checkpoint
        world.coordinator.machine = changed(world.coordinator.machine, next_id=number + 1, retained=(number,))
        names = self.outside.names, world.names()
        world.contents.checkpoints[number] = {
            task: replace(part, committables=part.committables and part.committables.renumbered(*names)) for task, part in self.held.items()
        }
        world.storage.files.adopt(self.ledger)
        world.outside.go_on(self.outside, number, {task: list(part.written) for task, part in self.held.items()})
        world.files.take_over(self.files, self.snapshot, self.claim)
        if world.checking is not None and self.accounts is not None:
            world.checking.accounts.go_on(self.accounts, number)
