"""Measurements -> rectangular tables with the columns of `schema`.  Times become ms since the start of the run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np
import pandas as pd

from sim.metrics.frame import frame, ms, span_ms, task_name
from sim.metrics.schema import Row
from sim.metrics.stats import CheckpointStats, SubtaskStats
from sim.units import MS


def checkpoints_table(stats: Iterable[CheckpointStats]) -> pd.DataFrame:
    return frame("checkpoints", map(_checkpoint_row, stats))


def subtasks_table(stats: Iterable[CheckpointStats], names: Sequence[tuple[str, int]], only: Collection[str] | None = None) -> pd.DataFrame:
    """`names`: (vertex, subtask index) of each task; `only`: columns that are asked for."""
    parts = ((checkpoint, row) for checkpoint in stats for _, row in sorted(checkpoint.subtasks.items()))
    return frame("subtasks", (_subtask_row(checkpoint, row, names) for checkpoint, row in parts), only)


def tasks_table(plane_tasks: np.ndarray, names: Sequence[tuple[str, int]], final_checkpoints: Sequence[int | None]) -> pd.DataFrame:
    """Totals of each task up to the end of the run."""
    return frame("tasks", (_task_row(row, names[t], final_checkpoints[t]) for t, row in enumerate(plane_tasks)))


def _task_row(row: np.void, name: tuple[str, int], final_checkpoint: int | None) -> Row:
    return {
        **task_name(name),
        "numRecordsIn": row["served"],
        "numRecordsOut": row["records_out"],
        "numBytesIn": row["bytes_in"],
        "numBytesOut": row["bytes_out"],
        "numBuffersIn": row["buffers_in"],
        "numBuffersOut": row["buffers_out"],
        "accumulateBusyTimeMs": row["busy_ns"] / MS,
        "accumulateIdleTimeMs": row["idle_ns"] / MS,
        "x_softBackPressuredTimeMs": row["soft_ns"] / MS,
        "x_hardBackPressuredTimeMs": row["hard_ns"] / MS,
        "x_finalCheckpoint": -1 if final_checkpoint is None else final_checkpoint,
    }


def _checkpoint_row(row: CheckpointStats) -> Row:
    parts = row.subtasks.values()
    persisted = sum(part.persisted_bytes for part in parts)
    state = sum(part.state_bytes for part in parts)
    written = sum(part.written_bytes for part in parts)
    end = row.failed_ns if row.status == "FAILED" else row.latest_ack_ns
    kind = "UNALIGNED_CHECKPOINT" if persisted else "CHECKPOINT"
    if row.savepoint_format:
        kind = "SYNC_SAVEPOINT" if row.stops else "SAVEPOINT"
    return {
        "id": row.number,
        "status": row.status,
        "checkpoint_type": kind,
        "trigger_timestamp": ms(row.trigger_ns),
        "latest_ack_timestamp": ms(row.latest_ack_ns),
        "end_to_end_duration": span_ms(row.trigger_ns, end),
        "checkpointed_size": written + persisted,
        "state_size": state + persisted,
        "processed_data": sum(part.processed_bytes for part in parts),
        "persisted_data": persisted,
        "alignment_buffered": 0,
        "num_subtasks": row.tasks,
        "num_acknowledged_subtasks": row.acknowledged,
        "failure_message": row.failure,
        "x_finalization": span_ms(row.latest_ack_ns, row.completed_ns),
        "savepointFormat": row.savepoint_format.upper(),
        "x_standstill": row.standstill,
    }


def _subtask_row(checkpoint: CheckpointStats, row: SubtaskStats, names: Sequence[tuple[str, int]]) -> Row:
    done = row.ack_ns >= 0
    end_to_end_ns = row.ack_ns - checkpoint.trigger_ns if done else -1
    start_delay_ns = max(0, row.first_barrier_ns - checkpoint.trigger_ns) if row.first_barrier_ns >= 0 else -1
    aligning_ns = min(row.alignment_ns, max(0, row.snapshot_begun_ns - row.first_barrier_ns))  # the rest ran beside sync and async
    reported_ns = start_delay_ns + aligning_ns + row.sync_ns + row.async_ns
    return {
        "id": checkpoint.number,
        **task_name(names[row.task]),
        "status": "completed" if done else "pending_or_failed",
        "ack_timestamp": ms(row.ack_ns),
        "end_to_end_duration": ms(end_to_end_ns),
        "start_delay": ms(start_delay_ns),
        "alignment_duration": row.alignment_ns / MS,
        "alignment_processed": row.processed_bytes,
        "alignment_persisted": row.persisted_bytes,
        "sync_duration": row.sync_ns / MS,
        "async_duration": row.async_ns / MS,
        "checkpointed_size": row.written_bytes + row.persisted_bytes,
        "state_size": row.state_bytes + row.persisted_bytes,
        "unaligned_checkpoint": row.persisted_bytes > 0,
        "aborted": row.aborted,
        "x_pre_barrier": row.pre_barrier_ns / MS,
        "x_async_queue": row.async_queue_ns / MS,
        "x_hidden": (end_to_end_ns - reported_ns) / MS if done else -1.0,
        "x_captured_input": row.captured_input_bytes,
        "x_captured_output": row.captured_output_bytes,
    }
