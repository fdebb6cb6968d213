"""Barrier states of a task's input (BarrierHandlerState): aligned, alternating, and the transitions between them."""

# The states have the names of Flink's classes (org.apache.flink.streaming.runtime.io.checkpointing).
#
# Aligned only:
#                               first barrier, others missing
#       WaitingForFirstBarrier -------------------------------> CollectingBarriers --+ barrier or closed gate,
#         |  ^  ^                                                    |      ^        | others missing
#         +--+  +----------------------------------------------------+      +--------+
#    only barrier              last barrier or closed gate
#    -> StartSnapshot          -> StartSnapshot
#
# Alternating ("Alternating" is left out of the names, and so are transitions from a state to itself):
#                               barrier in time, others missing
#       WaitingForFirstBarrier -------------------------------> CollectingBarriers
#                  |          \                                      |
#          timeout |            \ barrier that is late or           | timeout, or a barrier that is
#              [1] |              \ unaligned [1] [2]               | late or unaligned [1] [2]
#                  v                `-------------------.           v
#       WaitingForFirstBarrierUnaligned -------------------> CollectingBarriersUnaligned
#                                  any barrier, others missing [2]
#
#   [1] PrioritiseInput, if the barrier can time out     [2] CaptureInput, StartSnapshot (unaligned)
#
#   back to WaitingForFirstBarrier   commands
#   all barriers here, aligned       StartSnapshot; also after the deadline, if no barrier is missing any more
#   all here, unaligned              [2] if it was the only barrier; else FinishCapture, InputsComplete,
#                                    ResumeInputs
#   trigger instead of barriers      StartSnapshot
#   abort, from every state          ResumeInputs; in CollectingBarriersUnaligned, FinishCapture and
#                                    CancelSnapshot before it
#
# A state never counts barriers: `BarrierHandler` counts them in `Pending` and passes the state a count that
# includes the event.  A state therefore holds no data, and TRANSITIONS can list which state may follow which.

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Protocol

from sim.protocol.machine import value_class
from sim.protocol.options import BarrierOptions
from sim.protocol.task_messages import (
    AlignmentTimedOut,
    BarrierAnnounced,
    BarrierArrived,
    CancellationArrived,
    CancelSnapshot,
    CaptureInput,
    FinishCapture,
    GateClosed,
    InnerCommand,
    InputEnded,
    InputsComplete,
    PrioritiseInput,
    ResumeInputs,
    StartSnapshot,
    TaskCommand,
    TriggerReceived,
)

# ---- The methods of every state of the barrier handler, and the checkpoint they are about (Flink's BarrierHandlerState).

Commands = tuple[TaskCommand | InnerCommand, ...]
Transition = tuple["BarrierState", Commands]


@value_class
class Pending:
    """The one checkpoint whose barriers a task collects."""

    checkpoint: int
    options: BarrierOptions  # of the barrier or announcement that was first
    target: frozenset[int]  # gates that were open at that moment
    seen: frozenset[int] = frozenset()  # gates whose first barrier is here
    arrived: frozenset[int] = frozenset()  # gates whose last barrier is here
    first_barrier_ns: int | None = None

    @property
    def complete(self) -> bool:
        return self.target <= self.arrived

    def timed_out(self, options: BarrierOptions, now: int) -> bool:
        """Strictly later than the deadline (Controller#isTimedOut)."""
        return options.timeoutable and now > options.deadline_ns

    def snapshot(self, options: BarrierOptions, now: int) -> StartSnapshot:
        """The command that begins the snapshot.  The alignment ends here, without the work of the snapshot."""
        first = now if self.first_barrier_ns is None else self.first_barrier_ns
        delay = max(0, first - options.trigger_ns)
        return StartSnapshot(
            self.checkpoint, options, first, delay, now - first if self.complete else None, resumes=self.complete
        )

    def inputs_complete(self, now: int) -> InputsComplete:
        return InputsComplete(
            now, self.checkpoint, now - (now if self.first_barrier_ns is None else self.first_barrier_ns)
        )


class BarrierState(Protocol):
    """A state of the barrier handler.  Each method returns the next state and the commands.  `pending` already counts the event."""

    def barrier(self, pending: Pending, options: BarrierOptions, now: int) -> Transition:
        """The first and / or last barrier of a gate was processed; it is an unaligned one iff `options` are."""

    def announcement(self, pending: Pending) -> Transition:
        """A barrier waits on some gate."""

    def timeout(self, pending: Pending, now: int) -> Transition:
        """The alignment timer fired."""

    def gate_closed(self, pending: Pending, now: int) -> Transition:
        """A gate will never deliver its barrier and counts as arrived (FLIP-147)."""

    def triggered(self, pending: Pending, options: BarrierOptions, now: int) -> Transition:
        """The coordinator's call came and no barrier did."""

    def abort(self, checkpoint: int) -> Transition:
        """The checkpoint is given up; pass on what waits."""


# ---- The states of the aligned handler: wait for every barrier, then snapshot (unaligned checkpoints off).
#
# Blocking is the sender's; here a channel that delivered its barrier is simply not resumed before the snapshot's
# RESUME_INPUTS phase, which follows its sync phase.


