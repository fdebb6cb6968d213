"""Barrier handlers of a task (CheckpointBarrierTracker, SingleCheckpointBarrierHandler)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from sim.protocol.machine import InvalidTransition, replace, value_class
from sim.protocol.messages import (
    AlignmentTimedOut,
    ArmAlignmentTimer,
    BarrierAnnounced,
    BarrierArrived,
    BarrierEvent,
    CancellationArrived,
    CancelSnapshot,
    CaptureInput,
    DeclineCheckpoint,
    FinishCapture,
    ForwardCancellation,
    GateClosed,
    InnerCommand,
    InputEnded,
    InputsComplete,
    PrioritiseInput,
    ResumeInputs,
    SettleBarriers,
    StartSnapshot,
    TaskCommand,
    TriggerReceived,
)
from sim.protocol.options import BarrierOptions, FailureReason

# ---- The checkpoint whose barriers are collected, and the states of the barrier handler (BarrierHandlerState).

Commands = tuple[TaskCommand | InnerCommand, ...]
Transition = tuple["BarrierState", Commands]


@value_class
class Pending:
    """The checkpoint whose barriers a task collects."""

    checkpoint: int
    options: BarrierOptions  # of its first barrier or announcement
    target: frozenset[int]  # gates that were open at that time
    seen: frozenset[int] = frozenset()  # gates whose first barrier has arrived
    arrived: frozenset[int] = frozenset()  # gates whose last barrier has arrived
    first_barrier_ns: int | None = None

    @property
    def complete(self) -> bool:
        """Whether the last barrier of every gate has arrived."""
        return self.target <= self.arrived

    def snapshot(self, options: BarrierOptions, now: int) -> StartSnapshot:
        """Return the command that starts the snapshot.  The alignment ends now; the snapshot's own work is not part of it."""
        first = now if self.first_barrier_ns is None else self.first_barrier_ns
        alignment_ns = now - first if self.complete else None
        return StartSnapshot(self.checkpoint, options, first, alignment_ns, resumes=self.complete)

    def inputs_complete(self, now: int) -> InputsComplete:
        """Return the event that ends the alignment of a snapshot that has started already."""
        return InputsComplete(now, self.checkpoint, 0 if self.first_barrier_ns is None else now - self.first_barrier_ns)


class BarrierState(ABC):
    """A state of the barrier handler: aligned at first, unaligned after a timeout or an unaligned barrier.

    All modes with exactly-once checkpoints have the same states.  Barriers without a timeout stay aligned, as in Flink's
    AbstractAlignedBarrierHandlerState: the sender blocks a channel behind its barrier, and the handler resumes it after
    the sync phase.  The first barrier of an unaligned checkpoint makes the first state unaligned at once.  Source: Flink's
    Alternating*Barrier* states.

    Each method returns the next state and the commands.  `pending` already counts the event.
    """

    __slots__ = ()

    @abstractmethod
    def barrier(self, pending: Pending, options: BarrierOptions, now: int) -> Transition:
        """Handle the first and / or last barrier of a gate.  It is unaligned if `options` are."""

    def timeout(self, pending: Pending, now: int) -> Transition:
        """Handle the alignment timer."""
        return self, ()

    def gate_closed(self, pending: Pending, now: int) -> Transition:
        """Handle the end of a gate.  It will not deliver a barrier, and counts as arrived (FLIP-147)."""
        if pending.complete:
            raise ValueError("all gates closed before any barrier arrived")
        return self, ()

    def triggered(self, pending: Pending, options: BarrierOptions, now: int) -> Transition:
        """Handle the coordinator's trigger call when no barrier has arrived."""
        return AlternatingWaitingForFirstBarrier(), (replace(pending.snapshot(options, now), resumes=False),)

    def abort(self, checkpoint: int) -> Transition:
        """Abort the checkpoint and resume blocked inputs."""
        return AlternatingWaitingForFirstBarrier(), (ResumeInputs(checkpoint),)


def _prioritise(pending: Pending) -> Commands:
    """Let queued barriers overtake; only timeoutable ones are queued without priority (prioritizeAllAnnouncements)."""
    return (PrioritiseInput(pending.checkpoint),) if pending.options.timeoutable else ()


def _unaligned_snapshot(pending: Pending, options: BarrierOptions, now: int) -> Commands:
    """Capture in-flight data, then start the snapshot (checkpointStarted, triggerGlobalCheckpoint)."""
    return CaptureInput(pending.checkpoint), pending.snapshot(options.as_unaligned(), now)


