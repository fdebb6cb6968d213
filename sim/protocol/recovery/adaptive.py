"""The adaptive scheduler: a job that runs with the slots there are (AdaptiveScheduler; FLIP-160, FLIP-291, FLIP-461, FLIP-472).

After a failure the whole job waits for resources.  With all slots it starts at once.  With fewer it waits until these are stable, and
starts with as many subtasks as there are slots.  When slots come back it is rescaled after a cooldown: at once if all are there, else when
these are stable.  Flink 2.x rescales it with the next completed checkpoint.

  WaitingForResources --all slots, or stable--> Executing --slots are back, and a checkpoint--> Restarting --> Executing
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from sim.model.faults import Restart


class Start(NamedTuple):
    """The outcome of waiting for resources."""

    at_ns: int
    complete: bool  # with all slots; False: with those that are there


def started(now: int, returns_ns: Collection[int], restart: Restart) -> Start:
    """When a job starts that waits for resources since `now`, and lacks slots that return at these times (WaitingForResources)."""
    complete_ns = max(returns_ns, default=now)
    stable_ns = now + (0 if restart.reactive else restart.stabilization_ns)
    return Start(max(now, complete_ns), complete=True) if complete_ns <= stable_ns else Start(stable_ns, complete=False)


def rescalable_ns(begun_ns: int, returns_ns: Collection[int], restart: Restart) -> int:
    """When a job may be rescaled that has executed since `begun_ns` without the slots that return at these times.

    DefaultStateTransitionManager: cooldown, idling, stabilizing, stabilized.
    """
    cool_ns = begun_ns + restart.cooldown_ns
    first_ns, complete_ns = max(cool_ns, min(returns_ns)), max(cool_ns, *returns_ns)
    return min(complete_ns, first_ns + restart.rescale_stabilization_ns)
