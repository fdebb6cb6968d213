"""Rows on disk: whole or not at all, found again, never mixed."""

import os
import shutil
from pathlib import Path
from random import Random

import pandas as pd
import pytest

from sim.model.files import ResultsNotWrittenError
from sim.studies.plan import cells
from sim.studies.sweeps import store as room
from sim.studies.sweeps import store as stored_rows
from sim.studies.sweeps.results import write_and_read_results
from sim.studies.sweeps.run import run_missing
from sim.studies.sweeps.store import Store


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


def test_rows_wait_for_others_only_a_moment(planned, tmp_path, monkeypatch):
    """They are kept together once the first has waited long enough, and at the end, however it comes."""
    now = [0.0]
    monkeypatch.setattr(room.time, "monotonic", lambda: now[0])
    store = Store(tmp_path)

    def work():
        with store.buffered_rows() as waiting:
            waiting.add(row(planned[0]))
            assert store.rows() == {}
            now[0] = 1.0
            waiting.add(row(planned[1]))
            assert len(store.rows()) == 2
            waiting.add(row(planned[0], status="error"))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()

    assert len(list((tmp_path / "cells").glob("*.parquet"))) == 2


def test_a_row_does_not_wait_for_the_next_one(planned, tmp_path, monkeypatch):
    """Looks at the running cell keep it: a kill during a long cell loses no finished row."""
    now = [0.0]
    monkeypatch.setattr(room.time, "monotonic", lambda: now[0])
    store = Store(tmp_path)
    kept = []

    class LongLastCell:
        def rows(self, missing, watch, check):
            yield row(missing[0])
            now[0] = 1.0
            watch(1, 0)
            kept.extend(store.rows())
            yield from (row(cell) for cell in missing[1:])

    run_missing(planned, store, LongLastCell())

    assert [planned[0].id] == kept


def test_no_partial_file_counts(planned, tmp_path, monkeypatch):
    """A full disk leaves nothing behind that looks like a row."""
    store = Store(tmp_path)

    def full(path, content):
        path.touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(ResultsNotWrittenError, match="No space left"):
        store.put([row(planned[0])])

    assert list((tmp_path / "cells").iterdir()) == []


def cut(path):
    path.write_bytes(path.read_bytes()[:-9])


def change_a_value(path):
    """As a person does, with tools that write a proper file."""
    pd.read_parquet(path).assign(throughput_per_second=1e6).to_parquet(path, index=False)


def drop_a_column(path):
    pd.read_parquet(path).drop(columns="violations").to_parquet(path, index=False)


def empty(path):
    path.write_bytes(b"")


@pytest.mark.parametrize("damage", [cut, change_a_value, drop_a_column, empty])
def test_a_file_that_is_not_what_was_written_is_set_aside(planned, tmp_path, damage):
    """It costs its cells and no others, and is named once."""
    store = Store(tmp_path)
    store.put([row(planned[0])])
    (broken,) = (tmp_path / "cells").iterdir()
    damage(broken)
    store.put([row(planned[1])])

    assert [planned[0]] == store.missing(planned)
    assert [broken.name] == [path.name for path in (tmp_path / "set-aside").iterdir()]
    (finding,) = store.report_invalid_files()
    assert f"1 file ({broken.name}: its content does not match the checksum in its name): moved to" in finding
    assert store.report_invalid_files() == []


def test_a_row_with_columns_of_another_version_is_set_aside(planned, tmp_path, monkeypatch):
    """Its checksum holds, its meaning does not."""
    monkeypatch.setattr(stored_rows, "PROVENANCE_TYPES", {})
    Store(tmp_path).put([row(planned[0])])

    store = Store(tmp_path)

    assert planned == store.missing(planned)
    assert "written by another version of ckptsim" in store.report_invalid_files()[0]


def test_what_others_put_there_is_ignored(planned, tmp_path):
    """Pipes would never end, links lead elsewhere."""
    store = Store(tmp_path)
    store.put([row(planned[0])])
    (kept,) = (tmp_path / "cells").iterdir()
    (tmp_path / "cells" / "notes.txt").write_text("mine")
    (tmp_path / "cells" / "copy of.parquet").write_bytes(kept.read_bytes())
    os.mkfifo(tmp_path / "cells" / f"{'0' * 32}.parquet")
    (tmp_path / "cells" / f"{'1' * 32}.parquet").symlink_to(kept)
    (tmp_path / "cells" / f"{'2' * 32}.parquet").mkdir()

    assert planned[1:] == store.missing(planned)
    assert store.report_invalid_files() == []
    assert not (tmp_path / "set-aside").exists()


