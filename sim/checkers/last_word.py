"""The savepoint that a job stops with is its last word, and a job that has finished gives back what it used.  Laws 92 and 93."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from sim.checkers.story import Teller
from sim.checkers.violation import Violation, count_is
from sim.metrics.journal import Entry, Happening
from sim.metrics.stats import CheckpointStats

LAST_WORD = "nothing follows the savepoint that a job stops with: no periodic checkpoint, no restart, no record"
GIVEN_BACK = "a job that has finished has given back what it used: threads, and room on disks"


def after_the_last_word(journal: Iterable[Entry], stats: Mapping[int, CheckpointStats], teller: Teller) -> Iterator[Violation]:
    """One pass over the journal; only the first fact is told.

    When all tasks of a job that drains have ended their data, one last checkpoint is triggered (SchedulerBase#notifyEndOfData).
    A JobManager that is lost takes the stop along: the next one goes on from the latest completed checkpoint, and no savepoint is one.
    """
    stops = {number for number, row in stats.items() if row.stops}
    if not stops:
        return
    under_way, over, final = 0, 0, False
    for row in journal:
        if row.checkpoint in stops and row.happening is Happening.TRIGGERED:
            under_way = row.checkpoint
        elif row.checkpoint in stops and row.happening is Happening.COMPLETED:
            over = row.checkpoint
        elif row.checkpoint == under_way and row.happening is Happening.ABORTED:
            under_way, final = 0, False
        elif row.happening is Happening.JOB_MANAGER_LOST:
            under_way, over, final = 0, 0, False
        elif row.happening is Happening.END_OF_DATA:
            final = final or row.detail == "drain"
        elif row.happening is Happening.TRIGGERED and under_way and final:
            final = False
        elif _too_late(row, under_way, over, stats):
            yield _violation(row, over or under_way, teller)
            return


def _too_late(row: Entry, under_way: int, over: int, stats: Mapping[int, CheckpointStats]) -> bool:
    if row.happening is Happening.TRIGGERED:
        return bool(under_way) and not stats[row.checkpoint].savepoint_format
    return bool(over) and row.happening is Happening.JOB_RESTORED


def _violation(row: Entry, savepoint: int, teller: Teller) -> Violation:
    turns = (Happening.JOB_RESTORED, Happening.TASK_FAILED, Happening.JOB_RESTARTING)
    story = teller.story(
        lambda other: (
            other == row
            or (other.checkpoint == savepoint and other.happening in (Happening.TRIGGERED, Happening.COMPLETED))
            or (other.happening in turns and other.time_ns <= row.time_ns)
        )
    )[-8:]
    return Violation(LAST_WORD, row.time_ns, f"savepoint {savepoint}, with which the job stops", teller.sentence(row), story)


def emitted_afterwards(time_ns: int, savepoint: int, sources: Iterable[tuple[int, int, int]], teller: Teller) -> Iterator[Violation]:
    """At the end of a job that has stopped; `sources`: (task, records at its cut, records in the end)."""
    for task, at_cut, served in sources:
        if served != at_cut:
            story = teller.cut(savepoint, {task})
            how = "behind" if served > at_cut else "less than in"
            fact = f"{count_is(abs(served - at_cut), 'record')} emitted {how} savepoint {savepoint}"
            yield Violation(LAST_WORD, time_ns, teller.task(task), fact, story)
            return


def kept_back(time_ns: int, in_use: Iterable[str]) -> Iterator[Violation]:
    """At the end of a job that has finished."""
    for what in in_use:
        yield Violation(GIVEN_BACK, time_ns, "the job", f"it has finished, and {what}")
        return
