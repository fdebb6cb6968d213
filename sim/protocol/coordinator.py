"""The checkpoint coordinator (CheckpointCoordinator): periodic triggers, pending checkpoints, tolerated failures."""

from __future__ import annotations

from typing import Literal

from sim.model.checkpoint import Barriers, CheckpointOptions
from sim.protocol.barrier_modes import barrier_options, strategy
from sim.protocol.checkpoint_requests import PendingCheckpoint, TriggerRequest, WaitingRequests
from sim.protocol.machine import InvalidTransition, replace, value_class
from sim.protocol.messages import (
    Acknowledged,
    ArmCheckpointTimeout,
    ArmPeriodicTimer,
    BacklogReported,
    CancelPeriodicTimer,
    CheckpointRequested,
    CheckpointTimedOut,
    ConfigurationUpdated,
    CoordinatorCommand,
    CoordinatorEvent,
    Declined,
    DiscardState,
    FailJob,
    LeaderElected,
    LeaderLost,
    MetadataWritten,
    NotifyAborted,
    NotifyComplete,
    PeriodicTimerFired,
    PrepareTrigger,
    RecordCompleted,
    RecordFailed,
    RecordRefused,
    RecordTriggered,
    RequestKind,
    Savepoint,
    SchedulerStarted,
    SchedulerStopped,
    StateDiscarded,
    TasksRestored,
    TriggerReady,
    TriggerTasks,
    WriteMetadata,
)
from sim.protocol.options import FailureReason

# ---- When periodic checkpoints are due: a fixed-rate schedule (CheckpointCoordinator.ScheduledTrigger).

NEVER = 1 << 62
"""Sentinel for "no next trigger" [ns]."""
_YEAR_NS = 365 * 24 * 3600 * 1_000_000_000


def effective_interval_ns(interval_ns: int, min_pause_ns: int) -> int:
    """Return max(interval, min-pause); min-pause is capped at one year."""
    return max(interval_ns, min(min_pause_ns, _YEAR_NS))


def first_trigger_delay(
    profile: Literal["2.x", "1.20", "1.15"],
    *,
    interval_ns: int,
    min_pause_ns: int,
    first_trigger_ns: int,
    restarted: bool = False,
    draw: int = 0,
) -> int:
    """Return the time from the start of the scheduler to the first accepted trigger [ns].

    `draw` is a random 32-bit integer, used in 1.x only.

    1.x draws uniformly from [min-pause, interval].  2.x waits for the min-pause from when all tasks run
    (ExecutionTrackingCheckpointCoordinatorDeActivator).  In a restarted job the first running task starts the scheduler
    (DefaultExecutionGraph#updateStateInternal): without a pause the immediate trigger is refused, because other tasks
    are not running yet, and the next one follows an interval later.
    """
    interval_ns, pause_ns = effective_interval_ns(interval_ns, min_pause_ns), min(min_pause_ns, _YEAR_NS)
    if profile != "2.x":
        return pause_ns + ((draw * (interval_ns - pause_ns + 1)) >> 32)
    return (pause_ns or interval_ns) if restarted else pause_ns + first_trigger_ns


@value_class
class PeriodicSchedule:
    """The fixed-rate schedule of periodic checkpoints.  A late timer does not shift it: missed points are triggered immediately."""

    next_ns: int  # NEVER: suspended until a source has read its backlog

    def after_firing(self, interval_ns: int | None) -> PeriodicSchedule:
        """Return the schedule after a trigger.  If the current interval is None, no trigger follows."""
        return PeriodicSchedule(NEVER if interval_ns is None else self.next_ns + interval_ns)

    def with_interval(self, now: int, interval_ns: int | None) -> PeriodicSchedule:
        """Change the interval: a shorter one starts now, a longer one does not delay the next trigger (FLIP-309)."""
        return self if interval_ns is None else PeriodicSchedule(min(self.next_ns, now + interval_ns))

    def wake_up_ns(self, now: int) -> int:
        """Return the time for which to arm the timer: the next trigger, or now if it is overdue."""
        return max(now, self.next_ns)


# ---- How many consecutive checkpoints may fail (CheckpointFailureManager).


