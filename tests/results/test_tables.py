"""Measurements as tables and sheets, commits as rows, packed rows; a column that grows."""

import re
import tracemalloc
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.results import journal
from sim.results.columns import SERIES, TABLES, frame
from sim.results.formats import escaped, unescaped, write_csv
from sim.results.journal import GrowingColumn, PackedRows
from sim.results.tables import (
    CheckpointStats,
    CommitStats,
    CommittedEpoch,
    Latency,
    SubtaskStats,
    checkpoints_table,
    commits_table,
    files_table,
    recoveries_table,
    subtasks_table,
    tasks_table,
)

# Measurements -> tables: Flink's definitions of its columns, and the arithmetic of ours.


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
        "snapshots": frame("snapshots", []),
        "restores": frame("restores", []),
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


# Commits as rows: distinct numbers, one by one; nothing visible has no latency.


COMMITTED_NAMES = [("sink", 0), ("sink", 1), ("committer", 0)]


def epoch(number, writer=0, opened_ms=0, files=(), missing=0):
    return CommittedEpoch(writer, number, ((10, 20), (30, 33)), opened_ms * MS, 500, files, missing)


def test_nothing_visible_has_no_latency():
    """A commit again that was known, or one of which everything is lost."""
    row = commits_table([CommitStats(4, 100 * MS, 2, 70 * MS, (), (epoch(2),))], COMMITTED_NAMES).iloc[0]

    assert (row["commit_latency"], row["visible_latency"], row["records"], row["lost_records"]) == (-1.0, -1.0, 0, 13)


def test_output_without_a_checkpoint_has_no_commit_latency():
    row = commits_table([CommitStats(0, 100 * MS, 1, -1, (epoch(2),))], COMMITTED_NAMES).iloc[0]

    assert (row["commit_latency"], row["visible_latency"], row["checkpoint"]) == (-1.0, 100.0, 0)


# Tables for spreadsheets: text is never a formula, numbers are numbers.


@pytest.mark.parametrize(
    "text",
    [
        "=1+1",
        "-2+3",
        "\tx",
        "\rx",
        "\nx",
        "\uff1d1+1",
        "'=x",
    ],
)
def test_text_is_no_formula(tmp_path, text):
    """Neither in a cell nor as the name of a column; read again, it is what it was."""
    write_csv(pd.DataFrame({"name": [text], text: ["a"]}), tmp_path / "t.csv")

    read = pd.read_csv(tmp_path / "t.csv", lineterminator="\n")
    assert [["'" + text, "a"]] == read.to_numpy().tolist()
    assert "'" + text == read.columns[1]
    assert text == unescaped(read["name"][0])


@pytest.mark.parametrize("kind", ["object", "string", "category"])
def test_text_of_any_kind_is_no_formula(tmp_path, kind):
    write_csv(pd.DataFrame({"a": pd.Series(["=x", None], dtype=kind), "b": [1, 2]}), tmp_path / "t.csv")

    assert (tmp_path / "t.csv").read_text() == "a,b\n'=x,1\n,2\n"


def test_numbers_stay_numbers(tmp_path):
    """In columns of numbers and of text; nothing that is missing becomes a word."""
    write_csv(pd.DataFrame({"a": [-1.5, None], "b": ["-3", "+2e-6"], "c": [None, "=x"]}), tmp_path / "t.csv")

    assert (tmp_path / "t.csv").read_text() == "a,b,c\n-1.5,-3,\n,+2e-6,'=x\n"


@pytest.mark.parametrize("text", ["it's", "'quoted'", "'", "", "plain", "'-3"])
def test_a_quote_of_ones_own_stays(text):
    assert text == unescaped(text)


SIGNS = ("=", "-", "+", "@", "\uff1d")
PARTS = ["'", *SIGNS, "\t", "\n", "\0", ";", " ", "1", "x", ",", '"']


@given(st.lists(st.sampled_from(PARTS)).map("".join))
def test_every_text_is_what_it_was(text):
    """So no two texts become the same cell; and wherever a cell is split, no part is a formula."""
    assert text == unescaped(escaped(text))
    if not re.fullmatch(r"'*[-+]?\d+", text):
        assert not [part for part in re.split("[;\t\n]", escaped(text)) if part.strip().startswith(SIGNS)]


# Packed rows are the table that pandas makes of the rows themselves.


COLUMNS = ["whole", "real", "mixed", "word", "fact", "nothing"]
ROWS = [(i, i / 2, i if i % 3 else i / 2, f"w{i % 2}", i % 2 == 0, None if i % 2 else "x") for i in range(10)]


def table(rows):
    kept = PackedRows(COLUMNS)
    for row in rows:
        kept.add(row)
    return kept.frame()


@pytest.mark.parametrize("chunk", [1, 3, 10, 100])
def test_values_and_types_are_those_of_the_rows(chunk, monkeypatch):
    """A column keeps its type wherever the rows are cut, even if a piece of it looks like another type."""
    monkeypatch.setattr(journal, "_CHUNK_ROWS", chunk)

    pd.testing.assert_frame_equal(pd.DataFrame.from_records(ROWS, columns=COLUMNS), table(ROWS), check_exact=True)


def test_no_rows_make_an_empty_table():
    pd.testing.assert_frame_equal(pd.DataFrame.from_records([], columns=COLUMNS), table([]))


