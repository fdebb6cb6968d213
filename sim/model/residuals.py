"""Residuals: the time that real checkpoints took beyond the model, such as pauses of a process or jitter of storage.

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
    """The residuals of all vertices."""

    checkpoints: int = 0  # of the history; 0: nothing is drawn
    of: tuple[Residual, ...] = ()
