"""Checkpoints of one task: barriers, the parts of a snapshot, acknowledgement."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from typing import NoReturn

from sim.protocol.barrier_handler import BarrierHandler, BarrierTracker
from sim.protocol.barrier_modes import Phases, Requirement, Strategy, complete, work_of
from sim.protocol.coordinator_messages import Phase, SnapshotTimes
from sim.protocol.machine import InvalidTransition, value_class
from sim.protocol.options import BarrierOptions
from sim.protocol.task_messages import (
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
    PhaseFinished,
    ReleaseTask,
    ResumeInputs,
    RunAsync,
    RunPreBarrier,
    RunSync,
    SnapshotEvent,
    StartChannelState,
    StartSnapshot,
    TaskCommand,
    TaskEvent,
    TriggerReceived,
)

# ---- One snapshot inside a task: its phases in order, then what its acknowledgement still waits for.
#
# Source:  SubtaskCheckpointCoordinatorImpl#checkpointState, AsyncCheckpointRunnable.  The phases before RESUME_INPUTS
# are atomic on the task thread.  The host that carries the commands out decides how long a phase takes, and what is
# written where.

NEXT_PHASE: dict[Phase, Phase] = {
    Phase.PRE_BARRIER: Phase.FORWARD_BARRIER,
    Phase.FORWARD_BARRIER: Phase.SYNC,
    Phase.SYNC: Phase.RESUME_INPUTS,
    Phase.RESUME_INPUTS: Phase.ASYNC,
    Phase.ASYNC: Phase.ACKNOWLEDGE,
}
"""The order of the phases.  RESUME_INPUTS takes no time; ASYNC ends when every part the snapshot waits for is there."""

_ON_TASK_THREAD = frozenset({Phase.PRE_BARRIER, Phase.FORWARD_BARRIER, Phase.SYNC})

_SnapshotAnswer = tuple["SnapshotInProgress", tuple[TaskCommand, ...]]


@value_class
class SnapshotInProgress:
    """A snapshot of one task, from its first phase to its acknowledgement."""

    start: StartSnapshot
    options: BarrierOptions  # of the barriers it writes: a forced aligned one is restored
    phases: Phases
    missing: frozenset[Requirement]  # what the acknowledgement still waits for
    phase: Phase = Phase.PRE_BARRIER
    phase_began_ns: int = 0
    alignment_ns: int = -1  # -1: not over
    pre_barrier_ns: int = 0
    forward_ns: int = 0
    sync_ns: int = 0
    channel_state: bool | None = None  # None: there is none; False: not durable yet
    closing: bool = False  # the channel state has been told that nothing more comes
    aborted: bool = False  # notified while the task thread was at work: heard afterwards
    ended: bool = False  # acknowledged, declined or cancelled: to be forgotten

    @classmethod
    def begun(
        cls, start: StartSnapshot, phases: Phases, waits_for: frozenset[Requirement], now: int
    ) -> _SnapshotAnswer:
        """Take the first step.  `waits_for` is the strategy's finishing rule; a checkpoint without channel state needs less."""
        options = start.options.restored()
        missing = waits_for if options.needs_channel_state else waits_for & {Requirement.ASYNC_WORK}
        missing = missing if start.barriers_missing else missing - {Requirement.CAPTURED_INPUT}
        missing = missing if options.timeoutable else missing - {Requirement.OUTPUT_BARRIERS}
        state = False if options.needs_channel_state else None
        alignment_ns = -1 if start.alignment_ns is None else start.alignment_ns
        snapshot = cls(
            start, options, phases, missing, phase_began_ns=now, alignment_ns=alignment_ns, channel_state=state
        )
        opening = (StartChannelState(start.checkpoint),) if options.needs_channel_state else ()
        return snapshot, (*opening, RunPreBarrier(start.checkpoint, work_of(phases, Phase.PRE_BARRIER)))

    @property
    def checkpoint(self) -> int:
        return self.start.checkpoint

    @property
    def holds_task(self) -> bool:
        """Whether the task thread works for this snapshot."""
        return self.phase in _ON_TASK_THREAD and not self.ended

    def on(self, event: SnapshotEvent | InputsComplete) -> _SnapshotAnswer:
        match event:
            case PhaseFinished():
                after, commands = self._phase_finished(event)
            case InputsComplete():
                known = replace(
                    self, missing=self.missing - {Requirement.CAPTURED_INPUT}, alignment_ns=event.alignment_ns
                )
                after, commands = _settled(known, event.now)
            case OutputBarriersLeft():
                after, commands = self._output_done(event, ())
            case OutputTimedOut():
                waiting = Requirement.OUTPUT_BARRIERS in self.missing
                after, commands = self._output_done(event, (ConvertOutput(self.checkpoint),)) if waiting else (self, ())
            case ChannelStateWritten():
                if not self.closing:
                    self._impossible(event, "the channel state is still open")
                after, commands = _settled(replace(self, channel_state=True), event.now)
            case AsyncFailed():
                if self.phase is not Phase.ASYNC:
                    self._impossible(event, "nothing asynchronous runs")
                done = DeclineCheckpoint(self.checkpoint, event.reason), CancelSnapshot(self.checkpoint)
                after, commands = replace(self, ended=True), done
            case AbortNotified():
                if self.holds_task:  # the mail waits until the thread is free
                    after, commands = replace(self, aborted=True), ()
                else:
                    after, commands = replace(self, ended=True), (CancelSnapshot(self.checkpoint),)
        return after, commands

    def _phase_finished(self, event: PhaseFinished) -> _SnapshotAnswer:
        if event.phase is not self.phase or self.phase is Phase.ACKNOWLEDGE:
            self._impossible(event, f"the phase is {self.phase.value}")
        if event.phase is Phase.ASYNC:
            if Requirement.ASYNC_WORK not in self.missing:
                self._impossible(event, "it has finished before")
            return _settled(replace(self, missing=self.missing - {Requirement.ASYNC_WORK}), event.now)
        spent, then = event.now - self.phase_began_ns, NEXT_PHASE[event.phase]
        if event.phase is Phase.PRE_BARRIER:
            after = replace(self, phase=then, phase_began_ns=event.now, pre_barrier_ns=spent)
            return after, (ForwardBarrier(self.checkpoint, self.options),)
        if event.phase is Phase.FORWARD_BARRIER:
            return _forwarded(replace(self, phase=then, phase_began_ns=event.now, forward_ns=spent), event.now)
        return _back_to_records(replace(self, phase=NEXT_PHASE[then], phase_began_ns=event.now, sync_ns=spent))

    def _output_done(
        self, event: OutputBarriersLeft | OutputTimedOut, commands: tuple[TaskCommand, ...]
    ) -> _SnapshotAnswer:
        if self.phase is Phase.PRE_BARRIER:
            self._impossible(event, "no barrier has been written")
        after, follow_ups = _settled(replace(self, missing=self.missing - {Requirement.OUTPUT_BARRIERS}), event.now)
        return after, (*commands, *follow_ups)

    def _impossible(self, event: object, why: str) -> NoReturn:
        raise InvalidTransition("snapshot", self, event, why)


