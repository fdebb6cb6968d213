"""The command and Python do the same: they keep the same bytes and say the same."""

import json
import shutil

import pytest

import sim
from tests.app.verbs.conftest import TINY, contents
from tests.places import ROOT

TRACED = TINY.replace("200/s", "{trace: day.csv, column: rate}").replace(
    "run:", "expect: {checkpoints.completed: '> 1'}\n# UNKNOWN: how long?\nrun:"
)
FILES = {
    "tiny.yaml": TINY,
    "one.yaml": TINY.replace("[aligned, unaligned]", "aligned"),
    "traced.yaml": TRACED,
    "day.csv": "epoch_s,rate\n0,200\n10,300\n",
    "sweep.yaml": "# Which interval is best?\nversion: 1\nscenario: tiny.yaml\nvary: {checkpoint.interval: [500 ms, 1 s]}\n"
    "answer: {settings: [checkpoint.interval, checkpoint.barriers], show: [end_to_end_p50_ms], least: end_to_end_p50_ms}\n",
}
SAVED = ROOT / "tests/data/rest/pressed.zip"
LIMITS = {"p99": "10 s", "recovery": "1 min", "budget": "1 h", "within": "1 h"}
KEPT = {
    "run": (
        "run {place}/traced.yaml --set run.seed=3 --jobs 1 --out {place}/kept",
        lambda: sim.load("traced.yaml", {"run.seed": 3}).run(folder="kept", jobs=1),
        {"kept/comparison.json", "kept/comparison.csv", "kept/scenario.yaml", "kept/aligned/journal.jsonl"},
        "ckptsim run traced.yaml --set run.seed=3 --out kept\\n",
    ),
    "sweep": (
        "sweep {place}/sweep.yaml --set run.seed=3 --set run.replications=2 --jobs 1 --out {place}/kept",
        lambda: sim.sweep("sweep.yaml", changes={"run.seed": 3, "run.replications": 2}, jobs=1, folder="kept"),
        {"kept/answer.json", "kept/results.csv", "kept/results.parquet"},
        "ckptsim sweep sweep.yaml --set run.seed=3 --set run.replications=2 --out kept\\n",
    ),
    "sweep of a study": (
        "sweep tiny.yaml --set 'checkpoint.interval=[500 ms, 1 s]' --jobs 1 --out kept",
        lambda: sim.sweep(sim.load("tiny.yaml"), {"checkpoint.interval": ["500 ms", "1 s"]}, jobs=1, folder="kept"),
        {"kept/results.parquet"},
        "",
    ),
    "advise": (
        "advise {place}/one.yaml --p99 '10 s' --recovery '1 min' --budget '1 h' --within '1 h' --set run.seed=3 --jobs 1 --out {place}/kept",
        lambda: sim.advise("one.yaml", **LIMITS, changes={"run.seed": 3}, jobs=1, folder="kept"),
        {"kept/advice.json", "kept/sweep.yaml", "kept/results.parquet"},
        "ckptsim advise one.yaml --p99 '10 s' --recovery '1 min' --budget '1 h' --within '1 h' --set run.seed=3 --out kept\\n",
    ),
    "diff": (
        "diff one.yaml one.yaml --set-b job.sink.parallelism=1 --replications 2 --jobs 1 --out kept",
        lambda: sim.diff(
            "one.yaml", "one.yaml", changes_b={"job.sink.parallelism": 1}, replications=2, jobs=1, folder="kept"
        ),
        {"kept/diff.json", "kept/results.parquet"},
        "--set-b job.sink.parallelism=1",
    ),
    "import": (
        f"import {SAVED} -o job.yaml",
        lambda: sim.import_job(SAVED, out="job.yaml"),
        {"job.yaml", "job.history.json"},
        "history: job.history.json",
    ),
}


@pytest.mark.parametrize("verb", KEPT)
@pytest.mark.usefixtures("short_trials")
def test_the_same_bytes_are_kept(both_ways, tmp_path, verb):
    """Tables, scenario, answer, picture and page; nothing names a place of this machine, and the command can be repeated."""
    command, python, names, text = KEPT[verb]
    done, _ = both_ways(FILES, command.format(place=tmp_path / "command"), python)
    kept = contents(tmp_path / "command")

    assert done.exit_code == 0, done.stderr
    assert names <= set(kept)
    assert kept == contents(tmp_path / "python")
    assert [name for name, content in kept.items() if str(tmp_path).encode() in content] == []
    assert any(text.encode() in content for name, content in kept.items() if name not in FILES)


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


