"""At least once: barriers are counted, nothing waits; records read between two barriers of a checkpoint count again after a restore."""

from __future__ import annotations

from sim.protocol.barriers.tracker import BarrierTracker
from sim.protocol.options import AlignmentType
from sim.protocol.phases import ALIGNED as PHASES
from sim.protocol.phases import Requirement
from sim.protocol.strategies.strategy import Strategy

AT_LEAST_ONCE = Strategy(
    name="at-least-once",
    first_barrier_state=BarrierTracker.waiting,
    alignment=AlignmentType.AT_LEAST_ONCE,
    times_out=False,
    phases=PHASES,
    finishing=frozenset({Requirement.ASYNC_WORK}),
)