class _AlternatingAligned(BarrierState):
    """Base of the two aligned states."""

    __slots__ = ()

    def barrier(self, pending: Pending, options: BarrierOptions, now: int) -> Transition:
        if options.unaligned:
            return self._barrier_after_timeout(pending, options, now)
        if pending.complete:  # checked before the deadline: a complete alignment is never unaligned
            return AlternatingWaitingForFirstBarrier(), (pending.snapshot(options, now),)
        if options.timeoutable and now > options.deadline_ns:  # strictly later (Controller#isTimedOut)
            return self._barrier_after_timeout(pending, options.as_unaligned(), now)
        return AlternatingCollectingBarriers(), ()

    def _barrier_after_timeout(self, pending: Pending, options: BarrierOptions, now: int) -> Transition:
        """Time out, then pass the barrier to the unaligned state."""
        state, commands = self.timeout(pending, now)
        state, follow_ups = state.barrier(pending, options, now)
        return state, (*commands, *follow_ups)


@value_class
class AlternatingWaitingForFirstBarrier(_AlternatingAligned):
    """Aligned; no barrier of this checkpoint has arrived, some may be announced."""

    def timeout(self, pending: Pending, now: int) -> Transition:
        return AlternatingWaitingForFirstBarrierUnaligned(), _prioritise(pending)


@value_class
class AlternatingCollectingBarriers(_AlternatingAligned):
    """Aligned; at least one barrier of this checkpoint has arrived, and at least one is missing."""

    def timeout(self, pending: Pending, now: int) -> Transition:
        return AlternatingCollectingBarriersUnaligned(), (
            *_prioritise(pending),
            *_unaligned_snapshot(pending, pending.options, now),
        )

    def gate_closed(self, pending: Pending, now: int) -> Transition:
        if pending.complete:
            return AlternatingWaitingForFirstBarrier(), (pending.snapshot(pending.options, now),)
        return self, ()


@value_class
class AlternatingWaitingForFirstBarrierUnaligned(BarrierState):
    """Timed out before any barrier arrived: the first barrier, aligned or unaligned, starts the snapshot."""

    def barrier(self, pending: Pending, options: BarrierOptions, now: int) -> Transition:
        commands = _unaligned_snapshot(pending, options, now)
        if pending.complete:
            return AlternatingWaitingForFirstBarrier(), commands
        return AlternatingCollectingBarriersUnaligned(), commands


@value_class
class AlternatingCollectingBarriersUnaligned(BarrierState):
    """The snapshot is in progress; at least one barrier is missing, and the data before it is captured."""

    def barrier(self, pending: Pending, options: BarrierOptions, now: int) -> Transition:
        if not pending.complete:
            return self, ()
        done = FinishCapture(pending.checkpoint), pending.inputs_complete(now), ResumeInputs(pending.checkpoint)
        return AlternatingWaitingForFirstBarrier(), done

    def gate_closed(self, pending: Pending, now: int) -> Transition:
        return self.barrier(pending, pending.options, now)

    def abort(self, checkpoint: int) -> Transition:
        return AlternatingWaitingForFirstBarrier(), (
            FinishCapture(checkpoint),
            CancelSnapshot(checkpoint),
            ResumeInputs(checkpoint),
        )


# ---- At least once: count barriers per checkpoint, block nothing (CheckpointBarrierTracker).
#
# A snapshot may hold the effects of records that followed the barrier on an early channel.  They are replayed after a
# restore, which duplicates their effects.

MAX_TRACKED = 50
"""Incomplete checkpoints tracked at a time; then the oldest is dropped (MAX_CHECKPOINTS_TO_TRACK)."""