@value_class
class FailureCounter:
    """The continuous failure counter.  Each checkpoint counts once; a newer success, or failing the job, resets it."""

    tolerable: int
    count: int = 0
    counted: frozenset[int] = frozenset()
    last_success: int = 0

    def with_failure(self, checkpoint: int | None, reason: FailureReason) -> tuple[FailureCounter, bool]:
        """Count a failure.  Also returns whether the job must fail.  Failures before an id is assigned always count."""
        if checkpoint is not None and checkpoint <= self.last_success:
            return self, False
        after = self
        if reason.counts and (checkpoint is None or checkpoint not in self.counted):
            ids = self.counted if checkpoint is None else self.counted | {checkpoint}
            after = replace(self, count=self.count + 1, counted=ids)
        if after.count > after.tolerable:
            return after.reset(), True
        return after, False

    def with_success(self, checkpoint: int) -> FailureCounter:
        """Reset the counter if this checkpoint is newer than the last completed one."""
        return replace(self.reset(), last_success=checkpoint) if checkpoint > self.last_success else self

    def reset(self) -> FailureCounter:
        """Return the counter with no failures."""
        return replace(self, count=0, counted=frozenset())


# ---- The checkpoint coordinator (CheckpointCoordinator).
#
# One trigger at a time is prepared; several checkpoints may be pending.

_Commands = tuple[CoordinatorCommand, ...]
_Answer = tuple["Coordinator", _Commands]


@value_class
class Triggering:
    """A checkpoint that has a trigger timestamp (t0) but no id yet."""

    request: TriggerRequest
    trigger_ns: int
    refused: FailureReason | None = None  # set when the scheduler stops before the trigger is ready

    @property
    def stops(self) -> bool:
        """Whether it is a stop-with-savepoint."""
        return self.request.savepoint is not None and self.request.savepoint.stop is not None


