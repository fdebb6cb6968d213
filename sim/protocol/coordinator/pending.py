"""One checkpoint under way, as the coordinator sees it (PendingCheckpoint)."""

from __future__ import annotations

from enum import Enum

from sim.protocol.coordinator.task_set import TaskSet
from sim.protocol.machine import changed
from sim.protocol.reasons import FailureReason
from sim.protocol.value_class import value_class
from sim.protocol.vocabulary import Plan, RecordCompleted, RecordFailed, RequestKind, Savepoint


class PendingState(Enum):
    """While metadata is written the lock is taken: nothing expires and no other checkpoint completes."""

    WAITING_FOR_ACKNOWLEDGEMENTS = "waiting-for-acknowledgements"
    WRITING_METADATA = "writing-metadata"  # all have acknowledged; it still holds its slot


@value_class
class PendingCheckpoint:
    """A checkpoint that has been triggered and has neither completed nor failed."""

    checkpoint: int
    kind: RequestKind
    trigger_ns: int
    plan: Plan
    acknowledged: TaskSet = TaskSet()
    latest_ack_ns: int = -1
    state: PendingState = PendingState.WAITING_FOR_ACKNOWLEDGEMENTS
    savepoint: Savepoint | None = None

    @property
    def stops(self) -> bool:
        """Whether the job stops with it (a synchronous savepoint)."""
        return self.savepoint is not None and self.savepoint.stop is not None

    def with_acknowledgement(self, task: int, now: int) -> PendingCheckpoint:
        acknowledged = self.acknowledged.with_task(task)
        all_here = len(acknowledged) == len(self.plan.wait_for)
        state = PendingState.WRITING_METADATA if all_here else PendingState.WAITING_FOR_ACKNOWLEDGEMENTS
        return changed(self, acknowledged=acknowledged, latest_ack_ns=now, state=state)

    def completed(self, now: int) -> RecordCompleted:
        return RecordCompleted(self.checkpoint, self.kind, self.trigger_ns, self.latest_ack_ns, now)

    def failed(self, reason: FailureReason, now: int) -> RecordFailed:
        return RecordFailed(self.checkpoint, self.kind, reason, self.trigger_ns, self.latest_ack_ns, now, frozenset(self.acknowledged))
