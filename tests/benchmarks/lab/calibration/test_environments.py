"""Files of environments: written to be read back, and the one that comes with the package is what our own recordings say."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from benchmarks.lab.__main__ import app
from benchmarks.lab.calibration.environments import environment_text
from benchmarks.lab.calibration.estimate import calibrated, estimates
from sim.model.scenario import Overheads
from sim.model.schema.study import DEFAULT, load_environment, read

ROOT = Path(__file__).parents[4]
PACKAGED = ROOT / "sim" / "model" / "schema" / "environments" / f"{DEFAULT}.yaml"


def test_what_is_written_is_read_back(tmp_path):
    """Values, intervals and counts; what was not estimated says so."""
    found = estimates([{"trigger": 4.5, "start": 1234.0}] * 3 + [{"fail": 9.0}])
    file = tmp_path / "mine.yaml"
    file.write_text(environment_text(found, ["Mine."]))
    constants = read(str(file))

    assert calibrated(found) == load_environment(str(file))
    assert (constants["trigger"].recordings, constants["trigger"].interval) == (3, [4_500_000, 4_500_000])
    assert (constants["fail"].recordings, constants["fail"].interval) == (1, None)
    assert "too few recordings tell it, the default is kept" in file.read_text()
    assert file.read_text().startswith("# Mine.\n")


def test_comments_fit_a_terminal():
    """The file is printed where nobody names another place for it."""
    comments = [
        line for line in environment_text(estimates([]), ["Mine."]).splitlines() if line.lstrip().startswith("#")
    ]

    assert max(map(len, comments)) <= 80


def test_what_others_wrote_stays_in_its_comment(tmp_path):
    """Versions and names of files: no line of theirs is one of the file."""
    file = tmp_path / "mine.yaml"
    file.write_text(environment_text(estimates([]), ["Flink 2.3\nconstants: {}\n\x1b[31m", "x" * 9999]))

    assert calibrated(estimates([])) == load_environment(str(file))
    assert file.read_text().startswith("# Flink 2.3 constants: {} \\x1b[31m\n# xxx")
    assert max(map(len, file.read_text().splitlines())) < 3000


def test_the_packaged_environment_is_what_our_recordings_say(monkeypatch):
    """Anyone gets it again: `python -m benchmarks.lab calibrate tests/data/recordings`, to the last byte."""
    monkeypatch.chdir(ROOT)
    outcome = CliRunner().invoke(app, ["calibrate", "tests/data/recordings"])

    assert outcome.exit_code == 0
    assert PACKAGED.read_text() == outcome.stdout


def test_a_scenario_that_names_no_environment_takes_place_in_the_packaged_one():
    """Whoever calibrates anew changes the defaults as well."""
    assert Overheads() == load_environment(DEFAULT)
