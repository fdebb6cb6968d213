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
        "channel state is not read",
        "half of the channel state is written",
        "late input is not written",
        "the deadline converts no barrier",
        # event time
        "a source reads beyond its limit",
        "slices are not kept",
        "the last windows never end",
        "the limit follows the first",
        # coordinator
        "metadata is not written",
        # recovery
        "an old local copy is restored",
        # ends
        "a restarted task stays finished",
        "every stop drains",
        "no final checkpoint is triggered",
        "no stop drains",
        "the final checkpoint is never known",
        "timers fire behind the end",
        # state
        "in flight data is not read by a rescaled task",
        "the base need not be complete",
        "the log is not read",
        # files
        "a file is cut short",
        "an unclaimed snapshot is deleted",
        "files of aborted snapshots stay",
        "shared files stay",
        "the first checkpoint is not full",
    )
)
"""Bugs that no checker notices in their least worlds."""
