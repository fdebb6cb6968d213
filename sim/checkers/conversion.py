"""Barriers that wait in outputs: they leave before the deadline of their checkpoint, or overtake.  Law 120.

Flink: SubtaskCheckpointCoordinatorImpl#registerAlignmentTimer, PipelinedSubpartition#alignedBarrierTimeout (FLINK-27251).
"""

from __future__ import annotations

from collections.abc import Collection

from sim.checkers.story import Teller
from sim.checkers.violation import Violation

LEFT_OR_CONVERTED = "a barrier that still waits in an output at the deadline of its checkpoint overtakes what is in front of it"


def left_behind(time_ns: int, checkpoint: int, late: Collection[int], teller: Teller) -> Violation | None:
    """When a checkpoint completes; `late`: tasks that heard of the deadline while a barrier waited, and converted none."""
    if not late:
        return None
    task = min(late)
    others = f" (and {len(late) - 1} more)" if len(late) > 1 else ""
    fact = f"the deadline has passed while its barrier waited in an output, and the barrier was not converted{others}"
    return Violation(LEFT_OR_CONVERTED, time_ns, f"{teller.task(task)}, checkpoint {checkpoint}", fact, teller.cut(checkpoint, {task}))
