"""All bugs, room by room, and those that no checker notices yet."""

from __future__ import annotations

from tests.injections import channels, coordinator, ends, event_time, files, in_flight, recovery, sinks, state
from tests.injections.injection import Injection

__all__ = ["INJECTIONS", "UNNOTICED"]

INJECTIONS: dict[str, Injection] = {
    injection.name: injection
    for room in (channels, in_flight, event_time, coordinator, recovery, ends, state, files, sinks)
    for injection in room.INJECTIONS
}
"""Each bug by its name."""

UNNOTICED: frozenset[str] = frozenset(
    (
        # plane
        "a copy takes another channel",
        # in-flight data
        "the deadline converts no barrier",
        # event time
        "a source reads beyond its limit",
        "slices are not kept",
        "the last windows never end",
        "the limit follows the first",
    )
)
"""Bugs that no checker notices in their least worlds."""
