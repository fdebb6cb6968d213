"""Checkpointing of one task: its barrier handler, its snapshots and their acknowledgement (SubtaskCheckpointCoordinatorImpl)."""

from __future__ import annotations

from operator import attrgetter

from sim.protocol.barrier_handler import BarrierHandler, BarrierTracker
from sim.protocol.barrier_modes import Phases, Requirement, Strategy
from sim.protocol.machine import InvalidTransition, replace, value_class
from sim.protocol.messages import (
    AbortNotified,
    Acknowledge,
    ArmOutputTimer,
    AsyncFailed,
    BarrierArrived,
    BarrierEvent,
    CancellationArrived,
    CancelSnapshot,
    ChannelStateWritten,
    ConvertOutput,
    DeclineCheckpoint,
    FinishCapture,
    FinishChannelState,
    ForwardBarrier,
    ForwardCancellation,
    InputsComplete,
    OutputBarriersLeft,
    OutputTimedOut,
    Phase,
    PhaseFinished,
    ReleaseTask,
    ResumeInputs,
    RunAsync,
    RunPreBarrier,
    RunSync,
    SnapshotEvent,
    SnapshotTimes,
    StartChannelState,
    StartSnapshot,
    TaskCommand,
    TaskEvent,
    TriggerReceived,
)
from sim.protocol.options import BarrierOptions

# ---- One snapshot of a task: its phases in order, then the conditions of its acknowledgement.
#
# Source: SubtaskCheckpointCoordinatorImpl#checkpointState, AsyncCheckpointRunnable.  The phases before ASYNC hold
# the task thread without interruption.  The host that executes the commands decides how long a phase takes.

_ON_TASK_THREAD = frozenset({Phase.PRE_BARRIER, Phase.FORWARD_BARRIER, Phase.SYNC})

_SnapshotAnswer = tuple["SnapshotInProgress", tuple[TaskCommand, ...]]


