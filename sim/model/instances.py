"""Job instances that follow one another: each begins from a snapshot of the one before it.  Frozen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sim.model.catalogs.option import Kind, option
from sim.model.stored import ClaimMode


@dataclass(frozen=True, slots=True)
class Instances:
    """The job instances of a run, which share its duration."""

    count: int = option(Kind.POSITIVE, 1, "Jobs, one after the other.")
    claim: ClaimMode = option(  # execution.state-recovery.claim-mode
        Kind.WORD, "no-claim", "Who owns the snapshot a job starts from (FLIP-193)."
    )
    start_from: Literal["checkpoint", "savepoint"] = option(
        Kind.WORD, "checkpoint", "The latest retained checkpoint, or the latest savepoint (see actions).", key="from"
    )
    copied: Literal["nothing", "own", "job", "root"] = option(
        Kind.WORD, "nothing",
        "Only a copy of this is left, elsewhere: the snapshot's own directory, its job's, or all of them.  nothing: all is where it was.",
    )  # fmt: skip
