"""A comparison of two jobs is kept alike by the command and by Python."""

import json

import sim
from tests.app.verbs.conftest import TINY, contents

JOB = TINY.replace("[aligned, unaligned]", "aligned")


def test_the_same_bytes_are_kept(both_ways, tmp_path):
    """The answer, its rows, and the command that makes them again."""
    done, found = both_ways(
        {"a.yaml": JOB},
        "diff a.yaml a.yaml --set-b job.sink.parallelism=1 --replications 2 --jobs 1 --out kept",
        lambda: sim.diff(
            "a.yaml", "a.yaml", changes_b={"job.sink.parallelism": 1}, replications=2, jobs=1, folder="kept"
        ),
    )
    command, python = contents(tmp_path / "command" / "kept"), contents(tmp_path / "python" / "kept")

    assert done.exit_code == 0, done.stderr
    assert {"diff.json", "results.parquet"} == set(command)
    assert command == python
    assert repr(found).splitlines()[0] in done.stdout


def test_studies_are_compared_as_they_were_changed(tmp_path, monkeypatch):
    """A chosen combination and a changed one of the same file; the kept command says both."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.yaml").write_text(TINY)
    study = sim.load("tiny.yaml")
    found = sim.diff(
        study["aligned"], study["unaligned"].with_({"job.sink.parallelism": 1}), replications=1, jobs=1, folder="kept"
    )

    assert {"checkpoint.barriers", "job.sink.parallelism"} == {own["key"] for own in found.facts["inputs"]}
    command = json.loads((tmp_path / "kept" / "diff.json").read_text())["command"]
    assert "--set-a" in command
    assert "--set-b job.sink.parallelism=1" in command
