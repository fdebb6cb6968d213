"""How the data of tasks ends, and what follows: drained or not, known to checkpoints, the last one at once.  Laws 113 to 116."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from sim.checkers.garbage import cleaned_up
from sim.checkers.restarts import Deployed
from sim.checkers.story import Teller
from sim.checkers.violation import Violation, at, lasting, number_of
from sim.metrics.journal import Entry, Happening
from sim.metrics.stats import CheckpointStats

AS_ASKED = "a stop with a drain lets operators finish, one without does not"
AT_ONCE = "when all data has ended, a checkpoint that holds it begins at once"
KNOWN = "a snapshot says that operators have finished from the end of their data on, and no more when the task was restarted"
SILENT = "no timer fires behind the end of the data"

TURNS = frozenset({
    Happening.TRIGGERED, Happening.REFUSED, Happening.COMPLETED, Happening.ABORTED, Happening.END_OF_DATA, Happening.TASK_FINISHED,
    Happening.JOB_RESTORED, Happening.TASK_FAILED, Happening.TASK_MANAGER_LOST, Happening.JOB_MANAGER_LOST, Happening.JOB_RESTARTING,
    Happening.RESCALED, Happening.JOB_FAILED, Happening.JOB_RECOVERED,
})  # fmt: skip
"""The rows of the journal that these laws read."""
_BREAKS_OFF = frozenset({
    Happening.TASK_FAILED, Happening.TASK_MANAGER_LOST, Happening.JOB_MANAGER_LOST, Happening.JOB_RESTARTING, Happening.RESCALED,
    Happening.JOB_FAILED, Happening.REFUSED, Happening.TRIGGERED,
})  # fmt: skip


def otherwise_than_asked(
    turns: Sequence[Entry], stats: Mapping[int, CheckpointStats], request: str, stopped: Collection[int], teller: Teller
) -> Iterator[Violation]:
    """`request`: how the job is to stop; empty: not at all.  `stopped`: sources that would have had more records."""
    stops = [number for number, row in stats.items() if row.stops and row.status == "COMPLETED"]
    for row in (row for row in turns if row.happening is Happening.END_OF_DATA):
        if row.detail == "no-drain" and request != "no-drain":
            fact = f"its data ends without a drain, {f'the stop asked for {request}' if request else 'no stop asked for that'}"
        elif row.detail == "drain" and request == "no-drain" and stops and row.task in stopped:
            fact = "it is drained, the stop was to be without"
        else:
            continue
        if not stops or row.time_ns >= stats[max(stops)].trigger_ns:
            yield _violation(AS_ASKED, row, teller.task(row.task), fact, teller)
            return


def never_final(
    turns: Iterable[Entry],
    tasks: int,
    within_ns: int,
    now_ns: int,
    deployed: Iterable[Deployed],
    teller: Teller,
    deletions: Sequence[tuple[int, int]] = (),
) -> Iterator[Violation]:
    """`within_ns`: from the end of all data, or from the end of what was under way then.

    `deletions`: see `cleaned_up`; those under way then come first.
    """
    ended: set[int] = set()
    under_way: set[int] = set()
    coming, runs = iter(deployed), True
    since: Entry | None = None
    for row in (*turns, Entry(now_ns, Happening.TASK_FINISHED)):
        if since is not None and row.time_ns - cleaned_up(since.time_ns, deletions) > within_ns:
            fact = f"all data has ended, and no checkpoint begins for {lasting(row.time_ns - since.time_ns)}"
            yield _violation(AT_ONCE, since, "the coordinator", fact, teller)
            return
        if row.happening in _BREAKS_OFF:
            since, runs = None, runs and row.happening in (Happening.REFUSED, Happening.TRIGGERED)
        if row.happening is Happening.TRIGGERED:
            under_way.add(row.checkpoint)
        elif row.happening in (Happening.COMPLETED, Happening.ABORTED):
            under_way.discard(row.checkpoint)
            since = row if since is not None else None
        elif row.happening is Happening.JOB_RESTORED:
            ended -= next(coming).tasks
        elif row.happening is Happening.END_OF_DATA and row.detail == "drain":
            ended.add(row.task)
            since = row if len(ended) == tasks and runs and not under_way else None
        elif row.happening is Happening.JOB_RECOVERED:
            runs = True


def counted_as_finished(
    turns: Iterable[Entry], deployed: Iterable[Deployed], kept: Callable[[int], int], teller: Teller
) -> Iterator[Violation]:
    """`kept`: the number of tasks whose part in a checkpoint is that of an earlier one."""
    finished: set[int] = set()
    coming = iter(deployed)
    for row in turns:
        if row.happening is Happening.TASK_FINISHED:
            finished.add(row.task)
        elif row.happening is Happening.JOB_RESTORED:
            finished -= next(coming).tasks
        elif row.happening is Happening.TRIGGERED and row.number > len(finished):
            counted = row.number - kept(row.checkpoint)
            if counted > len(finished):
                fact = f"{number_of(counted, 'task')} need not acknowledge, {len(finished)} have finished since they were restarted"
                yield _violation(KNOWN, row, f"checkpoint {row.checkpoint}", fact, teller)
                return


def unknown_end(checkpoint: int, task: int, why: str, time_ns: int, teller: Teller) -> Violation:
    fact = f"its snapshot for checkpoint {checkpoint} says that its operators go on, and {why}"
    return _violation(KNOWN, Entry(time_ns, Happening.SNAPSHOT_BEGUN, checkpoint, task), teller.task(task), fact, teller)


def late_timer(task: int, time_ns: int, due_ns: int, teller: Teller) -> Violation:
    row = Entry(time_ns, Happening.END_OF_DATA, task=task)
    return _violation(SILENT, row, teller.task(task), f"its timer of {at(due_ns)} fires, and its data has ended", teller)


def _violation(law: str, row: Entry, where: str, fact: str, teller: Teller) -> Violation:
    def matters(other: Entry) -> bool:
        if other.time_ns > row.time_ns:
            return False
        if other.happening in (Happening.END_OF_DATA, Happening.TASK_FINISHED):
            return other.task == row.task or row.task < 0
        return other.happening in TURNS and other.happening not in (Happening.REFUSED, Happening.TASK_FINISHED)

    return Violation(law, row.time_ns, where, fact, teller.story(matters)[-8:])
