"""How many checkpoints in a row may fail (CheckpointFailureManager)."""

from __future__ import annotations

from dataclasses import replace

from sim.protocol.reasons import FailureReason
from sim.protocol.value_class import value_class


@value_class
class FailureCounter:
    """Each checkpoint counts once.  The success of a newer one forgives all, and so does failing the job."""

    tolerable: int
    count: int = 0
    counted: frozenset[int] = frozenset()
    last_success: int = 0

    def failed(self, checkpoint: int | None, reason: FailureReason) -> tuple[FailureCounter, bool]:
        """Count a failure.  Also returns whether the job must fail.  Without a checkpoint id every failure counts."""
        if checkpoint is not None and checkpoint <= self.last_success:
            return self, False
        after = self
        if reason.counts and (checkpoint is None or checkpoint not in self.counted):
            ids = self.counted if checkpoint is None else self.counted | {checkpoint}
            after = replace(self, count=self.count + 1, counted=ids)
        if after.count > after.tolerable:
            return after.forgiven(), True
        return after, False

    def succeeded(self, checkpoint: int) -> FailureCounter:
        return replace(self.forgiven(), last_success=checkpoint) if checkpoint > self.last_success else self

    def forgiven(self) -> FailureCounter:
        return replace(self, count=0, counted=frozenset())
