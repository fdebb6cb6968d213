"""The methods of every state of the barrier handler, and the checkpoint they are about (Flink's BarrierHandlerState)."""

from __future__ import annotations

from typing import Protocol

from sim.protocol.options import BarrierOptions
from sim.protocol.task_vocabulary import InnerCommand, InputsComplete, StartSnapshot, TaskCommand
from sim.protocol.value_class import value_class

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
        return StartSnapshot(self.checkpoint, options, first, delay, now - first if self.complete else None, resumes=self.complete)

    def inputs_complete(self, now: int) -> InputsComplete:
        return InputsComplete(now, self.checkpoint, now - (now if self.first_barrier_ns is None else self.first_barrier_ns))


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
