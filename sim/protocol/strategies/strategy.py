"""A way of checkpointing as a record: the fields that every page of this room fills, in this order."""

from __future__ import annotations

from collections.abc import Callable

from sim.protocol.barriers.handler import BarrierHandler
from sim.protocol.barriers.tracker import BarrierTracker
from sim.protocol.options import AlignmentType
from sim.protocol.phases import Phases, Requirement
from sim.protocol.value_class import value_class


@value_class
class Strategy:
    """A way of checkpointing."""

    name: str
    first_barrier_state: Callable[[int], BarrierHandler | BarrierTracker]  # number of gates -> what waits for barriers
    alignment: AlignmentType  # in the barriers the sources write
    times_out: bool  # whether they carry a deadline
    phases: Phases
    finishing: frozenset[Requirement]  # what an acknowledgement waits for

    @property
    def unaligned_allowed(self) -> bool:
        """Flink's execution.checkpointing.unaligned.enabled: then savepoints wait for their turn like everything else."""
        return self.times_out or self.alignment is AlignmentType.UNALIGNED
