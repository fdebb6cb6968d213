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
        "a busy source is idle",
        "a source reads beyond its limit",
        "a watermark goes back",
        "a watermark is ahead of the records",
        "a watermark is the largest of the inputs",
        "a watermark overtakes its records",
        "an active channel stays idle",
        "an idle channel counts",
        "bundles stay behind the barrier",
        "records of later windows leave",
        "records stay in the window that ends",
        "sessions do not wait",
        "slices are not kept",
        "the last windows never end",
        "the limit follows the first",
        "timers are forgotten at a restore",
        "timers are not armed again",
        "windows end at other times",
        # coordinator
        "checkpoints overlap",
        "every failure is tolerated",
        "metadata is not written",
        "no checkpoint expires",
        "no pause is kept",
        "pending checkpoints survive a failure",
        "the interval of the backlog is ignored",
        # recovery
        "a lost disk is read",
        "a restart does not wait for cancelled tasks",
        "an old local copy is restored",
        "attempts are not counted",
        "cancelled tasks go on",
        "checkpoints do not resume",
        "initializing tasks count as running",
        "other regions restart too",
        "slots are there at once",
        # ends
        "a restarted task stays finished",
        "checkpoints go on while a job stops",
        "every stop drains",
        "no final checkpoint is triggered",
        "no stop drains",
        "the final checkpoint is never known",
        "timers fire behind the end",
        # state
        "a changelog is truncated too far",
        "a restored log is forgotten",
        "a snapshot lacks a stored table",
        "half of the heap is written",
        "in flight data is not read by a rescaled task",
        "no key expires",
        "restored keys are young",
        "restored keys expire at once",
        "some updates are forgotten",
        "the base need not be complete",
        "the log is not read",
        "the materialisation is left out",
        "the oldest log file is left out",
        "windows are not state",
        # files
        "a file is cut short",
        "an unclaimed snapshot is deleted",
        "files of aborted snapshots stay",
        "metadata stays",
        "nothing is deleted",
        "private files stay",
        "shared files stay",
        "the first checkpoint is not full",
    )
)
"""Bugs that no checker notices in their least worlds."""
