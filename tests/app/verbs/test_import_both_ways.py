"""An imported job is written alike by the command and by Python."""

import sim
from tests.app.verbs.conftest import contents
from tests.places import ROOT

SAVED = ROOT / "tests/data/rest/pressed.zip"


def test_the_same_bytes_are_kept(both_ways, tmp_path):
    """The scenario, and its history beside it."""
    done, _ = both_ways({}, f"import {SAVED} -o job.yaml", lambda: sim.import_job(SAVED, out="job.yaml"))
    command = contents(tmp_path / "command")

    assert done.exit_code == 0, done.stderr
    assert {"job.yaml", "job.history.json"} == set(command)
    assert b"history: job.history.json" in command["job.yaml"]
    assert command == contents(tmp_path / "python")
