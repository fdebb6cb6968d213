"""A sweep file, run from Python: rows that are kept, and an answer."""

from types import SimpleNamespace

import pandas as pd
import pytest

from sim.app.verbs import sweep as verb
from sim.app.verbs.common import Listener
from sim.app.verbs.sweep import Sweep, sweep
from sim.model.files import FolderInUseError, locked
from sim.studies.sweeps import results, store
from sim.studies.sweeps import run as room
from sim.studies.sweeps.store import Store
from tests.conftest import STUDY

SWEEP = """\
# Which barriers?
scenario: tiny.yaml
vary: {checkpoint.barriers: [aligned, unaligned]}
replications: 2
"""
ANSWER = "answer: {show: [end_to_end_p50_ms], least: end_to_end_p50_ms}\n"


@pytest.fixture
def file(tmp_path):
    (tmp_path / "tiny.yaml").write_text(STUDY.replace("[aligned, unaligned]", "aligned"))
    (tmp_path / "sweep.yaml").write_text(SWEEP + ANSWER)
    return tmp_path / "sweep.yaml"


def run_sweep(file, folder=None, changes=(), **options):
    return sweep(file, changes=changes, folder=folder, jobs=1, **options)


def test_a_sweep_from_python(file, tmp_path):
    """Rows, answer, sentence."""
    swept = run_sweep(file, tmp_path / "rows")

    assert list(swept.results.query("strategy != 'none'")["checkpoint.barriers"].unique()) == ["aligned", "unaligned"]
    assert swept.sections[0].title == "Mean over 2 seeds of a single window, with 95 % confidence for this window alone"
    assert swept.sentence.startswith("Least end_to_end_p50_ms")


def test_a_sweep_says_that_storage_has_no_limit(file, tmp_path):
    text = (tmp_path / "tiny.yaml").read_text()
    (tmp_path / "tiny.yaml").write_text(text.replace("service: 1 ms", "service: 1 ms, state: {size: 80 MB}"))

    assert "Writing up to 40 MB per subtask takes no time here" in run_sweep(file, tmp_path / "rows").sentence


def test_it_goes_on_where_it_was(file, tmp_path):
    """What is there does not run again, and whoever listens is told so."""
    told = []
    listener = Listener()
    listener.message = told.append
    first = run_sweep(file, tmp_path / "rows", listener=listener)
    assert not any("have results already" in message for message in told)
    second = run_sweep(file, tmp_path / "rows", listener=listener)

    assert "6 of 6 cells have results already" in told
    assert first.results.equals(second.results)


def test_without_a_question_there_are_rows(file, tmp_path):
    file.write_text(SWEEP)
    swept = run_sweep(file, tmp_path / "rows")

    assert (swept.sections, swept.sentence) == ([], "")
    assert "end_to_end_p50_ms" in swept.results


def test_of_many_rows_only_the_columns_of_the_answer_are_read(file, tmp_path, monkeypatch):
    """The answer is the same."""
    complete = run_sweep(file, tmp_path / "rows")
    monkeypatch.setattr(room, "MAX_COMPLETE", 1)
    monkeypatch.setattr(verb, "MAX_COMPLETE", 1)
    part = run_sweep(file, tmp_path / "rows")

    assert (complete.sections, complete.sentence, complete.counted) == (
        part.sections,
        part.sentence,
        part.counted,
    )
    assert set(part.rows) < set(part.results)
    assert complete.results.equals(part.results)


def test_rows_are_put_together_part_by_part(file, tmp_path, monkeypatch):
    """The table is the same, however few rows are in memory at once, and wherever in a file they stand."""
    complete = run_sweep(file, tmp_path / "rows").results
    monkeypatch.setattr(results, "PART_ROWS", 2)
    monkeypatch.setattr(store, "GROUP_ROWS", 2)
    Store(tmp_path / "again").put(list(reversed(Store(tmp_path / "rows").rows().values())))

    assert store._first_rows_of_groups(next((tmp_path / "again" / "cells").iterdir())).tolist() == [0, 2, 4]
    assert complete.equals(run_sweep(file, tmp_path / "again").results)


def test_a_folder_at_which_another_command_works_is_refused(file, tmp_path):
    """By the name of that command, and before anything runs; it is free when that one ends."""
    (tmp_path / "rows").mkdir()
    with (
        locked(tmp_path / "rows", print),
        pytest.raises(FolderInUseError, match=r"another command writes to .*rows \(process"),
    ):
        run_sweep(file, tmp_path / "rows")

    assert list((tmp_path / "rows" / "cells").iterdir()) == []
    assert len(run_sweep(file, tmp_path / "rows").rows) == 6


def test_without_a_folder_rows_are_kept_under_the_name_of_the_sweep(file, tmp_path, monkeypatch):
    """Another sweep of the same name has another folder."""
    monkeypatch.chdir(tmp_path)
    first = run_sweep(file).folder
    other = run_sweep(file, changes=["run.seed=7"]).folder

    assert {"runs"} == {str(folder.parent) for folder in (first, other)}
    assert first != other
    assert first.name.startswith("sweep-")
    assert (first / "results.parquet").exists()


def result_of(rows):
    columns = ("status", "strategy", "warmup_ms", "violations")
    return Sweep(SimpleNamespace(question=None), pd.DataFrame(rows, columns=columns), None)


WARM = [
    ("ok", "aligned", 4000.0, 0),
    ("ok", "aligned", 1000.0, 2),
    ("ok", "none", 99000.0, 0),
    ("error", "aligned", 77000.0, -1),
    ("ok", "unaligned", 2000.0, 0),
]


def test_failures_and_broken_promises_are_apart():
    """-1: nobody looked for violations."""
    found = result_of(WARM)

    assert (list(found.failed.index), list(found.broken.index)) == ([3], [1])
