"""Barriers of one task: which channels have delivered, and what follows (SingleCheckpointBarrierHandler)."""

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
#   obsolete? ---> newer checkpoint? -------> count the gate ---> ask the state ---> check TRANSITIONS
#   ignore it      abort the pending one,     in `Pending`        next state and     if the state changed:
#                  SettleBarriers,                                commands           InvalidTransition if not
#                  ArmAlignmentTimer                                                 listed
#
# Both machines are frozen values: `on` returns a new machine and the commands, and never waits.  The price is
# a copy per event; the gain is that Hypothesis can send events in any order
# (docs/decisions/05-pure-protocols.md).

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NoReturn

from sim.protocol.barrier_states import TRANSITIONS, BarrierState, Commands, Pending, Transition
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

# ---- At-least-once: count barriers per checkpoint, block nothing (CheckpointBarrierTracker).
#
# A snapshot may hold effects of records that came after a barrier on an early channel: their replay duplicates them.

MAX_TRACKED = 50
"""Checkpoints with some barriers missing; the oldest is forgotten (MAX_CHECKPOINTS_TO_TRACK)."""


@value_class
class BarrierTracker:
    """The barrier tracker of one task."""

    open_gates: frozenset[int]
    tracked: tuple[Pending, ...] = ()  # oldest first
    latest: int = 0  # the newest checkpoint heard of

    @classmethod
    def waiting(cls, gates: int) -> BarrierTracker:
        return cls(frozenset(range(gates)))

    def on(self, event: BarrierEvent) -> tuple[BarrierTracker, Commands]:
        match event:
            case BarrierArrived():
                after, commands = self._barrier(event)
            case CancellationArrived():
                after, commands = self._cancellation(event)
            case InputEnded():
                after, commands = self._given_up(self.latest, FailureReason.CHECKPOINT_DECLINED_INPUT_END_OF_STREAM)
            case GateClosed():
                after, commands = self._gate_closed(event)
            case TriggerReceived():
                after, commands = self._trigger(event)
            case BarrierAnnounced() | AlignmentTimedOut():
                self._impossible(event, "nothing times out without alignment")
        return after, commands

    def _barrier(self, event: BarrierArrived) -> tuple[BarrierTracker, Commands]:
        if event.priority or event.options.unaligned:
            self._impossible(event, "an unaligned barrier reached a task that only counts")
        known = next((p for p in self.tracked if p.checkpoint == event.checkpoint), None)
        if known is None:
            if event.checkpoint <= self.latest:
                return self, ()  # complete, cancelled or forgotten
            known = Pending(event.checkpoint, event.options, self.open_gates, first_barrier_ns=event.now)
        if event.gate not in known.target or event.first == (event.gate in known.seen) or event.gate in known.arrived:
            self._impossible(event, "an open gate has one first and one last barrier")
        known = replace(
            known, seen=known.seen | {event.gate}, arrived=known.arrived | ({event.gate} if event.last else frozenset())
        )
        older = tuple(p for p in self.tracked if p.checkpoint < event.checkpoint)
        newer = tuple(p for p in self.tracked if p.checkpoint > event.checkpoint)
        after = replace(self, tracked=(*older, known, *newer)[-MAX_TRACKED:], latest=max(self.latest, event.checkpoint))
        return _complete_checkpoint(after, known, event.now) if known.complete else (after, ())

    def _cancellation(self, event: CancellationArrived) -> tuple[BarrierTracker, Commands]:
        """Cancels the named checkpoint and every older one still tracked."""
        hit = tuple(p.checkpoint for p in self.tracked if p.checkpoint <= event.checkpoint)
        if event.checkpoint > self.latest:
            hit = (*hit, event.checkpoint)
        return self._given_up(event.checkpoint, FailureReason.CHECKPOINT_DECLINED_ON_CANCELLATION_BARRIER, hit)

    def _given_up(
        self, up_to: int, reason: FailureReason, only: tuple[int, ...] = ()
    ) -> tuple[BarrierTracker, Commands]:
        """Decline the checkpoints named; without any, every tracked one up to `up_to`."""
        hit = only or tuple(p.checkpoint for p in self.tracked if p.checkpoint <= up_to)
        if not hit:
            return self, ()
        commands: Commands = (SettleBarriers(up_to),)
        for checkpoint in hit:
            commands = (*commands, DeclineCheckpoint(checkpoint, reason), ForwardCancellation(checkpoint))
        return _without(self, up_to), commands

    def _gate_closed(self, event: GateClosed) -> tuple[BarrierTracker, Commands]:
        if event.gate not in self.open_gates:
            self._impossible(event, "this gate is not open")
        tracked = tuple(replace(p, arrived=p.arrived | {event.gate}) for p in self.tracked)
        after = replace(self, open_gates=self.open_gates - {event.gate}, tracked=tracked)
        newest = next((p for p in reversed(tracked) if p.complete), None)
        return (after, ()) if newest is None else _complete_checkpoint(after, newest, event.now)

    def _trigger(self, event: TriggerReceived) -> tuple[BarrierTracker, Commands]:
        if event.checkpoint <= self.latest:
            return self, ()
        delay = max(0, event.now - event.options.trigger_ns)
        start = StartSnapshot(event.checkpoint, event.options, event.now, delay, alignment_ns=0)
        return _without(self, event.checkpoint), (start,)

    def _impossible(self, event: BarrierEvent, why: str) -> NoReturn:
        raise InvalidTransition("barrier tracker", self, event, why)


