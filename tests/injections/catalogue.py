"""All bugs, part by part, and those that no checker notices yet."""

from __future__ import annotations

from tests.injections import (
    channels,
    coordinator,
    ends,
    event_time,
    files,
    in_flight,
    recovery,
    restores,
    sinks,
    state,
)
from tests.injections.injection import Injection

INJECTIONS: dict[str, Injection] = {
    injection.name: injection
    for part in (channels, in_flight, event_time, coordinator, recovery, restores, ends, state, files, sinks)
    for injection in part.INJECTIONS
}
"""Each bug by its name."""

UNNOTICED: frozenset[str] = frozenset()
"""Bugs that no checker notices in their least worlds."""
