"""Invariants of the coordinator: order and times of checkpoints, state TTL, stop-with-savepoint, and the loss of the JobManager."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import NamedTuple

from sim.invariants.violation import (
    LIFE,
    JournalFormatter,
    Violation,
    count_is,
    milliseconds,
    number_of,
    seconds,
    time_text,
)
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


# ---- Invariants of the checkpoint coordinator's options: when checkpoints are triggered and end (invariants 94 to 99).
# They read checkpoint statistics, and journal rows of rare events.  Events at the same time may be in any order.

MAX_CONCURRENT_LAW = "no more checkpoints are pending than max-concurrent allows"
MIN_PAUSE_LAW = "a checkpoint begins at least min-pause after the previous completion"
TIMEOUT_LAW = "a checkpoint expires exactly at its timeout"
RESTART_ABORTS_LAW = "all pending checkpoints are aborted before restarted tasks are restored"
TOLERABLE_FAILURES_LAW = "the job fails with the first failed checkpoint that is not tolerable"
BACKLOG_INTERVAL_LAW = "while a source processes a backlog, checkpoints follow the backlog interval"

EVENT_KINDS = frozenset(
    {
        Happening.TRIGGERED,
        Happening.COMPLETED,
        Happening.ABORTED,
        Happening.JOB_FAILED,
        Happening.JOB_RESTARTING,
        Happening.JOB_RESTORED,
        Happening.JOB_MANAGER_LOST,
        Happening.JOB_MANAGER_ELECTED,
        Happening.END_OF_DATA,
        Happening.TASK_RESTORED,
    }
)
"""Kinds of journal rows that these invariants read."""
_COUNTED_FAILURES = frozenset(
    {
        "IO_EXCEPTION",
        "CHECKPOINT_DECLINED",
        "CHECKPOINT_ASYNC_EXCEPTION",
        "CHECKPOINT_EXPIRED",
        "FINALIZE_CHECKPOINT_FAILURE",
    }
)
"""Reasons of failures that count towards the tolerable ones (Flink: CheckpointFailureManager#checkFailureReason)."""
_NEVER_NS = 1 << 62
"""A time after all others [ns]."""
_MAX_EVIDENCE_ROWS = 12
_MAX_REPORT_DELAY_NS = 100_000_000
"""Maximum delay until a restarted source reports its backlog [ns]."""


class TimingOptions(NamedTuple):
    """The checkpoint options that determine when checkpoints are triggered and end."""

    max_concurrent: int
    min_pause_ns: int
    timeout_ns: int
    tolerable: int  # tolerable number of consecutive failures
    call_ns: int = 0  # time from the trigger timestamp of a checkpoint to the start of its timeout
    # interval while a source processes a backlog; 0: no checkpoints then, None: the usual interval
    backlog_ns: int | None = None


def checkpoint_timing_errors(
    stats: Mapping[int, CheckpointStats],
    events: Sequence[Entry],
    options: TimingOptions,
    tasks: int,
    now_ns: int,
    formatter: JournalFormatter,
) -> Iterator[Violation]:
    """Check the times at which checkpoints begin and end.  Yield the first violation of each invariant.

    `events`: journal rows of the kinds `EVENT_KINDS`.  `tasks`: number of tasks of the job.  `now_ns`: end of the run.
    """
    run = _Timing(stats, events, options, tasks, now_ns, formatter)
    for violations in (
        run.max_concurrent_violations(),
        run.min_pause_violations(),
        run.timeout_violations(),
        run.restart_violations(),
        run.tolerable_failures_violations(),
    ):
        yield from islice(violations, 1)


def _end_ns(row: CheckpointStats) -> int:
    """Return the time at which a checkpoint completed or failed, or `_NEVER_NS` if it is in progress."""
    ends = [at_ns for at_ns in (row.completed_ns, row.failed_ns) if at_ns >= 0]
    return min(ends, default=_NEVER_NS)


@dataclass(frozen=True, slots=True)
class _Timing:
    """Checks the checkpoints of a run.  Each method yields the violations of one invariant."""

    stats: Mapping[int, CheckpointStats]
    events: Sequence[Entry]
    options: TimingOptions
    tasks: int
    now_ns: int
    formatter: JournalFormatter

    def max_concurrent_violations(self) -> Iterator[Violation]:
        """Check max-concurrent.  A savepoint may exceed it.  While it is pending, it counts for later checkpoints."""
        under_way: list[tuple[int, CheckpointStats]] = []
        for number, row in sorted(self.stats.items()):
            under_way = [(other, theirs) for other, theirs in under_way if _end_ns(theirs) > row.trigger_ns]
            if not row.savepoint_format and len(under_way) >= self.options.max_concurrent:
                others = ", ".join(str(other) for other, _ in under_way)
                fact = f"it begins while {others} {'is' if len(under_way) == 1 else 'are'} under way, {self.options.max_concurrent} may be at a time"
                yield self._violation(
                    MAX_CONCURRENT_LAW, row.trigger_ns, number, fact, {number, *(other for other, _ in under_way)}
                )
            under_way.append((number, row))

    def min_pause_violations(self) -> Iterator[Violation]:
        """Check min-pause.

        The pause does not apply to the final checkpoint.  A new JobManager does not know earlier completions.
        """
        if not self.options.min_pause_ns:
            return
        completed: list[tuple[int, int]] = []  # (time [ns], checkpoint)
        ended: set[int] = set()  # tasks whose data has ended
        for row in self.events:
            if row.happening is Happening.COMPLETED:
                completed.append((row.time_ns, row.checkpoint))
            elif row.happening is Happening.JOB_MANAGER_LOST:
                completed.clear()
            elif row.happening is Happening.END_OF_DATA:
                ended.add(row.task)
            elif row.happening is Happening.TASK_RESTORED:
                ended.discard(row.task)
            elif (
                row.happening is Happening.TRIGGERED
                and not self.stats[row.checkpoint].savepoint_format
                and len(ended) < self.tasks
            ):
                before_ns, before = next(
                    ((end_ns, other) for end_ns, other in reversed(completed) if end_ns < row.time_ns), (-1, -1)
                )
                if before >= 0 and row.time_ns - before_ns < self.options.min_pause_ns:
                    after, pause = milliseconds(row.time_ns - before_ns), milliseconds(self.options.min_pause_ns)
                    fact = f"it begins {after} after checkpoint {before} is complete, the pause is {pause}"
                    yield self._violation(MIN_PAUSE_LAW, row.time_ns, row.checkpoint, fact, {before, row.checkpoint})

    def timeout_violations(self) -> Iterator[Violation]:
        """Check the timeout.

        A checkpoint whose metadata is being written does not expire.  While the coordinator writes the metadata of another
        checkpoint, it holds its lock, so expiry is delayed.
        """
        timeout = milliseconds(self.options.timeout_ns)
        for number, row in self.stats.items():
            begun_ns = row.trigger_ns + self.options.call_ns
            due_ns, end_ns = begun_ns + self.options.timeout_ns, min(_end_ns(row), self.now_ns)
            if row.failure == "CHECKPOINT_EXPIRED" and row.failed_ns < due_ns:
                fact = f"it expires after {milliseconds(row.failed_ns - begun_ns)}, the timeout is {timeout}"
                yield self._violation(TIMEOUT_LAW, row.failed_ns, number, fact, {number})
            is_acknowledged = row.acknowledged >= row.tasks
            waits_until_ns = row.latest_ack_ns if is_acknowledged else end_ns
            if waits_until_ns > due_ns and waits_until_ns > self._metadata_written_ns(number, due_ns):
                waited = milliseconds(waits_until_ns - begun_ns)
                fact = f"it waits for acknowledgements for {waited}, the timeout is {timeout}"
                yield self._violation(TIMEOUT_LAW, due_ns, number, fact, {number})

    def _metadata_written_ns(self, number: int, at_ns: int) -> int:
        """Return the first time from `at_ns` on at which no other checkpoint writes metadata."""
        for other, row in sorted(self.stats.items(), key=lambda item: item[1].latest_ack_ns):
            if other != number and row.acknowledged >= row.tasks and row.latest_ack_ns <= at_ns:
                at_ns = max(at_ns, _end_ns(row))
        return at_ns

    def restart_violations(self) -> Iterator[Violation]:
        """Check that no checkpoint from before a restart is pending after it."""
        under_way: set[int] = set()
        restart: Entry | None = None  # latest restart, or None if no checkpoint from before it is pending
        for row in self.events:
            if restart is not None and row.time_ns > restart.time_ns:
                number = min(under_way)
                fact = f"it began before restart {restart.number}, and is under way behind it"
                yield self._violation(RESTART_ABORTS_LAW, restart.time_ns, number, fact, {number})
                return
            if row.happening is Happening.TRIGGERED:
                under_way.add(row.checkpoint)
            elif row.happening is Happening.JOB_RESTORED:
                restart = row
            elif row.happening in (Happening.COMPLETED, Happening.ABORTED):
                under_way.discard(row.checkpoint)
            if not under_way:
                restart = None

    def tolerable_failures_violations(self) -> Iterator[Violation]:
        """Check that the job fails as soon as more checkpoints failed in a row than are tolerable.

        Savepoints, and checkpoints that are older than the latest completed one, do not count.
        """
        failed: list[int] = []
        latest_completed, exceeded_ns = 0, _NEVER_NS
        for row in self.events:
            if row.time_ns > exceeded_ns:
                fact = f"{number_of(len(failed), 'checkpoint')} in a row failed, {self.options.tolerable} may, and the job goes on"
                yield self._violation(TOLERABLE_FAILURES_LAW, exceeded_ns, failed[-1], fact, set(failed[-4:]))
                return
            if row.happening in (Happening.JOB_FAILED, Happening.JOB_MANAGER_LOST, Happening.JOB_MANAGER_ELECTED):
                failed, exceeded_ns = [], _NEVER_NS
            elif row.happening is Happening.COMPLETED and row.checkpoint > latest_completed:
                failed, exceeded_ns, latest_completed = [], _NEVER_NS, row.checkpoint
            elif (
                row.happening is Happening.ABORTED
                and row.checkpoint > latest_completed
                and row.detail in _COUNTED_FAILURES
            ):
                if not self.stats[row.checkpoint].savepoint_format:
                    failed.append(row.checkpoint)
                    exceeded_ns = row.time_ns if len(failed) == self.options.tolerable + 1 else exceeded_ns

    def _violation(self, law: str, time_ns: int, checkpoint: int, fact: str, about: Collection[int]) -> Violation:
        """Return a violation by a checkpoint.  The evidence is about the checkpoints `about`, and failures of the job."""
        of_job = (Happening.JOB_RESTARTING, Happening.JOB_FAILED)
        evidence = self.formatter.story(
            lambda row: (row.checkpoint in about and row.happening in LIFE) or row.happening in of_job
        )
        return Violation(law, time_ns, f"checkpoint {checkpoint}", fact, evidence[-_MAX_EVIDENCE_ROWS:])


def excess_triggers_in_backlog(
    begun_ns: int, triggered_ns: Sequence[int], until_ns: int, options: TimingOptions, *, first: bool
) -> Violation | None:
    """Return the violation if too many checkpoints are triggered while a source processes a backlog, or None.

    Only the number is checked, because delayed trigger requests are processed later, without a pause between them.
    `begun_ns`: start of the attempt.  `until_ns`: last trigger of the attempt while a source processed a backlog, -1 if
    there is none.  `first`: whether it is the first attempt; sources of a restarted job report their backlog with a delay.
    """
    if options.backlog_ns is None or until_ns < begun_ns:
        return None
    before_report = 0 if first else (_MAX_REPORT_DELAY_NS // options.backlog_ns + 1 if options.backlog_ns else 1)
    max_triggers = 2 + before_report + ((until_ns - begun_ns) // options.backlog_ns if options.backlog_ns else 0)
    triggers = sum(begun_ns <= at_ns <= until_ns for at_ns in triggered_ns)
    if triggers <= max_triggers:
        return None
    what = f"its interval is {milliseconds(options.backlog_ns)}" if options.backlog_ns else "none may then"
    fact = f"a source reads a backlog from {time_text(begun_ns)} to {time_text(until_ns)}: {number_of(triggers, 'checkpoint')} began, {what}"
    return Violation(BACKLOG_INTERVAL_LAW, until_ns, "the coordinator", fact)