@value_class
class SnapshotInProgress:
    """A snapshot of one task, from its first phase to its acknowledgement."""

    start: StartSnapshot
    options: BarrierOptions  # of the barriers that it forwards
    phases: Phases
    missing: frozenset[Requirement]  # requirements of the acknowledgement that are not met yet
    phase: Phase = Phase.PRE_BARRIER
    phase_began_ns: int = 0
    alignment_ns: int = -1  # -1: barriers are missing
    pre_barrier_ns: int = 0
    sync_ns: int = 0
    channel_state: bool | None = None  # whether it is durable; None: the snapshot has none
    closing: bool = False  # FinishChannelState was issued
    aborted: bool = False  # the abort arrived while the snapshot held the task thread, and is handled afterwards
    ended: bool = False  # acknowledged, declined or cancelled

    @classmethod
    def begun(
        cls, start: StartSnapshot, phases: Phases, waits_for: frozenset[Requirement], now: int
    ) -> _SnapshotAnswer:
        """Start a snapshot.  `waits_for`: requirements of the strategy, some of which this snapshot may not need."""
        options = start.options.with_unaligned_supported()
        missing = waits_for if options.needs_channel_state else waits_for & {Requirement.ASYNC_WORK}
        missing = missing if start.barriers_missing else missing - {Requirement.CAPTURED_INPUT}
        missing = missing if options.timeoutable else missing - {Requirement.OUTPUT_BARRIERS}
        state = False if options.needs_channel_state else None
        alignment_ns = -1 if start.alignment_ns is None else start.alignment_ns
        snapshot = cls(
            start, options, phases, missing, phase_began_ns=now, alignment_ns=alignment_ns, channel_state=state
        )
        opening = (StartChannelState(start.checkpoint),) if options.needs_channel_state else ()
        return snapshot, (*opening, RunPreBarrier(start.checkpoint, phases.pre_barrier))

    @property
    def checkpoint(self) -> int:
        return self.start.checkpoint

    @property
    def holds_task(self) -> bool:
        """Whether the snapshot holds the task thread."""
        return self.phase in _ON_TASK_THREAD and not self.ended

    def on(self, event: SnapshotEvent | InputsComplete) -> _SnapshotAnswer:
        """Return the next state of the snapshot and its commands."""
        match event:
            case PhaseFinished():
                return self._phase_finished(event)
            case InputsComplete():
                missing = self.missing - {Requirement.CAPTURED_INPUT}
                return _acknowledge_if_complete(
                    replace(self, missing=missing, alignment_ns=event.alignment_ns), event.now
                )
            case OutputBarriersLeft():
                return self._output_done(event, ())
            case OutputTimedOut():
                waiting = Requirement.OUTPUT_BARRIERS in self.missing
                return self._output_done(event, (ConvertOutput(self.checkpoint),)) if waiting else (self, ())
            case ChannelStateWritten():
                if not self.closing:
                    raise InvalidTransition(self, event, "the channel state is still open")
                return _acknowledge_if_complete(replace(self, channel_state=True), event.now)
            case AsyncFailed():
                if self.phase is not Phase.ASYNC:
                    raise InvalidTransition(self, event, "the asynchronous phase is not running")
                done = DeclineCheckpoint(self.checkpoint, event.reason), CancelSnapshot(self.checkpoint)
                return replace(self, ended=True), done
            case AbortNotified():
                if self.holds_task:  # the notification is a mail, which waits for the task thread
                    return replace(self, aborted=True), ()
                return replace(self, ended=True), (CancelSnapshot(self.checkpoint),)

    def _phase_finished(self, event: PhaseFinished) -> _SnapshotAnswer:
        """Start the next phase, or acknowledge after the asynchronous one if nothing else is missing."""
        if event.phase is not self.phase or self.phase is Phase.ACKNOWLEDGE:
            raise InvalidTransition(self, event, f"the snapshot is in phase {self.phase.value}")
        if event.phase is Phase.ASYNC:
            if Requirement.ASYNC_WORK not in self.missing:
                raise InvalidTransition(self, event, "the phase has finished already")
            return _acknowledge_if_complete(replace(self, missing=self.missing - {Requirement.ASYNC_WORK}), event.now)
        after = replace(self, phase_began_ns=event.now)  # type: SnapshotInProgress
        spent = event.now - self.phase_began_ns
        if event.phase is Phase.PRE_BARRIER:
            after = replace(after, phase=Phase.FORWARD_BARRIER, pre_barrier_ns=spent)
            return after, (ForwardBarrier(self.checkpoint, self.options),)
        if event.phase is Phase.FORWARD_BARRIER:
            return _start_sync_phase(replace(after, phase=Phase.SYNC), event.now)
        return _start_async_phase(replace(after, phase=Phase.ASYNC, sync_ns=spent))

    def _output_done(
        self, event: OutputBarriersLeft | OutputTimedOut, commands: tuple[TaskCommand, ...]
    ) -> _SnapshotAnswer:
        """Handle that the barriers in the output queues have left or are converted."""
        if self.phase is Phase.PRE_BARRIER:
            raise InvalidTransition(self, event, "the barrier has not been forwarded")
        after, follow_ups = _acknowledge_if_complete(
            replace(self, missing=self.missing - {Requirement.OUTPUT_BARRIERS}), event.now
        )
        return after, (*commands, *follow_ups)


def _start_sync_phase(snapshot: SnapshotInProgress, now: int) -> _SnapshotAnswer:
    """Continue after the barrier is forwarded.  The data it overtook is final unless the barrier may still be converted."""
    after, closing = _acknowledge_if_complete(snapshot, now)
    timer: tuple[TaskCommand, ...] = ()
    if Requirement.OUTPUT_BARRIERS in snapshot.missing:
        timer = (ArmOutputTimer(snapshot.checkpoint, max(now, snapshot.options.deadline_ns)),)
    return after, (*timer, *closing, RunSync(snapshot.checkpoint, snapshot.phases.sync))


