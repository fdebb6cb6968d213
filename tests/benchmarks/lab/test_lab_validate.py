"""The commands of the lab: what is read is judged or calibrated, what is not is named."""

import json
import shutil

import pytest
from typer.testing import CliRunner

from benchmarks.lab.__main__ import app
from benchmarks.lab.calibrate import calibrate as calibration_of
from tests.benchmarks.lab.recorded import document
from tests.places import RECORDINGS
from tests.scenarios import read_scenario

# ``python -m benchmarks.lab validate``: what is read is judged, what is not is named, and the exit code says which.


NAMES = ("p2-severe-aligned", "p4-severe-aligned", "p4-severe-unaligned")


def test_several_recordings_end_with_orderings_summaries_and_bars(lab):
    done = lab("validate", *(RECORDINGS / f"{name}.json.gz" for name in NAMES), "--seeds", "1", "--jobs", "2")

    assert done.exit_code == 0
    assert "barriers: aligned -> unaligned" in done.stdout
    assert "orderings are predicted right." in done.stdout
    assert "WRONG" not in done.stdout
    for heading in ("observed p10", "median error", "asked for"):
        assert heading in done.stdout


def test_json_is_a_list_of_rows_on_stdout_and_nothing_else(lab, tmp_path):
    """One good file, plain or compressed; an unfinished copy is named on stderr, exit code 4."""
    plain, cut = tmp_path / "plain.json", tmp_path / "cut.json.gz"
    plain.write_text(json.dumps(document("p2-severe-aligned")))
    cut.write_bytes((RECORDINGS / "p2-severe-aligned.json.gz").read_bytes()[:5000])
    done = lab("validate", plain, cut, "--seeds", "1", "--json")
    rows = json.loads(done.stdout)

    assert done.exit_code == 4
    assert f"skipped: {cut}: the compressed file is truncated" in done.stderr
    assert {
        "recording",
        "family",
        "quantity",
        "unit",
        "vertex",
        "observed",
        "predicted",
        "relative_error",
        "covered",
    } == set(rows[0])
    assert {None, "src", "map", "sink"} == {row["vertex"] for row in rows}
    assert all({"p10", "p50", "p90"} == set(row[side]) for row in rows for side in ("observed", "predicted"))


def test_what_is_not_modelled_is_shown_and_not_counted(lab, tmp_path):
    path = tmp_path / "magic.json"
    recorded = document("p2-severe-aligned")
    recorded["config"]["nodes"][1]["magic"] = 1
    path.write_text(json.dumps(recorded))
    printed = lab("validate", path, "--seeds", "1")

    assert printed.exit_code == 0
    assert "not modelled: 'map': key 'magic' (shown, not counted)" in printed.stderr
    assert "end_to_end_duration" in printed.stdout
    assert "asked for" not in printed.stdout


def test_the_command_prints_a_row_per_recording(lab):
    file = RECORDINGS / "p2-severe-aligned.json.gz"
    done = lab("validate", "--explain", file)

    assert done.exit_code == 0
    assert "p2-severe-aligned" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    (record,) = json.loads(lab("validate", "--explain", "--json", file).stdout)
    assert record["recording"] == "p2-severe-aligned"


# `python -m benchmarks.lab calibrate`: a folder of recordings in, one file out; what cannot be read is named.


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
