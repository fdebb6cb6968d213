"""Invariants of the coordinator: order of checkpoints, state TTL, stop-with-savepoint, and the loss of the JobManager."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from sim.invariants.violation import LIFE, JournalFormatter, Violation, count_is, number_of, seconds
from sim.results.journal import Entry, Happening
from sim.results.tables import CheckpointStats

# ---- The coordinator: ids increase, and a checkpoint completes after all its acknowledgements.
#
# Laws 18, 22 and 23. One pass over the journal checks all of them.

IDS_GROW = "checkpoint ids increase from trigger to trigger, also across restarts"
ALL_ACKNOWLEDGED = "a checkpoint completes only after all its tasks have acknowledged it and its metadata is durable"
ENDS_ONCE = "a checkpoint either completes or fails, and only once"
NOTIFIED_AFTERWARDS = "tasks are notified of a completed checkpoint only after its completion"
RETAINED = "at most the configured number of completed checkpoints is retained, and the latest one always is"

WATCHED = frozenset(
    {
        Happening.TRIGGERED,
        Happening.ACKNOWLEDGED,
        Happening.LAST_ACKNOWLEDGED,
        Happening.COMPLETED,
        Happening.ABORTED,
        Happening.NOTIFIED_COMPLETE,
    }
)
"""Kinds of journal rows that these invariants read."""


def coordinator_errors(
    journal: Iterable[Entry], stats: Mapping[int, CheckpointStats], formatter: JournalFormatter
) -> Iterator[Violation]:
    """Check the order of triggers, acknowledgements, completions and notifications of all checkpoints."""
    newest = 0
    awaited: dict[int, int] = {}  # checkpoint -> number of tasks that must acknowledge
    acknowledged: dict[int, set[int]] = {}
    durable: set[int] = set()  # checkpoints whose metadata is written: all tasks have acknowledged
    ended: dict[int, Happening] = {}
    for row in journal:
        happening, checkpoint = row.happening, row.checkpoint
        if happening not in WATCHED:
            continue

        def broken(law: str, fact: str, row: Entry = row) -> Violation:
            return Violation(
                law, row.time_ns, f"checkpoint {row.checkpoint}", fact, formatter.about(row.checkpoint, (), LIFE)
            )

        if happening is Happening.ACKNOWLEDGED:
            if checkpoint not in durable and checkpoint not in ended:
                acknowledged.setdefault(checkpoint, set()).add(row.task)
        elif happening is Happening.TRIGGERED:
            if checkpoint <= newest:
                yield broken(IDS_GROW, f"it is triggered after checkpoint {newest}")
            newest = max(newest, checkpoint)
            awaited[checkpoint] = stats[checkpoint].tasks - row.number
        elif happening is Happening.LAST_ACKNOWLEDGED:
            durable.add(checkpoint)
            missing = awaited.get(checkpoint, 0) - len(acknowledged.pop(checkpoint, ()))
            if missing:
                yield broken(
                    ALL_ACKNOWLEDGED,
                    f"its metadata is written although {missing} of {awaited[checkpoint]} tasks are missing",
                )
        elif happening is Happening.NOTIFIED_COMPLETE:
            if ended.get(checkpoint) is not Happening.COMPLETED:
                yield broken(NOTIFIED_AFTERWARDS, "tasks are notified that it is complete, but it is not")
        else:
            if happening is Happening.COMPLETED and checkpoint not in durable:
                yield broken(ALL_ACKNOWLEDGED, "it completes although no metadata was written")
            if checkpoint in ended:
                yield broken(ENDS_ONCE, f"it is {happening.value} after it was {ended[checkpoint].value}")
            ended[checkpoint] = happening
            acknowledged.pop(checkpoint, None)


def too_many_retained(
    retained: Sequence[int], limit: int, latest: int, time_ns: int, formatter: JournalFormatter
) -> Violation | None:
    """Return the violation if too many checkpoints are retained at the end of a run, or the latest one is not; else None.

    `retained`: ids.  `limit`: maximum number.  `latest`: id of the latest completed checkpoint that is not a savepoint, or 0.
    """
    if len(retained) <= limit and (latest == 0 or latest in retained):
        return None
    kept = ", ".join(map(str, retained)) or "none"
    story = formatter.story(
        lambda row: row.happening is Happening.COMPLETED and (row.checkpoint in retained or row.checkpoint == latest)
    )
    return Violation(
        RETAINED,
        time_ns,
        "the completed checkpoints",
        f"retained: {kept}; at most {limit} allowed, {latest} required",
        story,
    )


# ---- State TTL: a key expires a fixed time after its last write, also across snapshots, restores and rescales (law 87).
#
# A cohort is a set of keys whose last writes are evenly distributed between two times.

AGED = "a key expires exactly its time to live after its last write, also after a restore"

Cohort = tuple[int, int, int]
"""(earliest last write [ns], latest last write [ns], size in bytes)."""

_MAX_ROUNDINGS_BETWEEN_CHECKS = 300
"""Maximum number of times that the size of a cohort is rounded between two checks."""


def bytes_written_after(cohorts: Sequence[Cohort], horizon_ns: int) -> int:
    """Return the number of bytes whose last write was after `horizon_ns`."""
    total = 0
    for begin_ns, end_ns, size_bytes in cohorts:
        if horizon_ns <= begin_ns:
            total += size_bytes
        elif horizon_ns < end_ns:
            total += size_bytes * (end_ns - horizon_ns) // (end_ns - begin_ns)
    return total


def _expired(cohort: Cohort, horizon_ns: int) -> int:
    """Return the number of bytes of a cohort whose last write was up to `horizon_ns`, rounded down."""
    begin_ns, end_ns, size_bytes = cohort
    if horizon_ns <= begin_ns:
        return 0
    return size_bytes if horizon_ns >= end_ns else size_bytes * (horizon_ns - begin_ns) // (end_ns - begin_ns)


def _bytes_of_a_ns(cohort: Cohort) -> int:
    """Return the bytes of a cohort per nanosecond, rounded up: the size of one rounding error."""
    begin_ns, end_ns, size_bytes = cohort
    return max(1, -(-size_bytes // max(1, end_ns - begin_ns)))


def split_cohorts(parts: Sequence[tuple[Sequence[Cohort], Fraction]]) -> tuple[Cohort, ...]:
    """Return the cohorts of a subtask that is restored from several others.

    `parts`: (cohorts, share that the subtask receives) of each of them.
    """
    return tuple(
        sorted((begin, end, int(size_bytes * share)) for ages, share in parts for begin, end, size_bytes in ages)
    )


def ttl_errors(
    before: Sequence[Cohort],
    before_ns: int,
    after: Sequence[Cohort],
    now_ns: int,
    ttl_ns: int,
    added_bytes: int,
    rewritten_bytes: int,
) -> str | None:
    """Compare the cohorts of a task with those of an earlier time.  Return what is wrong, or None.

    `before`, `after`: cohorts at `before_ns` and at `now_ns`.  `added_bytes`, `rewritten_bytes`: upper bounds of the bytes
    of new and of updated keys since `before_ns`.
    """
    horizon_ns = now_ns - ttl_ns
    oldest_ns = min(
        (cohort[0] for cohort in after if _expired(cohort, horizon_ns) > _bytes_of_a_ns(cohort)), default=now_ns
    )
    if oldest_ns < horizon_ns:
        return (
            f"keys are there that were last written {seconds(now_ns - oldest_ns)} ago, and live for {seconds(ttl_ns)}"
        )
    ageing = [cohort for cohort in before if cohort[0] < horizon_ns and before_ns - ttl_ns < cohort[1]]
    slack = (_MAX_ROUNDINGS_BETWEEN_CHECKS + len(before) + len(after)) * max(map(_bytes_of_a_ns, ageing), default=1)
    survived, live = bytes_written_after(before, horizon_ns), sum(size_bytes for _, _, size_bytes in after)
    since = f"at {seconds(before_ns)} there were {number_of(sum(size for _, _, size in before), 'byte')}, of which {survived} have not expired"
    if live < survived - slack:
        return f"keys have expired too early: {number_of(live, 'byte')} are left; {since}"
    # an updated entry may be larger than the average entry
    written = added_bytes + 2 * rewritten_bytes + slack
    young = sum(size_bytes for begin, _, size_bytes in after if begin >= before_ns)
    if young > written:
        return f"keys are young again: {number_of(young, 'byte')} count as written since {seconds(before_ns)}, at most {written} were"
    newest = before[-1][2] if before else 0  # later writes may have been merged into the newest cohort
    if live > survived + newest + written:
        return f"keys that must have expired are there: {number_of(live, 'byte')}, at most {written} written since; {since}"
    return None


# ---- Stop-with-savepoint ends a job, and a finished job releases its resources (laws 92 and 93).

NOTHING_AFTER_STOP = "after a stop-with-savepoint there is no periodic checkpoint, no restart and no record"
GIVEN_BACK = "a job that has finished has given back what it used: threads, and room on disks"


def activity_after_stop(
    journal: Iterable[Entry], stats: Mapping[int, CheckpointStats], formatter: JournalFormatter
) -> Iterator[Violation]:
    """Check that nothing but the end of the job follows a stop-with-savepoint.  Report the first violation.

    Two things are allowed.  When all tasks of a job that is drained have reached the end of their data, one last checkpoint
    is triggered (SchedulerBase#notifyEndOfData).  If the JobManager is lost, the stop is forgotten: the next JobManager
    restores the latest completed checkpoint, which is not the savepoint.
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
            yield _violation(row, over or under_way, formatter)
            return


def _too_late(row: Entry, under_way: int, over: int, stats: Mapping[int, CheckpointStats]) -> bool:
    """Return whether a row must not happen after a stop.

    `under_way`: id of the stop-with-savepoint in progress, or 0.  `over`: id of the completed one, or 0.
    """
    if row.happening is Happening.TRIGGERED:
        return bool(under_way) and not stats[row.checkpoint].savepoint_format
    return bool(over) and row.happening is Happening.JOB_RESTORED


def _violation(row: Entry, savepoint: int, formatter: JournalFormatter) -> Violation:
    """Return the violation by a row that follows a stop-with-savepoint."""
    kinds = (Happening.JOB_RESTORED, Happening.TASK_FAILED, Happening.JOB_RESTARTING)
    story = formatter.story(
        lambda other: (
            other == row
            or (other.checkpoint == savepoint and other.happening in (Happening.TRIGGERED, Happening.COMPLETED))
            or (other.happening in kinds and other.time_ns <= row.time_ns)
        )
    )[-8:]
    return Violation(
        NOTHING_AFTER_STOP,
        row.time_ns,
        f"savepoint {savepoint}, with which the job stops",
        formatter.sentence(row),
        story,
    )


def outputs_after_end(
    time_ns: int, savepoint: int, sources: Iterable[tuple[int, int, int]], formatter: JournalFormatter
) -> Iterator[Violation]:
    """Check that sources of a stopped job emitted exactly the records before the savepoint.  Report the first violation.

    `sources`: (task, records emitted at its cut, records emitted in total).
    """
    for task, at_cut, served in sources:
        if served != at_cut:
            story = formatter.cut(savepoint, {task})
            how = "behind" if served > at_cut else "less than in"
            fact = f"{count_is(abs(served - at_cut), 'record')} emitted {how} savepoint {savepoint}"
            yield Violation(NOTHING_AFTER_STOP, time_ns, formatter.task(task), fact, story)
            return


def leaked_resources(time_ns: int, in_use: Iterable[str]) -> Iterator[Violation]:
    """Yield a violation if a finished job still uses resources.  `in_use`: clauses on what is in use."""
    for what in in_use:
        yield Violation(GIVEN_BACK, time_ns, "the job", f"it has finished, and {what}")
        return


# ---- While there is no JobManager, none of its actions happens, and a new JobManager counts failures from 0.
#
# Laws 82 and 83.

NO_ACTION_WITHOUT_JOB_MANAGER = "without a JobManager none of its actions happens"
COUNTS_ANEW = "a JobManager counts only failures since its election"

_JOB_MANAGER_ACTIONS = frozenset(
    {
        Happening.TRIGGERED,
        Happening.TASKS_TRIGGERED,
        Happening.ACKNOWLEDGED,
        Happening.LAST_ACKNOWLEDGED,
        Happening.COMPLETED,
        Happening.NOTIFIED_COMPLETE,
        Happening.NOTIFIED_ABORTED,
        Happening.JOB_RESTARTING,
        Happening.JOB_RESTORED,
        Happening.JOB_RECOVERED,
        Happening.DEPLOYMENT_FAILED,
        Happening.JOB_FAILED,
        Happening.JOB_FINISHED,
        Happening.GIVEN_UP,
        Happening.RESCALED,
    }
)
_LEADER_CHANGES = frozenset({Happening.JOB_MANAGER_LOST, Happening.JOB_MANAGER_ELECTED})


def without_job_manager(journal: Iterable[Entry], formatter: JournalFormatter) -> Iterator[Violation]:
    """Yield a violation for each JobManager action while no JobManager is running.

    Actions at exactly the time of a loss or an election are allowed.
    """
    lost_ns: int | None = None
    for row in journal:
        if row.happening is Happening.JOB_MANAGER_LOST:
            lost_ns = row.time_ns if lost_ns is None else lost_ns
        elif row.happening is Happening.JOB_MANAGER_ELECTED:
            lost_ns = None
        elif lost_ns is not None and lost_ns < row.time_ns and row.happening in _JOB_MANAGER_ACTIONS:
            frame = formatter.story(lambda other, row=row: other == row or other.happening in _LEADER_CHANGES)  # type: ignore[misc]
            yield Violation(NO_ACTION_WITHOUT_JOB_MANAGER, row.time_ns, "the job", formatter.sentence(row), frame)


def restarts_counted_across_leaders(
    journal: Iterable[Entry], attempts: int | None, tolerable: int, formatter: JournalFormatter
) -> Iterator[Violation]:
    """Check that no JobManager gives up because of failures before its election.

    The check counts every failure that Flink might count, so that it does not report correct runs.

    `attempts`: number of restarts that the strategy allows, or None if unlimited.  `tolerable`: tolerable number of
    consecutive checkpoint failures.
    """
    restarts, failed = 0, 0  # since the election of this JobManager
    frame: Collection[Happening] = (*_LEADER_CHANGES, Happening.JOB_RESTARTING, Happening.ABORTED)
    for row in journal:
        fact = ""
        if row.happening is Happening.JOB_MANAGER_ELECTED:
            restarts, failed = -1, 0  # the restart by the new JobManager itself does not count
        elif row.happening is Happening.JOB_RESTARTING:
            restarts += 1
        elif row.happening in (Happening.ABORTED, Happening.REFUSED):
            failed += 1
        elif row.happening is Happening.GIVEN_UP and attempts is not None and restarts < attempts:
            fact = f"the restart strategy gives up after {number_of(restarts, 'restart')} of {attempts}"
        elif row.happening is Happening.JOB_FAILED and not row.number and failed <= tolerable:
            fact = f"the job fails after {number_of(failed, 'failed checkpoint')}, {tolerable} may fail"
        if fact:
            yield Violation(
                COUNTS_ANEW, row.time_ns, "the job", fact, formatter.story(lambda other: other.happening in frame)
            )
