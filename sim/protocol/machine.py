"""What all machines share: the story of a machine, and the error that tells it."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["STORY_LENGTH", "InvalidTransition", "remember"]

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
