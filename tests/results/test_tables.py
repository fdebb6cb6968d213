"""Measurements -> tables: Flink's definitions of its columns, and the arithmetic of ours."""

from dataclasses import asdict

import numpy as np
import pytest

from sim.results.journal import PackedRows
from sim.results.schema import SERIES, TABLES, frame
from sim.results.tables import (
    CheckpointStats,
    SubtaskStats,
    checkpoints_table,
    commits_table,
    files_table,
    recoveries_table,
    restores_table,
    snapshots_table,
    subtasks_table,
    tasks_table,
)

MS = 1_000_000
NAMES = [("source", 0), ("map", 0), ("map", 1)]


def subtask(task=1, **measured):
    """First barrier 20 ms after the trigger (at 100 ms), acknowledged at 200 ms; `_ms` fields are given in ms."""
    row = SubtaskStats(task, first_barrier_ns=120 * MS, ack_ns=200 * MS)
    for name, value in measured.items():
        setattr(row, name.replace("_ms", "_ns"), value * MS if name.endswith("_ms") else value)
    return row


def checkpoint(*rows, number=1, **fields):
    stats = CheckpointStats(number, 100 * MS, tasks=3)
    for row in rows:
        for name, value in asdict(row).items():
            setattr(stats.of(row.task), name, value)
    for name, value in fields.items():
        setattr(stats, name, value)
    return stats


def only(table):
    assert len(table) == 1
    return table.iloc[0].to_dict()


def row_of(stats):
    return only(checkpoints_table([stats]))


def subtask_row(**measured):
    return only(subtasks_table([checkpoint(subtask(**measured))], NAMES))


# ---------------------------------------------------------------------------------------------- columns


@pytest.mark.parametrize("name", sorted(TABLES))
def test_empty_runs_give_empty_tables_with_columns(name):
    """Who asks for a column of a run without checkpoints gets an empty one, not an error."""
    none = np.zeros(0, [("served", np.int64)])
    empty = {
        "checkpoints": checkpoints_table([]),
        "subtasks": subtasks_table([], NAMES),
        "tasks": tasks_table(none, [], [], [], {}),
        "series": PackedRows([column.name for column in SERIES]).frame(),
        "commits": commits_table([], NAMES),
        "recoveries": recoveries_table([]),
        "files": files_table([]),
        "snapshots": snapshots_table([]),
        "restores": restores_table([]),
        "requests": frame("requests", []),
        "path": frame("path", []),
    }

    assert [column.name for column in TABLES[name]] == list(empty[name].columns)
    assert len(empty[name]) == 0


def test_every_column_is_described_once():
    """The documentation is printed from the schema: ours are marked, and no column has two meanings."""
    for columns in TABLES.values():
        names, units = [column.name for column in columns], {column.unit for column in columns}

        assert len(names) == len(set(names))
        assert units <= {"", "ms", "s", "bytes", "records", "buffers", "records/s", "bytes/s", "share", "bool", "ns"}


def test_a_column_has_one_unit_in_all_tables():
    """`time` was in seconds in one table and in milliseconds in another."""
    units = {}
    for columns in TABLES.values():
        for column in columns:
            units.setdefault(column.name, set()).add(column.unit)

    assert {name: found for name, found in units.items() if len(found) > 1} == {}


# ---------------------------------------------------------------------------------------------- Flink's definitions


def test_duration_of_a_checkpoint_under_way_is_what_is_known():
    """So far: the last acknowledgement; none: -1."""
    assert row_of(checkpoint(subtask(), latest_ack_ns=200 * MS))["end_to_end_duration"] == 100.0
    assert row_of(checkpoint())["end_to_end_duration"] == -1.0
    assert row_of(checkpoint())["latest_ack_timestamp"] == -1.0


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


# ---------------------------------------------------------------------------------------------- what Flink does not show