WINDOWS = """\
# At which time of the day?
scenario: tiny.yaml
set: {checkpoint.barriers: aligned}
windows: {source: source, trace: day.csv, length: 3 s, at: [3 h, 20 h]}
answer: {settings: [window], show: [end_to_end_p50_ms]}
"""


def test_the_span_of_a_trace_stands_before_and_in_the_answer(both_ways, tmp_path):
    """How long it is, how its times were read, how many windows and runs: said by both, and kept."""
    rows = "".join(f"{(1_700_000_000 + at) * 1000},200\n" for at in range(0, 86_400, 60))
    done, swept = both_ways(
        {"tiny.yaml": TINY, "day.csv": f"Time,value\n{rows}", "sweep.yaml": WINDOWS},
        "sweep sweep.yaml --jobs 1 --out kept",
        lambda: sim.sweep("sweep.yaml", jobs=1, folder="kept"),
    )
    span = "day.csv: 24 h, 1,440 rows, times in epoch milliseconds; 2 windows of 3 s; 2 runs, 1 of them without checkpoints"

    assert span == done.stderr.splitlines()[1], "below the axes"
    assert ["At which time of the day?", span] == repr(swept).split("\n\n")[:3:2], "the axes are between them"
    assert span in swept._repr_html_()
    for way in ("command", "python"):
        assert span in (tmp_path / way / "kept" / "answer.json").read_text()


def test_an_explanation_is_the_same(both_ways):
    done, explained = both_ways(FILES, "explain tiny.yaml", lambda: sim.load("tiny.yaml").explain())
    as_json, again = both_ways({}, "explain tiny.yaml --json", lambda: explained)

    assert done.exit_code == 0, done.stderr
    assert f"{explained!r}\n" == done.stdout
    assert again.facts == json.loads(as_json.stdout)


def test_tables_and_windows_of_traces(both_ways, tmp_path):
    """And all that is said of them."""
    day = "t_s,rate\n" + "".join(f"{second},{1000 + 10 * (second % 7)}\n" for second in range(60)) + "61,many\n"
    done, found = both_ways(
        {"day.csv": day},
        "traces read day.csv --out tables --time t_s --value rate",
        lambda: sim.read_traces("day.csv", "tables", time="t_s", value="rate"),
    )
    assert done.exit_code == 4, done.stderr
    assert done.stderr.splitlines() == found.notes
    assert any("1 row in quarantine, line 62" in line for line in found.notes)
    assert "day: 60 rows of rates" in repr(found)

    done, windows = both_ways(
        {},
        "traces windows tables --length '20 s' --out w/windows.csv",
        lambda: sim.trace_windows("tables", length="20 s", file="w/windows.csv"),
    )
    assert (0, f"{windows!r}\n") == (done.exit_code, done.stdout)
    assert contents(tmp_path / "command") == contents(tmp_path / "python")
    assert "w/windows.csv" in contents(tmp_path / "python")


def test_the_table_of_predictions(both_ways, tmp_path):
    """What was skipped is named by both."""
    for way in ("command", "python"):
        (tmp_path / way / "recorded").mkdir(parents=True)
        for name in ("J2-count-aligned", "J4-pressed-aligned-r1"):
            shutil.copy(ROOT / "tests/data/users-jobs" / f"{name}.zip", tmp_path / way / "recorded")
        (tmp_path / way / "recorded/none.json").write_text("{}")
    done, validation = both_ways(
        {},
        "validate recorded --seeds 1 --jobs 1 --json",
        lambda: sim.validate("recorded", seeds=1, jobs=1),
    )

    assert done.exit_code == 4, done.stderr
    assert json.loads(done.stdout) == validation.facts
    assert [f"skipped: {reason}" for reason in validation.skipped] == [
        line for line in done.stderr.splitlines() if line.startswith("skipped: ")
    ]
    assert len(validation.summary) > 5
    assert repr(validation).startswith("2 recordings, 1 skipped: ")
