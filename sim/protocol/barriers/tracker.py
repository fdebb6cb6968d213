"""At-least-once: count barriers per checkpoint, block nothing (CheckpointBarrierTracker).

A snapshot may hold effects of records that came after a barrier on an early channel: their replay duplicates them.
"""

from __future__ import annotations

from dataclasses import field
from typing import NoReturn

from sim.protocol.barriers.state import Commands, Pending
from sim.protocol.machine import InvalidTransition, changed, heard
from sim.protocol.reasons import FailureReason
from sim.protocol.task_vocabulary import (
    AlignmentTimedOut,
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
from sim.protocol.value_class import value_class

MAX_TRACKED = 50
"""Checkpoints with some barriers missing; the oldest is forgotten (MAX_CHECKPOINTS_TO_TRACK)."""


@value_class
class BarrierTracker:
    """The barrier tracker of one task."""

    open_gates: frozenset[int]
    tracked: tuple[Pending, ...] = ()  # oldest first
    latest: int = 0  # the newest checkpoint heard of
    story: tuple[object, ...] = field(default=(), compare=False, repr=False)

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
        return heard(self, after, event), commands

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
        known = changed(known, seen=known.seen | {event.gate}, arrived=known.arrived | ({event.gate} if event.last else frozenset()))
        older = tuple(p for p in self.tracked if p.checkpoint < event.checkpoint)
        newer = tuple(p for p in self.tracked if p.checkpoint > event.checkpoint)
        after = changed(self, tracked=(*older, known, *newer)[-MAX_TRACKED:], latest=max(self.latest, event.checkpoint))
        return _completed(after, known, event.now) if known.complete else (after, ())

    def _cancellation(self, event: CancellationArrived) -> tuple[BarrierTracker, Commands]:
        """Cancels the named checkpoint and every older one still tracked."""
        hit = tuple(p.checkpoint for p in self.tracked if p.checkpoint <= event.checkpoint)
        if event.checkpoint > self.latest:
            hit = (*hit, event.checkpoint)
        return self._given_up(event.checkpoint, FailureReason.CHECKPOINT_DECLINED_ON_CANCELLATION_BARRIER, hit)

    def _given_up(self, up_to: int, reason: FailureReason, only: tuple[int, ...] = ()) -> tuple[BarrierTracker, Commands]:
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
        tracked = tuple(changed(p, arrived=p.arrived | {event.gate}) for p in self.tracked)
        after = changed(self, open_gates=self.open_gates - {event.gate}, tracked=tracked)
        newest = next((p for p in reversed(tracked) if p.complete), None)
        return (after, ()) if newest is None else _completed(after, newest, event.now)

    def _trigger(self, event: TriggerReceived) -> tuple[BarrierTracker, Commands]:
        if event.checkpoint <= self.latest:
            return self, ()
        delay = max(0, event.now - event.options.trigger_ns)
        start = StartSnapshot(event.checkpoint, event.options, event.now, delay, alignment_ns=0)
        return _without(self, event.checkpoint), (start,)

    def _impossible(self, event: BarrierEvent, why: str) -> NoReturn:
        raise InvalidTransition("barrier tracker", self, event, self.story, why)


def _without(tracker: BarrierTracker, checkpoint: int) -> BarrierTracker:
    """Forget this checkpoint and all older ones."""
    tracked = tuple(p for p in tracker.tracked if p.checkpoint > checkpoint)
    return changed(tracker, tracked=tracked, latest=max(tracker.latest, checkpoint))


def _completed(tracker: BarrierTracker, done: Pending, now: int) -> tuple[BarrierTracker, Commands]:
    """Snapshot, forget the older ones.  Only the newest one's clock is kept: an overtaken one reports zeros, as Flink's."""
    start = changed(done.snapshot(done.options, now), resumes=False)  # nothing was blocked
    if done.checkpoint != tracker.latest:
        start = changed(start, first_barrier_ns=now, start_delay_ns=0, alignment_ns=0)
    overtaken = any(p.checkpoint < done.checkpoint for p in tracker.tracked)
    return _without(tracker, done.checkpoint), ((SettleBarriers(done.checkpoint),) if overtaken else ()) + (start,)
