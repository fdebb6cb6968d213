"""The states of the aligned handler: wait for every barrier, then snapshot (unaligned checkpoints off).

Blocking is the sender's; here a channel that delivered its barrier is simply not resumed before the snapshot's
RESUME_INPUTS phase, which follows its sync phase.
"""
# ruff: noqa: ARG002 -- every state answers every question, also where it needs less to know

from __future__ import annotations

from abc import ABC, abstractmethod

from sim.protocol.barriers.state import Pending, Transition
from sim.protocol.machine import changed
from sim.protocol.options import BarrierOptions
from sim.protocol.task_vocabulary import ResumeInputs
from sim.protocol.value_class import value_class


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
        return WaitingForFirstBarrier(), (changed(pending.snapshot(options, now), resumes=False),)

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