def _without(tracker: BarrierTracker, checkpoint: int) -> BarrierTracker:
    """Forget this checkpoint and all older ones."""
    tracked = tuple(p for p in tracker.tracked if p.checkpoint > checkpoint)
    return replace(tracker, tracked=tracked, latest=max(tracker.latest, checkpoint))


def _complete_checkpoint(tracker: BarrierTracker, done: Pending, now: int) -> tuple[BarrierTracker, Commands]:
    """Snapshot, forget the older ones.  Only the newest one's clock is kept: an overtaken one reports zeros, as Flink's."""
    start = replace(done.snapshot(done.options, now), resumes=False)  # nothing was blocked
    if done.checkpoint != tracker.latest:
        start = replace(start, first_barrier_ns=now, start_delay_ns=0, alignment_ns=0)
    overtaken = any(p.checkpoint < done.checkpoint for p in tracker.tracked)
    return _without(tracker, done.checkpoint), ((SettleBarriers(done.checkpoint),) if overtaken else ()) + (start,)


# The barrier handler of a task: its checkpoint, the gates that have delivered, and obsolete barriers
# (SingleCheckpointBarrierHandler).
#
# It handles one checkpoint at a time: a newer one gives the older up.  What happens to the inputs is the business of
# its state.

_Question = Callable[[BarrierState], Transition]


@value_class
class BarrierHandler:
    """The barrier handler of one task."""

    state: BarrierState
    open_gates: frozenset[int]
    pending: Pending | None = None
    current: int = 0  # the newest checkpoint heard of
    completed: int = 0  # the newest one whose barriers all came
    settled: int = 0  # up to here the data plane knows barriers to be obsolete

    @classmethod
    def waiting(cls, first_state: BarrierState, gates: int) -> BarrierHandler:
        return cls(first_state, frozenset(range(gates)))

    def on(self, event: BarrierEvent) -> tuple[BarrierHandler, Commands]:
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
        if after.state != self.state and type(after.state) not in TRANSITIONS[type(self.state)].get(type(event), ()):
            _impossible(self, event, f"{type(after.state).__name__} may not follow")
        return after, commands

    def _barrier(self, event: BarrierArrived) -> tuple[BarrierHandler, Commands]:
        if _obsolete(self, event.checkpoint):
            return self, ()  # the data plane resumes settled barriers itself
        handler, commands = _started(self, event.checkpoint, event.options, event.now)
        pending = _arrival(handler, event)
        options = event.options.as_unaligned() if event.priority else event.options
        return _moved(handler, event, pending, commands, lambda state: state.barrier(pending, options, event.now))

    def _announcement(self, event: BarrierAnnounced) -> tuple[BarrierHandler, Commands]:
        if _obsolete(self, event.checkpoint):
            return self, ()
        handler, commands = _started(self, event.checkpoint, event.options, event.now)
        pending = _pending(handler, event)
        return _moved(handler, event, pending, commands, lambda state: state.announcement(pending))

    def _timeout(self, event: AlignmentTimedOut) -> tuple[BarrierHandler, Commands]:
        if self.pending is None or self.pending.checkpoint != event.checkpoint:
            return self, ()  # its alignment is over
        pending = self.pending
        return _moved(self, event, pending, (), lambda state: state.timeout(pending, event.now))

    def _cancellation(self, event: CancellationArrived) -> tuple[BarrierHandler, Commands]:
        begun = self.pending is not None and self.pending.first_barrier_ns is not None
        if event.checkpoint > self.current or (event.checkpoint == self.current and begun):
            return _abort_checkpoint(self, event.checkpoint, FailureReason.CHECKPOINT_DECLINED_ON_CANCELLATION_BARRIER)
        return self, ()

    def _gate_closed(self, event: GateClosed) -> tuple[BarrierHandler, Commands]:
        if event.gate not in self.open_gates:
            _impossible(self, event, "this gate is not open")
        handler = replace(self, open_gates=self.open_gates - {event.gate})
        if self.pending is None or event.gate in self.pending.arrived:
            return handler, ()
        first = event.now if self.pending.first_barrier_ns is None else self.pending.first_barrier_ns
        pending = replace(self.pending, arrived=self.pending.arrived | {event.gate}, first_barrier_ns=first)
        return _moved(handler, event, pending, (), lambda state: state.gate_closed(pending, event.now))

    def _trigger(self, event: TriggerReceived) -> tuple[BarrierHandler, Commands]:
        """A call instead of barriers.  Gates still open hold nothing but their end: all count as arrived (FLIP-147)."""
        if _obsolete(self, event.checkpoint):
            return self, ()
        handler, commands = _started(self, event.checkpoint, event.options, event.now)
        pending = _pending(handler, event)
        pending = replace(pending, arrived=pending.target)
        if pending.first_barrier_ns is not None:
            return _moved(handler, event, pending, commands, lambda state: state.gate_closed(pending, event.now))
        return _moved(
            handler, event, pending, commands, lambda state: state.triggered(pending, event.options, event.now)
        )


