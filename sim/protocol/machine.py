"""Base of the protocol state machines: frozen value classes, the error of an impossible event, and an event log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")
M = TypeVar("M")
E = TypeVar("E")

MAX_LOGGED_EVENTS = 40  # events quoted by an InvalidTransition


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value_class(kind: type[T]) -> type[T]:
    """Make a class a frozen dataclass with slots."""
    return dataclass(slots=True, frozen=True)(kind)


class InvalidTransition(Exception):
    """Raised when a machine gets an event that its state does not allow."""

    def __init__(self, machine: str, state: object, event: object, why: str = "") -> None:
        self.state, self.event = state, event
        super().__init__(f"{machine}: {event} cannot happen in {state}" + (f": {why}" if why else ""))


class EventLog:
    """The latest events of one machine, for diagnosis: an `InvalidTransition` lists them in a note."""

    __slots__ = ("_events",)

    def __init__(self) -> None:
        self._events: list[object] = []

    def step(self, on: Callable[[M, E], T], machine: M, event: E) -> T:
        """Return ``on(machine, event)``, i.e. the next machine and its commands, and log the event."""
        try:
            answer = on(machine, event)
        except InvalidTransition as error:
            last = [f"  {earlier}" for earlier in self._events[-MAX_LOGGED_EVENTS:]] or ["  none"]
            error.add_note("\n".join(["earlier events, oldest first:", *last]))
            raise
        self._events.append(event)
        if len(self._events) > 2 * MAX_LOGGED_EVENTS:
            del self._events[:-MAX_LOGGED_EVENTS]
        return answer
