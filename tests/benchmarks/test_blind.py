"""Predictions that were written down before the run they are about, and the table that says what they were worth."""

import json
import zipfile
from datetime import datetime

import pytest

from benchmarks.blind import FOLDER, PAGE, Run, block, error, families, runs, table


@pytest.fixture(scope="module")
def found():
    """Every recording is read once."""
    return runs()


def test_the_page_has_the_table_of_the_files(found):
    """`make blind` writes it."""
    assert block(found) in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("family", families())
def test_a_prediction_is_older_than_the_runs_it_is_about(found, family):
    """Only the aligned run was known."""
    document = json.loads((FOLDER / "blind" / f"{family}.json").read_text(encoding="utf-8"))
    written_ms = datetime.fromisoformat(document["when"]).timestamp() * 1000
    begun_ms = {run.kind: run.started_ms for run in found if run.family == family}

    assert {"aligned"} == {kind for kind, begun in begun_ms.items() if begun < written_ms}
    assert {path.stem.removeprefix(f"{family}-") for path in FOLDER.glob(f"{family}-*.zip")} == set(begun_ms)


def test_twenty_recordings_and_more(found):
    assert len(found) >= 20
    assert sum(not run.is_imported for run in found) >= len(found) / 2
    assert all(zipfile.is_zipfile(FOLDER / f"{run.family}-{run.kind}.zip") for run in found)


def test_small_differences_of_durations_are_none():
    assert error("end to end, p50", 70, 11) == 0
    assert error("end to end, p50", 200, 100) == 0.5
    assert error("in flight", 2, 1) == 0.5


def test_an_error_and_an_order_are_counted_where_nobody_had_seen_the_run():
    """Both predictions of the unaligned run are 50 % and 10 % off; blind, both runs take equally long."""
    aligned = Run("F1", "aligned", {"end to end, p50": 1000}, {"end to end, p50": 300}, {"end to end, p50": 1000})
    unaligned = Run("F1", "unaligned", {"end to end, p50": 200}, {"end to end, p50": 300}, {"end to end, p50": 300})
    text = table([aligned, unaligned], "abc", "def")

    assert "| F1 unaligned | 200 ms: 300 ms, 300 ms | – |" in text
    assert "Of the 1 runs that nobody had seen" in text
    assert "| end to end, p50 | 15% | 50% (50%) | 50% (50%) |" in text
    assert "0 of 1 right blind, 1 of 1 right again." in text
