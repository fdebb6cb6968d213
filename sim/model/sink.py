"""What an operator writes outside of its state: files per snapshot, and the transactions they belong to.  Frozen."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

__all__ = ["Commit", "Flush"]


@dataclass(frozen=True, slots=True)
class Flush:
    """Files a subtask writes per snapshot (prepareSnapshotPreBarrier of a file sink); nothing if it read no record since the last."""

    bytes: int = 0  # together, per subtask and snapshot ...
    share: Fraction = Fraction(0)  # ... and this share of the bytes read since the last flush
    files: int = 1


@dataclass(frozen=True, slots=True)
class Commit:
    """Output that becomes visible when its checkpoint is complete (TwoPhaseCommittingSink).

    `committer`: chained = every writer is followed by its own in the same task; global = one subtask behind all writers.
    """

    committer: Literal["chained", "global"] = "chained"
    time_ns: int = 0  # on the committer's task thread, per commit
    transaction_timeout_ns: int | None = None  # a transaction open longer is lost; None: never
    holds_back: int = 0  # records per input channel kept in its state until finish(): a batch, an open window
    emits: Literal["at-once", "on-commit"] = "at-once"  # on-commit: records go on when they are committed, an epoch at a time
