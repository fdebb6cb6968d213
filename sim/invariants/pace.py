"""Invariants of the checkpoint coordinator's options: when checkpoints are triggered and end (laws 94 to 99).

They read checkpoint statistics and those kinds of journal rows that are rare.  Events at the same time may be in any order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from sim.invariants.violation import LIFE, JournalFormatter, Violation, lasting, number_of, time_text
from sim.results.journal import Entry, Happening
from sim.results.tables import CheckpointStats

AT_A_TIME = "no more checkpoints are pending than max-concurrent allows"
PAUSE = "a checkpoint begins at least min-pause after the previous completion"
EXPIRES = "a checkpoint expires exactly at its timeout"
ENDS_WITH_THE_JOB = "all pending checkpoints are aborted before restarted tasks are restored"
TOLERABLE_FAILURES_LAW = "the job fails with the first failed checkpoint that is not tolerable"
BACKLOG = "while a source processes a backlog, checkpoints follow the backlog interval"

TURNS = frozenset(
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
_COUNTS = frozenset(
    {
        "IO_EXCEPTION",
        "CHECKPOINT_DECLINED",
        "CHECKPOINT_ASYNC_EXCEPTION",
        "CHECKPOINT_EXPIRED",
        "FINALIZE_CHECKPOINT_FAILURE",
    }
)
"""Failure reasons that Flink counts (CheckpointFailureManager#checkFailureReason)."""
_NEVER_NS = 1 << 62
"""A time after all others [ns]."""
_MAX_REPORT_DELAY_NS = 100_000_000
"""Maximum delay until a restarted source reports its backlog [ns]."""


class Pace(NamedTuple):
    """The checkpoint options that the invariants check."""

    max_concurrent: int
    min_pause_ns: int
    timeout_ns: int
    tolerable: int  # tolerable number of consecutive failures
    call_ns: int = 0  # time from the trigger timestamp to the start of the timeout
    # interval while a source processes a backlog; 0 if there are no checkpoints then, None if the interval is the same
    backlog_ns: int | None = None


def checkpoint_timing_errors(
    stats: Mapping[int, CheckpointStats],
    turns: Sequence[Entry],
    pace: Pace,
    tasks: int,
    now_ns: int,
    formatter: JournalFormatter,
) -> Iterator[Violation]:
    """Check the times at which checkpoints begin and end.  Yield the first violation of each invariant.

    `turns`: journal rows of the kinds `TURNS`.  `tasks`: number of tasks of the job.  `now_ns`: end of the run.
    """
    run = _Timing(stats, turns, pace, tasks, now_ns, formatter)
    for violations in (run.overlapping(), run.hurried(), run.expired(), run.survivors(), run.tolerated()):
        yield from islice(violations, 1)


def _end_ns(row: CheckpointStats) -> int:
    """Return the time at which a checkpoint completed or failed, or `_NEVER_NS` if it is in progress."""
    ends = [at_ns for at_ns in (row.completed_ns, row.failed_ns) if at_ns >= 0]
    return min(ends, default=_NEVER_NS)


@dataclass(frozen=True, slots=True)
class _Timing:
    """The checkpoints of a run.  Each method yields the violations of one invariant."""

    stats: Mapping[int, CheckpointStats]
    turns: Sequence[Entry]
    pace: Pace
    tasks: int
    now_ns: int
    formatter: JournalFormatter

    def overlapping(self) -> Iterator[Violation]:
        """Check max-concurrent.  Savepoints may exceed it, but count when later checkpoints are triggered."""
        under_way: list[tuple[int, CheckpointStats]] = []
        for number, row in sorted(self.stats.items()):
            under_way = [(other, theirs) for other, theirs in under_way if _end_ns(theirs) > row.trigger_ns]
            if not row.savepoint_format and len(under_way) >= self.pace.max_concurrent:
                others = ", ".join(str(other) for other, _ in under_way)
                fact = f"it begins while {others} {'is' if len(under_way) == 1 else 'are'} under way, {self.pace.max_concurrent} may be at a time"
                yield self._violation(
                    AT_A_TIME, row.trigger_ns, number, fact, {number, *(other for other, _ in under_way)}
                )
            under_way.append((number, row))

    def hurried(self) -> Iterator[Violation]:
        """Check min-pause.

        It does not apply to the final checkpoint, and a new JobManager does not know earlier completions.
        """
        if not self.pace.min_pause_ns:
            return
        completed: list[tuple[int, int]] = []
        ended: set[int] = set()
        for row in self.turns:
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
                if before >= 0 and row.time_ns - before_ns < self.pace.min_pause_ns:
                    after, pause = lasting(row.time_ns - before_ns), lasting(self.pace.min_pause_ns)
                    fact = f"it begins {after} after checkpoint {before} is complete, the pause is {pause}"
                    yield self._violation(PAUSE, row.time_ns, row.checkpoint, fact, {before, row.checkpoint})

    def expired(self) -> Iterator[Violation]:
        """Check the timeout.

        A checkpoint whose metadata is being written does not expire.  While the coordinator writes the metadata of another
        checkpoint, it holds its lock, so expiry is delayed.
        """
        for number, row in self.stats.items():
            begun_ns = row.trigger_ns + self.pace.call_ns
            due_ns, end_ns = begun_ns + self.pace.timeout_ns, min(_end_ns(row), self.now_ns)
            if row.failure == "CHECKPOINT_EXPIRED" and row.failed_ns < due_ns:
                fact = f"it expires after {lasting(row.failed_ns - begun_ns)}, the timeout is {lasting(self.pace.timeout_ns)}"
                yield self._violation(EXPIRES, row.failed_ns, number, fact, {number})
            all_there = row.acknowledged >= row.tasks
            waits_until_ns = row.latest_ack_ns if all_there else end_ns
            if waits_until_ns > due_ns and waits_until_ns > self._unlocked_ns(number, due_ns):
                fact = f"it waits for acknowledgements for {lasting(waits_until_ns - begun_ns)}, the timeout is {lasting(self.pace.timeout_ns)}"
                yield self._violation(EXPIRES, due_ns, number, fact, {number})

    def _unlocked_ns(self, number: int, at_ns: int) -> int:
        """Return the first time from `at_ns` on at which no other checkpoint writes metadata."""
        for other, row in sorted(self.stats.items(), key=lambda item: item[1].latest_ack_ns):
            if other != number and row.acknowledged >= row.tasks and row.latest_ack_ns <= at_ns:
                at_ns = max(at_ns, min(_end_ns(row), _NEVER_NS))
        return at_ns

    def survivors(self) -> Iterator[Violation]:
        """Check that no checkpoint from before a restart is pending after it."""
        under_way: set[int] = set()
        restarts: list[Entry] = []  # the latest one, while checkpoints from before it are pending
        for row in self.turns:
            if restarts and row.time_ns > restarts[0].time_ns:
                number = min(under_way)
                fact = f"it began before restart {restarts[0].number}, and is under way behind it"
                yield self._violation(ENDS_WITH_THE_JOB, restarts[0].time_ns, number, fact, {number})
                return
            if row.happening is Happening.TRIGGERED:
                under_way.add(row.checkpoint)
            elif row.happening is Happening.JOB_RESTORED:
                restarts = [row]
            elif row.happening in (Happening.COMPLETED, Happening.ABORTED):
                under_way.discard(row.checkpoint)
            if not under_way:
                restarts = []

    def tolerated(self) -> Iterator[Violation]:
        """Check that the job fails as soon as more checkpoints failed in a row than are tolerable.

        Savepoints, and checkpoints that are older than the latest completed one, do not count.
        """
        failed: list[int] = []
        latest, since_ns = 0, _NEVER_NS
        for row in self.turns:
            if row.time_ns > since_ns:
                fact = f"{number_of(len(failed), 'checkpoint')} in a row failed, {self.pace.tolerable} may, and the job goes on"
                yield self._violation(TOLERABLE_FAILURES_LAW, since_ns, failed[-1], fact, set(failed[-4:]))
                return
            if row.happening in (Happening.JOB_FAILED, Happening.JOB_MANAGER_LOST, Happening.JOB_MANAGER_ELECTED):
                failed, since_ns = [], _NEVER_NS
            elif row.happening is Happening.COMPLETED and row.checkpoint > latest:
                failed, since_ns, latest = [], _NEVER_NS, row.checkpoint
            elif row.happening is Happening.ABORTED and row.checkpoint > latest and row.detail in _COUNTS:
                if not self.stats[row.checkpoint].savepoint_format:
                    failed.append(row.checkpoint)
                    since_ns = row.time_ns if len(failed) == self.pace.tolerable + 1 else since_ns

    def _violation(self, law: str, time_ns: int, checkpoint: int, fact: str, about: Collection[int]) -> Violation:
        wider = (Happening.JOB_RESTARTING, Happening.JOB_FAILED)
        story = self.formatter.story(
            lambda row: (row.checkpoint in about and row.happening in LIFE) or row.happening in wider
        )
        return Violation(law, time_ns, f"checkpoint {checkpoint}", fact, story[-12:])


def excess_triggers_in_backlog(
    begun_ns: int, triggered_ns: Sequence[int], until_ns: int, pace: Pace, *, first: bool
) -> Violation | None:
    """Check the number of triggers while a source processes a backlog, from `begun_ns` to `until_ns`.

    Only the number is checked, because delayed trigger requests are processed later, without a pause between them.
    `first`: this is the first attempt of the job; sources of a restarted job report their backlog with a delay.
    """
    if pace.backlog_ns is None or until_ns < begun_ns:  # no checkpoint of the attempt began in a backlog
        return None
    late = 0 if first else (_MAX_REPORT_DELAY_NS // pace.backlog_ns + 1 if pace.backlog_ns else 1)
    most = 2 + late + ((until_ns - begun_ns) // pace.backlog_ns if pace.backlog_ns else 0)
    began = sum(begun_ns <= at_ns <= until_ns for at_ns in triggered_ns)
    if began <= most:
        return None
    what = f"its interval is {lasting(pace.backlog_ns)}" if pace.backlog_ns else "none may then"
    fact = f"a source reads a backlog from {time_text(begun_ns)} to {time_text(until_ns)}: {number_of(began, 'checkpoint')} began, {what}"
    return Violation(BACKLOG, until_ns, "the coordinator", fact)
