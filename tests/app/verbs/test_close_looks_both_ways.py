"""Runs are explained, drawn and written as a page alike by the command and by Python."""

import json

import sim
from tests.app.verbs.conftest import TINY, contents

SWEEP = """\
# Which interval is best?
version: 1
scenario: tiny.yaml
vary: {checkpoint.interval: [500 ms, 1 s]}
answer: {settings: [checkpoint.interval, checkpoint.barriers], show: [end_to_end_p50_ms], least: end_to_end_p50_ms}
"""


def finished(folder):
    """Rows on their way into the tables come from several processes at once."""
    return {name: content for name, content in contents(folder).items() if "/cells/" not in name}


def test_an_explanation_is_the_same(both_ways):
    done, explained = both_ways(
        {"tiny.yaml": TINY}, "explain tiny.yaml --verify", lambda: sim.load("tiny.yaml").explain(verify=True)
    )
    as_json, again = both_ways({}, "explain tiny.yaml --verify --json", lambda: explained)

    assert done.exit_code == 0, done.stderr
    assert f"{explained!r}\n" == done.stdout
    assert again.facts == json.loads(as_json.stdout)


def test_the_same_timeline_is_written(both_ways, tmp_path):
    """And what is left out of it is said by both."""
    done, written = both_ways(
        {"tiny.yaml": TINY},
        "timeline tiny.yaml -o t.json --from '1 s' --to '2 s' --limit 50",
        lambda: sim.load("tiny.yaml").timeline("t.json", begin="1 s", end="2 s", limit=50),
    )

    assert done.exit_code == 0, done.stderr
    assert (tmp_path / "command/t.json").read_bytes() == (tmp_path / "python/t.json").read_bytes()
    assert f"{written.left_out} events after {written.end} are left out: narrow the window with" in done.stderr
    assert "timeline of aligned (--strategy: unaligned)" in done.stderr
    assert written.left_out > 0
    assert f"t.json: aligned until {written.end}, " in repr(written)


def test_the_same_pages_are_written(both_ways, tmp_path):
    """A scenario and a sweep are run first and kept; a kept folder is read."""
    done, written = both_ways(
        {"tiny.yaml": TINY, "sweep.yaml": SWEEP},
        "report tiny.yaml -o page.html",
        lambda: sim.write_report("tiny.yaml", "page.html"),
    )
    assert done.exit_code == 0, done.stderr
    assert contents(tmp_path / "command") == contents(tmp_path / "python")
    assert "aligned" in done.stdout
    assert repr(written.simulated.comparison.verdict)[1:30] in repr((tmp_path / "python/page.html").read_text())

    done, _ = both_ways({}, "report sweep.yaml -o answer.html", lambda: sim.write_report("sweep.yaml", "answer.html"))
    assert done.exit_code == 0, done.stderr
    kept = next((tmp_path / "command/runs").glob("sweep-*"))
    again, _ = both_ways(
        {}, f"report runs/{kept.name} -o again.html", lambda: sim.write_report(f"runs/{kept.name}", "again.html")
    )
    assert again.exit_code == 0, again.stderr
    assert finished(tmp_path / "command") == finished(tmp_path / "python")
    assert (tmp_path / "command/again.html").read_bytes() == (tmp_path / "command/answer.html").read_bytes()
