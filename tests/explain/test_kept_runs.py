"""A folder of results is run again as it was, or refused."""

import json
import shutil

import pytest

from sim.model.schema.study import load
from sim.studies.compare import compare, write_comparison
from sim.studies.run_folder import FolderError, runs_of

TEXT = """\
# Which?
version: 1
job:
  source: {source: {rate: 20/s, record: 400 B}}
  sink: {input: {source: hash}, service: 1 ms}
checkpoint: {interval: 1 s, barriers: [aligned, unaligned]}
run: {duration: 2 s}
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "asked.yaml").write_text(TEXT)
    place = tmp_path / "results"
    comparison = compare(load(tmp_path / "asked.yaml", ["run.duration=3 s"]), folder=place, jobs=1)
    write_comparison(comparison, place, TEXT, {"source": "../asked.yaml", "overrides": ["run.duration=3 s"]})
    return place


def test_a_folder_gives_the_scenarios_that_were_run(folder):
    """Overrides included; a folder of a single run gives that one."""
    runs = runs_of(folder)

    assert (runs.name, runs.question, runs.is_changed) == ("asked", "Which?", False)
    assert {3_000_000_000} == {scenario.run.duration_ns for scenario in runs.scenarios.values()}
    assert {"aligned", "unaligned"} <= set(runs.scenarios)
    assert list(runs_of(folder / "unaligned").scenarios) == ["unaligned"]


def test_results_of_other_code_are_marked(folder):
    path = folder / "aligned" / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"code_version": "older"}))

    assert runs_of(folder).is_changed


def test_a_scenario_that_is_not_what_was_run_is_refused(folder):
    """A trace beside it may have changed, or the copy."""
    (folder / "scenario.yaml").write_text(TEXT.replace("20/s", "21/s"))

    with pytest.raises(FolderError, match="has changed since: run it again with 'ckptsim run'"):
        runs_of(folder)


def test_what_is_no_folder_of_results_is_refused(folder, tmp_path):
    shutil.rmtree(folder / "aligned")
    (tmp_path / "empty").mkdir()

    with pytest.raises(FolderError, match=r"empty: is not a folder of results: it has no readable comparison\.json"):
        runs_of(tmp_path / "empty")
    with pytest.raises(FolderError, match=r"has no readable manifest\.json"):
        runs_of(folder)
    (folder / "comparison.json").write_text("[1")
    with pytest.raises(FolderError, match="is not what 'ckptsim run' wrote"):
        runs_of(folder)


def test_a_folder_takes_no_other_values(folder):
    with pytest.raises(FolderError, match="give the scenario file to change a value"):
        runs_of(folder, ["run.seed=2"])
