"""Aligned barriers, exactly once: the snapshot begins when the last barrier is here (the default).

Channels that delivered wait, through the sync phase.  No in-flight data is ever stored.
"""

from __future__ import annotations

from sim.protocol.barriers.aligned import WaitingForFirstBarrier
from sim.protocol.barriers.handler import BarrierHandler
from sim.protocol.options import AlignmentType
from sim.protocol.phases import ALIGNED as PHASES
from sim.protocol.phases import Requirement
from sim.protocol.strategies.strategy import Strategy

ALIGNED = Strategy(
    name="aligned",
    first_barrier_state=lambda gates: BarrierHandler.waiting(WaitingForFirstBarrier(), gates),
    alignment=AlignmentType.ALIGNED,
    times_out=False,
    phases=PHASES,
    finishing=frozenset({Requirement.ASYNC_WORK}),
)
