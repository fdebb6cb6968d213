"""`residuals:` as it is written: lists of numbers per vertex, part and subtask."""

from __future__ import annotations

from sim.scenario.grammar.fields import Duration, Natural, Positive
from sim.scenario.grammar.section import Section

__all__ = ["OfVertex", "Residuals"]


class OfVertex(Section):
    """For each subtask a list with a number per checkpoint of the history, in units of `unit`.  Further subtasks take theirs in turn."""

    scheduling: list[list[Natural]] | None = None
    """Sources only: from the call that triggers a checkpoint until their thread looks at it."""
    sync: list[list[Natural]] | None = None
    """Synchronous phase."""
    async_: list[list[Natural]] | None = None
    """Asynchronous phase."""
    acknowledgement: list[list[Natural]] | None = None
    """From the end of the asynchronous phase until the coordinator knows."""


class Residuals(Section):
    """What checkpoints of a real job took beyond the model.  Each simulated checkpoint draws one of the history, for all its subtasks."""

    checkpoints: Positive
    """How many there are to draw from."""
    unit: Duration
    """The unit of all numbers below."""
    of: dict[str, OfVertex]
    """Vertex -> its residuals."""
