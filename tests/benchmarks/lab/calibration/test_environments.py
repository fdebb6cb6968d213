"""Files of environments: written to be read back, and the one that comes with the package is what our own recordings say."""

from typer.testing import CliRunner

from benchmarks.lab.__main__ import app
from sim.model.scenario import Overheads
from sim.model.schema.study import DEFAULT, load_environment
from tests.places import ROOT

PACKAGED = ROOT / "sim" / "model" / "schema" / "environments" / f"{DEFAULT}.yaml"


def test_the_packaged_environment_is_what_our_recordings_say(monkeypatch):
    """Anyone gets it again: `python -m benchmarks.lab calibrate tests/data/recordings`, to the last byte."""
    monkeypatch.chdir(ROOT)
    outcome = CliRunner().invoke(app, ["calibrate", "tests/data/recordings"])

    assert outcome.exit_code == 0
    assert PACKAGED.read_text() == outcome.stdout


def test_a_scenario_that_names_no_environment_takes_place_in_the_packaged_one():
    """Whoever calibrates anew changes the defaults as well."""
    assert Overheads() == load_environment(DEFAULT)