def _obsolete(handler: BarrierHandler, checkpoint: int) -> bool:
    return checkpoint < handler.current or (checkpoint == handler.current and handler.pending is None)


def _started(
    handler: BarrierHandler, checkpoint: int, options: BarrierOptions, now: int
) -> tuple[BarrierHandler, Commands]:
    """Take up a newer checkpoint: give up the pending one, older barriers are obsolete, mind the deadline."""
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


def _arrival(handler: BarrierHandler, event: BarrierArrived) -> Pending:
    """The pending checkpoint with this barrier counted."""
    pending = _pending(handler, event)
    if event.gate not in pending.target:
        _impossible(handler, event, "this gate was closed")
    if event.first == (event.gate in pending.seen) or event.gate in pending.arrived:
        _impossible(handler, event, "a gate has one first and one last barrier")
    return replace(
        pending,
        seen=pending.seen | {event.gate},
        arrived=pending.arrived | ({event.gate} if event.last else frozenset()),
        first_barrier_ns=event.now if pending.first_barrier_ns is None else pending.first_barrier_ns,
    )


def _moved(
    handler: BarrierHandler, event: BarrierEvent, pending: Pending, before: Commands, ask: _Question
) -> tuple[BarrierHandler, Commands]:
    """Ask the state for the next one.  End the checkpoint when its last barrier is here."""
    try:
        state, commands = ask(handler.state)
    except ValueError as error:
        _impossible(handler, event, str(error))
    if pending.complete:
        return replace(handler, state=state, pending=None, completed=pending.checkpoint), (*before, *commands)
    return replace(handler, state=state, pending=pending), (*before, *commands)


def _abort_checkpoint(
    handler: BarrierHandler, checkpoint: int, reason: FailureReason
) -> tuple[BarrierHandler, Commands]:
    """Unblock, decline, and spare those downstream the wait (abortCheckpointOnBarrier).

    Without a pending checkpoint there is nothing to unblock; a cancellation may overtake barriers not yet seen.
    """
    state, commands = (
        (handler.state, ()) if handler.pending is None else handler.state.abort(handler.pending.checkpoint)
    )
    done = (SettleBarriers(checkpoint), DeclineCheckpoint(checkpoint, reason), ForwardCancellation(checkpoint))
    current = max(handler.current, checkpoint)
    handler = replace(handler, state=state, pending=None, current=current, settled=max(handler.settled, checkpoint))
    return handler, (*commands, *done)


def _pending(handler: BarrierHandler, event: BarrierEvent) -> Pending:
    if handler.pending is None:
        _impossible(handler, event, "no checkpoint is pending")
    return handler.pending


def _impossible(handler: BarrierHandler, event: BarrierEvent, why: str) -> NoReturn:
    raise InvalidTransition("barrier handler", handler, event, why)
