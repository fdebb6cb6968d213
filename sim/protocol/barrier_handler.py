"""Barrier handlers of a task (CheckpointBarrierTracker, SingleCheckpointBarrierHandler)."""

# Two machines receive the same events; the barrier mode decides which one a task has.
#
#   BarrierTracker (at-least-once)              BarrierHandler (exactly-once)
#   ------------------------------              -----------------------------
#   tracked   Pending 7 | gates seen, arrived   state     one of the six states of barrier_states.py
#             Pending 8 |                       pending   Pending 8, or None between checkpoints
#             ...       | at most MAX_TRACKED   current   8   newest checkpoint known
#   latest    8                                 completed 7   newest checkpoint whose barriers all arrived
#                                               settled   5   barriers up to 5 are known to be obsolete
#   blocks no input                             one checkpoint at a time: a newer one aborts the pending one
#
# A barrier takes these steps in BarrierHandler:
#
#   obsolete? ---> newer checkpoint? -------> count the gate ---> call the state
#   ignore it      abort the pending one,     in `Pending`        next state and
#                  SettleBarriers,                                commands
#                  ArmAlignmentTimer
#
# Both machines are frozen values: `on` returns a new machine and the commands, and never waits.  This costs one copy
# per event, and lets Hypothesis send events in any order (docs/decisions/05-pure-protocols.md).

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NoReturn

from sim.protocol.barrier_states import BarrierState, Commands, Pending, Transition
from sim.protocol.machine import InvalidTransition, value_class
from sim.protocol.options import BarrierOptions, FailureReason
from sim.protocol.task_messages import (
    AlignmentTimedOut,
    ArmAlignmentTimer,
    BarrierAnnounced,
    BarrierArrived,
    BarrierEvent,
    CancellationArrived,
    DeclineCheckpoint,
    ForwardCancellation,
    GateClosed,
    InputEnded,
    SettleBarriers,
    StartSnapshot,
    TriggerReceived,
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
            self._impossible(event, "at-least-once barriers have no alignment timeout")
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
            self._impossible(event, "a barrier tracker cannot process unaligned barriers")
        known = next((p for p in self.tracked if p.checkpoint == event.checkpoint), None)
        if known is None:
            if event.checkpoint <= self.latest:
                return self, ()  # completed, cancelled or dropped
            known = Pending(event.checkpoint, event.options, self.open_gates, first_barrier_ns=event.now)
        if event.gate not in known.target or event.first == (event.gate in known.seen) or event.gate in known.arrived:
            self._impossible(event, "an open gate delivers one first and one last barrier")
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
            self._impossible(event, "the gate is closed already")
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

    def _impossible(self, event: BarrierEvent, why: str) -> NoReturn:
        raise InvalidTransition("barrier tracker", self, event, why)


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
    def for_gates(cls, first_state: BarrierState, gates: int) -> BarrierHandler:
        """Create the handler of a task with `gates` input gates, all of them open."""
        return cls(first_state, frozenset(range(gates)))

    def on(self, event: BarrierEvent) -> tuple[BarrierHandler, Commands]:
        """Return the next handler and its commands."""
        match event:
            case BarrierArrived():
                after, commands = self._barrier(event)
            case BarrierAnnounced():
                after, commands = self._announcement(event)
            case AlignmentTimedOut():
                after, commands = self._timeout(event)
            case CancellationArrived():
                after, commands = self._cancellation(event)
            case GateClosed():
                after, commands = self._gate_closed(event)
            case InputEnded():
                reason = FailureReason.CHECKPOINT_DECLINED_INPUT_END_OF_STREAM
                after, commands = (
                    (self, ()) if self.pending is None else _abort_checkpoint(self, self.pending.checkpoint, reason)
                )
            case TriggerReceived():
                after, commands = self._trigger(event)
        return after, commands

    def _barrier(self, event: BarrierArrived) -> tuple[BarrierHandler, Commands]:
        """Handle a barrier.  A barrier of a newer checkpoint aborts the pending one first."""
        if _is_obsolete(self, event.checkpoint):
            return self, ()  # the data plane resumes channels that settled barriers block
        handler, commands = _with_checkpoint(self, event.checkpoint, event.options, event.now)
        pending = _with_barrier(handler, event)
        options = event.options.as_unaligned() if event.priority else event.options
        return _transition(handler, event, pending, commands, lambda state: state.barrier(pending, options, event.now))

    def _announcement(self, event: BarrierAnnounced) -> tuple[BarrierHandler, Commands]:
        """Handle the announcement of a queued barrier, which may be the first sign of its checkpoint."""
        if _is_obsolete(self, event.checkpoint):
            return self, ()
        handler, commands = _with_checkpoint(self, event.checkpoint, event.options, event.now)
        pending = _pending(handler, event)
        return _transition(handler, event, pending, commands, lambda state: state.announcement(pending))

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
            _impossible(self, event, "the gate is closed already")
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
        _impossible(handler, event, "the gate was closed when the checkpoint started")
    if event.first == (event.gate in pending.seen) or event.gate in pending.arrived:
        _impossible(handler, event, "a gate delivers one first and one last barrier")
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
        _impossible(handler, event, str(error))
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
        _impossible(handler, event, "no checkpoint is pending")
    return handler.pending


def _impossible(handler: BarrierHandler, event: BarrierEvent, why: str) -> NoReturn:
    raise InvalidTransition("barrier handler", handler, event, why)
