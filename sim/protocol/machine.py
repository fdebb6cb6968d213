"""Base of the protocol state machines: frozen value classes, and the error of an impossible event."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value_class(kind: type[T]) -> type[T]:
    """Make a class a frozen dataclass with slots."""
    return dataclass(slots=True, frozen=True)(kind)


class InvalidTransition(Exception):
    """Raised when a machine gets an event that its state does not allow."""

    def __init__(self, machine: str, state: object, event: object, why: str = "") -> None:
        self.state, self.event = state, event
        super().__init__(f"{machine}: {event} cannot happen in {state}" + (f": {why}" if why else ""))
