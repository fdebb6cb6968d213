"""What the end of a run says about a job that restarts and gets nowhere: how often, from where, why, and what to change."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from sim.protocol.progress import Restarted, fruitless

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sim.metrics.recoveries import RecoveryStats
    from sim.runtime.run.world import World

__all__ = ["ENDLESS", "endless"]

ENDLESS = "RESTARTING FOR EVER"
_OF_THE_JOB = ("task", "checkpoints")  # kinds of restarts that are nobody else's doing ...
_INJECTED = "killed"  # ... but this one
_CHANGE = {
    "flush": "write less per checkpoint, or give a request more time or attempts (storage.retry)",
    "restore": "give a request more time or attempts (storage.retry)",
    "tolerable failed checkpoints exceeded": "give checkpoints more time (checkpoint.timeout) or tolerate failures (tolerable-failed)",
}
_HANGS = "more time does not help, as tasks wait for each other: take aligned barriers"


def endless(world: World) -> str | None:
    """None: there is no such row of restarts, or somebody else's doing began it."""
    done = [row.completed_ns for row in world.stats.values() if row.status == "COMPLETED"]
    progress_ns = max((*done, *(row.time_ns for row in world.commits if row.committed), world.storage.attempts.down_until_ns), default=0)
    begun = list(world.recovery.stats.values())
    restarts = [row for row in begun if row.checkpoint >= 0]  # others were taken over by later ones, or wait for their delay
    found = fruitless([Restarted(row.failed_ns, row.checkpoint, _cause(row)) for row in restarts], progress_ns)
    if found is None or not found.cause:
        return None
    if begun[-1].running_ns >= 0 and _outlived(restarts[-found.times :], world.env.now):
        return None
    origin = f"from checkpoint {found.checkpoint}" if found.checkpoint else "from the beginning"
    hung = any(row.standstill for row in list(world.stats.values())[-found.times :])
    change = _HANGS if hung else _CHANGE.get(found.cause.partition(":")[0], "mend what fails")
    why = f"because of '{restarts[-1].what}'"
    return f"{ENDLESS}: {found.times} times in a row {origin} {why}, with nothing completed in between; {change}"


def _outlived(row: Sequence[RecoveryStats], now_ns: int) -> bool:
    """Whether the job has run since the last of these restarts for longer than ever between two, and as long again: it goes on."""
    lasted_ns = [after.failed_ns - before.running_ns for before, after in pairwise(row) if before.running_ns >= 0]
    return row[-1].running_ns >= 0 and now_ns - row[-1].running_ns > 2 * max(lasted_ns, default=0)


def _cause(row: RecoveryStats) -> str:
    """In words, without numbers: those of times differ.  Empty: not the job's own."""
    return re.sub(r"\d+(\.\d+)?", "#", row.what) if row.kind in _OF_THE_JOB and row.what != _INJECTED else ""
