"""Without a JobManager none of its actions happens, and a new JobManager counts only what it has seen itself.

Laws 82 and 83 of every run; one pass over the journal.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from sim.checkers.story import Teller
from sim.checkers.violation import Violation, number_of
from sim.metrics.journal import Entry, Happening

NOBODY_THERE = "what only a JobManager can do does not happen while there is none"
COUNTS_ANEW = "a JobManager counts only the failures it has seen itself"

_ITS_DOING = frozenset({
    Happening.TRIGGERED, Happening.TASKS_TRIGGERED, Happening.ACKNOWLEDGED, Happening.LAST_ACKNOWLEDGED, Happening.COMPLETED,
    Happening.NOTIFIED_COMPLETE, Happening.NOTIFIED_ABORTED, Happening.JOB_RESTARTING, Happening.JOB_RESTORED, Happening.JOB_RECOVERED,
    Happening.DEPLOYMENT_FAILED, Happening.JOB_FAILED, Happening.JOB_FINISHED, Happening.GIVEN_UP, Happening.RESCALED,
})  # fmt: skip
_COMES_AND_GOES = frozenset({Happening.JOB_MANAGER_LOST, Happening.JOB_MANAGER_ELECTED})


def without_job_manager(journal: Iterable[Entry], announced_ns: Iterable[int], teller: Teller) -> Iterator[Violation]:
    """`announced_ns`: when sources were told how far they may read.  What happens in the instant of a loss or an election is let pass."""
    outages: list[tuple[int, int | None]] = []
    lost_ns: int | None = None
    for row in journal:
        if row.happening is Happening.JOB_MANAGER_LOST:
            lost_ns = row.time_ns if lost_ns is None else lost_ns
        elif row.happening is Happening.JOB_MANAGER_ELECTED and lost_ns is not None:
            outages.append((lost_ns, row.time_ns))
            lost_ns = None
        elif lost_ns is not None and lost_ns < row.time_ns and row.happening in _ITS_DOING:
            frame = teller.story(lambda other, row=row: other == row or other.happening in _COMES_AND_GOES)  # type: ignore[misc]
            yield Violation(NOBODY_THERE, row.time_ns, "the job", teller.sentence(row), frame)
    if lost_ns is not None:
        outages.append((lost_ns, None))
    for at_ns in announced_ns:
        if any(begin_ns < at_ns and (end_ns is None or at_ns < end_ns) for begin_ns, end_ns in outages):
            frame = teller.story(lambda other: other.happening in _COMES_AND_GOES)
            yield Violation(NOBODY_THERE, at_ns, "the job", "sources are told how far they may read", frame)
            return


def beyond_its_knowledge(journal: Iterable[Entry], attempts: int | None, tolerable: int, teller: Teller) -> Iterator[Violation]:
    """`attempts`: restarts that the restart strategy allows, of all and of those in its interval (None: it allows any number).

    `tolerable`: failed checkpoints in a row.  All that may have been counted is counted here: the law asks for no more than that.
    """
    restarts, failed = 0, 0  # since this JobManager took over
    frame: Collection[Happening] = (*_COMES_AND_GOES, Happening.JOB_RESTARTING, Happening.ABORTED)
    for row in journal:
        fact = ""
        if row.happening is Happening.JOB_MANAGER_ELECTED:
            restarts, failed = -1, 0  # its own restart of the job is none of these
        elif row.happening is Happening.JOB_RESTARTING:
            restarts += 1
        elif row.happening in (Happening.ABORTED, Happening.REFUSED):
            failed += 1
        elif row.happening is Happening.GIVEN_UP and attempts is not None and restarts < attempts:
            fact = f"the restart strategy gives up after {number_of(restarts, 'restart')} of {attempts}"
        elif row.happening is Happening.JOB_FAILED and not row.number and failed <= tolerable:
            fact = f"the job fails after {number_of(failed, 'failed checkpoint')}, {tolerable} may fail"
        if fact:
            yield Violation(COUNTS_ANEW, row.time_ns, "the job", fact, teller.story(lambda other: other.happening in frame))