def flipped(content, place):
    """One bit."""
    changed = bytearray(content)
    changed[place // 8] ^= 1 << place % 8
    return bytes(changed)


def rows_after_flips(folder, count):
    """A bit of any file of a finished sweep changes, `count` times, each time of the sound folder: what is found then."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    contents = [path.read_bytes() for path in files]
    chance = Random(1)
    for _ in range(count):
        (k,) = chance.choices(range(len(files)), map(len, contents))
        files[k].write_bytes(flipped(contents[k], chance.randrange(8 * len(contents[k]))))
        yield Store(folder).rows()
        files[k].write_bytes(contents[k])
        shutil.rmtree(folder / "set-aside", ignore_errors=True)


@pytest.mark.parametrize("count", [100, pytest.param(10_000, marks=[pytest.mark.slow, pytest.mark.nightly])])
def test_no_bit_that_changes_makes_a_wrong_row(study, tmp_path, count):
    """The row is gone, or it is right; the others stay."""
    planned, store = cells(study.scenarios), Store(tmp_path)
    for k, cell in enumerate(planned):
        store.put([row(cell, throughput_per_second=k / 7, host="here")])
    sound = store.rows()
    write_and_read_results(store, planned)

    fewest = len(sound)
    for found in rows_after_flips(tmp_path, count):
        assert found == {cell: sound[cell] for cell in found}
        fewest = min(fewest, len(found))

    assert len(sound) - 1 == fewest


def test_small_files_become_one(planned, tmp_path, monkeypatch):
    """The rows are the same."""
    monkeypatch.setattr(room, "FILES_TO_JOIN", 3)
    store = Store(tmp_path)
    store.put([row(planned[0], throughput_per_second=1.0)])
    before = store.rows()
    for host in ("here", "there"):
        store.put([row(planned[1], throughput_per_second=2.0, host=host)])

    assert len(list((tmp_path / "cells").glob("*.parquet"))) == 1
    assert {cell.id for cell in planned} == store.rows().keys()
    assert before == {planned[0].id: Store(tmp_path).rows()[planned[0].id]}


def test_a_long_file_is_not_written_again_and_again(planned, tmp_path, monkeypatch):
    monkeypatch.setattr(room, "FILES_TO_JOIN", 2)
    monkeypatch.setattr(room, "MAX_ROWS_TO_JOIN", 2)
    store = Store(tmp_path)
    for k in range(4):
        store.put([row(planned[0], host=str(k))])

    assert len(list((tmp_path / "cells").glob("*.parquet"))) == 2


def batches(folder):
    return list((folder / "cells").glob("*.parquet"))


def test_files_become_one_when_a_sweep_ends(planned, tmp_path):
    """One that was written alone stays as it is, and nothing is joined twice."""
    store = Store(tmp_path)
    store.put([row(planned[0])])
    alone = batches(tmp_path)
    store.join()
    assert alone == batches(tmp_path)
    store.put([row(planned[1])])
    store.join()
    (joined,) = batches(tmp_path)

    store.join()

    assert [joined] == batches(tmp_path) != alone
    assert {cell.id for cell in planned} == store.rows().keys() == Store(tmp_path).rows().keys()


def test_files_of_other_commands_are_not_joined(planned, tmp_path):
    """They join theirs."""
    Store(tmp_path).put([row(planned[0])])
    store = Store(tmp_path)
    store.put([row(planned[1])])
    store.join()

    assert len(batches(tmp_path)) == 2


def test_the_first_of_several_files_is_named(planned, tmp_path):
    store = Store(tmp_path)
    for k in range(3):
        (tmp_path / "cells" / f"{k:032}.parquet").write_text("mine")
    store.missing(planned)

    (finding,) = store.report_invalid_files()
    assert finding.startswith(
        f"3 files (as {0:032}.parquet: its content does not match the checksum in its name): moved to"
    )
    assert store.report_invalid_files() == []


def test_rows_are_given_as_copies(planned, tmp_path):
    """Who changes what was given changes nothing here."""
    store = Store(tmp_path)
    store.put([row(planned[0])])
    store.rows().clear()

    assert [planned[0].id] == list(store.rows())


def test_what_is_forgotten_is_read_again(planned, tmp_path):
    store = Store(tmp_path)
    store.put([row(planned[0])])
    before = store.rows()
    store.drop_index()

    assert before == store.rows()


def test_rows_that_wait_are_kept_once(planned, tmp_path, monkeypatch):
    """A second passes from one batch to the next, not from the first on."""
    now = [0.0]
    monkeypatch.setattr(room.time, "monotonic", lambda: now[0])
    store = Store(tmp_path)
    with store.buffered_rows() as waiting:
        for now[0], host in ((0.9, "a"), (1.0, "b"), (1.9, "c"), (2.1, "d")):
            waiting.add(row(planned[0], host=host))
        assert len(batches(tmp_path)) == 2

    assert len(batches(tmp_path)) == 2
