"""State machines: values with a log of their last events."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar, dataclass_transform

# ---- Values whose fields the type checker makes read-only.  Nothing refuses an assignment while a simulation runs.
#
# `dataclass(frozen=True)` would refuse it, but makes each value slower: it sets every field through a function.
# A checkpoint makes forty such values per task.

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value_class(kind: type[T]) -> type[T]:
    """A dataclass with slots and a hash of its fields.  mypy refuses assignments to them."""
    return dataclass(slots=True, unsafe_hash=True)(kind)


# ---- What all machines share: the story of a machine, and the error that tells it.

_Machine = TypeVar("_Machine")
_COPIERS: dict[type, Callable[..., Any]] = {}

MAX_LOGGED_EVENTS = 40


class InvalidTransition(Exception):
    """An event that is impossible in the state of a machine.  The message tells the earlier events."""

    def __init__(self, machine: str, state: object, event: object, story: Iterable[object] = (), why: str = "") -> None:
        self.state, self.event, self.story = state, event, tuple(story)
        lines = [
            f"{machine}: {event} cannot happen in {state}" + (f": {why}" if why else ""),
            "what led here, oldest first:",
        ]
        lines += [f"  {earlier}" for earlier in self.story] or ["  nothing"]
        super().__init__("\n".join(lines))


def append_to_event_log(story: tuple[object, ...], event: object) -> tuple[object, ...]:
    """The story with one more event, bounded."""
    return (*story, event)[-MAX_LOGGED_EVENTS:]


def with_event_logged(before: _Machine, after: _Machine, event: object) -> _Machine:
    """The machine after an event, with the event added to its story.

    A machine that the event has just made takes the story itself: it has no other owner yet, and a copy would cost as much again.
    """
    story = append_to_event_log(before.story, event)  # type: ignore[attr-defined]  # every machine has one
    if after is before:
        return replace_fields(before, story=story)
    after.story = story  # type: ignore[attr-defined]
    return after


def replace_fields(machine: _Machine, /, **changes: Any) -> _Machine:
    """`dataclasses.replace` for values by `frozen` without an initialiser of their own, cheaper: machines change at every event.

    `benchmarks/bench_copier.py` compares the two: with `replace` runs take 3 to 5 % longer.
    """
    copier = _COPIERS.get(type(machine))
    if copier is None:
        copier = _COPIERS[type(machine)] = _copier(type(machine))
    after: _Machine = copier(machine, **changes)
    return after


def _copier(kind: type) -> Callable[..., Any]:
    """A function of a machine and its changes by name, written out field by field as `dataclass` writes initialisers.

    Its own names begin with an underscore, which no field does.
    """
    names = [field.name for field in fields(kind)]
    parameters = "".join(f", {name}=_SAME" for name in names)
    lines = [f"def copier(_machine, /{parameters}):", "    _after = _new(_kind)"]
    lines += [f"    _after.{name} = _machine.{name} if {name} is _SAME else {name}" for name in names]
    text = "\n".join([*lines, "    return _after"])
    written: dict[str, Any] = {}
    exec(text, {"_SAME": object(), "_new": object.__new__, "_kind": kind}, written)
    copier: Callable[..., Any] = written["copier"]
    return copier
