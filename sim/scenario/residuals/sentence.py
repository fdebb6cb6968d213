"""What the tails of a run rest on, as a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sim.model.residuals import Residuals

__all__ = ["tail_sentence"]


def tail_sentence(residuals: Residuals) -> str:
    """Empty: nothing is drawn."""
    if not residuals.checkpoints:
        return ""
    return f"tails are drawn from the residuals of {residuals.checkpoints} checkpoints of the job's own history"