@value_class
class Coordinator:
    """The checkpoint coordinator of one job."""

    barriers: Barriers
    interval_ns: int | None  # None: no periodic checkpoints
    timeout_ns: int
    num_retained: int
    requests: WaitingRequests
    failures: FailureCounter
    next_id: int
    backlog_interval_ns: int | None = None  # while a source processes a backlog; None: no periodic checkpoints
    backlog: frozenset[int] = frozenset()  # sources that process a backlog
    schedule: PeriodicSchedule | None = None  # None: the periodic scheduler is off
    armed_ns: int = 0  # time for which the periodic timer is armed
    triggering: Triggering | None = None
    pending: tuple[PendingCheckpoint, ...] = ()  # by id
    # completed checkpoints that are retained, oldest first; no savepoints, which the user owns
    retained: tuple[int, ...] = ()
    last_completion_ns: int | None = None  # also of savepoints; min-pause does not apply after a failure
    cleaning: int = 0  # deletions in progress
    # incremented with each loss and election; messages to a previous leader are dropped (JobMasterId)
    leader: int = 0
    absent: bool = False  # no JobManager is running

    @classmethod
    def configured(cls, options: CheckpointOptions, *, num_retained: int = 1, restored: int = 0) -> Coordinator:
        """Create the coordinator of a new job, or of a job that starts from checkpoint `restored`, which can be subsumed.

        Raises ValueError if several checkpoints may be concurrent and unaligned checkpoints are enabled.
        """
        if options.max_concurrent > 1 and strategy(options.barriers).unaligned_allowed:
            raise ValueError("max_concurrent must be 1 with unaligned checkpoints")
        interval_ns = (
            None if options.interval_ns is None else effective_interval_ns(options.interval_ns, options.min_pause_ns)
        )
        in_backlog = options.interval_during_backlog_ns
        backlog_interval_ns = interval_ns if in_backlog is None else in_backlog or None
        requests = WaitingRequests(options.max_concurrent, options.min_pause_ns)
        failures = FailureCounter(options.tolerable_failed)
        retained = (restored,) if restored else ()
        return cls(
            options.barriers,
            interval_ns,
            options.timeout_ns,
            num_retained,
            requests,
            failures,
            restored + 1,
            backlog_interval_ns,
            retained=retained,
        )

    @property
    def latest_completed(self) -> int:
        """Id of the latest completed checkpoint, or 0."""
        return self.retained[-1] if self.retained else 0

    @property
    def interval_in_force_ns(self) -> int | None:
        """The current interval [ns], or None if no trigger follows (CheckpointCoordinator#getCurrentCheckpointInterval)."""
        return self.backlog_interval_ns if self.backlog else self.interval_ns

    @property
    def locked(self) -> bool:
        """Whether metadata is being written, so that messages and timeouts wait (CheckpointCoordinator#completePendingCheckpoint)."""
        return any(pending.writes_metadata for pending in self.pending)

    @property
    def needed(self) -> frozenset[int]:
        """Checkpoints whose content may be read again: all retained and pending ones, savepoints included."""
        return frozenset((*self.retained, *(pending.checkpoint for pending in self.pending)))

    def on(self, event: CoordinatorEvent) -> _Answer:
        """Return the next coordinator and its commands.  Raise InvalidTransition if the event is impossible in this state."""
        if self.absent:
            return self._on_event_without_leader(event)
        after, commands = self.respond(event)
        after, follow_ups = _start_next_request(after, event.now)
        return after, (*commands, *follow_ups)

    def respond(self, event: CoordinatorEvent) -> _Answer:
        """Return the coordinator after an event, and the commands that follow from the event alone."""
        match event:
            case SchedulerStarted():
                return self._scheduler_started(event)
            case SchedulerStopped():
                return self._scheduler_stopped(event)
            case TasksRestored():
                return _abort_all(self, FailureReason.JOB_FAILOVER_REGION, event.now)
            case LeaderLost():
                return self._leader_lost(event)
            case LeaderElected():
                raise InvalidTransition(self, event, "a JobManager is running already")
            case BacklogReported():
                return self._backlog_reported(event)
            case ConfigurationUpdated():
                return self._configuration_updated(event)
            case PeriodicTimerFired():
                return self._timer_fired(event)
            case CheckpointRequested():
                return _enqueue_request(self, event.kind, event.now, event.savepoint)
            case TriggerReady():
                return self._trigger_ready(event)
            case Acknowledged():
                return self._acknowledged(event)
            case Declined():
                return self._declined(event)
            case CheckpointTimedOut():
                return self._timed_out(event)
            case MetadataWritten():
                return self._metadata_written(event)
            case StateDiscarded():
                if not self.cleaning:
                    raise InvalidTransition(self, event, "nothing is being deleted")
                return replace(self, cleaning=self.cleaning - 1), ()

    # ------------------------------------------------------------------------------------------ the scheduler

    def _scheduler_started(self, event: SchedulerStarted) -> _Answer:
        """Arm the periodic timer, unless the job has no periodic checkpoints."""
        if self.interval_ns is None:
            return self, ()
        if self.schedule is not None:
            raise InvalidTransition(self, event, "the scheduler is running already")
        return _arm_periodic_timer(self, PeriodicSchedule(event.now + event.first_delay_ns), event.now)

    def _scheduler_stopped(self, event: SchedulerStopped) -> _Answer:
        """Refuse all queued requests and abort all pending checkpoints (CheckpointCoordinator#stopCheckpointScheduler)."""
        requests, dropped = self.requests.cleared()
        triggering = None if self.triggering is None else replace(self.triggering, refused=event.reason)
        after: Coordinator = replace(self, requests=requests, schedule=None, triggering=triggering)
        commands: _Commands = (CancelPeriodicTimer(),) if self.schedule is not None else ()
        commands = (*commands, *(RecordRefused(request.kind, event.reason) for request in dropped))
        after, follow_ups = _abort_all(after, event.reason, event.now)
        return after, (*commands, *follow_ups)

    def _leader_lost(self, event: LeaderLost) -> _Answer:
        """Drop all pending checkpoints and counters.  No task is notified and no file is deleted."""
        requests, dropped = self.requests.cleared()
        in_preparation = () if self.triggering is None else (self.triggering.request,)
        after: Coordinator = replace(
            self,
            requests=requests,
            failures=FailureCounter(self.failures.tolerable),
            backlog=frozenset(),
            schedule=None,
            triggering=None,
            pending=(),
            last_completion_ns=None,
            cleaning=0,
            leader=self.leader + 1,
            absent=True,
        )
        commands: _Commands = (CancelPeriodicTimer(),) if self.schedule is not None else ()
        refused = (RecordRefused(request.kind, FailureReason.NO_JOB_MANAGER) for request in (*in_preparation, *dropped))
        failed = (
            RecordFailed(pending.checkpoint, FailureReason.CHECKPOINT_COORDINATOR_SUSPEND, event.now)
            for pending in self.pending
        )
        return after, (*commands, *refused, *failed)

    def _on_event_without_leader(self, event: CoordinatorEvent) -> _Answer:
        """Handle an event while no leader is elected.  Clients get an error; results of earlier work are ignored."""
        match event:
            case LeaderElected():
                return replace(self, leader=self.leader + 1, absent=False), ()
            case CheckpointRequested():
                return self, (RecordRefused(event.kind, FailureReason.NO_JOB_MANAGER),)
            case SchedulerStarted():
                raise InvalidTransition(self, event, "no JobManager is running")
        return self, ()

    def accepts_messages_from(self, leader: int) -> bool:
        """Return whether messages addressed to this leader are accepted."""
        return leader == self.leader and not self.absent

    def _backlog_reported(self, event: BacklogReported) -> _Answer:
        """Record whether a source processes a backlog, and adapt the periodic schedule to the interval (FLIP-309)."""
        backlog = self.backlog | {event.source} if event.behind else self.backlog - {event.source}
        after: Coordinator = replace(self, backlog=backlog)
        if self.schedule is None:
            return after, ()
        schedule = self.schedule.with_interval(event.now, after.interval_in_force_ns)
        return (after, ()) if schedule == self.schedule else _arm_periodic_timer(after, schedule, event.now)

    def _configuration_updated(self, event: ConfigurationUpdated) -> _Answer:
        """Change interval and timeout (FLIP-571).

        The interval counts from the next periodic trigger on.  Pending checkpoints get the new timeout, since they were
        triggered, at once.  A new JobManager reads both from the ExecutionPlanStore, so they are kept.
        """
        after = self
        if event.interval_ns is not None and self.interval_ns is not None:
            interval_ns = effective_interval_ns(event.interval_ns, self.requests.min_pause_ns)
            in_backlog_ns = interval_ns if self.backlog_interval_ns == self.interval_ns else self.backlog_interval_ns
            after = replace(after, interval_ns=interval_ns, backlog_interval_ns=in_backlog_ns)
        if event.timeout_ns is None:
            return after, ()
        longer_ns = event.timeout_ns - self.timeout_ns
        pending = tuple(replace(row, expires_ns=row.expires_ns + longer_ns) for row in self.pending)
        timers = (ArmCheckpointTimeout(row.checkpoint, max(event.now, row.expires_ns)) for row in pending)
        return replace(after, timeout_ns=event.timeout_ns, pending=pending), tuple(timers)

    def _timer_fired(self, event: PeriodicTimerFired) -> _Answer:
        """Request a periodic checkpoint and arm the timer for the next one."""
        if self.schedule is None or event.now < self.armed_ns:
            return self, ()  # the timer was cancelled or armed for a later time
        # a timer that was armed before the schedule was suspended triggers once more (FLINK-39108)
        schedule = self.schedule.after_firing(self.interval_in_force_ns)
        after, timer = _arm_periodic_timer(self, schedule, event.now)
        after, commands = _enqueue_request(after, RequestKind.PERIODIC, event.now)
        return after, (*timer, *commands)

    # ------------------------------------------------------------------------------------------ the trigger

    def _trigger_ready(self, event: TriggerReady) -> _Answer:
        """Trigger the checkpoint that was prepared, or refuse it if it has no plan or the scheduler has stopped."""
        if self.triggering is None:
            raise InvalidTransition(self, event, "no trigger is being prepared")
        triggering, kind = self.triggering, self.triggering.request.kind
        after = replace(self, triggering=None)
        if event.plan is None or triggering.refused is not None:
            reason = event.failure if triggering.refused is None else triggering.refused
            after, failed = (after, ()) if kind is RequestKind.SAVEPOINT else _count_failure(after, None, reason, None)
            after, timer = (
                _resume_periodic_triggers(after, event.now)
                if triggering.stops and triggering.refused is None
                else (after, ())
            )
            return after, (RecordRefused(kind, reason), *timer, *failed)
        if not event.plan.wait_for:
            raise InvalidTransition(self, event, "no task has to acknowledge")
        savepoint = triggering.request.savepoint
        # the timeout starts now, slightly after t0
        expires_ns = event.now + self.timeout_ns
        pending = PendingCheckpoint(
            self.next_id, kind, triggering.trigger_ns, event.plan, savepoint=savepoint, expires_ns=expires_ns
        )
        options = barrier_options(self.barriers, pending.trigger_ns, savepoint=kind is RequestKind.SAVEPOINT)
        if savepoint is not None:
            options = replace(options, stop=savepoint.stop, type=savepoint.format)
        return replace(after, next_id=self.next_id + 1, pending=(*self.pending, pending)), (
            RecordTriggered(pending.checkpoint, pending.trigger_ns, event.plan, savepoint),
            ArmCheckpointTimeout(pending.checkpoint, expires_ns),
            TriggerTasks(pending.checkpoint, event.plan.trigger, options),
        )

    # ------------------------------------------------------------------------------------------ a pending checkpoint

    def _acknowledged(self, event: Acknowledged) -> _Answer:
        """Record an acknowledgement.  After the last one, write the metadata."""
        pending = self._find(event)
        if pending is None:
            return self, ()  # the checkpoint has ended; `SnapshotStore` handles its files
        if event.task not in pending.plan.wait_for or event.task in pending.acknowledged:
            raise InvalidTransition(self, event, "the task need not acknowledge, or has done so already")
        pending = pending.with_acknowledgement(event.task, event.now)
        all_pending = tuple(pending if p.checkpoint == pending.checkpoint else p for p in self.pending)
        commands: _Commands = (WriteMetadata(pending.checkpoint),) if pending.writes_metadata else ()
        return replace(self, pending=all_pending), commands

    def _declined(self, event: Declined) -> _Answer:
        """Abort the checkpoint that a task declines, unless its metadata is being written."""
        pending = self._find(event)
        if pending is None or pending.writes_metadata:
            return self, ()
        return _abort_checkpoint(self, pending, event.reason, event.now, event.task)

    def _timed_out(self, event: CheckpointTimedOut) -> _Answer:
        """Abort a checkpoint that has expired, unless its metadata is being written."""
        pending = self._find(event)
        if pending is None or pending.writes_metadata or event.now < pending.expires_ns:
            return self, ()
        return _abort_checkpoint(self, pending, FailureReason.CHECKPOINT_EXPIRED, event.now)

    def _metadata_written(self, event: MetadataWritten) -> _Answer:
        """Complete the checkpoint, or abort it if writing its metadata failed."""
        pending = self._find(event)
        if pending is None:
            return self, ()  # the checkpoint was aborted
        if not pending.writes_metadata:
            raise InvalidTransition(self, event, "acknowledgements are missing")
        if event.failed:
            return _abort_checkpoint(self, pending, event.reason, event.now)
        return _complete_checkpoint(self, pending, event.now)

    def _find(self, event: Acknowledged | Declined | CheckpointTimedOut | MetadataWritten) -> PendingCheckpoint | None:
        """Return the pending checkpoint of an event, or None if it has ended."""
        if event.checkpoint >= self.next_id:
            raise InvalidTransition(self, event, "the checkpoint was never triggered")
        return next((pending for pending in self.pending if pending.checkpoint == event.checkpoint), None)


