"""Job instances that follow one another: each begins from a snapshot of the one before it.  Frozen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sim.model.stored import ClaimMode

__all__ = ["Instances"]


@dataclass(frozen=True, slots=True)
class Instances:
    """The run's duration is divided among them."""

    count: int = 1
    claim: ClaimMode = "no-claim"  # execution.state-recovery.claim-mode
    start_from: Literal["checkpoint", "savepoint"] = "checkpoint"  # the latest one of its kind
    copied: Literal["nothing", "own", "job", "root"] = "nothing"
    """What the next instance finds.  nothing: everything where it was.  Otherwise the old cluster is lost, and there is a copy of the
    snapshot's own directory, of its job's, or of the root of all checkpoints."""