def _start_async_phase(snapshot: SnapshotInProgress) -> _SnapshotAnswer:
    """Continue after the sync phase: release the task thread, resume blocked channels, and start the asynchronous phase."""
    resume = (ResumeInputs(snapshot.checkpoint),) if snapshot.start.resumes else ()
    released = ReleaseTask(snapshot.checkpoint), *resume
    if snapshot.aborted:
        return replace(snapshot, ended=True), (*released, CancelSnapshot(snapshot.checkpoint))
    return snapshot, (*released, RunAsync(snapshot.checkpoint, snapshot.phases.asynchronous))


_CHANNEL_PARTS = frozenset({Requirement.CAPTURED_INPUT, Requirement.OUTPUT_BARRIERS})


def _acknowledge_if_complete(snapshot: SnapshotInProgress, now: int) -> _SnapshotAnswer:
    """Close the channel state when its size is final.  Acknowledge when all requirements are met."""
    checkpoint = snapshot.checkpoint
    if snapshot.channel_state is False and not snapshot.closing and not snapshot.missing & _CHANNEL_PARTS:
        if snapshot.phase in (Phase.SYNC, Phase.ASYNC):  # the output part is complete once the barrier is forwarded
            return replace(snapshot, closing=True), (FinishChannelState(checkpoint),)
    if snapshot.phase is Phase.ASYNC and not snapshot.missing and snapshot.channel_state is not False:
        return replace(snapshot, phase=Phase.ACKNOWLEDGE, ended=True), (Acknowledge(checkpoint, _times(snapshot, now)),)
    return snapshot, ()


def _times(snapshot: SnapshotInProgress, now: int) -> SnapshotTimes:
    return SnapshotTimes(
        first_barrier_ns=snapshot.start.first_barrier_ns,
        alignment_ns=snapshot.alignment_ns,
        pre_barrier_ns=snapshot.pre_barrier_ns,
        sync_ns=snapshot.sync_ns,
        async_ns=now - snapshot.phase_began_ns,
    )


# ---- All checkpoints of one task (SubtaskCheckpointCoordinatorImpl): barrier handler, snapshots, aborted checkpoints.
#
# The runtime sends all barrier and snapshot events of a task to this machine.

MAX_ABORTED = 128
"""Aborted checkpoints remembered (DEFAULT_MAX_RECORD_ABORTED_CHECKPOINTS).  If there are more, older ones count as aborted."""

_CHECKPOINT, _HOLDS_TASK = attrgetter("checkpoint"), attrgetter("holds_task")

_Answer = tuple["TaskCheckpointing", tuple[TaskCommand, ...]]


@value_class
class TaskCheckpointing:
    """The checkpointing of one task: barrier handler, snapshots, and aborted checkpoints."""

    handler: BarrierHandler | BarrierTracker
    phases: Phases
    waits_for: frozenset[Requirement]
    snapshots: tuple[SnapshotInProgress, ...] = ()  # oldest first
    aborted: frozenset[int] = frozenset()  # notified before their snapshot started
    last_checkpoint: int = 0  # newest checkpoint started or declined; the handler starts no older one

    @classmethod
    def configured(cls, strategy: Strategy, gates: int, phases: Phases | None = None) -> TaskCheckpointing:
        """Create the machine of a task with `gates` input gates.  `phases` replace those of the strategy (e.g. ASYNC_OPERATE)."""
        return cls(strategy.first_barrier_state(gates), phases or strategy.phases, strategy.finishing)

    def on(self, event: TaskEvent) -> _Answer:
        """Return the next machine and its commands."""
        return self._on_snapshot_event(event) if isinstance(event, SnapshotEvent) else self._on_barrier_event(event)

    def _on_barrier_event(self, event: BarrierEvent) -> _Answer:
        """Pass an event to the barrier handler, and execute those of its commands that concern snapshots."""
        if isinstance(event, BarrierArrived | CancellationArrived | TriggerReceived) and any(
            map(_HOLDS_TASK, self.snapshots)
        ):
            raise InvalidTransition(self, event, "a snapshot holds the task thread")
        handler, inner = self.handler.on(event)
        after, commands = replace(self, handler=handler), ()  # type: TaskCheckpointing, tuple[TaskCommand, ...]
        for command in inner:
            after, follow_ups = _execute(after, command, event.now)
            commands = (*commands, *follow_ups)
        return after, commands

    def _on_snapshot_event(self, event: SnapshotEvent) -> _Answer:
        """Pass an event to its snapshot, or ignore it if the snapshot was cancelled."""
        if event.checkpoint in map(_CHECKPOINT, self.snapshots):
            return _dispatch_to_snapshot(self, event)
        if isinstance(event, AbortNotified):
            return (_with_aborted(self, event.checkpoint) if event.checkpoint > self.last_checkpoint else self), ()
        if isinstance(event, PhaseFinished) and event.phase is not Phase.ASYNC:
            raise InvalidTransition(self, event, "the task has no such snapshot")
        return self, ()  # the snapshot was cancelled


