"""Measurements -> rectangular tables with the columns of `schema`.  Times become ms since the start of the run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from sim.metrics.schema import TABLES
from sim.metrics.stats import CheckpointStats, SubtaskStats

__all__ = ["checkpoints_table", "series_table", "subtasks_table", "tasks_table"]

_MS = 1_000_000


def checkpoints_table(stats: Iterable[CheckpointStats]) -> pd.DataFrame:
    return _frame("checkpoints", [_checkpoint_row(row) for row in stats])


def subtasks_table(stats: Iterable[CheckpointStats], names: Sequence[tuple[str, int]]) -> pd.DataFrame:
    """`names`: (vertex, subtask index) of each task."""
    rows = [_subtask_row(checkpoint, row, names) for checkpoint in stats for _, row in sorted(checkpoint.subtasks.items())]
    return _frame("subtasks", rows)


def tasks_table(plane_tasks: np.ndarray, names: Sequence[tuple[str, int]]) -> pd.DataFrame:
    """Totals of each task up to the end of the run."""
    rows = [
        (
            *names[t], row["served"], row["records_out"], row["bytes_in"], row["bytes_out"], row["buffers_in"], row["buffers_out"],
            row["busy_ns"] / _MS, row["idle_ns"] / _MS, row["soft_ns"] / _MS, row["hard_ns"] / _MS,
        )
        for t, row in enumerate(plane_tasks)
    ]  # fmt: skip
    return _frame("tasks", rows)


def series_table(rows: list[tuple[Any, ...]]) -> pd.DataFrame:
    return _frame("series", rows)


def _frame(table: str, rows: list[tuple[Any, ...]]) -> pd.DataFrame:
    return pd.DataFrame.from_records(rows, columns=[column.name for column in TABLES[table]])


def _ms(ns: int) -> float:
    return -1.0 if ns < 0 else ns / _MS


def _checkpoint_row(row: CheckpointStats) -> tuple[Any, ...]:
    parts = row.subtasks.values()
    persisted = sum(part.persisted_bytes for part in parts)
    state = sum(part.state_bytes for part in parts)
    written = sum(part.written_bytes for part in parts)
    end = row.failed_ns if row.status == "FAILED" else row.latest_ack_ns
    kind = "UNALIGNED_CHECKPOINT" if persisted else "CHECKPOINT"
    if row.savepoint_format:
        kind = "SYNC_SAVEPOINT" if row.stops else "SAVEPOINT"
    return (
        row.number, row.status, kind, _ms(row.trigger_ns), _ms(row.latest_ack_ns),
        -1.0 if end < 0 else (end - row.trigger_ns) / _MS, written + persisted, state + persisted,
        sum(part.processed_bytes for part in parts), persisted, 0, row.tasks, row.acknowledged, row.failure,
        -1.0 if row.completed_ns < 0 else (row.completed_ns - row.latest_ack_ns) / _MS, row.savepoint_format.upper(), row.standstill,
    )  # fmt: skip


def _subtask_row(checkpoint: CheckpointStats, row: SubtaskStats, names: Sequence[tuple[str, int]]) -> tuple[Any, ...]:
    done = row.ack_ns >= 0
    end_to_end_ns = row.ack_ns - checkpoint.trigger_ns if done else -1
    start_delay_ns = max(0, row.first_barrier_ns - checkpoint.trigger_ns) if row.first_barrier_ns >= 0 else -1
    aligning_ns = min(row.alignment_ns, max(0, row.snapshot_begun_ns - row.first_barrier_ns))  # the rest ran beside sync and async
    reported_ns = start_delay_ns + aligning_ns + row.sync_ns + row.async_ns
    return (
        checkpoint.number, *names[row.task], "completed" if done else "pending_or_failed", _ms(row.ack_ns), _ms(end_to_end_ns),
        _ms(start_delay_ns), row.alignment_ns / _MS, row.processed_bytes, row.persisted_bytes, row.sync_ns / _MS, row.async_ns / _MS,
        row.written_bytes + row.persisted_bytes, row.state_bytes + row.persisted_bytes, row.persisted_bytes > 0, row.aborted,
        row.pre_barrier_ns / _MS, row.async_queue_ns / _MS, (end_to_end_ns - reported_ns) / _MS if done else -1.0,
        row.captured_input_bytes, row.captured_output_bytes,
    )  # fmt: skip