@value_class
class BarrierTracker:
    """The barrier tracker of one task."""

    open_gates: frozenset[int]
    tracked: tuple[Pending, ...] = ()  # oldest first
    latest: int = 0  # newest checkpoint known

    @classmethod
    def for_gates(cls, gates: int) -> BarrierTracker:
        """Create the tracker of a task with `gates` input gates, all of them open."""
        return cls(frozenset(range(gates)))

    def on(self, event: BarrierEvent) -> tuple[BarrierTracker, Commands]:
        """Return the next tracker and its commands."""
        if isinstance(event, BarrierAnnounced | AlignmentTimedOut):
            raise InvalidTransition(self, event, "at-least-once barriers have no alignment timeout")
        match event:
            case BarrierArrived():
                return self._barrier(event)
            case CancellationArrived():
                return self._cancellation(event)
            case InputEnded():
                return self._abort_up_to(self.latest, FailureReason.CHECKPOINT_DECLINED_INPUT_END_OF_STREAM)
            case GateClosed():
                return self._gate_closed(event)
            case TriggerReceived():
                return self._trigger(event)

    def _barrier(self, event: BarrierArrived) -> tuple[BarrierTracker, Commands]:
        """Count a barrier.  Start the snapshot when the last barrier of its checkpoint has arrived."""
        if event.priority or event.options.unaligned:
            raise InvalidTransition(self, event, "a barrier tracker cannot process unaligned barriers")
        known = next((p for p in self.tracked if p.checkpoint == event.checkpoint), None)
        if known is None:
            if event.checkpoint <= self.latest:
                return self, ()  # completed, cancelled or dropped
            known = Pending(event.checkpoint, event.options, self.open_gates, first_barrier_ns=event.now)
        if event.gate not in known.target or event.first == (event.gate in known.seen) or event.gate in known.arrived:
            raise InvalidTransition(self, event, "an open gate delivers one first and one last barrier")
        known = replace(
            known, seen=known.seen | {event.gate}, arrived=known.arrived | ({event.gate} if event.last else frozenset())
        )
        older = tuple(p for p in self.tracked if p.checkpoint < event.checkpoint)
        newer = tuple(p for p in self.tracked if p.checkpoint > event.checkpoint)
        after = replace(self, tracked=(*older, known, *newer)[-MAX_TRACKED:], latest=max(self.latest, event.checkpoint))
        return _complete_checkpoint(after, known, event.now) if known.complete else (after, ())

    def _cancellation(self, event: CancellationArrived) -> tuple[BarrierTracker, Commands]:
        """Cancel this checkpoint and all older ones that are tracked."""
        unseen = (event.checkpoint,) if event.checkpoint > self.latest else ()
        return self._abort_up_to(event.checkpoint, FailureReason.CHECKPOINT_DECLINED_ON_CANCELLATION_BARRIER, unseen)

    def _abort_up_to(
        self, up_to: int, reason: FailureReason, unseen: tuple[int, ...] = ()
    ) -> tuple[BarrierTracker, Commands]:
        """Decline all tracked checkpoints up to `up_to`, and those of `unseen`, of which no barrier has arrived."""
        aborted = (*(p.checkpoint for p in self.tracked if p.checkpoint <= up_to), *unseen)
        if not aborted:
            return self, ()
        commands: Commands = (SettleBarriers(up_to),)
        for checkpoint in aborted:
            commands = (*commands, DeclineCheckpoint(checkpoint, reason), ForwardCancellation(checkpoint))
        return _without(self, up_to), commands

    def _gate_closed(self, event: GateClosed) -> tuple[BarrierTracker, Commands]:
        """Count a closed gate as arrived for all tracked checkpoints.  The newest one that is complete now starts its snapshot."""
        if event.gate not in self.open_gates:
            raise InvalidTransition(self, event, "the gate is closed already")
        tracked = tuple(replace(p, arrived=p.arrived | {event.gate}) for p in self.tracked)
        after = replace(self, open_gates=self.open_gates - {event.gate}, tracked=tracked)
        newest = next((p for p in reversed(tracked) if p.complete), None)
        return (after, ()) if newest is None else _complete_checkpoint(after, newest, event.now)

    def _trigger(self, event: TriggerReceived) -> tuple[BarrierTracker, Commands]:
        """Start the snapshot on the coordinator's trigger call, unless the checkpoint is obsolete."""
        if event.checkpoint <= self.latest:
            return self, ()
        start = StartSnapshot(event.checkpoint, event.options, event.now, alignment_ns=0)
        return _without(self, event.checkpoint), (start,)


def _without(tracker: BarrierTracker, checkpoint: int) -> BarrierTracker:
    """Drop this checkpoint and all older ones."""
    tracked = tuple(p for p in tracker.tracked if p.checkpoint > checkpoint)
    return replace(tracker, tracked=tracked, latest=max(tracker.latest, checkpoint))


