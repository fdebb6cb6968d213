"""Measurements -> tables: Flink's definitions of its columns, and the arithmetic of ours."""

from dataclasses import asdict

import numpy as np
import pytest

from sim.results.journal import PackedRows
from sim.results.schema import SERIES, TABLES, frame
from sim.results.tables import (
    CheckpointStats,
    RecoveryStats,
    SubtaskStats,
    checkpoints_table,
    commits_table,
    files_table,
    recoveries_table,
    requests_table,
    restores_table,
    snapshots_table,
    subtasks_table,
    tasks_table,
)

MS = 1_000_000
NAMES = [("source", 0), ("map", 0), ("map", 1)]


def subtask(task: int = 1, **measured: int | bool) -> SubtaskStats:
    """First barrier 20 ms after the trigger (at 100 ms), acknowledged at 200 ms; `_ms` fields are given in ms."""
    row = SubtaskStats(task, first_barrier_ns=120 * MS, ack_ns=200 * MS)
    for name, value in measured.items():
        setattr(row, name.replace("_ms", "_ns"), value * MS if name.endswith("_ms") else value)
    return row


def checkpoint(*rows: SubtaskStats, number: int = 1, **fields: int | str) -> CheckpointStats:
    stats = CheckpointStats(number, 100 * MS, tasks=3)
    for row in rows:
        for name, value in asdict(row).items():
            setattr(stats.of(row.task), name, value)
    for name, value in fields.items():
        setattr(stats, name, value)
    return stats


def completed(*rows: SubtaskStats, **fields: int | str) -> CheckpointStats:
    return checkpoint(
        *rows, status="COMPLETED", latest_ack_ns=200 * MS, acknowledged=3, completed_ns=215 * MS, **fields
    )


def only(table) -> dict:
    assert len(table) == 1
    return table.iloc[0].to_dict()


def row_of(stats: CheckpointStats) -> dict:
    return only(checkpoints_table([stats]))


def subtask_row(**measured: int | bool) -> dict:
    return only(subtasks_table([checkpoint(subtask(**measured))], NAMES))


# ---------------------------------------------------------------------------------------------- columns


@pytest.mark.parametrize("name", sorted(TABLES))
def test_empty_runs_give_empty_tables_with_columns(name):
    """Who asks for a column of a run without checkpoints gets an empty one, not an error."""
    none = np.zeros(0, [("served", np.int64)])
    empty = {
        "checkpoints": checkpoints_table([]),
        "subtasks": subtasks_table([], NAMES),
        "tasks": tasks_table(none, [], []),
        "series": PackedRows([column.name for column in SERIES]).frame(),
        "commits": commits_table([], NAMES),
        "recoveries": recoveries_table([]),
        "files": files_table([]),
        "snapshots": snapshots_table([]),
        "restores": restores_table([]),
        "requests": requests_table([]),
        "path": frame("path", []),
    }

    assert [column.name for column in TABLES[name]] == list(empty[name].columns)
    assert len(empty[name]) == 0


def test_columns_stand_in_the_order_of_the_schema():
    """A value under a neighbour's name would be found by nobody: distinct numbers, one by one."""
    part = subtask(
        1,
        alignment_ms=1,
        snapshot_begun_ms=121,
        processed_bytes=2,
        captured_input_bytes=30,
        captured_output_bytes=4,
        pre_barrier_ms=5,
        sync_ms=6,
        async_ms=7,
        async_queue_ms=3,
        state_bytes=900,
        written_bytes=800,
        aborted=True,
    )
    expected = {
        "id": 9,
        "vertex": "map",
        "index": 0,
        "status": "completed",
        "ack_timestamp": 200.0,
        "end_to_end_duration": 100.0,
        "start_delay": 20.0,
        "alignment_duration": 1.0,
        "alignment_processed": 2,
        "alignment_persisted": 34,
        "sync_duration": 6.0,
        "async_duration": 7.0,
        "checkpointed_size": 834,
        "state_size": 934,
        "unaligned_checkpoint": True,
        "aborted": True,
        "x_pre_barrier": 5.0,
        "x_async_queue": 3.0,
        "x_hidden": 66.0,
        "x_captured_input": 30,
        "x_captured_output": 4,
    }
    table = subtasks_table([checkpoint(part, number=9)], NAMES)

    assert [column.name for column in TABLES["subtasks"]] == list(table.columns)
    assert expected == only(table)


