"""The ways of checkpointing, a page each: first barrier state, phases, what an acknowledgement waits for.

Coordinator, tasks and their hosts call it.  A page knows states and phases, and no machine that runs them.
"""

from __future__ import annotations

import sys

from sim.model.catalogs.barriers import BARRIERS, Barriers
from sim.model.catalogs.catalog import Catalog, pages
from sim.protocol.options import AlignmentType, BarrierOptions
from sim.protocol.strategies.aligned_timeout_inputs import ALIGNED_TIMEOUT_INPUTS
from sim.protocol.strategies.strategy import Strategy

__all__ = ["STRATEGIES", "Strategy", "barrier_options", "strategy"]

STRATEGIES: Catalog[Strategy] = Catalog(*(page for page in pages(sys.modules[__name__], Strategy) if page.name in BARRIERS))
"""One page for each name of BARRIERS."""


def strategy(barriers: Barriers) -> Strategy:
    """The page for these options.  A timeout of 0 is an unaligned checkpoint, as in Flink."""
    if barriers.record.has_deadline and barriers.timeout_ns <= 0:
        return STRATEGIES["unaligned"]
    if barriers.kind == "aligned-timeout" and not barriers.reaches_output:
        return ALIGNED_TIMEOUT_INPUTS
    return STRATEGIES[barriers.kind]


def barrier_options(barriers: Barriers, trigger_ns: int, *, savepoint: bool = False) -> BarrierOptions:
    """What the sources' barriers carry (CheckpointOptions#forConfig).  Savepoints are aligned and never time out."""
    chosen = strategy(barriers)
    if savepoint and chosen.alignment is not AlignmentType.AT_LEAST_ONCE:
        return BarrierOptions(trigger_ns, savepoint=True)
    timeout_ns = barriers.timeout_ns if chosen.times_out else None
    return BarrierOptions(trigger_ns, chosen.alignment, timeout_ns, savepoint)
