"""Packed rows are the table that pandas makes of the rows themselves."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest

from sim.results import journal
from sim.results.journal import PackedRows

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