def test_a_checkpoint_sums_up_its_subtasks():
    parts = [
        subtask(1, processed_bytes=2, captured_input_bytes=30, state_bytes=100, written_bytes=60),
        subtask(2, processed_bytes=5, captured_output_bytes=4, state_bytes=800, written_bytes=40),
    ]
    expected = {
        "id": 1,
        "status": "COMPLETED",
        "checkpoint_type": "UNALIGNED_CHECKPOINT",
        "trigger_timestamp": 100.0,
        "latest_ack_timestamp": 200.0,
        "end_to_end_duration": 100.0,
        "checkpointed_size": 134,
        "state_size": 934,
        "processed_data": 7,
        "persisted_data": 34,
        "alignment_buffered": 0,
        "num_subtasks": 3,
        "num_acknowledged_subtasks": 3,
        "failure_message": "",
        "x_finalization": 15.0,
        "savepointFormat": "",
        "x_standstill": "",
    }
    table = checkpoints_table([completed(*parts)])

    assert [column.name for column in TABLES["checkpoints"]] == list(table.columns)
    assert expected == only(table)


def test_tasks_are_named_and_in_ms():
    columns = (
        "served",
        "records_out",
        "bytes_in",
        "bytes_out",
        "buffers_in",
        "buffers_out",
        "busy_ns",
        "idle_ns",
        "soft_ns",
        "hard_ns",
    )
    rows = np.zeros(2, [(name, np.int64) for name in columns])
    rows[1] = (1, 2, 3, 4, 5, 6, 7 * MS, 8 * MS, 9 * MS, 10 * MS)
    table = tasks_table(rows, NAMES[:2], [None, 3])

    assert [column.name for column in TABLES["tasks"]] == list(table.columns)
    assert table.iloc[1].tolist() == ["map", 0, 1, 2, 3, 4, 5, 6, 7.0, 8.0, 9.0, 10.0, 3]


def test_recoveries_are_in_ms_and_say_what_did_not_happen():
    """The second failure takes the tasks of the first one over: that one never gets far."""
    taken_over = RecoveryStats(
        1, "task", "why", failed_ns=100 * MS, detected_ns=150 * MS, tasks=3, cancelled_ns=150 * MS
    )
    done = RecoveryStats(
        2,
        "task-manager",
        "why not",
        failed_ns=200 * MS,
        detected_ns=250 * MS,
        tasks=3,
        deployments=2,
        cancelled_ns=260 * MS,
        deployed_ns=300 * MS,
        checkpoint=7,
        restored_bytes=10,
        recovered_bytes=20,
        first_record_ns=400 * MS,
        running_ns=500 * MS,
        replayed_records=30,
        served_again=25,
        caught_up_ns=600 * MS,
    )
    table = recoveries_table([taken_over, done])

    assert [column.name for column in TABLES["recoveries"]] == list(table.columns)
    assert table.iloc[0].tolist() == [
        1,
        "task",
        "why",
        100.0,
        150.0,
        150.0,
        -1.0,
        -1.0,
        -1.0,
        -1.0,
        -1.0,
        3,
        0,
        -1,
        0,
        0,
        0,
        0,
    ]
    assert table.iloc[1].tolist()[3:] == [
        200.0,
        250.0,
        260.0,
        300.0,
        400.0,
        500.0,
        600.0,
        300.0,
        3,
        2,
        7,
        10,
        20,
        30,
        25,
    ]


def test_every_column_is_described_once():
    """The documentation is printed from the schema: ours are marked, and no column has two meanings."""
    named = {
        "checkpoints",
        "subtasks",
        "tasks",
        "series",
        "commits",
        "recoveries",
        "files",
        "snapshots",
        "restores",
        "path",
        "requests",
    }

    assert named == set(TABLES)
    for columns in TABLES.values():
        names, units = [column.name for column in columns], {column.unit for column in columns}

        assert len(names) == len(set(names))
        assert units <= {"", "ms", "s", "bytes", "records", "buffers", "records/s", "bytes/s", "share", "bool", "ns"}


def test_a_column_has_one_unit_in_all_tables():
    """`time` was in seconds in one table and in milliseconds in another."""
    units: dict[str, set[str]] = {}
    for columns in TABLES.values():
        for column in columns:
            units.setdefault(column.name, set()).add(column.unit)

    assert {name: found for name, found in units.items() if len(found) > 1} == {}


# ---------------------------------------------------------------------------------------------- Flink's definitions