def _forwarded(snapshot: SnapshotInProgress, now: int) -> _SnapshotAnswer:
    """The barrier is on its way.  What it overtook is final, unless it may still be converted at the deadline."""
    after, closing = _settled(snapshot, now)
    timer: tuple[TaskCommand, ...] = ()
    if Requirement.OUTPUT_BARRIERS in snapshot.missing:
        timer = (ArmOutputTimer(snapshot.checkpoint, max(now, snapshot.options.deadline_ns)),)
    return after, (*timer, *closing, RunSync(snapshot.checkpoint, work_of(snapshot.phases, Phase.SYNC)))


def _back_to_records(snapshot: SnapshotInProgress) -> _SnapshotAnswer:
    """RESUME_INPUTS takes no time, ASYNC begins: the channels stayed blocked through the sync phase."""
    resume = (ResumeInputs(snapshot.checkpoint),) if snapshot.start.resumes else ()
    released = ReleaseTask(snapshot.checkpoint), *resume
    if snapshot.aborted:
        return replace(snapshot, ended=True), (*released, CancelSnapshot(snapshot.checkpoint))
    return snapshot, (*released, RunAsync(snapshot.checkpoint, work_of(snapshot.phases, Phase.ASYNC)))


_CHANNEL_PARTS = frozenset({Requirement.CAPTURED_INPUT, Requirement.OUTPUT_BARRIERS})


def _settled(snapshot: SnapshotInProgress, now: int) -> _SnapshotAnswer:
    """Close the channel state when its volume is final; acknowledge when nothing is missing."""
    checkpoint = snapshot.checkpoint
    if snapshot.channel_state is False and not snapshot.closing and not snapshot.missing & _CHANNEL_PARTS:
        if snapshot.phase in (Phase.SYNC, Phase.ASYNC):  # the output part is known once the barrier is written
            return replace(snapshot, closing=True), (FinishChannelState(checkpoint),)
    if snapshot.phase is Phase.ASYNC and not snapshot.missing and snapshot.channel_state is not False:
        return replace(snapshot, phase=Phase.ACKNOWLEDGE, ended=True), (Acknowledge(checkpoint, _times(snapshot, now)),)
    return snapshot, ()


def _times(snapshot: SnapshotInProgress, now: int) -> SnapshotTimes:
    return SnapshotTimes(
        first_barrier_ns=snapshot.start.first_barrier_ns,
        start_delay_ns=snapshot.start.start_delay_ns,
        alignment_ns=snapshot.alignment_ns,
        pre_barrier_ns=snapshot.pre_barrier_ns,
        forward_ns=snapshot.forward_ns,
        sync_ns=snapshot.sync_ns,
        async_ns=now - snapshot.phase_began_ns,
        unaligned=snapshot.start.options.unaligned,
    )


