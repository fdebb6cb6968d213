"""Progress of a job that restarts: it makes none if it causes each restart itself and always returns to the same checkpoint.

Flink restarts such a job for ever, as its strategy has no end.  Causes may take turns: a checkpoint expires here, a request there.
The caller decides which causes are the job's own, and what counts as progress.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

MIN_RESTARTS = 5
"""Restarts in a row that are no accident."""


class Restarted(NamedTuple):
    """A restart of the job, and the checkpoint that it returned to."""

    failed_ns: int
    checkpoint: int  # 0: from the beginning
    own: bool  # by the job's own doing; faults that others make may end


class Fruitless(NamedTuple):
    """The latest restarts, if all of them returned to the same checkpoint."""

    times: int
    checkpoint: int


def fruitless(restarts: Sequence[Restarted], progress_ns: int) -> Fruitless | None:
    """`restarts` in the order of time; `progress_ns`: when a checkpoint was completed, something committed or a fault over at last."""
    row: list[Restarted] = []
    for restart in reversed(restarts):
        if restart.failed_ns <= progress_ns or not restart.own or (row and restart.checkpoint != row[0].checkpoint):
            break
        row.append(restart)
    return Fruitless(len(row), row[0].checkpoint) if len(row) >= MIN_RESTARTS else None
