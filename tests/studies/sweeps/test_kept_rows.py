"""Which file has the row of a cell: found by name, the successful one of several, read group by group."""

import numpy as np
import pytest

from sim.studies.sweeps import store
from sim.studies.sweeps.store import RowIndex, encode_batch


def row(cell, rate=1.0, status="ok", **others):
    return {"cell": cell, "status": status, "error": "", "throughput_per_second": rate, "violations": 0} | others


@pytest.fixture
def kept(tmp_path):
    """``kept(rows of a file, rows of another, ...)``, in the order given."""

    def of(*files):
        keys = {}
        for rows in files:
            name, content = encode_batch(rows)
            (tmp_path / name).write_bytes(content)
            keys[tmp_path / name] = store.read_verified_keys(tmp_path / name)
        store.clear_row_group_cache()
        return RowIndex(keys)

    return of


def names(*cells):
    return np.array(cells, dtype="S20")


def test_a_failure_is_no_result(kept):
    """Nor is a row that is not there; of two rows the successful one counts, wherever it stands."""
    rows = kept([row("a"), row("b", status="error"), row("d", status="error")], [row("c", status="error"), row("b")])
    found = rows.indices_of(names("a", "b", "c", "d", "x"))

    assert rows.is_ok(found).tolist() == [True, True, False, False, False]


def test_rows_stand_in_the_order_that_is_asked_for(kept):
    """A cell that ran twice has its first successful row, of whichever file."""
    rows = kept([row("a", 1.0), row("b", 2.0, status="error")], [row("b", 3.0), row("c", 4.0), row("b", 5.0)])
    table = rows.table(rows.indices_of(names("c", "b", "a", "c")), ["cell", "throughput_per_second"])

    assert table.to_pydict() == {"cell": ["c", "b", "a", "c"], "throughput_per_second": [4.0, 3.0, 1.0, 4.0]}


def test_rows_of_many_groups_and_files_are_put_together(kept, monkeypatch):
    """However small the groups are in which a file is read."""
    monkeypatch.setattr(store, "GROUP_ROWS", 2)
    rows = kept([row(f"a{i}", float(i)) for i in range(5)], [row(f"b{i}", 10.0 + i) for i in range(3)])
    ids = names("b2", "a4", "a0", "b0", "a3", "a1", "b1", "a2")

    assert [store._first_rows_of_groups(file).tolist() for file in rows.files] == [[0, 2, 4], [0, 2]]
    assert rows.table(rows.indices_of(ids)).to_pydict()["throughput_per_second"] == [
        12.0,
        4.0,
        0.0,
        10.0,
        3.0,
        1.0,
        11.0,
        2.0,
    ]


def test_a_column_has_a_number_for_every_cell(kept):
    """NaN where there is no value."""
    rows = kept([row("a", 7.0), row("b", status="error", rate=None)], [row("c", 9.0), row("b", 8.0)])

    np.testing.assert_array_equal([7.0, 8.0, 9.0], rows.column("throughput_per_second"))
    assert np.isnan(kept([row("a", None)]).column("throughput_per_second")).all()


def test_a_file_that_is_no_table_is_named_by_what_it_is(tmp_path):
    """Its checksum may hold: somebody has renamed it."""
    content = b"no table"
    path = tmp_path / (store._digest(content) + ".parquet")
    path.write_bytes(content)

    with pytest.raises(store.InvalidBatchError, match=r"^not a Parquet file$"):
        store.read_verified_keys(path)


@pytest.mark.parametrize("wrong", [{"cell": ""}, {"cell": None}, {"status": None}, {"status": "fine"}])
def test_a_row_of_no_cell_or_without_a_status_spoils_its_file(tmp_path, wrong):
    name, content = encode_batch([row("a"), row("b") | wrong])
    (tmp_path / name).write_bytes(content)

    with pytest.raises(store.InvalidBatchError, match=r"^has rows without a cell id or a status$"):
        store.read_verified_keys(tmp_path / name)


def test_a_file_without_rows_is_fine(tmp_path):
    """Nothing in it is wrong."""
    name, content = encode_batch([])
    (tmp_path / name).write_bytes(content)

    assert len(store.read_verified_keys(tmp_path / name)) == 0
