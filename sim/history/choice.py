"""Which checkpoints of a history are slow, and beside which others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from sim.foreign import Readable
from sim.history.history import History
from sim.quantities.observed import NEGLIGIBLE_MS
from sim.recordings.infer.options import NEVER_MS
from sim.recordings.source.recorded_job import RecordedCheckpoint

SLOW = 1.5
"""A checkpoint is slow from so many times the median on, if it is longer than the median by more than noise."""


class MissingCheckpointError(Readable, LookupError):
    """There is no such checkpoint to explain."""


@dataclass(frozen=True, slots=True)
class SplitHistory:
    """The completed checkpoints of a history, without its first upload and savepoints, and those that did not complete."""

    slow: tuple[RecordedCheckpoint, ...]  # the slowest first
    others: tuple[RecordedCheckpoint, ...]  # oldest first
    failed: tuple[RecordedCheckpoint, ...]  # oldest first
    under_way: tuple[RecordedCheckpoint, ...]
    median_ms: float
    limit_ms: float  # from which on they are slow

    @property
    def completed(self) -> int:
        return len(self.slow) + len(self.others)


def split(history: History) -> SplitHistory:
    """MissingCheckpointError: the job has had no checkpoint, or none is known any more."""
    if not history.checkpoints and history.silence is None and not history.partial:
        raise MissingCheckpointError(_none(history))
    done = [point for point in history.checkpoints if point.status == "COMPLETED" and point.end_to_end_duration >= 0]
    usual = list(history.usual) or done
    median_ms = float(median(point.end_to_end_duration for point in usual)) if usual else 0.0
    limit_ms = max(SLOW * median_ms, median_ms + NEGLIGIBLE_MS)
    slow = sorted((point for point in usual if point.end_to_end_duration > limit_ms), key=lambda point: -point.end_to_end_duration)
    others = [point for point in usual if point.end_to_end_duration <= limit_ms]
    return SplitHistory(
        tuple(slow), tuple(others), _with(history.checkpoints, "FAILED"), _with(history.checkpoints, "IN_PROGRESS"), median_ms, limit_ms
    )


def asked_for(history: History, number: int) -> RecordedCheckpoint:
    """MissingCheckpointError: it is not in the history, and why."""
    found = history.checkpoint(number)
    if found is not None:
        return found
    if not history.checkpoints:
        raise MissingCheckpointError(_none(history))
    first, last = history.checkpoints[0].id, history.checkpoints[-1].id
    if number < first:
        kept = f"its history is of {history.kept}" if history.kept else "it keeps the last ones only"
        raise MissingCheckpointError(
            f"no checkpoint {number}: the JobManager does not keep its statistics any more ({kept}, web.checkpoints.history): "
            f"there are {first} to {last}"
        )
    raise MissingCheckpointError(f"no checkpoint {number}: there are {first} to {last}")


def _with(points: Sequence[RecordedCheckpoint], status: str) -> tuple[RecordedCheckpoint, ...]:
    return tuple(point for point in points if point.status == status)


def _none(history: History) -> str:
    config = history.checkpoint_config
    if history.counted:
        return f"the job has had {history.counted} checkpoints, and the statistics of none are kept"
    if config is None or not 0 < config.interval < NEVER_MS:
        return "the job takes no checkpoints: execution.checkpointing.interval is not set"
    return "the job has had no checkpoint yet"