class _Aligned(ABC):
    """The common part of both states (AbstractAlignedBarrierHandlerState)."""

    __slots__ = ()

    def barrier(self, pending: Pending, options: BarrierOptions, now: int) -> Transition:
        if options.unaligned:
            raise ValueError("an unaligned barrier reached a task that only knows aligned ones")
        if pending.complete:
            return WaitingForFirstBarrier(), (pending.snapshot(options, now),)
        return CollectingBarriers(), ()

    def announcement(self, pending: Pending) -> Transition:
        raise ValueError("nothing is announced without a timeout")

    def timeout(self, pending: Pending, now: int) -> Transition:
        raise ValueError("no timer was armed")

    def triggered(self, pending: Pending, options: BarrierOptions, now: int) -> Transition:
        return WaitingForFirstBarrier(), (replace(pending.snapshot(options, now), resumes=False),)

    @abstractmethod
    def gate_closed(self, pending: Pending, now: int) -> Transition: ...

    def abort(self, checkpoint: int) -> Transition:
        return WaitingForFirstBarrier(), (ResumeInputs(checkpoint),)


@value_class
class WaitingForFirstBarrier(_Aligned):
    """No barrier of a newer checkpoint is here."""

    def gate_closed(self, pending: Pending, now: int) -> Transition:
        raise ValueError("no checkpoint is pending")


@value_class
class CollectingBarriers(_Aligned):
    """At least one barrier of this checkpoint is here; at least one is missing."""

    def gate_closed(self, pending: Pending, now: int) -> Transition:
        return self.barrier(pending, pending.options, now)


# ---- The states of the alternating handler: begin aligned, go unaligned on a timeout or an unaligned barrier.
#
# Pure unaligned checkpoints run through it too: their first barrier finds the first state and takes its unaligned row
# at once. Sources: Flink's Alternating*Barrier* states, AbstractAlternatingAlignedBarrierHandlerState.


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
        return AlternatingWaitingForFirstBarrier(), (replace(pending.snapshot(options, now), resumes=False),)


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
        return AlternatingCollectingBarriersUnaligned(), (
            *_prioritise(pending),
            *_unaligned_snapshot(pending, pending.options, now),
        )

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
        return AlternatingWaitingForFirstBarrier(), (
            FinishCapture(checkpoint),
            CancelSnapshot(checkpoint),
            ResumeInputs(checkpoint),
        )


# ---- Which state may follow which on which event: the table to check against Flink's Alternating* and aligned states.
#
# Aborts lead back to the first state from everywhere.  A barrier of a newer checkpoint aborts the pending one and is
# then received in the first state, so its row is the first state's row.

W, C = WaitingForFirstBarrier, CollectingBarriers
AW, AC = AlternatingWaitingForFirstBarrier, AlternatingCollectingBarriers
UW, UC = AlternatingWaitingForFirstBarrierUnaligned, AlternatingCollectingBarriersUnaligned

TRANSITIONS: dict[type, dict[type, frozenset[type]]] = {
    W: {
        BarrierArrived: frozenset({W, C}),  # W: it was the only one
        CancellationArrived: frozenset({W}),
        TriggerReceived: frozenset({W}),
    },
    C: {
        BarrierArrived: frozenset({C, W}),  # W: the last one
        GateClosed: frozenset({C, W}),
        CancellationArrived: frozenset({W}),
        InputEnded: frozenset({W}),
        TriggerReceived: frozenset({W}),
    },
    AW: {
        BarrierAnnounced: frozenset({AW}),
        BarrierArrived: frozenset({AW, AC, UC}),  # AW: the only one; UC: unaligned or late
        AlignmentTimedOut: frozenset({UW}),
        GateClosed: frozenset({AW}),
        CancellationArrived: frozenset({AW}),
        InputEnded: frozenset({AW}),
        TriggerReceived: frozenset({AW}),
    },
    AC: {
        BarrierAnnounced: frozenset({AC, AW}),  # AW: of a newer checkpoint
        BarrierArrived: frozenset({AC, AW, UC}),  # AW: the last one; UC: unaligned or late
        AlignmentTimedOut: frozenset({UC}),
        GateClosed: frozenset({AC, AW}),
        CancellationArrived: frozenset({AW}),
        InputEnded: frozenset({AW}),
        TriggerReceived: frozenset({AW}),
    },
    UW: {
        BarrierAnnounced: frozenset({UW, AW}),
        BarrierArrived: frozenset({UC, AW, AC}),  # AW: the only one; AC: of a newer checkpoint
        AlignmentTimedOut: frozenset({UW}),
        GateClosed: frozenset({UW}),
        CancellationArrived: frozenset({AW}),
        InputEnded: frozenset({AW}),
        TriggerReceived: frozenset({AW}),
    },
    UC: {
        BarrierAnnounced: frozenset({UC, AW}),
        BarrierArrived: frozenset({UC, AW, AC}),  # AW: the last one; AC: of a newer checkpoint
        AlignmentTimedOut: frozenset({UC}),
        GateClosed: frozenset({UC, AW}),
        CancellationArrived: frozenset({AW}),
        InputEnded: frozenset({AW}),
        TriggerReceived: frozenset({AW}),
    },
}
"""state -> event -> states that may follow.  An event not in a state's row is ignored there if it is obsolete, else impossible."""
