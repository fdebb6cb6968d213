"""What the end of a run says about a job that restarts and gets nowhere: how often, from where, why, and what to change."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from sim.metrics.recoveries import RecoveryStats
from sim.protocol.recovery.progress import Restarted, fruitless
from sim.runtime.context import Context

ENDLESS = "RESTARTING FOR EVER"
_OF_THE_JOB = ("task", "checkpoints")  # kinds of restarts that the job causes itself ...
_INJECTED = "killed"  # ... but this one
_CHANGE = {
    "flush": "write less per checkpoint, or give a request more time or attempts (storage.retry)",
    "restore": "give a request more time or attempts (storage.retry)",
    "tolerable failed checkpoints exceeded": "give checkpoints more time (checkpoint.timeout) or tolerate failures (tolerable-failed)",
}
_HANGS = "more time does not help, as tasks wait for each other: take aligned barriers"


def endless(context: Context, recoveries: Iterable[RecoveryStats]) -> str | None:
    """The sentence about a job that restarts for ever.  None: it does not, or an injected fault began it."""
    done = [row.completed_ns for row in context.stats.values() if row.status == "COMPLETED"]
    commits = (row.time_ns for row in context.commits if row.committed)
    progress_ns = max((*done, *commits, context.storage.attempts.down_until_ns), default=0)
    begun = list(recoveries)
    restarts = list(_restored(begun))
    found = fruitless([Restarted(row.failed_ns, row.checkpoint, own=_own(origin)) for row, origin in restarts], progress_ns)
    if found is None:
        return None
    if begun[-1].running_ns >= 0 and _outlived([row for row, _ in restarts[-found.times :]], context.env.now):
        return None
    where = f"from checkpoint {found.checkpoint}" if found.checkpoint else "from the beginning"
    reasons = [origin.what for _, origin in restarts[-found.times :]]
    hung = any(row.standstill for row in list(context.stats.values())[-found.times :])
    why, change = _causes(reasons), _HANGS if hung else _changes(reasons)
    return f"{ENDLESS}: {found.times} times in a row {where} because of {why}, with nothing completed in between; {change}"


def _restored(begun: Iterable[RecoveryStats]) -> Iterator[tuple[RecoveryStats, RecoveryStats]]:
    """Each restart that went back to a checkpoint, and the one it all began with.

    What fails while a job restarts takes its restart over: a task that does not stop loses its TaskManager, for one.
    """
    origin = None
    for row in begun:
        origin = origin or row
        if row.checkpoint >= 0:
            yield row, origin
            origin = None


def _causes(reasons: Sequence[str]) -> str:
    """The causes of restarts, the most frequent first, each in its latest wording.  Causes that differ only in numbers count as one."""
    last = {_plain(reason): reason for reason in reasons}
    if len(last) == 1:
        return f"'{reasons[-1]}'"
    return " and ".join(f"{times} x '{last[plain]}'" for plain, times in Counter(map(_plain, reasons)).most_common())


def _changes(reasons: Iterable[str]) -> str:
    known = [_CHANGE.get(reason.partition(":")[0], "mend what fails") for reason, _ in Counter(map(_plain, reasons)).most_common()]
    return ", and ".join(dict.fromkeys(known))


def _outlived(row: Sequence[RecoveryStats], now_ns: int) -> bool:
    """Whether the job has run since the last of these restarts for longer than ever between two, and as long again: it goes on."""
    lasted_ns = [after.failed_ns - before.running_ns for before, after in pairwise(row) if before.running_ns >= 0]
    return row[-1].running_ns >= 0 and now_ns - row[-1].running_ns > 2 * max(lasted_ns, default=0)


def _own(row: RecoveryStats) -> bool:
    return row.kind in _OF_THE_JOB and row.what != _INJECTED


def _plain(reason: str) -> str:
    """The cause without its numbers, which differ between restarts."""
    return re.sub(r"\d+(\.\d+)?", "#", reason)
