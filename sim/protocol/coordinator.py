"""The coordinator of checkpoints (CheckpointCoordinator): timer, pending checkpoints, failures it tolerates."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from sim.model.checkpoint import Barriers, CheckpointOptions
from sim.protocol.barrier_modes import barrier_options, strategy
from sim.protocol.checkpoint_requests import PendingCheckpoint, PendingState, TriggerRequest, WaitingRequests
from sim.protocol.coordinator_messages import (
    Acknowledged,
    ArmCheckpointTimeout,
    ArmPeriodicTimer,
    BacklogReported,
    CancelPeriodicTimer,
    CheckpointRequested,
    CheckpointTimedOut,
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
    RecordRefused,
    RecordTriggered,
    RequestKind,
    Savepoint,
    SchedulerStarted,
    SchedulerStopped,
    StateDiscarded,
    TriggerReady,
    TriggerTasks,
    WriteMetadata,
)
from sim.protocol.machine import InvalidTransition, value_class
from sim.protocol.options import FailureReason

# ---- When periodic checkpoints are due: a fixed-rate grid that catches up (CheckpointCoordinator.ScheduledTrigger).

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
    """From the start of the scheduler to the first trigger that is not refused [ns]; `draw` is uniform on 32 bits (1.x only).

    1.x draws uniformly from [min-pause, interval].  2.x waits for the min-pause alone, from the moment all tasks run
    (ExecutionTrackingCheckpointCoordinatorDeActivator).  In a job that was restarted the first of its tasks to run
    starts the scheduler (DefaultExecutionGraph#updateStateInternal).  Without a pause the other tasks do not run yet: a
    checkpoint that is triggered at once is refused, and an interval goes by.
    """
    interval_ns, pause_ns = effective_interval_ns(interval_ns, min_pause_ns), min(min_pause_ns, _YEAR_NS)
    if profile != "2.x":
        return pause_ns + ((draw * (interval_ns - pause_ns + 1)) >> 32)
    return (pause_ns or interval_ns) if restarted else pause_ns + first_trigger_ns


@value_class
class Grid:
    """The fixed-rate schedule of periodic checkpoints.  A late timer does not shift it: missed points are triggered immediately."""

    next_ns: int  # NEVER: it is parked, and a source that has caught up starts it again

    def after_firing(self, interval_ns: int | None) -> Grid:
        """`interval_ns`: the current interval; if None, no trigger follows."""
        return Grid(NEVER if interval_ns is None else self.next_ns + interval_ns)

    def reported(self, now: int, interval_ns: int | None) -> Grid:
        """The interval in force has changed: a shorter one starts now, a longer one does not delay the next trigger (FLIP-309)."""
        return self if interval_ns is None else Grid(min(self.next_ns, now + interval_ns))

    def wake_up_ns(self, now: int) -> int:
        return max(now, self.next_ns)


# ---- How many checkpoints in a row may fail (CheckpointFailureManager).


@value_class
class FailureCounter:
    """Each checkpoint counts once.  A newer success, or failing the job, resets the counter."""

    tolerable: int
    count: int = 0
    counted: frozenset[int] = frozenset()
    last_success: int = 0

    def failed(self, checkpoint: int | None, reason: FailureReason) -> tuple[FailureCounter, bool]:
        """Count a failure.  Also returns whether the job must fail.  Failures before an id is assigned always count."""
        if checkpoint is not None and checkpoint <= self.last_success:
            return self, False
        after = self
        if reason.counts and (checkpoint is None or checkpoint not in self.counted):
            ids = self.counted if checkpoint is None else self.counted | {checkpoint}
            after = replace(self, count=self.count + 1, counted=ids)
        if after.count > after.tolerable:
            return after.forgiven(), True
        return after, False

    def succeeded(self, checkpoint: int) -> FailureCounter:
        return replace(self.forgiven(), last_success=checkpoint) if checkpoint > self.last_success else self

    def forgiven(self) -> FailureCounter:
        return replace(self, count=0, counted=frozenset())


# ---- The checkpoint coordinator: when a checkpoint begins, which tasks must acknowledge it, how it ends (CheckpointCoordinator).
#
# One trigger at a time is prepared; several checkpoints may be pending.

_Commands = tuple[CoordinatorCommand, ...]
_Answer = tuple["Coordinator", _Commands]


@value_class
class Triggering:
    """A checkpoint that has its trigger timestamp (t0) and no id yet."""

    request: TriggerRequest
    trigger_ns: int
    refused: FailureReason | None = None  # the scheduler stopped meanwhile

    @property
    def stops(self) -> bool:
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
    backlog_interval_ns: int | None = None  # while a source reads a backlog; None: no periodic checkpoints then
    backlog: frozenset[int] = frozenset()  # sources that read one
    grid: Grid | None = None  # None: the periodic scheduler is off
    armed_ns: int = 0  # the wake-up the timer stands on
    triggering: Triggering | None = None
    pending: tuple[PendingCheckpoint, ...] = ()  # by id
    # completed checkpoints that are kept, oldest first; without savepoints, which belong to the user
    retained: tuple[int, ...] = ()
    last_completion_ns: int | None = None  # of savepoints too; failures impose no pause
    cleaning: int = 0  # deletions under way
    # changes with each loss and each election: messages to an earlier JobManager, or to none, are lost (JobMasterId)
    leader: int = 0
    absent: bool = False  # there is no JobManager

    @classmethod
    def configured(cls, options: CheckpointOptions, *, num_retained: int = 1, restored: int = 0) -> Coordinator:
        """The coordinator of a fresh job, or of one restored from the checkpoint `restored`, which can be subsumed."""
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
        """The latest completed checkpoint.  Returns 0 if there is none."""
        return self.retained[-1] if self.retained else 0

    @property
    def interval_in_force_ns(self) -> int | None:
        """The interval in force.  Returns None if no trigger follows (CheckpointCoordinator#getCurrentCheckpointInterval)."""
        return self.backlog_interval_ns if self.backlog else self.interval_ns

    @property
    def locked(self) -> bool:
        """Metadata is written under a lock: messages and timeouts wait (CheckpointCoordinator#completePendingCheckpoint)."""
        return any(pending.state is PendingState.WRITING_METADATA for pending in self.pending)

    @property
    def needed(self) -> frozenset[int]:
        """Checkpoints whose contents may still be read: retained ones and pending ones.  A pending savepoint is not subsumed."""
        return frozenset((*self.retained, *(pending.checkpoint for pending in self.pending)))

    def on(self, event: CoordinatorEvent) -> _Answer:
        if self.absent:
            after, commands = self._on_event_without_leader(event)
            return after, commands
        match event:
            case SchedulerStarted():
                after, commands = self._scheduler_started(event)
            case SchedulerStopped():
                after, commands = self._scheduler_stopped(event)
            case LeaderLost():
                after, commands = self._leader_lost(event)
            case LeaderElected():
                raise self._impossible(event, "there is a JobManager already")
            case BacklogReported():
                after, commands = self._backlog_reported(event)
            case PeriodicTimerFired():
                after, commands = self._timer_fired(event)
            case CheckpointRequested():
                after, commands = _enqueue_request(self, event.kind, event.now, event.savepoint)
            case TriggerReady():
                after, commands = self._trigger_ready(event)
            case Acknowledged():
                after, commands = self._acknowledged(event)
            case Declined():
                after, commands = self._declined(event)
            case CheckpointTimedOut():
                after, commands = self._timed_out(event)
            case MetadataWritten():
                after, commands = self._metadata_written(event)
            case StateDiscarded():
                if not self.cleaning:
                    raise self._impossible(event, "nothing is being deleted")
                after, commands = replace(self, cleaning=self.cleaning - 1), ()
        after, follow_ups = _start_next_request(after, event.now)
        return after, (*commands, *follow_ups)

    # ------------------------------------------------------------------------------------------ the scheduler

    def _scheduler_started(self, event: SchedulerStarted) -> _Answer:
        if self.interval_ns is None:
            return self, ()
        if self.grid is not None:
            raise self._impossible(event, "it runs already")
        return _arm_periodic_timer(self, Grid(event.now + event.first_delay_ns), event.now)

    def _scheduler_stopped(self, event: SchedulerStopped) -> _Answer:
        requests, dropped = self.requests.emptied()
        triggering = None if self.triggering is None else replace(self.triggering, refused=event.reason)
        after: Coordinator = replace(self, requests=requests, grid=None, triggering=triggering)
        commands: _Commands = (CancelPeriodicTimer(),) if self.grid is not None else ()
        commands = (*commands, *(RecordRefused(request.kind, event.reason) for request in dropped))
        for pending in self.pending:
            after, follow_ups = _abort_checkpoint(after, pending, event.reason, event.now)
            commands = (*commands, *follow_ups)
        return after, commands

    def _leader_lost(self, event: LeaderLost) -> _Answer:
        """Drop all pending checkpoints and counts.  No task is notified and no file is deleted."""
        requests, dropped = self.requests.emptied()
        under_way = () if self.triggering is None else (self.triggering.request,)
        after: Coordinator = replace(
            self,
            requests=requests,
            failures=FailureCounter(self.failures.tolerable),
            backlog=frozenset(),
            grid=None,
            triggering=None,
            pending=(),
            last_completion_ns=None,
            cleaning=0,
            leader=self.leader + 1,
            absent=True,
        )
        commands: _Commands = (CancelPeriodicTimer(),) if self.grid is not None else ()
        refused = (RecordRefused(request.kind, FailureReason.NO_JOB_MANAGER) for request in (*under_way, *dropped))
        failed = (pending.failed(FailureReason.CHECKPOINT_COORDINATOR_SUSPEND, event.now) for pending in self.pending)
        return after, (*commands, *refused, *failed)

    def _on_event_without_leader(self, event: CoordinatorEvent) -> _Answer:
        """Handle an event without a leader.  Clients get an error; outcomes of earlier work are ignored."""
        match event:
            case LeaderElected():
                return replace(self, leader=self.leader + 1, absent=False), ()
            case CheckpointRequested():
                return self, (RecordRefused(event.kind, FailureReason.NO_JOB_MANAGER),)
            case SchedulerStarted():
                raise self._impossible(event, "there is no JobManager")
        return self, ()

    def accepts_messages_from(self, leader: int) -> bool:
        """Return whether messages addressed to this leader are accepted."""
        return leader == self.leader and not self.absent

    def _backlog_reported(self, event: BacklogReported) -> _Answer:
        backlog = self.backlog | {event.source} if event.behind else self.backlog - {event.source}
        after: Coordinator = replace(self, backlog=backlog)
        if self.grid is None:
            return after, ()
        grid = self.grid.reported(event.now, after.interval_in_force_ns)
        return (after, ()) if grid == self.grid else _arm_periodic_timer(after, grid, event.now)

    def _timer_fired(self, event: PeriodicTimerFired) -> _Answer:
        if self.grid is None or event.now < self.armed_ns:
            return self, ()  # the timer was cancelled, or armed anew
        # parked, it triggers once more all the same (FLINK-39108)
        grid = self.grid.after_firing(self.interval_in_force_ns)
        after, timer = _arm_periodic_timer(self, grid, event.now)
        after, commands = _enqueue_request(after, RequestKind.PERIODIC, event.now)
        return after, (*timer, *commands)

    # ------------------------------------------------------------------------------------------ the trigger

    def _trigger_ready(self, event: TriggerReady) -> _Answer:
        if self.triggering is None:
            raise self._impossible(event, "no trigger is being prepared")
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
            raise self._impossible(event, "no task is left to acknowledge")
        savepoint = triggering.request.savepoint
        pending = PendingCheckpoint(self.next_id, kind, triggering.trigger_ns, event.plan, savepoint=savepoint)
        options = barrier_options(self.barriers, pending.trigger_ns, savepoint=kind is RequestKind.SAVEPOINT)
        if savepoint is not None:
            options = replace(options, stop=savepoint.stop, type=savepoint.format)
        return replace(after, next_id=self.next_id + 1, pending=(*self.pending, pending)), (
            RecordTriggered(pending.checkpoint, pending.trigger_ns, kind, event.plan, savepoint),
            # measured from here, slightly after t0
            ArmCheckpointTimeout(pending.checkpoint, event.now + self.timeout_ns),
            TriggerTasks(pending.checkpoint, event.plan.trigger, options),
        )

    # ------------------------------------------------------------------------------------------ a pending checkpoint

    def _acknowledged(self, event: Acknowledged) -> _Answer:
        pending = self._find(event)
        if pending is None:
            return self, ()  # too late; `SnapshotStore` decides about its files
        if event.task not in pending.plan.wait_for or event.task in pending.acknowledged:
            raise self._impossible(event, "this acknowledgement is not awaited")
        pending = pending.with_acknowledgement(event.task, event.now)
        all_pending = tuple(pending if p.checkpoint == pending.checkpoint else p for p in self.pending)
        commands: _Commands = (
            (WriteMetadata(pending.checkpoint),) if pending.state is PendingState.WRITING_METADATA else ()
        )
        return replace(self, pending=all_pending), commands

    def _declined(self, event: Declined) -> _Answer:
        pending = self._find(event)
        if pending is None or pending.state is PendingState.WRITING_METADATA:
            return self, ()
        return _abort_checkpoint(self, pending, event.reason, event.now, event.task)

    def _timed_out(self, event: CheckpointTimedOut) -> _Answer:
        pending = self._find(event)
        if pending is None or pending.state is PendingState.WRITING_METADATA:
            return self, ()
        return _abort_checkpoint(self, pending, FailureReason.CHECKPOINT_EXPIRED, event.now)

    def _metadata_written(self, event: MetadataWritten) -> _Answer:
        pending = self._find(event)
        if pending is None:
            return self, ()  # aborted meanwhile
        if pending.state is not PendingState.WRITING_METADATA:
            raise self._impossible(event, "acknowledgements are missing")
        if event.failed:
            return _abort_checkpoint(self, pending, event.reason, event.now)
        return _complete_checkpoint(self, pending, event.now)

    def _find(self, event: Acknowledged | Declined | CheckpointTimedOut | MetadataWritten) -> PendingCheckpoint | None:
        if event.checkpoint >= self.next_id:
            raise self._impossible(event, "this checkpoint was never triggered")
        return next((pending for pending in self.pending if pending.checkpoint == event.checkpoint), None)

    def _impossible(self, event: CoordinatorEvent, why: str) -> InvalidTransition:
        return InvalidTransition("coordinator", self, event, why)


# ---------------------------------------------------------------------------------------------- steps

_JOB_IS_DOWN = frozenset(
    {
        FailureReason.CHECKPOINT_COORDINATOR_SUSPEND,
        FailureReason.CHECKPOINT_COORDINATOR_SHUTDOWN,
        FailureReason.JOB_FAILOVER_REGION,
    }
)


def _arm_periodic_timer(coordinator: Coordinator, grid: Grid, now: int) -> _Answer:
    at_ns = grid.wake_up_ns(now)
    return replace(coordinator, grid=grid, armed_ns=at_ns), (() if at_ns >= NEVER else (ArmPeriodicTimer(at_ns),))


def _resume_periodic_triggers(coordinator: Coordinator, now: int) -> _Answer:
    """Resume periodic triggers after a failed stop-with-savepoint."""
    if coordinator.interval_ns is None or coordinator.grid is not None:
        return coordinator, ()
    return _arm_periodic_timer(coordinator, Grid(now + coordinator.interval_ns), now)


def _enqueue_request(
    coordinator: Coordinator, kind: RequestKind, now: int, savepoint: Savepoint | None = None
) -> _Answer:
    """Savepoints are forced only where unaligned checkpoints are off (CheckpointProperties.forSavepoint)."""
    forced = kind is RequestKind.SAVEPOINT and not strategy(coordinator.barriers).unaligned_allowed
    requests, dropped = coordinator.requests.with_one(TriggerRequest(kind, now, forced, savepoint))
    refused = () if dropped is None else (RecordRefused(dropped.kind, FailureReason.TOO_MANY_CHECKPOINT_REQUESTS),)
    return replace(coordinator, requests=requests), refused


def _start_next_request(coordinator: Coordinator, now: int) -> _Answer:
    """Run the next request if it may run now."""
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
        return replace(after, triggering=Triggering(choice.run, now)), (PrepareTrigger(now, choice.run.kind),)
    if choice.postpone is None:
        return after, ()
    refused = RecordRefused(choice.postpone.kind, FailureReason.MINIMUM_TIME_BETWEEN_CHECKPOINTS)
    if after.interval_ns is None or after.grid is None:
        return after, (refused,)
    after, timer = _arm_periodic_timer(after, Grid(choice.until_ns), now)  # the old grid is given up
    return after, (refused, *timer)


def _abort_checkpoint(
    coordinator: Coordinator, pending: PendingCheckpoint, reason: FailureReason, now: int, task: int | None = None
) -> _Answer:
    """Abort a checkpoint: notify tasks, delete its files, count it.  A savepoint counts only if a task failed it."""
    others = tuple(p for p in coordinator.pending if p.checkpoint != pending.checkpoint)
    after: Coordinator = replace(coordinator, pending=others, cleaning=coordinator.cleaning + 1)
    failed: _Commands = ()
    if pending.stops and reason not in _JOB_IS_DOWN:
        # its tasks have ended their data: only a restart brings them back
        failed = (FailJob(reason, None, stopping=True),)
    elif pending.kind is not RequestKind.SAVEPOINT or task is not None:
        after, failed = _count_failure(after, pending.checkpoint, reason, task)
    notify = NotifyAborted(pending.checkpoint, pending.plan.wait_for, after.latest_completed)
    return after, (pending.failed(reason, now), notify, DiscardState(pending.checkpoint), *failed)


def _count_failure(
    coordinator: Coordinator, checkpoint: int | None, reason: FailureReason, task: int | None
) -> _Answer:
    failures, too_many = coordinator.failures.failed(checkpoint, reason)
    return replace(coordinator, failures=failures), ((FailJob(reason, task),) if too_many else ())


def _complete_checkpoint(coordinator: Coordinator, pending: PendingCheckpoint, now: int) -> _Answer:
    """Complete a checkpoint.  A savepoint subsumes nothing, and notifies tasks, which then commit, only if the job stops with it."""
    others = tuple(p for p in coordinator.pending if p.checkpoint != pending.checkpoint)
    failures = coordinator.failures.succeeded(pending.checkpoint)
    after: Coordinator = replace(coordinator, pending=others, failures=failures, last_completion_ns=now)
    commands: _Commands = (pending.completed(now),)
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
