"""When periodic checkpoints are due: a fixed-rate grid that catches up (CheckpointCoordinator.ScheduledTrigger)."""

from __future__ import annotations

from typing import Literal

from sim.protocol.value_class import value_class

NEVER = 1 << 62
"""Later than any wake-up [ns]."""
_YEAR_NS = 365 * 24 * 3600 * 1_000_000_000


def effective_interval_ns(interval_ns: int, min_pause_ns: int) -> int:
    """An interval below the pause is raised to it; a pause is a year at most."""
    return max(interval_ns, min(min_pause_ns, _YEAR_NS))


def first_trigger_delay(
    profile: Literal["2.x", "1.20", "1.15"],
    *,
    interval_ns: int,
    min_pause_ns: int,
    first_trigger_ns: int,
    restarted: bool = False,
    draw: int = 0,
) -> int:
    """From the start of the scheduler to the first trigger that is not refused [ns]; `draw` is uniform on 32 bits (1.x only).

    1.x draws uniformly from [min-pause, interval].  2.x waits for the min-pause alone, from the moment all tasks run
    (ExecutionTrackingCheckpointCoordinatorDeActivator).  In a job that was restarted the first of its tasks to run starts the scheduler
    (DefaultExecutionGraph#updateStateInternal).  Without a pause the other tasks do not run yet: a checkpoint that is triggered at once
    is refused, and an interval goes by.
    """
    interval_ns, pause_ns = effective_interval_ns(interval_ns, min_pause_ns), min(min_pause_ns, _YEAR_NS)
    if profile != "2.x":
        return pause_ns + ((draw * (interval_ns - pause_ns + 1)) >> 32)
    return (pause_ns or interval_ns) if restarted else pause_ns + first_trigger_ns


@value_class
class Grid:
    """The fixed-rate grid of periodic checkpoints, as its next point.  A late wake-up does not move it: missed points follow at once."""

    next_ns: int  # NEVER: it is parked, and a source that has caught up starts it again

    def after_firing(self, interval_ns: int | None) -> Grid:
        """`interval_ns`: the one in force now; None: no point follows."""
        return Grid(NEVER if interval_ns is None else self.next_ns + interval_ns)

    def reported(self, now: int, interval_ns: int | None) -> Grid:
        """The interval in force has changed: a shorter one begins now, a longer one does not put off what is due (FLIP-309)."""
        return self if interval_ns is None else Grid(min(self.next_ns, now + interval_ns))

    def wake_up_ns(self, now: int) -> int:
        return max(now, self.next_ns)