# ---------------------------------------------------------------------------------------------- transitions

_JOB_IS_DOWN = frozenset(
    {
        FailureReason.CHECKPOINT_COORDINATOR_SUSPEND,
        FailureReason.CHECKPOINT_COORDINATOR_SHUTDOWN,
        FailureReason.JOB_FAILOVER_REGION,
    }
)


def _arm_periodic_timer(coordinator: Coordinator, schedule: PeriodicSchedule, now: int) -> _Answer:
    """Set the schedule, and arm the periodic timer for its next trigger if there is one."""
    at_ns = schedule.wake_up_ns(now)
    return replace(coordinator, schedule=schedule, armed_ns=at_ns), (
        () if at_ns >= NEVER else (ArmPeriodicTimer(at_ns),)
    )


def _resume_periodic_triggers(coordinator: Coordinator, now: int) -> _Answer:
    """Resume periodic triggers after a failed stop-with-savepoint."""
    if coordinator.interval_ns is None or coordinator.schedule is not None:
        return coordinator, ()
    return _arm_periodic_timer(coordinator, PeriodicSchedule(now + coordinator.interval_ns), now)


def _enqueue_request(
    coordinator: Coordinator, kind: RequestKind, now: int, savepoint: Savepoint | None = None
) -> _Answer:
    """Queue a request.  Savepoints are forced only if unaligned checkpoints are off (CheckpointProperties.forSavepoint)."""
    forced = kind is RequestKind.SAVEPOINT and not strategy(coordinator.barriers).unaligned_allowed
    requests, dropped = coordinator.requests.with_request(TriggerRequest(kind, now, forced, savepoint))
    refused = () if dropped is None else (RecordRefused(dropped.kind, FailureReason.TOO_MANY_CHECKPOINT_REQUESTS),)
    return replace(coordinator, requests=requests), refused


