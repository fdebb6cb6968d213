"""One task's part in checkpoints: its barrier handler, its snapshots, and what it remembers of aborted ones.

Joins barriers/ and snapshot.py as Flink's SubtaskCheckpointCoordinatorImpl does; the only machine of a task the runtime talks to.
"""

from __future__ import annotations

from dataclasses import field
from operator import attrgetter

from sim.protocol.barriers.handler import BarrierHandler
from sim.protocol.barriers.tracker import BarrierTracker
from sim.protocol.machine import InvalidTransition, changed, heard
from sim.protocol.phases import Phases, Requirement, complete
from sim.protocol.strategies import Strategy
from sim.protocol.task.snapshot import SnapshotInProgress
from sim.protocol.task_vocabulary import (
    AbortNotified,
    BarrierArrived,
    BarrierEvent,
    CancellationArrived,
    CancelSnapshot,
    DeclineCheckpoint,
    FinishCapture,
    ForwardCancellation,
    InputsComplete,
    PhaseFinished,
    ResumeInputs,
    SnapshotEvent,
    StartSnapshot,
    TaskCommand,
    TaskEvent,
    TriggerReceived,
)
from sim.protocol.value_class import value_class
from sim.protocol.vocabulary import Phase

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
    story: tuple[object, ...] = field(default=(), compare=False, repr=False)

    @classmethod
    def configured(cls, strategy: Strategy, gates: int, phases: Phases | None = None) -> TaskCheckpointing:
        """A task with so many input gates.  `phases` if they are not the strategy's own (e.g. phases.ASYNC_OPERATE)."""
        return cls(strategy.first_barrier_state(gates), complete(strategy.phases if phases is None else phases), strategy.finishing)

    def on(self, event: TaskEvent) -> _Answer:
        if isinstance(event, SnapshotEvent):
            after, commands = self._about_snapshot(event)
        else:
            after, commands = self._about_barriers(event)
        return heard(self, after, event), commands

    def _about_barriers(self, event: BarrierEvent) -> _Answer:
        if isinstance(event, BarrierArrived | CancellationArrived | TriggerReceived) and any(map(_HOLDS_TASK, self.snapshots)):
            raise InvalidTransition("task", self, event, self.story, "its thread is at work for a snapshot")
        handler, inner = self.handler.on(event)
        after, commands = changed(self, handler=handler), ()  # type: TaskCheckpointing, tuple[TaskCommand, ...]
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
            raise InvalidTransition("task", self, event, self.story, "there is no such snapshot")
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
            return changed(task, snapshots=kept), ((command,) if kept != task.snapshots else ())
        case DeclineCheckpoint():
            last = max(task.last_checkpoint, command.checkpoint)
            return changed(task, last_checkpoint=last, aborted=frozenset(n for n in task.aborted if n > last)), (command,)
        case _:
            return task, (command,)


def _begun(task: TaskCheckpointing, start: StartSnapshot, now: int) -> _Answer:
    checkpoint = start.checkpoint
    resume = (ResumeInputs(checkpoint),) if start.resumes else ()
    known = checkpoint in task.aborted or checkpoint + MAX_ABORTED < max(task.aborted, default=0)
    aborted = frozenset(n for n in task.aborted if n > checkpoint) if task.aborted else task.aborted
    if known:  # spare those downstream the alignment
        capture = (CancelSnapshot(checkpoint),) if start.options.unaligned else ()
        return changed(task, last_checkpoint=checkpoint, aborted=aborted), (ForwardCancellation(checkpoint), *capture, *resume)
    snapshot, commands = SnapshotInProgress.begun(start, task.phases, task.waits_for, now)
    return changed(task, last_checkpoint=checkpoint, aborted=aborted, snapshots=(*task.snapshots, snapshot)), commands


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
    return changed(task, snapshots=snapshots), commands


def _remembering(task: TaskCheckpointing, checkpoint: int) -> TaskCheckpointing:
    newest = sorted((*task.aborted, checkpoint))[-MAX_ABORTED:]
    return changed(task, aborted=frozenset(newest))
