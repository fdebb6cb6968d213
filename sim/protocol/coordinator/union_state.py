"""Union list state and finished tasks: a vertex with such state must have all of its tasks finished, or none.

Every task is restored with the whole union.  If the operators of some tasks have finished, their part is missing, and a checkpoint with
such a part cannot be completed (PartialFinishingNotSupportedByStateException).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from sim.protocol.coordinator.plan import TaskGraph
from sim.protocol.machine import changed
from sim.protocol.reasons import FailureReason
from sim.protocol.value_class import value_class


@value_class
class UnionState:
    """The vertices with union list state, and their finished tasks by checkpoint."""

    graph: TaskGraph
    vertices: frozenset[int]  # those that keep union list state
    finished: Mapping[int, frozenset[int]] = field(default_factory=dict)  # by checkpoint: tasks whose operators have finished

    def begun(self, checkpoint: int, finished: frozenset[int]) -> UnionState:
        """A checkpoint begins without those who have finished."""
        return changed(self, finished={**self.finished, checkpoint: finished}) if self.vertices else self

    def finished_in(self, task: int, checkpoint: int) -> UnionState:
        """A task takes part whose operators have finished."""
        if not self.vertices:
            return self
        return changed(self, finished={**self.finished, checkpoint: self.finished[checkpoint] | {task}})

    def refusal(self, checkpoint: int) -> FailureReason | None:
        """Why the checkpoint cannot be completed; None: it can."""
        if self.vertices and not self.vertices.isdisjoint(self.graph.partial(self.finished[checkpoint])):
            return FailureReason.CHECKPOINT_DECLINED_TASK_CLOSING
        return None
