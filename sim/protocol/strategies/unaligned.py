"""Unaligned barriers (FLIP-76): the snapshot begins at the first barrier, which overtook everything on its way.

What was overtaken is stored with the snapshot; it stays open until the last barrier is here.
"""

from __future__ import annotations

from sim.protocol.barriers.alternating import AlternatingWaitingForFirstBarrier
from sim.protocol.barriers.handler import BarrierHandler
from sim.protocol.options import AlignmentType
from sim.protocol.phases import ALIGNED as PHASES
from sim.protocol.phases import Requirement
from sim.protocol.strategies.strategy import Strategy

UNALIGNED = Strategy(
    name="unaligned",
    first_barrier_state=lambda gates: BarrierHandler.waiting(AlternatingWaitingForFirstBarrier(), gates),
    alignment=AlignmentType.UNALIGNED,
    times_out=False,
    phases=PHASES,
    finishing=frozenset({Requirement.ASYNC_WORK, Requirement.CAPTURED_INPUT}),
)
