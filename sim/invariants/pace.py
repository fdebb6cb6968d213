"""Invariants of the checkpoint coordinator's options: when checkpoints are triggered and end (invariants 94 to 99).

They read checkpoint statistics, and journal rows of rare events.  Events at the same time may be in any order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from sim.invariants.violation import LIFE, JournalFormatter, Violation, milliseconds, number_of, time_text
from sim.results.journal import Entry, Happening
from sim.results.tables import CheckpointStats

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