# ---- One task's part in checkpoints: its barrier handler, its snapshots, and what it remembers of aborted ones.
#
# Joins barriers/ and snapshot.py as Flink's SubtaskCheckpointCoordinatorImpl does; the only machine of a task the
# runtime talks to.

MAX_ABORTED = 128
"""Aborted checkpoints remembered (StreamTask: DEFAULT_MAX_RECORD_ABORTED_CHECKPOINTS); older ones count as aborted."""

_CHECKPOINT, _HOLDS_TASK = attrgetter("checkpoint"), attrgetter("holds_task")

_Answer = tuple["TaskCheckpointing", tuple[TaskCommand, ...]]


@value_class
class TaskCheckpointing:
    """The checkpointing of one task: barrier handler, snapshots, and aborted checkpoints."""

    handler: BarrierHandler | BarrierTracker
    phases: Phases
    waits_for: frozenset[Requirement]
    snapshots: tuple[SnapshotInProgress, ...] = ()  # oldest first
    aborted: frozenset[int] = frozenset()  # notified before their snapshot began
    last_checkpoint: int = 0  # begun or given up; the handler lets no older one begin

    @classmethod
    def configured(cls, strategy: Strategy, gates: int, phases: Phases | None = None) -> TaskCheckpointing:
        """A task with so many input gates.  `phases` if they are not the strategy's own (e.g. phases.ASYNC_OPERATE)."""
        return cls(
            strategy.first_barrier_state(gates),
            complete(strategy.phases if phases is None else phases),
            strategy.finishing,
        )

    def on(self, event: TaskEvent) -> _Answer:
        if isinstance(event, SnapshotEvent):
            after, commands = self._about_snapshot(event)
        else:
            after, commands = self._about_barriers(event)
        return after, commands

    def _about_barriers(self, event: BarrierEvent) -> _Answer:
        if isinstance(event, BarrierArrived | CancellationArrived | TriggerReceived) and any(
            map(_HOLDS_TASK, self.snapshots)
        ):
            raise InvalidTransition("task", self, event, "its thread is at work for a snapshot")
        handler, inner = self.handler.on(event)
        after, commands = replace(self, handler=handler), ()  # type: TaskCheckpointing, tuple[TaskCommand, ...]
        for command in inner:
            after, follow_ups = _carried_out(after, command, event.now)
            commands = (*commands, *follow_ups)
        return after, commands

    def _about_snapshot(self, event: SnapshotEvent) -> _Answer:
        if event.checkpoint in map(_CHECKPOINT, self.snapshots):
            return _to_snapshot(self, event)
        if isinstance(event, AbortNotified):
            return (_remembering(self, event.checkpoint) if event.checkpoint > self.last_checkpoint else self), ()
        if isinstance(event, PhaseFinished) and event.phase is not Phase.ASYNC:
            raise InvalidTransition("task", self, event, "there is no such snapshot")
        return self, ()  # it was cancelled meanwhile


def _carried_out(task: TaskCheckpointing, command: TaskCommand | StartSnapshot | InputsComplete, now: int) -> _Answer:
    """Carry out the commands of the barrier handler that are about snapshots.  The host gets the others."""
    match command:
        case StartSnapshot():
            return _begun(task, command, now)
        case InputsComplete():
            return _to_snapshot(task, command)
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


def _begun(task: TaskCheckpointing, start: StartSnapshot, now: int) -> _Answer:
    checkpoint = start.checkpoint
    resume = (ResumeInputs(checkpoint),) if start.resumes else ()
    known = checkpoint in task.aborted or checkpoint + MAX_ABORTED < max(task.aborted, default=0)
    aborted = frozenset(n for n in task.aborted if n > checkpoint) if task.aborted else task.aborted
    if known:  # spare those downstream the alignment
        capture = (CancelSnapshot(checkpoint),) if start.options.unaligned else ()
        return replace(task, last_checkpoint=checkpoint, aborted=aborted), (
            ForwardCancellation(checkpoint),
            *capture,
            *resume,
        )
    snapshot, commands = SnapshotInProgress.begun(start, task.phases, task.waits_for, now)
    return replace(task, last_checkpoint=checkpoint, aborted=aborted, snapshots=(*task.snapshots, snapshot)), commands


def _to_snapshot(task: TaskCheckpointing, event: SnapshotEvent | InputsComplete) -> _Answer:
    """Pass an event to its snapshot; forget the snapshot when it has ended."""
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


def _remembering(task: TaskCheckpointing, checkpoint: int) -> TaskCheckpointing:
    newest = sorted((*task.aborted, checkpoint))[-MAX_ABORTED:]
    return replace(task, aborted=frozenset(newest))
