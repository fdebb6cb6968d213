"""States of the barrier handler (BarrierHandlerState): aligned, alternating, and the transitions between them."""

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
# States hold no data.  `BarrierHandler` counts barriers in `Pending`, which includes the event when the state gets it.

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Protocol

from sim.protocol.machine import value_class
from sim.protocol.options import BarrierOptions
from sim.protocol.task_messages import (
    CancelSnapshot,
    CaptureInput,
    FinishCapture,
    InnerCommand,
    InputsComplete,
    PrioritiseInput,
    ResumeInputs,
    StartSnapshot,
    TaskCommand,
)

# ---- The interface of all states (BarrierHandlerState), and the checkpoint whose barriers are collected.

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

    def timed_out(self, options: BarrierOptions, now: int) -> bool:
        """Return whether `now` is strictly later than the deadline (Controller#isTimedOut)."""
        return options.timeoutable and now > options.deadline_ns

    def snapshot(self, options: BarrierOptions, now: int) -> StartSnapshot:
        """Return the command that starts the snapshot.  The alignment ends now; the snapshot's own work is not part of it."""
        first = now if self.first_barrier_ns is None else self.first_barrier_ns
        alignment_ns = now - first if self.complete else None
        return StartSnapshot(self.checkpoint, options, first, alignment_ns, resumes=self.complete)

    def inputs_complete(self, now: int) -> InputsComplete:
        """Return the event that ends the alignment of a snapshot that has started already."""
        return InputsComplete(now, self.checkpoint, 0 if self.first_barrier_ns is None else now - self.first_barrier_ns)


class BarrierState(Protocol):
    """A state of the barrier handler.  Each method returns the next state and the commands.  `pending` already counts the event."""

    def barrier(self, pending: Pending, options: BarrierOptions, now: int) -> Transition:
        """Handle the first and / or last barrier of a gate.  It is unaligned if `options` are."""

    def announcement(self, pending: Pending) -> Transition:
        """Handle a barrier that is queued on some gate."""

    def timeout(self, pending: Pending, now: int) -> Transition:
        """Handle the alignment timer."""

    def gate_closed(self, pending: Pending, now: int) -> Transition:
        """Handle the end of a gate.  It will not deliver a barrier, and counts as arrived (FLIP-147)."""

    def triggered(self, pending: Pending, options: BarrierOptions, now: int) -> Transition:
        """Handle the coordinator's trigger call when no barrier has arrived."""

    def abort(self, checkpoint: int) -> Transition:
        """Abort the checkpoint and resume blocked inputs."""


# ---- The states of the aligned handler: wait for every barrier, then snapshot (unaligned checkpoints off).
#
# The sender blocks a channel behind its barrier; the handler resumes it after the sync phase.


class _Aligned(ABC):
    """Base of both states (AbstractAlignedBarrierHandlerState)."""

    __slots__ = ()

    def barrier(self, pending: Pending, options: BarrierOptions, now: int) -> Transition:
        if options.unaligned:
            raise ValueError("the aligned handler cannot process unaligned barriers")
        if pending.complete:
            return WaitingForFirstBarrier(), (pending.snapshot(options, now),)
        return CollectingBarriers(), ()

    def announcement(self, pending: Pending) -> Transition:
        raise ValueError("barriers without a timeout are not announced")

    def timeout(self, pending: Pending, now: int) -> Transition:
        raise ValueError("no alignment timer was armed")

    def triggered(self, pending: Pending, options: BarrierOptions, now: int) -> Transition:
        return WaitingForFirstBarrier(), (replace(pending.snapshot(options, now), resumes=False),)

    @abstractmethod
    def gate_closed(self, pending: Pending, now: int) -> Transition: ...

    def abort(self, checkpoint: int) -> Transition:
        return WaitingForFirstBarrier(), (ResumeInputs(checkpoint),)


@value_class
class WaitingForFirstBarrier(_Aligned):
    """No barrier of a newer checkpoint has arrived."""

    def gate_closed(self, pending: Pending, now: int) -> Transition:
        raise ValueError("no checkpoint is pending")


@value_class
class CollectingBarriers(_Aligned):
    """At least one barrier of this checkpoint has arrived, and at least one is missing."""

    def gate_closed(self, pending: Pending, now: int) -> Transition:
        return self.barrier(pending, pending.options, now)


# ---- The states of the alternating handler: start aligned, become unaligned on a timeout or an unaligned barrier.
#
# Unaligned checkpoints use it, too: their first barrier makes the first state unaligned at once.
# Source: Flink's Alternating*Barrier* states, AbstractAlternatingAlignedBarrierHandlerState.


def _prioritise(pending: Pending) -> Commands:
    """Let queued barriers overtake; only timeoutable ones are queued without priority (prioritizeAllAnnouncements)."""
    return (PrioritiseInput(pending.checkpoint),) if pending.options.timeoutable else ()


def _unaligned_snapshot(pending: Pending, options: BarrierOptions, now: int) -> Commands:
    """Capture in-flight data, then start the snapshot (checkpointStarted, triggerGlobalCheckpoint)."""
    return CaptureInput(pending.checkpoint), pending.snapshot(options.as_unaligned(), now)


class _Alternating(ABC):
    """Base of the alternating states."""

    __slots__ = ()

    @abstractmethod
    def barrier(self, pending: Pending, options: BarrierOptions, now: int) -> Transition: ...

    def announcement(self, pending: Pending) -> Transition:
        return self, ()  # the data plane keeps it for PrioritiseInput, which also holds for later barriers

    def timeout(self, pending: Pending, now: int) -> Transition:
        return self, ()

    def gate_closed(self, pending: Pending, now: int) -> Transition:
        if pending.complete:
            raise ValueError("all gates closed before any barrier arrived")
        return self, ()

    def triggered(self, pending: Pending, options: BarrierOptions, now: int) -> Transition:
        return AlternatingWaitingForFirstBarrier(), (replace(pending.snapshot(options, now), resumes=False),)

    def abort(self, checkpoint: int) -> Transition:
        return AlternatingWaitingForFirstBarrier(), (ResumeInputs(checkpoint),)


class _AlternatingAligned(_Alternating):
    """Base of the two aligned states."""

    __slots__ = ()

    def barrier(self, pending: Pending, options: BarrierOptions, now: int) -> Transition:
        if options.unaligned:
            return self._barrier_after_timeout(pending, options, now)
        if pending.complete:  # checked before the deadline: a complete alignment is never unaligned
            return AlternatingWaitingForFirstBarrier(), (pending.snapshot(options, now),)
        if pending.timed_out(options, now):
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
class AlternatingWaitingForFirstBarrierUnaligned(_Alternating):
    """Timed out before any barrier arrived: the first barrier, aligned or unaligned, starts the snapshot."""

    def barrier(self, pending: Pending, options: BarrierOptions, now: int) -> Transition:
        commands = _unaligned_snapshot(pending, options, now)
        if pending.complete:
            return AlternatingWaitingForFirstBarrier(), commands
        return AlternatingCollectingBarriersUnaligned(), commands


@value_class
class AlternatingCollectingBarriersUnaligned(_Alternating):
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
