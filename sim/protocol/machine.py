"""Base of the protocol state machines: value classes, and the error of an impossible event."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value_class(kind: type[T]) -> type[T]:
    """Make a class a dataclass with slots, whose objects are compared by their fields and never change.

    Mypy reports assignments to fields.  They raise no error in a run, because `dataclass(frozen=True)` makes an object
    three times and a class five times as slow to create: a run creates a hundred thousand of the first, a start 163 of the second.
    """
    made: Any = dataclass(slots=True, eq=False, repr=False)(kind)
    names = [field.name for field in fields(made)]
    values: Any = attrgetter(*names) if len(names) > 1 else lambda one: tuple(getattr(one, name) for name in names)

    def equals(one: object, other: object) -> bool:
        return type(one) is type(other) and values(one) == values(other)

    def text(one: object) -> str:
        return f"{kind.__qualname__}({', '.join(f'{name}={getattr(one, name)!r}' for name in names)})"

    for name, method in (("__eq__", equals), ("__hash__", lambda one: hash(values(one))), ("__repr__", text)):
        if name not in vars(kind) or vars(kind)[name] is None:
            setattr(made, name, method)
    made.field_values = property(values)
    return made  # type: ignore[no-any-return]


if TYPE_CHECKING:
    from dataclasses import replace as replace  # noqa: PLC0414 - mypy knows this function and checks its calls
else:

    def replace(value, **changes):
        """Return a copy of an object of a value class with other values of these fields."""
        copy = type(value)(*value.field_values)
        for name, changed in changes.items():
            setattr(copy, name, changed)
        return copy


class InvalidTransition(Exception):
    """Raised when a machine gets an event that its state does not allow."""

    def __init__(self, state: object, event: object, why: str = "") -> None:
        self.state, self.event = state, event
        super().__init__(f"{type(state).__name__}: {event} cannot happen in {state}" + (f": {why}" if why else ""))
