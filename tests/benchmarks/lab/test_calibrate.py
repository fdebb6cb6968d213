"""`python -m benchmarks.lab calibrate`: a folder of recordings in, one file out; what cannot be read is named."""

import shutil

import pytest
from typer.testing import CliRunner

from benchmarks.lab.__main__ import app
from benchmarks.lab.calibrate import calibrate as calibration_of
from tests.places import RECORDINGS
from tests.scenarios import read_scenario


@pytest.fixture
def folder(tmp_path):
    """Three recordings of two families."""
    for name in ("p2-severe-aligned", "minpause3s-p2-severe-aligned", "final-bounded-chain3"):
        shutil.copy(RECORDINGS / f"{name}.json.gz", tmp_path)
    return tmp_path


def overheads(file):
    """Those of a scenario with the section."""
    job = "job: {a: {source: {rate: 1/s, record: 1 kB}}}\ncheckpoint: {interval: 10 s}\nrun: {duration: 10 s}\n"
    return read_scenario(job + file.read_text()).overheads


def calibrate(*arguments):
    return CliRunner().invoke(app, ["calibrate", *map(str, arguments)])


def test_a_file_is_written_and_runs_take_it(folder):
    """The table says what stands in it; constants nobody told are named."""
    outcome = calibrate(folder, "--out", folder / "mine.yaml")

    assert outcome.exit_code == 0
    assert "default kept" in outcome.stdout
    assert "fail: kept at" in outcome.stderr
    assert "close: kept at" in outcome.stderr, "one recording tells it"
    assert 3_000_000 <= overheads(folder / "mine.yaml").complete_ns <= 7_000_000


def test_cross_validation_shows_errors_and_where_constants_come_from(folder):
    """Predictions are run once for constants that are equal."""
    outcome = calibrate(folder, "--cross-validate", "--seeds", 1, "--jobs", 1)

    assert outcome.exit_code == 0
    assert "without the recording: median" in outcome.stdout
    assert "end_to_end_duration" in outcome.stdout
    assert "the other recordings of its family" in outcome.stdout
    assert "\n8 different predictions\n" in f"\n{outcome.stderr}"


def test_constants_come_from_recordings(tmp_path):
    """The table shows them, and the file is a section of a scenario."""
    (tmp_path / "none.json").write_text("{}")
    calibration = calibration_of([*sorted(RECORDINGS.glob("*.json.gz"))[:2], tmp_path / "none.json"])

    assert {"trigger", "acknowledge"} <= set(calibration.table["constant"])
    assert (calibration.table["value_ms"] >= 0).all()
    assert len(calibration.skipped) == 1
    assert "Constants from 2 recordings, 1 skipped" in repr(calibration)
    assert "<table" in calibration._repr_html_()
    file = calibration.save(tmp_path / "here.yaml")
    assert overheads(file).trigger_ns > 0
    with pytest.raises(ValueError, match="no recordings"):
        calibration_of([tmp_path])
