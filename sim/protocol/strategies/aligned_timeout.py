"""Aligned barriers with a deadline (FLINK-19680, FLINK-27251): what is not aligned by then goes unaligned, inputs and outputs.

The deadline counts from the trigger timestamp in every task.  The acknowledgement waits until the own barriers have left.
"""

from __future__ import annotations

from sim.protocol.barriers.alternating import AlternatingWaitingForFirstBarrier
from sim.protocol.barriers.handler import BarrierHandler
from sim.protocol.options import AlignmentType
from sim.protocol.phases import ALIGNED as PHASES
from sim.protocol.phases import Requirement
from sim.protocol.strategies.strategy import Strategy

ALIGNED_TIMEOUT = Strategy(
    name="aligned-timeout",
    first_barrier_state=lambda gates: BarrierHandler.waiting(AlternatingWaitingForFirstBarrier(), gates),
    alignment=AlignmentType.ALIGNED,
    times_out=True,
    phases=PHASES,
    finishing=frozenset({Requirement.ASYNC_WORK, Requirement.CAPTURED_INPUT, Requirement.OUTPUT_BARRIERS}),
)
