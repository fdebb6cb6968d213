"""`ckptsim import` and `ckptsim schema`."""

import json
from pathlib import Path

from sim.scenario import load, loads

RECORDINGS = Path(__file__).parents[1] / "data" / "recordings"


def test_a_recording_becomes_a_scenario(ckptsim):
    """On stdout, so that it can be piped; what is not modelled goes to stderr."""
    done = ckptsim("import", RECORDINGS / "p4-severe-aligned.json.gz")

    assert 0 == done.exit_code
    assert loads(done.stdout).scenarios
    assert all(line.startswith("not modelled: ") for line in done.stderr.splitlines())


def test_into_a_file(ckptsim, tmp_path):
    """Under three kinds of barriers if asked."""
    done = ckptsim("import", RECORDINGS / "p4-severe-aligned.json.gz", "--compare", "-o", tmp_path / "p4.yaml")

    assert (0, "") == (done.exit_code, done.stdout)
    assert 3 == len(load(tmp_path / "p4.yaml").scenarios)


def test_what_is_no_recording(ckptsim, tmp_path):
    (tmp_path / "x.json").write_text("{}")

    for path in (tmp_path / "x.json", tmp_path / "none.json"):
        done = ckptsim("import", path)
        assert 3 == done.exit_code
        assert 1 == len(done.stderr.splitlines())
        assert path.name in done.stderr


def test_a_file_that_cannot_be_written(ckptsim, tmp_path):
    done = ckptsim("import", RECORDINGS / "p4-severe-aligned.json.gz", "-o", tmp_path)

    assert 0 != done.exit_code
    assert 1 == len(done.stderr.splitlines())


def test_the_schema_of_scenarios(ckptsim):
    assert "job" in json.loads(ckptsim("schema").stdout)["properties"]


def test_the_columns_of_the_results(ckptsim):
    """For people and for machines."""
    assert "last acknowledgement - trigger" in ckptsim("schema", "--results").stdout
    told = json.loads(ckptsim("schema", "--results", "--json").stdout)
    runs = {"checkpoints", "subtasks", "tasks", "series", "commits", "recoveries", "files", "snapshots", "restores", "path"}

    assert runs | {"results", "runs"} == set(told)
