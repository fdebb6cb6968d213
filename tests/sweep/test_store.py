"""Rows on disk: whole or not at all, found again, never mixed."""

import pyarrow.parquet as pq
import pytest

from sim.sweep import store as room
from sim.sweep.plan import cells
from sim.sweep.store import NotKeptError, Store


def row(cell, **changes):
    return {"cell": cell.id, "status": "ok", "error": ""} | changes


@pytest.fixture
def planned(study):
    return cells(study.scenarios)


def test_a_sweep_resumes(planned, tmp_path):
    """Cells with a row are done, cells whose row is an error are not; one that is planned twice runs once."""
    store = Store(tmp_path)
    assert planned == store.missing([*planned, planned[0]])

    store.put([row(planned[0]), row(planned[1], status="error", error="ValueError: no")])

    assert [planned[1]] == Store(tmp_path).missing(planned)


@pytest.mark.parametrize("order", [("error", "ok"), ("ok", "error")])
def test_of_two_rows_the_one_that_succeeded_counts(planned, tmp_path, order):
    """Whichever file is read first."""
    store = Store(tmp_path)
    for status in order:
        store.put([row(planned[0], status=status)])

    assert "ok" == store.rows()[planned[0].id]["status"]


def test_rows_wait_for_others_only_a_moment(planned, tmp_path, monkeypatch):
    """They are kept together once the first has waited long enough, and at the end, however it comes."""
    now = [0.0]
    monkeypatch.setattr(room.time, "monotonic", lambda: now[0])
    store = Store(tmp_path)

    def work():
        with store.keeping() as keep:
            keep(row(planned[0]))
            assert {} == store.rows()
            now[0] = 1.0
            keep(row(planned[1]))
            assert 2 == len(store.rows())
            keep(row(planned[0], status="error"))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()

    assert 2 == len(list((tmp_path / "cells").glob("*.parquet")))


def test_no_partial_file_counts(planned, tmp_path, monkeypatch):
    """A full disk leaves nothing behind that looks like a row."""
    store = Store(tmp_path)

    def full(table, path):
        path.write_bytes(b"PAR1")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", full)
    with pytest.raises(NotKeptError, match="No space left"):
        store.put([row(planned[0])])

    assert [] == list((tmp_path / "cells").iterdir())


def test_a_file_nobody_can_read_costs_its_cells_and_no_others(planned, tmp_path):
    store = Store(tmp_path)
    store.put([row(planned[0])])
    (broken,) = (tmp_path / "cells").iterdir()
    broken.write_bytes(broken.read_bytes()[:-9])
    store.put([row(planned[1])])

    assert [planned[0]] == store.missing(planned)
