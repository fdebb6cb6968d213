"""A comparison is kept alike by the command and by Python."""

import json

import sim
from tests.app.verbs.conftest import TINY, contents, report_of

JOB = TINY.replace("200/s", "{trace: day.csv, column: rate}").replace(
    "run:", "expect: {checkpoints.completed: '> 1'}\n# UNKNOWN: how long?\nrun:"
)
DAY = "epoch_s,rate\n0,200\n10,300\n"


def test_the_same_bytes_are_kept(both_ways, tmp_path):
    """Tables, journals, scenario and summary; nothing names a place of this machine, and the page of either shows the verdict."""
    done, results = both_ways(
        {"tiny.yaml": JOB, "day.csv": DAY},
        f"run {tmp_path}/command/tiny.yaml --set run.seed=3 --jobs 1 --out {tmp_path}/command/kept",
        lambda: sim.load("tiny.yaml", {"run.seed": 3}).run(folder="kept", jobs=1),
    )
    command, python = contents(tmp_path / "command" / "kept"), contents(tmp_path / "python" / "kept")

    assert done.exit_code == 0, done.stderr
    assert {"comparison.json", "comparison.csv", "scenario.yaml", "aligned/journal.jsonl"} <= set(command)
    assert command == python
    assert [name for name, content in command.items() if str(tmp_path).encode() in content] == []
    assert "ckptsim run tiny.yaml --set run.seed=3 --out kept\n" in json.loads(command["comparison.json"])["command"]
    assert results.verdict in report_of("kept")


def test_what_is_kept_later_is_the_same(tmp_path, monkeypatch):
    """Results of a run without a folder hold all that it would have."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.yaml").write_text(JOB)
    (tmp_path / "day.csv").write_text(DAY)
    study = sim.load("tiny.yaml", {"run.seed": 3})
    study.run(folder="kept", jobs=1)
    at_once = contents(tmp_path / "kept")
    study.run(jobs=1).save("kept")

    assert at_once == contents(tmp_path / "kept")
