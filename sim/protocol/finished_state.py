"""Whether a job may start from a checkpoint that holds finished vertices (VertexFinishedStateChecker).

A finished vertex emits nothing any more, so nobody whose output it would have to process may stand before it: no new operator, and
none that still runs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import Enum

from sim.model.job import Job

__all__ = ["FinishedState", "finished_state", "illegal_restores"]


class FinishedState(Enum):
    RUNNING = "running"  # new vertices too
    PARTIALLY = "partially finished"
    FULLY = "fully finished"


def finished_state(finished: Collection[int], parallelism: int) -> FinishedState:
    """Of a vertex of which these subtasks have finished."""
    if not finished:
        return FinishedState.RUNNING
    return FinishedState.FULLY if len(finished) == parallelism else FinishedState.PARTIALLY


def illegal_restores(job: Job, states: dict[str, FinishedState]) -> list[str]:
    """One sentence per edge along which the job cannot go on from the checkpoint; vertices without an entry are new."""
    return list(_illegal(job, states))


def _illegal(job: Job, states: dict[str, FinishedState]) -> Iterable[str]:
    for vertex in job.vertices:
        state = states.get(vertex.name, FinishedState.RUNNING)
        for inlet in vertex.inputs:
            before = states.get(inlet.upstream, FinishedState.RUNNING)
            pointwise = inlet.shipping.pointwise
            if state is FinishedState.FULLY:
                legal = before is FinishedState.FULLY
            elif state is FinishedState.PARTIALLY:
                legal = before is FinishedState.FULLY or (pointwise and before is FinishedState.PARTIALLY)
            else:
                legal = True
            if not legal:
                new = "" if inlet.upstream in states else "new and "
                yield f"{vertex.name} is {state.value}, but {inlet.upstream} before it is {new}{before.value}"
