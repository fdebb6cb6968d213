"""Which checkpoint of a history a simulated one is like: drawn by its number, and the same for all its subtasks and parts."""

from __future__ import annotations

from sim.model.randomness.streams import draw, stream
from sim.model.residuals import Part, Residuals

__all__ = ["drawn_ns"]


def drawn_ns(residuals: Residuals, part: Part, vertex: str, subtask: int, checkpoint: int, seed: int) -> int:
    """The residual of a simulated checkpoint.  Subtasks beyond those of the history take theirs in turn."""
    own = next((residual.subtasks for residual in residuals.of if residual.part == part and residual.vertex == vertex), ())
    if not own:
        return 0
    row = draw(stream(seed, "residuals"), checkpoint) * residuals.checkpoints >> 32
    return own[subtask % len(own)][row]