def test_duration_of_a_completed_checkpoint_ends_with_the_last_acknowledgement():
    """Writing _metadata is not in it."""
    row = row_of(completed(subtask()))

    assert (row["end_to_end_duration"], row["x_finalization"]) == (100.0, 15.0)


def test_duration_of_a_failed_checkpoint_ends_with_its_failure():
    """Failure - trigger, whenever the last acknowledgement came."""
    failed = checkpoint(
        subtask(), status="FAILED", latest_ack_ns=200 * MS, failed_ns=700 * MS, failure="CHECKPOINT_EXPIRED"
    )
    row = row_of(failed)

    assert (row["end_to_end_duration"], row["failure_message"], row["latest_ack_timestamp"]) == (
        600.0,
        "CHECKPOINT_EXPIRED",
        200.0,
    )
    assert row["x_finalization"] == -1.0


def test_duration_of_a_checkpoint_under_way_is_what_is_known():
    """So far: the last acknowledgement; none: -1."""
    assert row_of(checkpoint(subtask(), latest_ack_ns=200 * MS))["end_to_end_duration"] == 100.0
    assert row_of(checkpoint())["end_to_end_duration"] == -1.0
    assert row_of(checkpoint())["latest_ack_timestamp"] == -1.0


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({}, "CHECKPOINT"),
        ({"captured_input_bytes": 1}, "UNALIGNED_CHECKPOINT"),
        ({"captured_output_bytes": 1}, "UNALIGNED_CHECKPOINT"),
    ],
)
def test_a_checkpoint_is_unaligned_by_what_it_stored(part, expected):
    """Flink's type is that of the data: unaligned barriers that overtook nothing leave a plain CHECKPOINT."""
    stats = completed(subtask(1), subtask(2, **part))

    assert expected == row_of(stats)["checkpoint_type"]
    assert [False, bool(part)] == subtasks_table([stats], NAMES)["unaligned_checkpoint"].tolist()


def test_start_delay_is_never_negative():
    """A trigger call executed before the coordinator's timestamp cannot be: clamped, as in Flink."""
    assert subtask_row(first_barrier_ms=90)["start_delay"] == 0.0
    assert subtask_row()["start_delay"] == 20.0
    assert subtask_row(first_barrier_ns=-1, ack_ns=-1)["start_delay"] == -1.0


def test_a_subtask_without_acknowledgement_has_no_duration():
    row = subtask_row(ack_ns=-1)

    assert tuple(row[n] for n in ("status", "ack_timestamp", "end_to_end_duration", "x_hidden")) == (
        "pending_or_failed",
        -1.0,
        -1.0,
        -1.0,
    )


def test_rows_are_ordered_by_checkpoint_then_task():
    """Whoever acknowledged first: the order of the table is that of the job."""
    stats = [checkpoint(subtask(2), subtask(0), subtask(1), number=n) for n in (1, 2)]
    table = subtasks_table(stats, NAMES)

    assert table["id"].tolist() == [1, 1, 1, 2, 2, 2]
    assert [*NAMES, *NAMES] == list(zip(table["vertex"], table["index"], strict=True))


# ---------------------------------------------------------------------------------------------- what Flink does not show


def test_hidden_time_of_an_aligned_snapshot():
    """100 ms end to end = 20 start delay + 30 alignment + 10 sync + 15 async + what nobody reports."""
    assert subtask_row(alignment_ms=30, snapshot_begun_ms=150, sync_ms=10, async_ms=15)["x_hidden"] == 25.0


@pytest.mark.parametrize("stored_bytes", [0, 1])
def test_hidden_time_of_an_unaligned_snapshot(stored_bytes):
    """It began at the first barrier: alignment ran beside sync and async, whether or not there was anything to store."""
    row = subtask_row(
        alignment_ms=75, snapshot_begun_ms=120, sync_ms=10, async_ms=65, captured_input_bytes=stored_bytes
    )

    assert row["x_hidden"] == 5.0


def test_hidden_time_of_a_converted_snapshot():
    """It began 25 ms into an alignment of 75: those are counted, the rest is covered by sync and async."""
    assert subtask_row(alignment_ms=75, snapshot_begun_ms=145, sync_ms=10, async_ms=40)["x_hidden"] == 5.0


def test_pre_barrier_work_is_hidden():
    """prepareSnapshotPreBarrier is in no Flink field: it shows as hidden time."""
    assert subtask_row(pre_barrier_ms=60, sync_ms=10, async_ms=10)["x_hidden"] == 60.0
