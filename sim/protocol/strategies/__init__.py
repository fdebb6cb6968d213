"""The ways of checkpointing, by name."""

from __future__ import annotations

from sim.model.checkpoint import Barriers
from sim.protocol.options import Alignment, BarrierOptions
from sim.protocol.strategies.aligned import ALIGNED
from sim.protocol.strategies.aligned_timeout import ALIGNED_TIMEOUT
from sim.protocol.strategies.aligned_timeout_inputs import ALIGNED_TIMEOUT_INPUTS
from sim.protocol.strategies.at_least_once import AT_LEAST_ONCE
from sim.protocol.strategies.strategy import Strategy
from sim.protocol.strategies.unaligned import UNALIGNED

__all__ = ["STRATEGIES", "Strategy", "barrier_options", "strategy"]

STRATEGIES: dict[str, Strategy] = {one.name: one for one in (ALIGNED, AT_LEAST_ONCE, UNALIGNED, ALIGNED_TIMEOUT)}


def strategy(barriers: Barriers) -> Strategy:
    """The page for these options.  A timeout of 0 is an unaligned checkpoint, as in Flink."""
    if barriers.kind == "aligned-timeout" and barriers.timeout_ns <= 0:
        return UNALIGNED
    if barriers.kind == "aligned-timeout" and not barriers.reaches_output:
        return ALIGNED_TIMEOUT_INPUTS
    return STRATEGIES[barriers.kind]


def barrier_options(barriers: Barriers, trigger_ns: int, *, savepoint: bool = False) -> BarrierOptions:
    """What the sources' barriers carry (CheckpointOptions#forConfig).  Savepoints are aligned and never time out."""
    chosen = strategy(barriers)
    if savepoint and chosen.alignment is not Alignment.AT_LEAST_ONCE:
        return BarrierOptions(trigger_ns, savepoint=True)
    timeout_ns = barriers.timeout_ns if chosen.times_out else None
    return BarrierOptions(trigger_ns, chosen.alignment, timeout_ns, savepoint)
