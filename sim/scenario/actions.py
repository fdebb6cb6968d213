"""`actions:`: savepoints and the stop of the job, as they are written and as the model has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar

from sim.model import actions
from sim.scenario.grammar.fields import Axis, Duration, choice
from sim.scenario.grammar.section import Section
from sim.scenario.grammar.together import OneOf, OnlyWith
from sim.scenario.text.problems import Reading


class Action(Section):
    """A savepoint or a stop, and its time.  Exactly one of the two."""

    ONE_OF: ClassVar = (OneOf({"savepoint": "", "stop": ""}),)
    ONLY_WITH: ClassVar = (OnlyWith(("format",), ("stop",), "a savepoint says its format itself, {savepoint: native, at: 20 s}"),)

    savepoint: Axis[Annotated[str, choice("canonical", "native")]] | None = None
    """Format of a savepoint; the job goes on."""
    stop: Axis[Annotated[str, choice("drain", "no-drain", "savepoint-then-finish")]] | None = None
    """The job stops with a savepoint: after its operators finished, as it stands, or (as before FLIP-147) finishing afterwards."""
    format: Axis[Annotated[str, choice("canonical", "native")]] | None = None
    """Format of the savepoint a job stops with; default: canonical."""
    at: Axis[Duration]
    """Moment of the run."""


def build_actions(given: Sequence[Action], reading: Reading) -> tuple[actions.Action, ...]:
    built = [actions.Action(action.at, action.savepoint or action.format or "canonical", action.stop) for action in given]  # type: ignore[arg-type]  # checked words
    for i, action in enumerate(given):
        if action.stop is not None and any(other.at > action.at for other in given):
            reading.wrong(("actions", i), "the job has stopped before the other actions are due")
    return tuple(sorted(built, key=lambda action: action.at_ns))
