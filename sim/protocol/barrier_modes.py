"""Barrier modes: first barrier state, phases of a snapshot, what an acknowledgement waits for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from enum import Enum

from sim.model.catalog import Catalog, find_plugins
from sim.model.checkpoint import BARRIERS, Barriers
from sim.protocol.barrier_handler import BarrierHandler, BarrierTracker
from sim.protocol.barrier_states import AlternatingWaitingForFirstBarrier, WaitingForFirstBarrier
from sim.protocol.coordinator_messages import Phase, Work
from sim.protocol.machine import value_class
from sim.protocol.options import AlignmentType, BarrierOptions

# ---- The steps of one snapshot as data: which phase does which work, and what must be over before it is acknowledged.
#
# Source:  SubtaskCheckpointCoordinatorImpl#checkpointState.  The barrier leaves *before* the state snapshot, so
# alignment downstream overlaps with this task's sync and async phases, but not with its pre-barrier phase.


@value_class
class PhaseStep:
    """A phase of a snapshot, with its work."""

    phase: Phase
    work: tuple[Work, ...] = ()


Phases = tuple[PhaseStep, ...]

_PLACE = {phase: place for place, phase in enumerate(Phase)}


class Requirement(Enum):
    """A condition of an acknowledgement (the finishing rule of a strategy)."""

    __hash__ = object.__hash__  # as in `Phase`

    ASYNC_WORK = "async-work"  # the work of the asynchronous phase
    CAPTURED_INPUT = "captured-input"  # the last barrier on every input, and what came before it written
    OUTPUT_BARRIERS = "output-barriers"  # the own barriers have left the outputs or were converted (FLINK-27251)


ALIGNED_PHASES: Phases = (
    PhaseStep(Phase.PRE_BARRIER, (Work.OPERATOR_FLUSH,)),
    PhaseStep(Phase.FORWARD_BARRIER),
    PhaseStep(Phase.SYNC, (Work.OPERATOR_SYNC, Work.STATE_SYNC)),
    PhaseStep(Phase.RESUME_INPUTS),
    PhaseStep(Phase.ASYNC, (Work.KEYED_STATE, Work.OPERATOR_STATE, Work.OPERATOR_ASYNC)),
    PhaseStep(Phase.ACKNOWLEDGE),
)
"""All strategies of Flink have these phases.  They differ in the beginning of the first one and the requirements of the last one."""


def complete(phases: Phases) -> Phases:
    """The phases themselves, if none is missing."""
    if tuple(step.phase for step in phases) != tuple(Phase):
        raise ValueError("a phase list has every phase once, in order")
    return phases


def work_of(phases: Phases, phase: Phase) -> tuple[Work, ...]:
    """The work of one phase in a complete list."""
    return phases[_PLACE[phase]].work


def with_work_moved(phases: Phases, work: Work, *, out_of: Phase, into: Phase) -> Phases:
    """The same phases with one piece of work done elsewhere, last in its new phase."""
    source = next((step for step in phases if step.phase is out_of), None)
    if source is None or work not in source.work:
        raise ValueError(f"{work} is no work of {out_of}")
    if all(step.phase is not into for step in phases):
        raise ValueError(f"there is no phase {into}")

    def moved(step: PhaseStep) -> PhaseStep:
        kept = tuple(other for other in step.work if step.phase is not out_of or other is not work)
        return PhaseStep(step.phase, (*kept, work) if step.phase is into else kept)

    return tuple(moved(step) for step in phases)


def async_operate(phases: Phases) -> Phases:
    """FLINK-37375: operators write their files in the asynchronous phase; before the barrier they get no further than the local disk."""
    return with_work_moved(phases, Work.OPERATOR_FLUSH, out_of=Phase.PRE_BARRIER, into=Phase.ASYNC)


ASYNC_OPERATE = async_operate(ALIGNED_PHASES)


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


# ---- Aligned barriers, exactly once: the snapshot begins when the last barrier is here (the default).
#
# Channels that delivered wait, through the sync phase.  No in-flight data is ever stored.

ALIGNED = Strategy(
    name="aligned",
    first_barrier_state=lambda gates: BarrierHandler.waiting(WaitingForFirstBarrier(), gates),
    alignment=AlignmentType.ALIGNED,
    times_out=False,
    phases=ALIGNED_PHASES,
    finishing=frozenset({Requirement.ASYNC_WORK}),
)


# ---- Aligned barriers with a deadline (FLINK-19680, FLINK-27251): what is not aligned by then goes unaligned, inputs and outputs.
#
# The deadline counts from the trigger timestamp in every task.  The acknowledgement waits until the own barriers have
# left.

ALIGNED_TIMEOUT = Strategy(
    name="aligned-timeout",
    first_barrier_state=lambda gates: BarrierHandler.waiting(AlternatingWaitingForFirstBarrier(), gates),
    alignment=AlignmentType.ALIGNED,
    times_out=True,
    phases=ALIGNED_PHASES,
    finishing=frozenset({Requirement.ASYNC_WORK, Requirement.CAPTURED_INPUT, Requirement.OUTPUT_BARRIERS}),
)


# ---- Aligned barriers with a deadline as they were before FLINK-27251 (Flink 1.13 to 1.15): only inputs go unaligned.
#
# A barrier behind data in a sender's queue stays there, late or not; the task that wrote it has acknowledged long ago.

ALIGNED_TIMEOUT_INPUTS = replace(
    ALIGNED_TIMEOUT,
    name="aligned-timeout-inputs",
    finishing=ALIGNED_TIMEOUT.finishing - {Requirement.OUTPUT_BARRIERS},
)


# ---- At least once: barriers are counted, nothing waits; records read between two barriers of a checkpoint count again after a restore.

AT_LEAST_ONCE = Strategy(
    name="at-least-once",
    first_barrier_state=BarrierTracker.waiting,
    alignment=AlignmentType.AT_LEAST_ONCE,
    times_out=False,
    phases=ALIGNED_PHASES,
    finishing=frozenset({Requirement.ASYNC_WORK}),
)


# ---- Unaligned barriers (FLIP-76): the snapshot begins at the first barrier, which overtook everything on its way.
#
# What was overtaken is stored with the snapshot; it stays open until the last barrier is here.

UNALIGNED = Strategy(
    name="unaligned",
    first_barrier_state=lambda gates: BarrierHandler.waiting(AlternatingWaitingForFirstBarrier(), gates),
    alignment=AlignmentType.UNALIGNED,
    times_out=False,
    phases=ALIGNED_PHASES,
    finishing=frozenset({Requirement.ASYNC_WORK, Requirement.CAPTURED_INPUT}),
)


STRATEGIES: Catalog[Strategy] = Catalog(
    *(mode for mode in find_plugins(sys.modules[__name__], Strategy) if mode.name in BARRIERS)
)
"""One for each name of BARRIERS."""


def strategy(barriers: Barriers) -> Strategy:
    """The mode of these options.  A timeout of 0 is an unaligned checkpoint, as in Flink."""
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
