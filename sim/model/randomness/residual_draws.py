"""Which checkpoint of a history a simulated one is like: drawn by its number, and the same for all its subtasks and parts.

Each is drawn once before any is drawn again: a run of as many checkpoints as the history has shows its longest one, too.
"""

from __future__ import annotations

from functools import lru_cache

from sim.model.randomness.streams import draw, stream
from sim.model.residuals import Part, Residuals


def drawn_ns(residuals: Residuals, part: Part, vertex: str, subtask: int, checkpoint: int, seed: int) -> int:
    """The residual of a simulated checkpoint.  Subtasks beyond those of the history take theirs in turn."""
    own = next((residual.subtasks for residual in residuals.of if residual.part == part and residual.vertex == vertex), ())
    if not own:
        return 0
    cycle, place = divmod(checkpoint, residuals.checkpoints)
    return own[subtask % len(own)][_order(seed, cycle, residuals.checkpoints)[place]]


@lru_cache(maxsize=8)
def _order(seed: int, cycle: int, checkpoints: int) -> tuple[int, ...]:
    """The checkpoints of the history in the order in which a cycle draws them."""
    key = stream(seed, "residuals", cycle)
    return tuple(sorted(range(checkpoints), key=lambda row: (draw(key, row), row)))
