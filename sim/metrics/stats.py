"""Measurements of checkpoints: one record per checkpoint, and one per checkpoint and subtask.

Times are ns on the run's clock, -1 = did not happen.  Definitions are Flink's (CheckpointMetricsBuilder,
SubtaskStateStats, AbstractCheckpointStats); fields Flink does not report are marked "ours".
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from itertools import chain
from operator import attrgetter
from zlib import compress, decompress


@dataclass(slots=True)
class SubtaskStats:
    """The measurements of one subtask in one checkpoint."""

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


_COLUMNS = tuple(field.name for field in fields(SubtaskStats))
_cells_of = attrgetter(*_COLUMNS)


@dataclass(slots=True)
class CheckpointStats:
    """The measurements of one checkpoint, and of its subtasks."""

    number: int
    trigger_ns: int
    tasks: int  # subtasks; those that have finished count as acknowledged from the start
    status: str = "IN_PROGRESS"
    latest_ack_ns: int = -1
    acknowledged: int = 0
    failed_ns: int = -1
    failure: str = ""
    standstill: str = ""  # tasks that waited for each other when it failed or the run ended, in words
    completed_ns: int = -1  # ours: _metadata durable
    savepoint_format: str = ""  # of a savepoint
    stops: bool = False  # the job stops with it
    stop_forgotten: bool = False  # the JobManager is lost that was to stop the job with it
    _at_hand: dict[int, SubtaskStats] = field(default_factory=dict)
    _packed: bytes = b""

    @property
    def subtasks(self) -> Mapping[int, SubtaskStats]:
        """The rows of subtasks, to read.  `of` gives a row to write to."""
        return self._unpacked() if self._packed else self._at_hand

    def of(self, task: int) -> SubtaskStats:
        """The row of a subtask, to write to at this moment only.  The first call makes it."""
        if self._packed:
            self._at_hand, self._packed = self._unpacked(), b""
        if task not in self._at_hand:
            self._at_hand[task] = SubtaskStats(task)
        return self._at_hand[task]

    def pack(self) -> None:
        """Compress the rows of subtasks to a thirtieth of their room, as no change is expected.  A write unpacks them."""
        if self._at_hand:
            cells = array("q", chain.from_iterable(map(_cells_of, self._at_hand.values())))
            self._at_hand, self._packed = {}, compress(cells.tobytes(), level=1)

    def _unpacked(self) -> dict[int, SubtaskStats]:
        cells = iter(array("q", decompress(self._packed)))
        rows = [SubtaskStats(*row) for row in zip(*[cells] * len(_COLUMNS), strict=True)]
        for row in rows:
            row.aborted = bool(row.aborted)
        return {row.task: row for row in rows}


def stopped_with(stats: Mapping[int, CheckpointStats]) -> set[int]:
    """The completed savepoint that the job was stopped with; empty if it was not.

    Another JobManager knows nothing of the stop: high availability keeps completed checkpoints, and no savepoints.
    """
    return {checkpoint for checkpoint, row in stats.items() if row.stops and row.status == "COMPLETED" and not row.stop_forgotten}
