"""All bugs, part by part."""

from __future__ import annotations

from tests.injections import (
    channels,
    coordinator,
    ends,
    event_time,
    files,
    in_flight,
    limits,
    recovery,
    restores,
    sinks,
    state,
)
from tests.injections.injection import Injection

INJECTIONS: dict[str, Injection] = {
    injection.name: injection
    for part in (channels, in_flight, event_time, coordinator, recovery, restores, ends, state, files, sinks, limits)
    for injection in part.INJECTIONS
}
"""Each bug by its name."""
