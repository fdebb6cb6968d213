"""The `actions:` section as it is written: requests made while the job runs."""

from __future__ import annotations

from typing import Annotated

from sim.scenario.grammar.fields import Axis, Duration, choice
from sim.scenario.grammar.section import Section

__all__ = ["Action"]


class Action(Section):
    """One of savepoint and stop, and when."""

    savepoint: Axis[Annotated[str, choice("canonical", "native")]] | None = None
    """Its format; the job goes on."""
    stop: Axis[Annotated[str, choice("drain", "no-drain", "savepoint-then-finish")]] | None = None
    """The job stops with a savepoint: after its operators finished, as it stands, or (as before FLIP-147) finishing afterwards."""
    format: Axis[Annotated[str, choice("canonical", "native")]] | None = None
    """Format of the savepoint a job stops with."""
    at: Axis[Duration]
    """Moment of the run."""