def test_the_numbers_of_the_plane_are_numbers():
    """Its tables give numpy's own."""
    kept = PackedRows(["whole", "real"])
    kept.add((np.int64(3), np.float64(0.5)))

    assert [(name, str(kind)) for name, kind in kept.frame().dtypes.items()] == [
        ("whole", "int64"),
        ("real", "float64"),
    ]


def test_columns_are_added_as_rows_are():
    """Arrays and lists alike.  A column of integers becomes one of floats with the first float."""
    kept = PackedRows(["whole", "real", "word"])
    kept.add((1, 2, "a"))
    kept.extend([np.array([3, 4]), np.array([0.5, 0.25]), ["b", "c"]])
    kept.extend([np.array([5]), np.array([6]), ["d"]])
    rows = [(1, 2, "a"), (3, 0.5, "b"), (4, 0.25, "c"), (5, 6, "d")]

    pd.testing.assert_frame_equal(
        pd.DataFrame.from_records(rows, columns=["whole", "real", "word"]), kept.frame(), check_exact=True
    )


def test_rows_that_are_packed_are_counted(monkeypatch):
    monkeypatch.setattr(journal, "_CHUNK_ROWS", 3)
    kept = PackedRows(COLUMNS)
    lengths = []
    for row in ROWS[:5]:
        kept.add(row)
        lengths.append(len(kept))

    assert lengths == [1, 2, 3, 4, 5]


def test_the_table_of_many_rows_is_no_copy_of_them():
    """It is made at the end of a run, when there is most beside it."""
    kept = PackedRows(["whole", "real", "later"])
    tracemalloc.start()
    for i in range(5 * journal._CHUNK_ROWS):
        kept.add((i, i / 2, i if i < journal._CHUNK_ROWS else i / 2))
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    made = kept.frame()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak - before < made.memory_usage(index=False).sum() / 10


def test_rows_added_after_the_table_are_a_table_of_their_own():
    """What was given away does not grow."""
    kept = PackedRows(["whole"])
    tables = []
    for i in range(2):
        kept.add((i,))
        tables.append(kept.frame())

    assert [list(made["whole"]) for made in tables] == [[0], [1]]


# A column of numbers: what is added stays, however much room there was.


@pytest.mark.parametrize("room", [0, 1, 4, 100])
def test_numbers_stay_whatever_the_room(room):
    grown = GrowingColumn(np.int64, room)
    for first in range(0, 30, 3):
        grown.extend(range(first, first + 3))
        assert first + 3 == len(grown)

    assert list(range(30)) == grown.cells.tolist()
    assert np.int64 is grown.kind


def test_what_was_cut_is_written_anew():
    curve = GrowingColumn(np.float64, 3)
    curve.extend([1.0, 2.0, 3.0])
    curve.cut(1)
    curve.extend(np.array([5.5]))

    assert curve.cells.tolist() == [1.0, 5.5]


def test_whole_numbers_become_reals():
    """The column that they come from is left as it was."""
    integers = GrowingColumn(np.int64, 10)
    integers.extend([1, 2])
    reals = integers.of_reals()
    reals.extend([0.5])

    assert reals.cells.tolist() == [1.0, 2.0, 0.5]
    assert integers.cells.tolist() == [1, 2]


def test_a_number_that_the_type_does_not_hold_is_refused():
    with pytest.raises(OverflowError):
        GrowingColumn(np.int64).extend([2**63])


def test_no_more_room_is_taken_than_is_likely_to_be_used(monkeypatch):
    monkeypatch.setattr(journal, "MAX_ROOM", 8)

    assert len(GrowingColumn(np.int64, 10**15)._cells) == 8


def means(latency, *points, stride=1):
    """A point is a time, records emitted, records served."""
    times, emitted, served = (np.array(column, float) for column in zip(*points, strict=True))
    return latency.means(times, emitted, served, stride).tolist()


def test_a_constant_delay_is_found_whatever_the_pace():
    """One record a ns, then three: each is served 7 ns after it was emitted."""
    emitted = [*range(11), *range(13, 92, 3)]
    served = [*[0] * 7, *emitted][: len(emitted)]

    found = means(Latency(0, 0, 0), *list(zip(range(30), emitted, served, strict=False)), stride=10)

    assert [pytest.approx(7)] * 3 == found


def test_a_standstill_counts_for_those_who_wait():
    """Ten records by time 10, all served between 110 and 120."""
    found = means(Latency(0, 0, 0), (10, 10, 0), (110, 10, 0), (120, 10, 10), (130, 10, 10))

    assert found == [-1, -1, 110, -1]


def test_the_idle_time_of_nobody_counts():
    """Nothing on the way: what comes later has not waited since then."""
    found = means(Latency(0, 5, 5), (1000, 5, 5), (1001, 6, 5), (1003, 6, 6), stride=3)

    assert found == [1.5]  # emitted between 1000 and 1001, served between 1001 and 1003


RESTORED = ((8, 2, 0), (10, 10, 8), (100, 5, 3), (110, 10, 5), (120, 10, 10))


def test_a_restored_source_emits_again():
    """Records 5 to 10 leave a second time at 100; those restored in flight (3 to 5) left when they did, from 8.25 to 8.75."""
    _, _, _, restored, again = means(Latency(0, 0, 0), *RESTORED)

    assert restored == 105 - 8.5
    assert again == 115 - 105


def test_points_may_come_in_any_parts():
    """A mean knows the points so far, not how many came with it."""
    joined, parts = Latency(0, 0, 0), Latency(0, 0, 0)

    assert means(joined, *RESTORED) == [mean for point in RESTORED for mean in means(parts, point)]
