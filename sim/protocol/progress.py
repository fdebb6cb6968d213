"""Whether a job that restarts gets anywhere: from the same checkpoint, for the same cause, again and again, it does not.

Flink restarts such a job for ever, as its strategy has no end.  What a cause is in words, and what counts as progress, is the caller's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["MANY", "Fruitless", "Restarted", "fruitless"]

MANY = 5
"""Restarts in a row that are no accident."""


class Restarted(NamedTuple):
    """The job went back to a checkpoint."""

    failed_ns: int
    checkpoint: int  # 0: from the beginning
    cause: str


class Fruitless(NamedTuple):
    """The last restarts, which are all alike."""

    times: int
    checkpoint: int
    cause: str


def fruitless(restarts: Sequence[Restarted], progress_ns: int) -> Fruitless | None:
    """`restarts` in the order of time; `progress_ns`: when a checkpoint was completed, something committed or a fault over at last."""
    row: list[Restarted] = []
    for restart in reversed(restarts):
        if restart.failed_ns <= progress_ns or (row and restart[1:] != row[0][1:]):
            break
        row.append(restart)
    return Fruitless(len(row), *row[0][1:]) if len(row) >= MANY else None
