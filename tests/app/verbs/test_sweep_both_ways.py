"""A sweep is kept alike by the command and by Python."""

import json
from html import unescape

import sim
from tests.app.verbs.conftest import TINY, contents, report_of

SWEEP = """\
# Which interval is best?
version: 1
scenario: tiny.yaml
vary: {checkpoint.interval: [500 ms, 1 s]}
answer: {settings: [checkpoint.interval, checkpoint.barriers], show: [end_to_end_p50_ms], least: end_to_end_p50_ms}
"""


def test_the_same_bytes_are_kept(both_ways, tmp_path):
    """Rows, answer and picture; the page of either shows the answer."""
    done, swept = both_ways(
        {"tiny.yaml": TINY, "sweep.yaml": SWEEP},
        f"sweep {tmp_path}/command/sweep.yaml --set run.seed=3 --replications 2 --jobs 1 --out {tmp_path}/command/kept",
        lambda: sim.sweep("sweep.yaml", changes={"run.seed": 3}, replications=2, jobs=1, folder="kept"),
    )
    command, python = contents(tmp_path / "command" / "kept"), contents(tmp_path / "python" / "kept")

    assert done.exit_code == 0, done.stderr
    assert {"answer.json", "answer.png", "results.csv", "results.parquet"} <= set(command)
    assert command == python
    assert [name for name, content in command.items() if str(tmp_path).encode() in content] == []
    assert (
        "ckptsim sweep sweep.yaml --set run.seed=3 --set run.replications=2 --out kept\\n"
        in command["answer.json"].decode()
    )
    findings = json.loads(command["answer.json"])["findings"]
    for display in (repr(swept), unescape(swept._repr_html_())):
        assert [text for text in ("Which interval is best?", *findings, swept.sentence) if text not in display] == []
    assert any("not validated" in finding for finding in findings)
    assert swept.sentence.partition(": ")[2] in report_of("kept")  # the page has words for names of columns


def test_a_study_is_the_same_as_its_file(both_ways, tmp_path):
    """Values over which it varies are lists in both."""
    done, _ = both_ways(
        {"tiny.yaml": TINY},
        "sweep tiny.yaml --axis 'checkpoint.interval=500 ms,1 s' --jobs 1 --out kept",
        lambda: sim.sweep(sim.load("tiny.yaml"), {"checkpoint.interval": ["500 ms", "1 s"]}, jobs=1, folder="kept"),
    )

    assert done.exit_code == 0, done.stderr
    assert contents(tmp_path / "command" / "kept") == contents(tmp_path / "python" / "kept")


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
