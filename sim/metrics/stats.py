"""What is measured of each checkpoint while it runs: one record per checkpoint, one per checkpoint and subtask.

Times are ns on the run's clock, -1 = did not happen.  Definitions are Flink's (CheckpointMetricsBuilder,
SubtaskStateStats, AbstractCheckpointStats); fields Flink does not report are marked "ours".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["CheckpointStats", "SubtaskStats", "stopped_with"]


@dataclass(slots=True)
class SubtaskStats:
    task: int
    first_barrier_ns: int = -1  # first barrier, or trigger call executed
    alignment_ns: int = 0  # first to last barrier processed
    processed_bytes: int = 0  # polled while aligning
    captured_input_bytes: int = 0
    captured_output_bytes: int = 0
    snapshot_begun_ns: int = -1  # ours
    pre_barrier_ns: int = 0  # ours: prepareSnapshotPreBarrier
    sync_ns: int = 0
    async_begun_ns: int = -1
    async_ns: int = 0
    async_queue_ns: int = 0  # ours: wait for the task's one asynchronous thread
    state_bytes: int = 0  # referenced: all a restore reads
    written_bytes: int = 0  # of these, written for this checkpoint
    ack_ns: int = -1
    aborted: bool = False

    @property
    def persisted_bytes(self) -> int:
        return self.captured_input_bytes + self.captured_output_bytes


@dataclass(slots=True)
class CheckpointStats:
    number: int
    trigger_ns: int
    tasks: int  # subtasks; those that have finished count as acknowledged from the start
    subtasks: dict[int, SubtaskStats] = field(default_factory=dict)
    status: str = "IN_PROGRESS"
    latest_ack_ns: int = -1
    acknowledged: int = 0
    failed_ns: int = -1
    failure: str = ""
    standstill: str = ""  # tasks that waited for each other when it failed or the run ended, in words
    completed_ns: int = -1  # ours: _metadata durable
    savepoint_format: str = ""  # of a savepoint
    stops: bool = False  # the job stops with it

    def of(self, task: int) -> SubtaskStats:
        if task not in self.subtasks:
            self.subtasks[task] = SubtaskStats(task)
        return self.subtasks[task]


def stopped_with(stats: Mapping[int, CheckpointStats]) -> set[int]:
    """The completed savepoint that the job was stopped with; empty if it was not."""
    return {checkpoint for checkpoint, row in stats.items() if row.stops and row.status == "COMPLETED"}
