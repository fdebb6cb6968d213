"""A result in a folder: every file whole, reread equal, never half written."""

import json
import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from sim.protocol.options import FailureReason
from sim.results.journal import Entry, Happening
from sim.runtime.result import Result
from sim.runtime.simulate import simulate
from tests.laws.small_jobs import UNALIGNED, chain, scenario
from tests.oracle import oracle

FILES = {
    "checkpoints.parquet",
    "subtasks.parquet",
    "tasks.parquet",
    "series.parquet",
    "commits.parquet",
    "recoveries.parquet",
    "files.parquet",
    "snapshots.parquet",
    "restores.parquet",
    "path.parquet",
    "requests.parquet",
    "manifest.json",
    "journal.jsonl",
}


@pytest.fixture(scope="module")
def result() -> Result:
    return simulate(scenario(chain(1), UNALIGNED, seconds=1), engine="compiled")


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_what_is_read_is_what_was_written(result, tmp_path):
    """Tables with their types, the journal row by row, the manifest with the job's status."""
    result.write(tmp_path / "deep" / "run")
    folder = tmp_path / "deep" / "run"
    rows = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]

    assert {path.name for path in folder.iterdir()} == FILES
    for name, table in result.tables.items():
        pd.testing.assert_frame_equal(table, pd.read_parquet(folder / f"{name}.parquet"))
    assert list(result.journal) == [Entry(row[0], Happening(row[1]), *row[2:]) for row in rows]
    assert {**result.manifest, "job_status": "RUNNING"} == json.loads((folder / "manifest.json").read_text())


def test_every_file_and_then_the_folder_is_brought_to_the_disk(result, tmp_path, monkeypatch):
    """The folder once, with all its names: each sync waits for the disk."""
    synced = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(Path(f"/proc/self/fd/{descriptor}").resolve()))

    result.write(tmp_path)

    assert [False] * len(FILES) + [True] == [path == tmp_path for path in synced]
    assert {path.name for path in tmp_path.iterdir()} == FILES


def test_the_same_run_is_the_same_bytes(result, tmp_path):
    """Same manifest, same bytes: whoever ran it."""
    again = simulate(result.scenario, engine=oracle)
    result.write(tmp_path / "first")
    again.write(tmp_path / "second")

    assert contents(tmp_path / "first") == contents(tmp_path / "second")


def test_writing_over_a_result_replaces_it(result, tmp_path):
    """A repeated run leaves its own files only."""
    simulate(scenario(chain(1), seconds=0.5), engine="compiled").write(tmp_path)
    result.write(tmp_path)

    assert len(result.checkpoints) == len(pd.read_parquet(tmp_path / "checkpoints.parquet"))
    assert {path.name for path in tmp_path.iterdir()} == FILES


def test_a_failed_write_leaves_what_was_there(result, tmp_path, monkeypatch):
    """The disk fills up in the middle of a table: the old file stays whole, nothing half written lies beside it."""

    def full(_self, path, **_options):
        Path(path).write_bytes(b"PAR1 half of")
        raise OSError("no space left on device")

    result.write(tmp_path)
    before = contents(tmp_path)
    monkeypatch.setattr(pd.DataFrame, "to_parquet", full)
    with pytest.raises(OSError, match="no space left"):
        result.write(tmp_path)

    assert before == contents(tmp_path)


@pytest.mark.parametrize(
    ("actions", "rescales", "count"), [(1, [], 1), (0, [True], 1), (0, [False, True], 1), (0, [], 0), (0, [False], 0)]
)
def test_what_was_asked_in_vain_is_told_where_users_asked(result, actions, rescales, count):
    """Savepoints and stops, those of a rescale as well; a checkpoint that the coordinator skips was asked for by nobody."""
    reason = next(iter(FailureReason))
    wishes = SimpleNamespace(
        actions=("a savepoint",) * actions, rescale=[SimpleNamespace(savepoint=own) for own in rescales]
    )
    journal = [
        Entry(10**9, Happening.REFUSED, number=1, detail=reason.name),
        Entry(2 * 10**9, Happening.REFUSED, detail=reason.name),
    ]
    found = replace(result, scenario=wishes, journal=journal).refused

    assert count == len(found)
    assert all(reason.text.rstrip(".") in sentence for sentence in found)


def test_a_file_appears_whole(result, tmp_path, monkeypatch):
    """Nobody sees it under its name before it is complete: a sweep that resumes trusts the name."""
    seen = []
    write_text = Path.write_text

    def watched(path, text):
        seen.append((path.name, (tmp_path / "journal.jsonl").exists(), (tmp_path / "manifest.json").exists()))
        return write_text(path, text)

    monkeypatch.setattr(Path, "write_text", watched)
    result.write(tmp_path)

    assert [row[1:] for row in seen] == [(False, False), (False, True)]
    assert not {"journal.jsonl", "manifest.json"} & {row[0] for row in seen}