def _start_next_request(coordinator: Coordinator, now: int) -> _Answer:
    """Prepare the trigger of the next request if it may run now."""
    if not coordinator.requests.waiting:
        return coordinator, ()
    requests, choice = coordinator.requests.choose(
        now,
        triggering=coordinator.triggering is not None,
        pending=len(coordinator.pending),
        cleaning=coordinator.cleaning,
        last_completion_ns=coordinator.last_completion_ns,
    )
    after: Coordinator = coordinator if requests is coordinator.requests else replace(coordinator, requests=requests)
    if choice.run is not None:
        return replace(after, triggering=Triggering(choice.run, now)), (PrepareTrigger(choice.run.kind),)
    if choice.postpone is None:
        return after, ()
    refused = RecordRefused(choice.postpone.kind, FailureReason.MINIMUM_TIME_BETWEEN_CHECKPOINTS)
    if after.interval_ns is None or after.schedule is None:
        return after, (refused,)
    after, timer = _arm_periodic_timer(after, PeriodicSchedule(choice.until_ns), now)  # replaces the previous schedule
    return after, (refused, *timer)


def _abort_all(coordinator: Coordinator, reason: FailureReason, now: int) -> _Answer:
    """Abort all pending checkpoints."""
    after, commands = coordinator, _Commands()
    for pending in coordinator.pending:
        after, follow_ups = _abort_checkpoint(after, pending, reason, now)
        commands = (*commands, *follow_ups)
    return after, commands


