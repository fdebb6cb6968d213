"""The states of the alternating handler: begin aligned, go unaligned on a timeout or an unaligned barrier.

Pure unaligned checkpoints run through it too: their first barrier finds the first state and takes its unaligned row at once.
Sources: Flink's Alternating*Barrier* states, AbstractAlternatingAlignedBarrierHandlerState.
"""
# ruff: noqa: ARG002 -- every state answers every question, also where it needs less to know

from __future__ import annotations

from abc import ABC, abstractmethod

from sim.protocol.barriers.state import Commands, Pending, Transition
from sim.protocol.machine import changed
from sim.protocol.options import BarrierOptions
from sim.protocol.task_vocabulary import CancelSnapshot, CaptureInput, FinishCapture, PrioritiseInput, ResumeInputs
from sim.protocol.value_class import value_class


def _prioritise(pending: Pending) -> Commands:
    """Only timeoutable barriers can be waiting as ordinary ones (prioritizeAllAnnouncements)."""
    return (PrioritiseInput(pending.checkpoint),) if pending.options.timeoutable else ()


def _unaligned_snapshot(pending: Pending, options: BarrierOptions, now: int) -> Commands:
    """Keep what is on its way before anything else runs, then snapshot (checkpointStarted, triggerGlobalCheckpoint)."""
    return CaptureInput(pending.checkpoint), pending.snapshot(options.as_unaligned(), now)


class _Alternating:
    """A state of the alternating handler."""

    __slots__ = ()

    def triggered(self, pending: Pending, options: BarrierOptions, now: int) -> Transition:
        return AlternatingWaitingForFirstBarrier(), (changed(pending.snapshot(options, now), resumes=False),)


class _AlternatingAligned(_Alternating, ABC):
    """The common part of the two aligned states."""

    __slots__ = ()

    def barrier(self, pending: Pending, options: BarrierOptions, now: int) -> Transition:
        if options.unaligned:
            return _then(self.timeout(pending, now), pending, options, now)
        if pending.complete:  # looked at before the clock: a complete alignment is aligned, however late
            return AlternatingWaitingForFirstBarrier(), (pending.snapshot(options, now),)
        if pending.timed_out(options, now):
            return _then(self.timeout(pending, now), pending, options.as_unaligned(), now)
        return AlternatingCollectingBarriers(), ()

    def announcement(self, pending: Pending) -> Transition:
        return self, ()  # remembered by the data plane: PrioritiseInput finds it

    @abstractmethod
    def timeout(self, pending: Pending, now: int) -> Transition: ...

    @abstractmethod
    def gate_closed(self, pending: Pending, now: int) -> Transition: ...

    def abort(self, checkpoint: int) -> Transition:
        return AlternatingWaitingForFirstBarrier(), (ResumeInputs(checkpoint),)


def _then(first: Transition, pending: Pending, options: BarrierOptions, now: int) -> Transition:
    """The timeout transition, then the same barrier in the unaligned state it led to."""
    state, commands = first
    state, follow_ups = state.barrier(pending, options, now)
    return state, (*commands, *follow_ups)


@value_class
class AlternatingWaitingForFirstBarrier(_AlternatingAligned):
    """Aligned so far; no barrier of this checkpoint is here, some may be announced."""

    def timeout(self, pending: Pending, now: int) -> Transition:
        return AlternatingWaitingForFirstBarrierUnaligned(), _prioritise(pending)

    def gate_closed(self, pending: Pending, now: int) -> Transition:
        if pending.complete:
            raise ValueError("every gate closed and no barrier came")
        return self, ()


@value_class
class AlternatingCollectingBarriers(_AlternatingAligned):
    """Aligned so far; at least one barrier of this checkpoint is here, at least one is missing."""

    def timeout(self, pending: Pending, now: int) -> Transition:
        return AlternatingCollectingBarriersUnaligned(), (*_prioritise(pending), *_unaligned_snapshot(pending, pending.options, now))

    def gate_closed(self, pending: Pending, now: int) -> Transition:
        if pending.complete:
            return AlternatingWaitingForFirstBarrier(), (pending.snapshot(pending.options, now),)
        return self, ()


@value_class
class AlternatingWaitingForFirstBarrierUnaligned(_Alternating):
    """The timeout passed; no barrier of this checkpoint is here: the first one, of whichever kind, starts the snapshot."""

    def barrier(self, pending: Pending, options: BarrierOptions, now: int) -> Transition:
        commands = _unaligned_snapshot(pending, options, now)
        if pending.complete:
            return AlternatingWaitingForFirstBarrier(), commands
        return AlternatingCollectingBarriersUnaligned(), commands

    def announcement(self, pending: Pending) -> Transition:
        return self, ()  # PrioritiseInput holds for barriers yet to come

    def timeout(self, pending: Pending, now: int) -> Transition:
        return self, ()

    def gate_closed(self, pending: Pending, now: int) -> Transition:
        if pending.complete:
            raise ValueError("every gate closed and no barrier came")
        return self, ()

    def abort(self, checkpoint: int) -> Transition:
        return AlternatingWaitingForFirstBarrier(), (ResumeInputs(checkpoint),)


@value_class
class AlternatingCollectingBarriersUnaligned(_Alternating):
    """The snapshot runs; at least one barrier is missing, and what comes before it is kept."""

    def barrier(self, pending: Pending, options: BarrierOptions, now: int) -> Transition:
        if not pending.complete:
            return self, ()
        done = FinishCapture(pending.checkpoint), pending.inputs_complete(now), ResumeInputs(pending.checkpoint)
        return AlternatingWaitingForFirstBarrier(), done

    def announcement(self, pending: Pending) -> Transition:
        return self, ()  # PrioritiseInput holds for barriers yet to come

    def timeout(self, pending: Pending, now: int) -> Transition:
        return self, ()

    def gate_closed(self, pending: Pending, now: int) -> Transition:
        return self.barrier(pending, pending.options, now)

    def abort(self, checkpoint: int) -> Transition:
        return AlternatingWaitingForFirstBarrier(), (FinishCapture(checkpoint), CancelSnapshot(checkpoint), ResumeInputs(checkpoint))
