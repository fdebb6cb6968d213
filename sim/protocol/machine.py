"""State machines: frozen values, the error of an impossible event, and the log of events that explains it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")
M = TypeVar("M")
E = TypeVar("E")

MAX_LOGGED_EVENTS = 40


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value_class(kind: type[T]) -> type[T]:
    """A frozen dataclass with slots."""
    return dataclass(slots=True, frozen=True)(kind)


class InvalidTransition(Exception):
    """An event that is impossible in the state of a machine."""

    def __init__(self, machine: str, state: object, event: object, why: str = "") -> None:
        self.state, self.event = state, event
        super().__init__(f"{machine}: {event} cannot happen in {state}" + (f": {why}" if why else ""))


class EventLog:
    """The last events of a machine.  Whoever drives the machine keeps it; an `InvalidTransition` gets them as a note."""

    __slots__ = ("_events",)

    def __init__(self) -> None:
        self._events: list[object] = []

    def step(self, on: Callable[[M, E], T], machine: M, event: E) -> T:
        """Return ``on(machine, event)``: the machine after the event and its commands."""
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
