"""Stored results: listed by `ckptsim runs`, and not replaced by those of another scenario."""

import json

import pytest

import sim
from sim.app.verbs.common import OptionError


@pytest.fixture
def other(tiny, tmp_path):
    """A scenario beside `tiny`, with another question."""
    path = tmp_path / "other.yaml"
    path.write_text(tiny.read_text().replace("Does it matter", "Does it cost"))
    return path


def test_results_of_another_scenario_are_kept(ckptsim, tiny, other, tmp_path):
    """Unless --force replaces them; the scenario itself, changed or not, replaces its own."""
    assert ckptsim(f"run {tiny} --out mine --jobs 1").exit_code == 0
    before = (tmp_path / "mine" / "comparison.json").read_text()

    done = ckptsim(f"run {other} --out mine --jobs 1")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "--out: mine has the results of tiny.yaml: --force replaces them" in done.stderr
    assert (tmp_path / "mine" / "comparison.json").read_text() == before
    with pytest.raises(OptionError, match=r"has the results of tiny\.yaml"):
        sim.load(other).run(jobs=1, folder="mine")

    assert ckptsim(f"run {tiny} --out mine --jobs 1 --set run.seed=2").exit_code == 0
    assert ckptsim(f"run {other} --out mine --jobs 1 --force").exit_code == 0
    assert "Does it cost" in (tmp_path / "mine" / "comparison.json").read_text()


def test_stored_results_are_listed(ckptsim, tiny, other, tmp_path, monkeypatch):
    """Those of the folder, and of `runs` in it; the newest first; other files are none."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "comparison.json").write_text("mine")
    assert "no results" in ckptsim("runs").stderr
    for when, run in ((10**9, tiny), (10**9 + 60, f"{other} --out mine")):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", str(when))
        assert ckptsim(f"run {run} --jobs 1").exit_code == 0

    head, first, second = ckptsim("runs").stdout.splitlines()
    assert head.split() == ["folder", "date", "command", "question"]
    assert first.startswith("mine  ")
    assert first.endswith("2001-09-09 01:47 UTC  ckptsim run other.yaml  Does it cost how barriers travel?")
    assert second.startswith("runs/tiny-")
    assert [row["folder"] for row in json.loads(ckptsim("runs --json").stdout)] == [
        line.split()[0] for line in (first, second)
    ]