def _abort_checkpoint(
    coordinator: Coordinator, pending: PendingCheckpoint, reason: FailureReason, now: int, task: int | None = None
) -> _Answer:
    """Abort a checkpoint: notify tasks, delete its files, count the failure.  Savepoints count only if a task declined."""
    others = tuple(p for p in coordinator.pending if p.checkpoint != pending.checkpoint)
    after: Coordinator = replace(coordinator, pending=others, cleaning=coordinator.cleaning + 1)
    failed: _Commands = ()
    if pending.stops and reason not in _JOB_IS_DOWN:
        # sources have finished already: only a restart resumes them
        failed = (FailJob(reason, None, stopping=True),)
    elif pending.kind is not RequestKind.SAVEPOINT or task is not None:
        after, failed = _count_failure(after, pending.checkpoint, reason, task)
    notify = NotifyAborted(pending.checkpoint, pending.plan.wait_for, after.latest_completed)
    return after, (RecordFailed(pending.checkpoint, reason, now), notify, DiscardState(pending.checkpoint), *failed)


def _count_failure(
    coordinator: Coordinator, checkpoint: int | None, reason: FailureReason, task: int | None
) -> _Answer:
    """Count a failure of a checkpoint, and fail the job if there are more than tolerated."""
    failures, too_many = coordinator.failures.with_failure(checkpoint, reason)
    return replace(coordinator, failures=failures), ((FailJob(reason, task),) if too_many else ())


def _complete_checkpoint(coordinator: Coordinator, pending: PendingCheckpoint, now: int) -> _Answer:
    """Complete a checkpoint.  A savepoint subsumes no checkpoint, and notifies tasks only if the job stops with it."""
    others = tuple(p for p in coordinator.pending if p.checkpoint != pending.checkpoint)
    failures = coordinator.failures.with_success(pending.checkpoint)
    after: Coordinator = replace(coordinator, pending=others, failures=failures, last_completion_ns=now)
    commands: _Commands = (RecordCompleted(pending.checkpoint, pending.latest_ack_ns, now),)
    if pending.kind is RequestKind.SAVEPOINT:
        return after, (
            *commands,
            NotifyComplete(pending.checkpoint, pending.plan.wait_for),
        ) if pending.stops else commands
    retained = (*after.retained, pending.checkpoint)
    subsumed, kept = retained[: -after.num_retained], retained[-after.num_retained :]
    after = replace(after, retained=kept, cleaning=after.cleaning + len(subsumed))
    commands = (*commands, *(DiscardState(old) for old in subsumed))
    for older in others:
        if older.checkpoint < pending.checkpoint and older.kind is not RequestKind.SAVEPOINT:
            after, follow_ups = _abort_checkpoint(after, older, FailureReason.CHECKPOINT_SUBSUMED, now)
            commands = (*commands, *follow_ups)
    return after, (*commands, NotifyComplete(pending.checkpoint, pending.plan.wait_for))
