"""Invariants of the coordinator: order and times of checkpoints, the loss of the JobManager, and stop-with-savepoint."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from itertools import pairwise

from sim.model.faults import JobManagerDown
from sim.results.journal import Entry, EventType
from sim.results.tables import CheckpointStats
from sim.results.violations import milliseconds, number_of, time_text
from sim.runtime.context import Context, TaskSnapshot
from sim.runtime.invariants.invariant import Invariant
from sim.runtime.invariants.records import NOTHING_AFTER_STOP

# ---- Checkpoints are numbered, completed and retained in order (invariants 18, 22 and 23), also without a JobManager (82 and 83).

IDS_GROW = "checkpoint ids increase from trigger to trigger, also across restarts"
ALL_ACKNOWLEDGED = "a checkpoint completes only after all its tasks have acknowledged it and its metadata is durable"
ENDS_ONCE = "a checkpoint either completes or fails, and only once"
NOTIFIED_AFTERWARDS = "tasks are notified of a completed checkpoint only after its completion"
RETAINED = "at most the configured number of completed checkpoints is retained, and the latest one always is"
NO_ACTION_WITHOUT_JOB_MANAGER = "without a JobManager none of its actions happens"
COUNTS_ANEW = "a JobManager counts only failures since its election"

_ORDERED = frozenset(
    {
        EventType.TRIGGERED,
        EventType.ACKNOWLEDGED,
        EventType.PART_REPLACED,
        EventType.LAST_ACKNOWLEDGED,
        EventType.COMPLETED,
        EventType.ABORTED,
        EventType.NOTIFIED_COMPLETE,
    }
)
_JOB_MANAGER_ACTIONS = frozenset(
    {
        *_ORDERED - {EventType.ABORTED},
        EventType.TASKS_TRIGGERED,
        EventType.NOTIFIED_ABORTED,
        EventType.JOB_RESTARTING,
        EventType.JOB_RESTORED,
        EventType.JOB_RECOVERED,
        EventType.DEPLOYMENT_FAILED,
        EventType.JOB_FAILED,
        EventType.JOB_FINISHED,
        EventType.GIVEN_UP,
        EventType.RESCALED,
    }
)


class CheckpointOrder(Invariant):
    """Checks, from the journal, that checkpoints are numbered, completed and retained correctly, also without a JobManager."""

    def at_the_end(self) -> None:
        self._check_order()
        # without this fault a JobManager is always running, and reading the whole journal takes long
        if any(isinstance(fault.what, JobManagerDown) for fault in self.context.scenario.faults):
            self._check_actions()
            self._check_counts()
        self._check_retained()

    def _check_order(self) -> None:
        """Check the order of triggers, acknowledgements, completions and notifications of all checkpoints."""
        newest = 0
        awaited: dict[int, int] = {}  # checkpoint -> number of tasks that must acknowledge
        acknowledged = defaultdict[int, set[int]](set)
        durable: set[int] = set()  # checkpoints whose metadata is written: all tasks have acknowledged
        ended: dict[int, EventType] = {}
        for row in self.context.journal.only(_ORDERED):
            event_type, checkpoint = row.event_type, row.checkpoint
            report = partial(self.report, time_ns=row.time_ns, checkpoint=checkpoint)
            if event_type in (EventType.ACKNOWLEDGED, EventType.PART_REPLACED):
                acknowledged[checkpoint].add(row.task)
            elif event_type is EventType.TRIGGERED:
                if checkpoint <= newest:
                    report(IDS_GROW, f"it is triggered after checkpoint {newest}")
                newest = max(newest, checkpoint)
                awaited[checkpoint] = self.stats[checkpoint].tasks - row.number
            elif event_type is EventType.LAST_ACKNOWLEDGED:
                durable.add(checkpoint)
                if missing := awaited[checkpoint] - len(acknowledged.pop(checkpoint, ())):
                    fact = f"its metadata is written although {missing} of {awaited[checkpoint]} tasks are missing"
                    report(ALL_ACKNOWLEDGED, fact)
            elif event_type is EventType.NOTIFIED_COMPLETE:
                if ended.get(checkpoint) is not EventType.COMPLETED:
                    report(NOTIFIED_AFTERWARDS, "tasks are notified that it is complete, but it is not")
            else:
                if event_type is EventType.COMPLETED and checkpoint not in durable:
                    report(ALL_ACKNOWLEDGED, "it completes although no metadata was written")
                if checkpoint in ended:
                    report(ENDS_ONCE, f"it is {event_type.value} after it was {ended[checkpoint].value}")
                ended[checkpoint] = event_type
                acknowledged.pop(checkpoint, None)

    def _check_retained(self) -> None:
        """Check that not too many checkpoints are retained at the end of a run, and that the latest one is."""
        coordinator, stats = self.run.coordinator, self.stats
        completed = (number for number, row in stats.items() if row.status == "COMPLETED" and not row.savepoint_format)
        latest, retained = max(completed, default=self.context.begun_from), coordinator.retained
        if len(retained) > coordinator.num_retained or (latest and latest not in retained):
            kept = ", ".join(map(str, retained)) or "none"
            fact = f"retained: {kept}; at most {coordinator.num_retained} allowed, {latest} required"
            self.report(RETAINED, fact, where="the completed checkpoints", checkpoints=(*retained, latest))

    def _check_actions(self) -> None:
        """Report each JobManager action while no JobManager is running.

        Actions at exactly the time of a loss or an election are allowed.
        """
        lost_ns: int | None = None
        for row in self.context.journal:
            if row.event_type is EventType.JOB_MANAGER_LOST:
                lost_ns = row.time_ns if lost_ns is None else lost_ns
            elif row.event_type is EventType.JOB_MANAGER_ELECTED:
                lost_ns = None
            elif lost_ns is not None and lost_ns < row.time_ns and row.event_type in _JOB_MANAGER_ACTIONS:
                fact = self.formatter.sentence(row)
                self.report(NO_ACTION_WITHOUT_JOB_MANAGER, fact, where="the job", time_ns=row.time_ns)

    def _check_counts(self) -> None:
        """Check that no JobManager gives up because of failures before its election.

        It counts every failure that Flink might count, so that it does not report correct runs.
        """
        attempts = self.context.scenario.restart.max_restarts
        tolerable = self.context.scenario.checkpoint.tolerable_failed
        restarts, failed = 0, 0  # since the election of this JobManager
        for row in self.run.events:
            fact = ""
            if row.event_type is EventType.JOB_MANAGER_ELECTED:
                restarts, failed = -1, 0  # the restart by the new JobManager itself does not count
            elif row.event_type is EventType.JOB_RESTARTING:
                restarts += 1
            elif row.event_type in (EventType.ABORTED, EventType.REFUSED):
                failed += 1
            elif row.event_type is EventType.GIVEN_UP and attempts is not None and restarts < attempts:
                fact = f"the restart strategy gives up after {number_of(restarts, 'restart')} of {attempts}"
            elif row.event_type is EventType.JOB_FAILED and not row.number and failed <= tolerable:
                fact = f"the job fails after {number_of(failed, 'failed checkpoint')}, {tolerable} may fail"
            if fact:
                self.report(COUNTS_ANEW, fact, time_ns=row.time_ns)


# ---- The coordinator's options: when checkpoints are triggered and end (invariants 94 to 99).  Events at the same time may
# be in any order.

MAX_CONCURRENT = "no more checkpoints are pending than max-concurrent allows"
MIN_PAUSE = "a checkpoint begins at least min-pause after the previous completion"
TIMEOUT = "a checkpoint expires exactly at its timeout"
RESTART_ABORTS = "all pending checkpoints are aborted before restarted tasks are restored"
TOLERABLE_FAILURES = "the job fails with the first failed checkpoint that is not tolerable"
BACKLOG_INTERVAL = "while a source processes a backlog, checkpoints follow the backlog interval"

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
_MAX_REPORT_DELAY_NS = 100_000_000
"""Maximum delay until a restarted source reports its backlog [ns]."""


class CheckpointTiming(Invariant):
    """Checks that checkpoints are triggered in time and not too often, also while a source processes a backlog.

    Only the first violation of each invariant is reported.
    """

    def start(self) -> None:
        self.options = self.context.scenario.checkpoint_at(self.now_ns)
        self._begun_ns = self.now_ns
        # source task -> records of its backlog
        has_interval = self.options.interval_during_backlog_ns is not None
        self._history = dict(_backlogs(self.context)) if has_interval else {}
        # checkpoint -> time of the cut of a source that was still processing its backlog
        self._behind: dict[int, int] = {}

    def cut(self, checkpoint: int, task: int, part: TaskSnapshot) -> None:
        """Record whether a source is still processing its backlog at its cut."""
        if part.position.served < self._history.get(task, 0):
            self._behind[checkpoint] = self.now_ns

    def at_the_end(self) -> None:
        self._check_max_concurrent()
        if self.options.min_pause_ns:
            self._check_min_pause()
        self._check_timeout()
        self._check_restarts()
        self._check_tolerable_failures()
        if self._behind:
            self._check_backlog()

    def _check_max_concurrent(self) -> None:
        """Check max-concurrent.  A savepoint may exceed it.  While it is pending, it counts for later checkpoints."""
        most, pending = self.options.max_concurrent, list[tuple[int, int]]()  # (checkpoint, its end [ns])
        for number, row in sorted(self.stats.items()):
            pending = [(other, end_ns) for other, end_ns in pending if end_ns > row.trigger_ns]
            if not row.savepoint_format and len(pending) >= most:
                others = [other for other, _ in pending]
                are = f"{', '.join(map(str, others))} {'is' if len(others) == 1 else 'are'}"
                fact = f"it begins while {are} under way, {most} may be at a time"
                self._report(MAX_CONCURRENT, fact, row.trigger_ns, number, *others)
            pending.append((number, _end_ns(row)))

    def _check_min_pause(self) -> None:
        """Check min-pause.

        The pause does not apply to the final checkpoint.  A new JobManager does not know earlier completions.
        """
        min_pause_ns, tasks = self.options.min_pause_ns, len(self.context.names)
        completed: list[tuple[int, int]] = []  # (time [ns], checkpoint)
        ended: set[int] = set()  # tasks whose data has ended
        for row in self.run.events:
            match row.event_type:
                case EventType.COMPLETED:
                    completed.append((row.time_ns, row.checkpoint))
                case EventType.JOB_MANAGER_LOST:
                    completed.clear()
                case EventType.END_OF_DATA:
                    ended.add(row.task)
                case EventType.TASK_RESTORED:
                    ended.discard(row.task)
                case EventType.TRIGGERED if not self.stats[row.checkpoint].savepoint_format and len(ended) < tasks:
                    earlier = ((end_ns, other) for end_ns, other in reversed(completed) if end_ns < row.time_ns)
                    before_ns, before = next(earlier, (-_NEVER_NS, -1))
                    if (after_ns := row.time_ns - before_ns) < min_pause_ns:
                        fact = f"it begins {milliseconds(after_ns)} after checkpoint {before} is complete, the pause is {milliseconds(min_pause_ns)}"
                        self._report(MIN_PAUSE, fact, row.time_ns, row.checkpoint, before)

    def _check_timeout(self) -> None:
        """Check the timeout.

        A checkpoint whose metadata is being written does not expire.  While the coordinator writes the metadata of another
        checkpoint, it holds its lock, so expiry is delayed.
        """
        changed = [
            (row.time_ns, row.number) for row in self.run.events if row.event_type is EventType.CHECKPOINTS_CHANGED
        ]
        timeouts = [(0, self.options.timeout_ns), *changed, (_NEVER_NS, 0)]
        for number, row in self.stats.items():
            begun_ns = row.trigger_ns + self.context.scenario.overheads.trigger_ns
            limits = (
                (max(begun_ns + own_ns, since_ns), own_ns, until)
                for (since_ns, own_ns), (until, _) in pairwise(timeouts)
            )
            due_ns, timeout_ns, _ = next(limit for limit in limits if limit[0] < limit[2])
            timeout = milliseconds(timeout_ns)
            if row.failure == "CHECKPOINT_EXPIRED" and row.failed_ns < due_ns:
                fact = f"it expires after {milliseconds(row.failed_ns - begun_ns)}, the timeout is {timeout}"
                self._report(TIMEOUT, fact, row.failed_ns, number)
            is_acknowledged = row.acknowledged >= row.tasks
            until_ns = row.latest_ack_ns if is_acknowledged else min(_end_ns(row), self.now_ns)
            if until_ns > due_ns and until_ns > self._metadata_written_ns(number, due_ns):
                fact = (
                    f"it waits for acknowledgements for {milliseconds(until_ns - begun_ns)}, the timeout is {timeout}"
                )
                self._report(TIMEOUT, fact, due_ns, number)

    def _metadata_written_ns(self, number: int, at_ns: int) -> int:
        """Return the first time from `at_ns` on at which no other checkpoint writes metadata."""
        for other, row in sorted(self.stats.items(), key=lambda item: item[1].latest_ack_ns):
            if other != number and row.acknowledged >= row.tasks and row.latest_ack_ns <= at_ns:
                at_ns = max(at_ns, _end_ns(row))
        return at_ns

    def _check_restarts(self) -> None:
        """Check that no checkpoint from before a restart is pending after it."""
        pending: set[int] = set()
        restart: Entry | None = None  # latest restart, or None if no checkpoint from before it is pending
        for row in self.run.events:
            if restart is not None and row.time_ns > restart.time_ns:
                fact = f"it began before restart {restart.number}, and is under way behind it"
                self._report(RESTART_ABORTS, fact, restart.time_ns, min(pending))
                return
            if row.event_type is EventType.TRIGGERED:
                pending.add(row.checkpoint)
            elif row.event_type is EventType.JOB_RESTORED:
                restart = row
            elif row.event_type in (EventType.COMPLETED, EventType.ABORTED):
                pending.discard(row.checkpoint)
            restart = restart if pending else None

    def _check_tolerable_failures(self) -> None:
        """Check that the job fails as soon as more checkpoints failed in a row than are tolerable.

        Savepoints, and checkpoints that are older than the latest completed one, do not count.
        """
        failed: list[int] = []
        tolerable, latest_completed, exceeded_ns = self.options.tolerable_failed, 0, _NEVER_NS
        for row in self.run.events:
            if row.time_ns > exceeded_ns:
                fact = f"{number_of(len(failed), 'checkpoint')} in a row failed, {tolerable} may, and the job goes on"
                self._report(TOLERABLE_FAILURES, fact, exceeded_ns, failed[-1], *failed[-4:])
                return
            is_newer = row.checkpoint > latest_completed
            if row.event_type in (EventType.JOB_FAILED, EventType.JOB_MANAGER_LOST, EventType.JOB_MANAGER_ELECTED):
                failed, exceeded_ns = [], _NEVER_NS
            elif row.event_type is EventType.COMPLETED and is_newer:
                failed, exceeded_ns, latest_completed = [], _NEVER_NS, row.checkpoint
            elif row.event_type is EventType.ABORTED and is_newer and row.detail in _COUNTED_FAILURES:
                if not self.stats[row.checkpoint].savepoint_format:
                    failed.append(row.checkpoint)
                    exceeded_ns = row.time_ns if len(failed) == tolerable + 1 else exceeded_ns

    def _check_backlog(self) -> None:
        """Check the number of checkpoints triggered while a source processes a backlog, separately after each restart.

        Only the number is checked, because delayed trigger requests are processed later, without a pause between them.
        """
        attempts: list[tuple[int, list[int]]] = [(self._begun_ns, [])]
        for row in self.run.events:
            if row.event_type is EventType.JOB_RESTORED:
                attempts.append((row.time_ns, []))
            elif row.event_type is EventType.TRIGGERED and not self.stats[row.checkpoint].savepoint_format:
                attempts[-1][1].append(row.checkpoint)
        interval_ns = self.options.interval_during_backlog_ns
        for number, (begun_ns, checkpoints) in enumerate(attempts):
            until_ns = max((self.stats[row].trigger_ns for row in checkpoints if row in self._behind), default=-1)
            if until_ns < begun_ns:
                continue
            # sources of a restarted job report their backlog with a delay
            before_report = 0 if not number else (_MAX_REPORT_DELAY_NS // interval_ns + 1 if interval_ns else 1)
            most = 2 + before_report + ((until_ns - begun_ns) // interval_ns if interval_ns else 0)
            triggers = sum(begun_ns <= self.stats[row].trigger_ns <= until_ns for row in checkpoints)
            if triggers > most:
                what = f"its interval is {milliseconds(interval_ns)}" if interval_ns else "none may then"
                began = f"{number_of(triggers, 'checkpoint')} began, {what}"
                fact = f"a source reads a backlog from {time_text(begun_ns)} to {time_text(until_ns)}: {began}"
                self.report(BACKLOG_INTERVAL, fact, where="the coordinator", time_ns=until_ns)
                return

    def _report(self, invariant: str, fact: str, time_ns: int, checkpoint: int, *others: int) -> None:
        """Report the first violation of an invariant by a checkpoint.  The evidence is about the other checkpoints as well."""
        self.report(invariant, fact, time_ns=time_ns, checkpoint=checkpoint, checkpoints=others, once=True)


def _end_ns(row: CheckpointStats) -> int:
    """Return the time at which a checkpoint completed or failed, or `_NEVER_NS` if it is in progress."""
    return min((at_ns for at_ns in (row.completed_ns, row.failed_ns) if at_ns >= 0), default=_NEVER_NS)


def _backlogs(context: Context) -> Iterator[tuple[int, int]]:
    """Yield (source task, records of its backlog)."""
    for task, subtask in enumerate(context.layout.subtask):
        vertex = context.vertex(task)
        backlog = None if vertex.source is None else vertex.source.backlog
        if backlog is not None and backlog.records and subtask < vertex.emitting:
            total = vertex.total(subtask)
            yield task, backlog.records if total is None else min(backlog.records, total)


# ---- Nothing but the end of the job follows a stop-with-savepoint (invariant 92; `RecordPositions` checks the records).


class StopWithSavepoint(Invariant):
    """Checks that nothing but the end of the job follows a stop-with-savepoint.

    Two things are allowed.  When all tasks of a job that is drained have reached the end of their data, one last checkpoint
    is triggered (SchedulerBase#notifyEndOfData).  If the JobManager is lost, the stop is forgotten: the next JobManager
    restores the latest completed checkpoint, which is not the savepoint.
    """

    def at_the_end(self) -> None:
        stats = self.stats
        stops = {number for number, row in stats.items() if row.stops}
        pending, over, final = (
            0,
            0,
            False,
        )  # savepoint in progress, completed one, whether a final checkpoint may follow
        for row in self.run.events if stops else ():
            checkpoint, event_type = row.checkpoint, row.event_type
            if checkpoint in stops and event_type is EventType.TRIGGERED:
                pending = checkpoint
            elif checkpoint in stops and event_type is EventType.COMPLETED:
                over = checkpoint
            elif checkpoint == pending and event_type is EventType.ABORTED:
                pending, final = 0, False
            elif event_type is EventType.JOB_MANAGER_LOST:
                pending, over, final = 0, 0, False
            elif event_type is EventType.END_OF_DATA:
                final = final or row.detail == "drain"
            elif event_type is EventType.TRIGGERED and pending and final:
                final = False
            elif (event_type is EventType.TRIGGERED and pending and not stats[checkpoint].savepoint_format) or (
                event_type is EventType.JOB_RESTORED and over
            ):
                savepoint = over or pending
                where = f"savepoint {savepoint}, with which the job stops"
                fact, about = self.formatter.sentence(row), (savepoint, checkpoint)
                self.report(NOTHING_AFTER_STOP, fact, where=where, time_ns=row.time_ns, checkpoints=about)
                return
