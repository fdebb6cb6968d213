"""`actions:` -> the model, in the order of time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.model.actions import Action
from sim.scenario.actions import document as doc
from sim.scenario.text.problems import Reading

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["build_actions"]


def build_actions(given: Sequence[doc.Action], reading: Reading) -> tuple[Action, ...]:
    actions = []
    for i, action in enumerate(given):
        if (action.savepoint is None) == (action.stop is None):
            reading.wrong(("actions", i), "write exactly one of savepoint and stop")
        elif action.savepoint is not None and action.format is not None:
            reading.wrong(("actions", i, "format"), "a savepoint says its format itself: {savepoint: native, at: 20 s}")
        else:
            actions.append(Action(action.at, action.savepoint or action.format or "canonical", action.stop))  # type: ignore[arg-type]  # checked words
    for i, action in enumerate(given):
        if action.stop is not None and any(other.at > action.at for other in given):
            reading.wrong(("actions", i), "the job has stopped before the other actions are due")
    return tuple(sorted(actions, key=lambda action: action.at_ns))