def _execute(task: TaskCheckpointing, command: TaskCommand | StartSnapshot | InputsComplete, now: int) -> _Answer:
    """Execute commands of the barrier handler that concern snapshots.  Return the others for the host."""
    match command:
        case StartSnapshot():
            return _start_snapshot(task, command, now)
        case InputsComplete():
            return _dispatch_to_snapshot(task, command)
        case FinishCapture():
            return task, ((command,) if command.checkpoint in map(_CHECKPOINT, task.snapshots) else ())
        case CancelSnapshot():
            kept = tuple(s for s in task.snapshots if s.checkpoint != command.checkpoint)
            return replace(task, snapshots=kept), ((command,) if kept != task.snapshots else ())
        case DeclineCheckpoint():
            last = max(task.last_checkpoint, command.checkpoint)
            return replace(task, last_checkpoint=last, aborted=frozenset(n for n in task.aborted if n > last)), (
                command,
            )
        case _:
            return task, (command,)


def _start_snapshot(task: TaskCheckpointing, start: StartSnapshot, now: int) -> _Answer:
    """Start a snapshot.  If its checkpoint is aborted already, forward a cancellation marker instead."""
    checkpoint = start.checkpoint
    resume = (ResumeInputs(checkpoint),) if start.resumes else ()
    was_aborted = checkpoint in task.aborted or checkpoint + MAX_ABORTED < max(task.aborted, default=0)
    aborted = frozenset(n for n in task.aborted if n > checkpoint)
    if was_aborted:  # downstream tasks need not align
        capture = (CancelSnapshot(checkpoint),) if start.options.unaligned else ()
        return replace(task, last_checkpoint=checkpoint, aborted=aborted), (
            ForwardCancellation(checkpoint),
            *capture,
            *resume,
        )
    snapshot, commands = SnapshotInProgress.begun(start, task.phases, task.waits_for, now)
    return replace(task, last_checkpoint=checkpoint, aborted=aborted, snapshots=(*task.snapshots, snapshot)), commands


def _dispatch_to_snapshot(task: TaskCheckpointing, event: SnapshotEvent | InputsComplete) -> _Answer:
    """Pass an event to its snapshot, and remove the snapshot if it has ended."""
    snapshots: tuple[SnapshotInProgress, ...] = ()
    commands: tuple[TaskCommand, ...] = ()
    for snapshot in task.snapshots:
        if snapshot.checkpoint != event.checkpoint:
            snapshots = (*snapshots, snapshot)
            continue
        after, commands = snapshot.on(event)
        if not after.ended:
            snapshots = (*snapshots, after)
    return replace(task, snapshots=snapshots), commands


def _with_aborted(task: TaskCheckpointing, checkpoint: int) -> TaskCheckpointing:
    newest = sorted((*task.aborted, checkpoint))[-MAX_ABORTED:]
    return replace(task, aborted=frozenset(newest))
