"""Barrier modes: initial barrier state, phases of a snapshot, and conditions of its acknowledgement."""

from __future__ import annotations

import sys
from collections.abc import Callable
from enum import Enum

from sim.model.catalogs import Catalog, find_definitions
from sim.model.checkpoint import BARRIERS, Barriers
from sim.protocol.barrier_handler import BarrierHandler, BarrierTracker
from sim.protocol.machine import replace, value_class
from sim.protocol.messages import Work
from sim.protocol.options import AlignmentType, BarrierOptions

# ---- The phases of a snapshot with their work, and the conditions of its acknowledgement.
#
# Source: SubtaskCheckpointCoordinatorImpl#checkpointState.  The barrier leaves *before* the state snapshot, so alignment
# downstream overlaps with this task's sync and async phases, but not with its pre-barrier phase.


@value_class
class Phases:
    """The work of each phase of a snapshot that does any."""

    pre_barrier: tuple[Work, ...] = (Work.OPERATOR_FLUSH,)
    sync: tuple[Work, ...] = (Work.OPERATOR_SYNC, Work.STATE_SYNC)
    asynchronous: tuple[Work, ...] = (Work.KEYED_STATE, Work.OPERATOR_STATE, Work.OPERATOR_ASYNC)


class Requirement(Enum):
    """A condition that must be met before a task acknowledges."""

    __hash__ = object.__hash__  # as in `Phase`

    ASYNC_WORK = "async-work"  # the work of the asynchronous phase
    CAPTURED_INPUT = "captured-input"  # every input has its last barrier, and the data before it is written
    # the task's barriers have left its output queues or were converted (FLINK-27251)
    OUTPUT_BARRIERS = "output-barriers"


ALIGNED_PHASES = Phases()
"""Phases of all barrier modes of Flink.  They differ in what starts the first phase, and in the requirements of the last one."""


def async_operate(phases: Phases) -> Phases:
    """Move the flush of operators to the asynchronous phase (FLINK-37375): before the barrier they write to the local disk only."""
    return replace(phases, pre_barrier=(), asynchronous=(*phases.asynchronous, Work.OPERATOR_FLUSH))


ASYNC_OPERATE = async_operate(ALIGNED_PHASES)


@value_class
class Strategy:
    """A barrier mode: how tasks handle barriers, and when they acknowledge."""

    name: str
    # number of input gates -> barrier handler in its first state
    first_barrier_state: Callable[[int], BarrierHandler | BarrierTracker]
    alignment: AlignmentType  # of the barriers that sources emit
    times_out: bool  # whether barriers carry a deadline
    finishing: frozenset[Requirement]  # conditions of an acknowledgement
    phases: Phases = ALIGNED_PHASES

    @property
    def unaligned_allowed(self) -> bool:
        """Whether Flink's `execution.checkpointing.unaligned.enabled` is set.

        If so, savepoints obey max-concurrent and min-pause like checkpoints.
        """
        return self.times_out or self.alignment is AlignmentType.UNALIGNED


# ---- Aligned, exactly once (Flink's default): the snapshot starts at the last barrier.
#
# Channels that delivered their barrier stay blocked until the sync phase ends.  No in-flight data is stored.

ALIGNED = Strategy(
    name="aligned",
    first_barrier_state=BarrierHandler.for_gates,
    alignment=AlignmentType.ALIGNED,
    times_out=False,
    finishing=frozenset({Requirement.ASYNC_WORK}),
)


# ---- Aligned with a timeout (FLINK-19680, FLINK-27251): barriers on inputs and outputs become unaligned at the deadline.
#
# The timeout runs from the trigger timestamp in every task.  A task acknowledges when its barriers have left its outputs.

ALIGNED_TIMEOUT = Strategy(
    name="aligned-timeout",
    first_barrier_state=BarrierHandler.for_gates,
    alignment=AlignmentType.ALIGNED,
    times_out=True,
    finishing=frozenset({Requirement.ASYNC_WORK, Requirement.CAPTURED_INPUT, Requirement.OUTPUT_BARRIERS}),
)


# ---- Aligned with a timeout before FLINK-27251 (Flink 1.13 to 1.15): only barriers on inputs become unaligned.
#
# A barrier in an output queue stays behind the data there, even after the deadline.  Its task does not wait for it.

ALIGNED_TIMEOUT_INPUTS = replace(
    ALIGNED_TIMEOUT,
    name="aligned-timeout-inputs",
    finishing=ALIGNED_TIMEOUT.finishing - {Requirement.OUTPUT_BARRIERS},
)


# ---- At least once: barriers block nothing.  Records read between the first and the last barrier are replayed after a restore.

AT_LEAST_ONCE = Strategy(
    name="at-least-once",
    first_barrier_state=BarrierTracker.for_gates,
    alignment=AlignmentType.AT_LEAST_ONCE,
    times_out=False,
    finishing=frozenset({Requirement.ASYNC_WORK}),
)


# ---- Unaligned (FLIP-76): the snapshot starts at the first barrier, which overtakes all buffers on its way.
#
# The overtaken data is stored with the snapshot, which stays open until the last barrier arrives.

UNALIGNED = Strategy(
    name="unaligned",
    first_barrier_state=BarrierHandler.for_gates,
    alignment=AlignmentType.UNALIGNED,
    times_out=False,
    finishing=frozenset({Requirement.ASYNC_WORK, Requirement.CAPTURED_INPUT}),
)


STRATEGIES: Catalog[Strategy] = Catalog(
    *(mode for mode in find_definitions(sys.modules[__name__], Strategy) if mode.name in BARRIERS)
)
"""Barrier mode by its name in BARRIERS."""


def strategy(barriers: Barriers) -> Strategy:
    """Return the barrier mode for these options.  As in Flink, an aligned timeout of 0 means unaligned."""
    if barriers.record.has_deadline and barriers.timeout_ns <= 0:
        return STRATEGIES["unaligned"]
    if barriers.kind == "aligned-timeout" and not barriers.reaches_output:
        return ALIGNED_TIMEOUT_INPUTS
    return STRATEGIES[barriers.kind]


def barrier_options(barriers: Barriers, trigger_ns: int, *, savepoint: bool = False) -> BarrierOptions:
    """Return the options of the barriers that sources emit (CheckpointOptions#forConfig).

    Savepoints are aligned without a timeout, or at least once.
    """
    chosen = strategy(barriers)
    if savepoint and chosen.alignment is not AlignmentType.AT_LEAST_ONCE:
        return BarrierOptions(trigger_ns, savepoint=True)
    timeout_ns = barriers.timeout_ns if chosen.times_out else None
    return BarrierOptions(trigger_ns, chosen.alignment, timeout_ns, savepoint)
