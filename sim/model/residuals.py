"""What checkpoints of a real job took beyond the model: pauses of a process, jitter of storage, acknowledgements that waited.

A simulated checkpoint draws one checkpoint of the history.  All its subtasks take what theirs took there, so what struck them together
strikes them together again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Part = Literal["scheduling", "sync", "async", "acknowledgement"]
PARTS: tuple[Part, ...] = ("scheduling", "sync", "async", "acknowledgement")


@dataclass(frozen=True, slots=True)
class Residual:
    """One part of the checkpoints of a vertex: for each subtask a duration [ns] per checkpoint of the history."""

    vertex: str
    part: Part
    subtasks: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Residuals:
    checkpoints: int = 0  # of the history; 0: nothing is drawn
    of: tuple[Residual, ...] = ()
