"""The steps of one snapshot as data: which phase does which work, and what must be over before it is acknowledged.

Source: SubtaskCheckpointCoordinatorImpl#checkpointState.  The barrier leaves *before* the state snapshot, so alignment downstream
overlaps with this task's sync and async phases, but not with its pre-barrier phase.
"""

from __future__ import annotations

from enum import Enum

from sim.protocol.value_class import value_class
from sim.protocol.vocabulary import Phase, Work


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


ALIGNED: Phases = (
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


def move(phases: Phases, work: Work, *, out_of: Phase, into: Phase) -> Phases:
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
    return move(phases, Work.OPERATOR_FLUSH, out_of=Phase.PRE_BARRIER, into=Phase.ASYNC)


ASYNC_OPERATE = async_operate(ALIGNED)
