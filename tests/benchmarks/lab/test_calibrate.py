"""`python -m benchmarks.lab calibrate`: a folder of recordings in, one file out; what cannot be read is named."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks.lab.__main__ import app
from benchmarks.lab.calibrate import calibrate as calibration_of
from sim.model.schema.study import load_environment

RECORDINGS = Path(__file__).parents[2] / "data" / "recordings"


@pytest.fixture
def folder(tmp_path):
    """Three recordings of two families."""
    for name in ("p2-severe-aligned", "minpause3s-p2-severe-aligned", "final-bounded-chain3"):
        shutil.copy(RECORDINGS / f"{name}.json.gz", tmp_path)
    return tmp_path


def calibrate(*arguments):
    return CliRunner().invoke(app, ["calibrate", *map(str, arguments)])


def test_a_file_is_written_and_runs_take_it(folder):
    """The table says what stands in it; constants nobody told are named."""
    outcome = calibrate(folder, "--out", folder / "mine.yaml")

    assert outcome.exit_code == 0
    assert "default kept" in outcome.stdout
    assert "fail: kept at" in outcome.stderr
    assert "close: kept at" in outcome.stderr, "one recording tells it"
    assert 3_000_000 <= load_environment(str(folder / "mine.yaml")).complete_ns <= 7_000_000


def test_as_json(folder):
    data = json.loads(calibrate(folder, "--json").stdout)

    assert (data["trigger"]["recordings"], data["trigger"]["kept"]) == (3, False)
    assert (data["fail"]["recordings"], data["fail"]["kept"], data["fail"]["low_ms"]) == (0, True, None)


def test_foreign_files_are_named_and_skipped(folder):
    (folder / "foreign.json").write_text("{}")
    (folder / "cut.json.gz").write_bytes((folder / "p2-severe-aligned.json.gz").read_bytes()[:500])
    outcome = calibrate(folder)

    assert outcome.exit_code == 4
    assert "foreign.json: is JSON, but no recording" in outcome.stderr
    assert "cut.json.gz" in outcome.stderr
    assert outcome.stdout.startswith("# What no configuration says, of the environment of 3 recordings of Flink 2.3.0.")


@pytest.mark.parametrize("verb", ["calibrate", "validate"])
def test_a_pipe_in_a_folder_is_skipped(tmp_path, verb):
    """It would never end."""
    os.mkfifo(tmp_path / "pipe.json")

    outcome = CliRunner().invoke(app, [verb, str(tmp_path)])

    assert outcome.exit_code == 3
    assert f"skipped: {tmp_path / 'pipe.json'}: is not a regular file" in outcome.stderr


@pytest.mark.parametrize("arguments", [(), ("--cross-validate",)])
def test_a_folder_without_recordings(tmp_path, arguments):
    outcome = calibrate(tmp_path, *arguments)

    assert (3, f"no recordings (.json, .json.gz) in {tmp_path}") == (outcome.exit_code, outcome.stderr.strip())


def test_cross_validation_needs_others(folder):
    outcome = calibrate(folder / "p2-severe-aligned.json.gz", "--cross-validate")

    assert outcome.exit_code == 3
    assert "at least two recordings" in outcome.stderr
    assert calibrate(folder, "--cross-validate", "--out", folder / "x.yaml").exit_code == 2


def test_cross_validation_shows_errors_and_where_constants_come_from(folder):
    """Predictions are run once for constants that are equal."""
    outcome = calibrate(folder, "--cross-validate", "--seeds", 1, "--jobs", 1)

    assert outcome.exit_code == 0
    assert "without the recording: median" in outcome.stdout
    assert "end_to_end_duration" in outcome.stdout
    assert "the other recordings of its family" in outcome.stdout
    assert int(outcome.stderr.split()[0]) < 9


def test_constants_come_from_recordings(tmp_path):
    """The table shows them, and the file is what `environment:` takes."""
    (tmp_path / "none.json").write_text("{}")
    calibration = calibration_of([*sorted(RECORDINGS.glob("*.json.gz"))[:2], tmp_path / "none.json"])

    assert {"trigger", "acknowledge"} <= set(calibration.table["constant"])
    assert (calibration.table["value_ms"] >= 0).all()
    assert len(calibration.skipped) == 1
    assert "Constants from 2 recordings, 1 skipped" in repr(calibration)
    assert "<table" in calibration._repr_html_()
    file = calibration.save(tmp_path / "here.yaml")
    assert load_environment(str(file)).trigger_ns > 0
    with pytest.raises(ValueError, match="no recordings"):
        calibration_of([tmp_path])
