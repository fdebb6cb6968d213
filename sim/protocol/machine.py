"""What all machines share: the story of a machine, and the error that tells it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic, Protocol, TypeVar

__all__ = ["STORY_LENGTH", "InvalidTransition", "Machine", "Running", "remember"]

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


E_contra = TypeVar("E_contra", contravariant=True)
C_co = TypeVar("C_co", covariant=True)


class Machine(Protocol[E_contra, C_co]):
    """A value: what it was told is in what it returns."""

    def on(self, event: E_contra) -> tuple[Any, tuple[C_co, ...]]: ...


class Running(Generic[E_contra, C_co]):
    """A machine in use: keeps its latest state, hands the commands on.  The state is new before the first command is seen."""

    def __init__(self, machine: Machine[E_contra, C_co]) -> None:
        self.state = machine

    def on(self, event: E_contra) -> tuple[C_co, ...]:
        self.state, commands = self.state.on(event)
        return commands
