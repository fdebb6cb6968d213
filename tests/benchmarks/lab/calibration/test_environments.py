"""The constants of our own recordings are the defaults of overheads."""

from typer.testing import CliRunner

from benchmarks.lab.__main__ import app
from sim.model.scenario import Overheads
from tests.places import ROOT
from tests.scenarios import read_scenario

KEPT = ROOT / "benchmarks" / "lab" / "calibration" / "overheads.yaml"
JOB = "job: {a: {source: {rate: 1/s, record: 1 kB}}}\ncheckpoint: {interval: 10 s}\nrun: {duration: 10 s}\n"


def test_the_kept_constants_are_what_our_recordings_say(monkeypatch):
    """Anyone gets them again: `python -m benchmarks.lab calibrate tests/data/recordings`, to the last byte."""
    monkeypatch.chdir(ROOT)
    outcome = CliRunner().invoke(app, ["calibrate", "tests/data/recordings"])

    assert outcome.exit_code == 0
    assert KEPT.read_text() == outcome.stdout


def test_a_scenario_without_overheads_has_these_constants():
    """Whoever calibrates anew changes the defaults as well."""
    assert Overheads() == read_scenario(JOB + KEPT.read_text()).overheads
