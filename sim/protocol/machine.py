"""What all machines share: the story of a machine, and the error that tells it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any, TypeVar

__all__ = ["STORY_LENGTH", "InvalidTransition", "changed", "remember"]

_Machine = TypeVar("_Machine")
_FIELD_NAMES: dict[type, dict[str, None]] = {}

STORY_LENGTH = 40


class InvalidTransition(Exception):  # noqa: N818 -- a phrase, like the states
    """An event that cannot happen in this state; carries what led here."""

    def __init__(self, machine: str, state: object, event: object, story: Iterable[object] = (), why: str = "") -> None:
        self.state, self.event, self.story = state, event, tuple(story)
        lines = [f"{machine}: {event} cannot happen in {state}" + (f": {why}" if why else ""), "what led here, oldest first:"]
        lines += [f"  {one}" for one in self.story] or ["  nothing"]
        super().__init__("\n".join(lines))


def remember(story: tuple[object, ...], event: object) -> tuple[object, ...]:
    """The story with one more event, bounded."""
    return (*story, event)[-STORY_LENGTH:]


def changed(machine: _Machine, /, **changes: Any) -> _Machine:
    """`dataclasses.replace` for frozen values without an initialiser of their own, at half the price: machines change at every event."""
    names = _FIELD_NAMES.get(type(machine))
    if names is None:
        names = _FIELD_NAMES[type(machine)] = dict.fromkeys(field.name for field in fields(machine))  # type: ignore[arg-type]
    if not changes.keys() <= names.keys():
        raise TypeError(f"{type(machine).__name__} has no {sorted(changes.keys() - names.keys())}")
    after = object.__new__(type(machine))
    for name in names:
        object.__setattr__(after, name, changes[name] if name in changes else getattr(machine, name))
    return after