def _complete_checkpoint(tracker: BarrierTracker, done: Pending, now: int) -> tuple[BarrierTracker, Commands]:
    """Start the snapshot and drop older checkpoints.

    As in Flink, a checkpoint that completes after a newer one is known reports an alignment of 0.
    """
    start = replace(done.snapshot(done.options, now), resumes=False)  # nothing was blocked
    if done.checkpoint != tracker.latest:
        start = replace(start, first_barrier_ns=now, alignment_ns=0)
    overtaken = any(p.checkpoint < done.checkpoint for p in tracker.tracked)
    return _without(tracker, done.checkpoint), ((SettleBarriers(done.checkpoint),) if overtaken else ()) + (start,)


# ---- Exactly once: one checkpoint at a time, a newer one aborts it (SingleCheckpointBarrierHandler).
#
# The handler tracks the gates that have delivered and skips obsolete barriers; its state decides about the inputs.


@value_class
class BarrierHandler:
    """The barrier handler of one task."""

    state: BarrierState
    open_gates: frozenset[int]
    pending: Pending | None = None
    current: int = 0  # newest checkpoint known
    completed: int = 0  # newest checkpoint whose barriers all arrived
    settled: int = 0  # the data plane treats barriers up to this checkpoint as obsolete

    @classmethod
    def for_gates(cls, gates: int) -> BarrierHandler:
        """Create the handler of a task with `gates` input gates, all of them open."""
        return cls(AlternatingWaitingForFirstBarrier(), frozenset(range(gates)))

    def on(self, event: BarrierEvent) -> tuple[BarrierHandler, Commands]:
        """Return the next handler and its commands."""
        match event:
            case BarrierArrived():
                return self._barrier(event)
            case BarrierAnnounced():  # may be the first sign of its checkpoint; the data plane keeps it for PrioritiseInput
                obsolete = _is_obsolete(self, event.checkpoint)
                return (self, ()) if obsolete else _with_checkpoint(self, event.checkpoint, event.options, event.now)
            case AlignmentTimedOut():
                return self._timeout(event)
            case CancellationArrived():
                return self._cancellation(event)
            case GateClosed():
                return self._gate_closed(event)
            case InputEnded():
                if self.pending is None:
                    return self, ()
                reason = FailureReason.CHECKPOINT_DECLINED_INPUT_END_OF_STREAM
                return _abort_checkpoint(self, self.pending.checkpoint, reason)
            case TriggerReceived():
                return self._trigger(event)

    def _barrier(self, event: BarrierArrived) -> tuple[BarrierHandler, Commands]:
        """Handle a barrier.  A barrier of a newer checkpoint aborts the pending one first."""
        if _is_obsolete(self, event.checkpoint):
            return self, ()  # the data plane resumes channels that settled barriers block
        handler, commands = _with_checkpoint(self, event.checkpoint, event.options, event.now)
        pending = _with_barrier(handler, event)
        options = event.options.as_unaligned() if event.priority else event.options
        return _transition(handler, event, pending, commands, lambda state: state.barrier(pending, options, event.now))

    def _timeout(self, event: AlignmentTimedOut) -> tuple[BarrierHandler, Commands]:
        """Handle the alignment timer, unless the alignment is over."""
        if self.pending is None or self.pending.checkpoint != event.checkpoint:
            return self, ()  # the alignment is over
        pending = self.pending
        return _transition(self, event, pending, (), lambda state: state.timeout(pending, event.now))

    def _cancellation(self, event: CancellationArrived) -> tuple[BarrierHandler, Commands]:
        """Abort the checkpoint that an upstream task has cancelled, unless it is obsolete."""
        has_barrier = self.pending is not None and self.pending.first_barrier_ns is not None
        if event.checkpoint > self.current or (event.checkpoint == self.current and has_barrier):
            return _abort_checkpoint(self, event.checkpoint, FailureReason.CHECKPOINT_DECLINED_ON_CANCELLATION_BARRIER)
        return self, ()

    def _gate_closed(self, event: GateClosed) -> tuple[BarrierHandler, Commands]:
        """Handle a closed gate, which counts as arrived for the pending checkpoint."""
        if event.gate not in self.open_gates:
            raise InvalidTransition(self, event, "the gate is closed already")
        handler = replace(self, open_gates=self.open_gates - {event.gate})
        if self.pending is None or event.gate in self.pending.arrived:
            return handler, ()
        first = event.now if self.pending.first_barrier_ns is None else self.pending.first_barrier_ns
        pending = replace(self.pending, arrived=self.pending.arrived | {event.gate}, first_barrier_ns=first)
        return _transition(handler, event, pending, (), lambda state: state.gate_closed(pending, event.now))

    def _trigger(self, event: TriggerReceived) -> tuple[BarrierHandler, Commands]:
        """Start the snapshot on the coordinator's trigger call.

        Open gates will deliver only the end of their data, and count as arrived (FLIP-147).
        """
        if _is_obsolete(self, event.checkpoint):
            return self, ()
        handler, commands = _with_checkpoint(self, event.checkpoint, event.options, event.now)
        pending = _pending(handler, event)
        pending = replace(pending, arrived=pending.target)
        if pending.first_barrier_ns is not None:
            return _transition(handler, event, pending, commands, lambda state: state.gate_closed(pending, event.now))
        return _transition(
            handler, event, pending, commands, lambda state: state.triggered(pending, event.options, event.now)
        )


def _is_obsolete(handler: BarrierHandler, checkpoint: int) -> bool:
    """Return whether a checkpoint is older than the current one, or has ended."""
    return checkpoint < handler.current or (checkpoint == handler.current and handler.pending is None)


def _with_checkpoint(
    handler: BarrierHandler, checkpoint: int, options: BarrierOptions, now: int
) -> tuple[BarrierHandler, Commands]:
    """Switch to a newer checkpoint: abort the pending one, settle older barriers, arm the alignment timer."""
    if checkpoint == handler.current:
        return handler, ()
    commands: Commands = ()
    if handler.pending is not None:
        handler, commands = _abort_checkpoint(
            handler, handler.pending.checkpoint, FailureReason.CHECKPOINT_DECLINED_SUBSUMED
        )
    if checkpoint - 1 > max(handler.settled, handler.completed):
        handler = replace(handler, settled=checkpoint - 1)
        commands = (*commands, SettleBarriers(checkpoint - 1))
    if options.timeoutable and handler.open_gates:
        commands = (*commands, ArmAlignmentTimer(checkpoint, max(now, options.deadline_ns)))
    return replace(handler, current=checkpoint, pending=Pending(checkpoint, options, handler.open_gates)), commands


def _with_barrier(handler: BarrierHandler, event: BarrierArrived) -> Pending:
    """Return the pending checkpoint with this barrier counted."""
    pending = _pending(handler, event)
    if event.gate not in pending.target:
        raise InvalidTransition(handler, event, "the gate was closed when the checkpoint started")
    if event.first == (event.gate in pending.seen) or event.gate in pending.arrived:
        raise InvalidTransition(handler, event, "a gate delivers one first and one last barrier")
    return replace(
        pending,
        seen=pending.seen | {event.gate},
        arrived=pending.arrived | ({event.gate} if event.last else frozenset()),
        first_barrier_ns=event.now if pending.first_barrier_ns is None else pending.first_barrier_ns,
    )


def _transition(
    handler: BarrierHandler,
    event: BarrierEvent,
    pending: Pending,
    before: Commands,
    call: Callable[[BarrierState], Transition],
) -> tuple[BarrierHandler, Commands]:
    """Enter the next state, which `call` returns for the current one.  The checkpoint ends with its last barrier."""
    try:
        state, commands = call(handler.state)
    except ValueError as error:
        raise InvalidTransition(handler, event, str(error)) from error
    if pending.complete:
        return replace(handler, state=state, pending=None, completed=pending.checkpoint), (*before, *commands)
    return replace(handler, state=state, pending=pending), (*before, *commands)


def _abort_checkpoint(
    handler: BarrierHandler, checkpoint: int, reason: FailureReason
) -> tuple[BarrierHandler, Commands]:
    """Unblock inputs, decline, and tell downstream tasks not to wait for barriers (abortCheckpointOnBarrier).

    Nothing is pending if a cancellation marker overtook all barriers of its checkpoint.
    """
    state, commands = (
        (handler.state, ()) if handler.pending is None else handler.state.abort(handler.pending.checkpoint)
    )
    done = (SettleBarriers(checkpoint), DeclineCheckpoint(checkpoint, reason), ForwardCancellation(checkpoint))
    current = max(handler.current, checkpoint)
    handler = replace(handler, state=state, pending=None, current=current, settled=max(handler.settled, checkpoint))
    return handler, (*commands, *done)


def _pending(handler: BarrierHandler, event: BarrierEvent) -> Pending:
    """Return the pending checkpoint.  Raise InvalidTransition if there is none."""
    if handler.pending is None:
        raise InvalidTransition(handler, event, "no checkpoint is pending")
    return handler.pending
