"""`ckptsim diff`: a verdict first, tables below, and the same as JSON, as a folder and as a page."""

import json
import re

from sim.studies.run_folder import ANSWER
from tests.app.cli.conftest import TINY

JOB = TINY.replace("[aligned, unaligned]", "aligned")
CHANGED = JOB.replace("service: 1 ms", "service: 2 ms").replace("interval: 1 s", "interval: 500 ms")


def files(tmp_path):
    (tmp_path / "a.yaml").write_text(JOB)
    (tmp_path / "b.yaml").write_text(CHANGED)
    return "a.yaml", "b.yaml"


def test_the_verdict_comes_first_and_then_the_inputs(ckptsim, tmp_path):
    done = ckptsim("diff", *files(tmp_path), "--replications", "2", "--jobs", "1")

    assert done.exit_code == 0, done.stderr
    assert "; 2 inputs differ." in " ".join(done.stdout.split())
    assert re.search(r"job\.sink\.service +1 ms +2 ms ", done.stdout)
    assert "execution.checkpointing.interval" in done.stdout
    assert "What one of them does alone: ckptsim diff a.yaml a.yaml --set-b KEY=VALUE" in done.stdout


def test_json_says_the_same(ckptsim, tmp_path):
    """Each input; each quantity with its difference."""
    done = ckptsim("diff", *files(tmp_path), "--replications", "2", "--jobs", "1", "--json")
    found = json.loads(done.stdout)
    completed = next(own for own in found["quantities"] if own["quantity"] == "completed")

    assert {"job.sink.service", "checkpoint.interval"} == {own["key"] for own in found["inputs"]}
    assert completed["after"] - completed["before"] == completed["change"] > 0


def test_a_key_that_is_not_modelled_is_named(ckptsim, tmp_path):
    """On either side, also if nothing differs without it."""
    (tmp_path / "a.yaml").write_text(JOB)
    done = ckptsim("diff a.yaml a.yaml --set-b flink.metrics.reporters=prom")

    assert done.exit_code == 0
    assert "warning: a.yaml: flink: not modelled, no effect here: 1 key of Flink: metrics.reporters" in done.stderr


def test_windows_and_checkpoints_of_one_phase_are_told(ckptsim, tmp_path):
    """A run has one of the moments at which a checkpoint may meet a window that fires, so the same result is no proof."""
    window = "{tumbling: SIZE, time: event, fire: 4 ms, state-per-record: 60 B}"
    job = f"{{a: {{source: {{rate: 100/s, record: 100 B}}}}, win: {{input: {{a: hash}}, window: {window}}}}}"
    rest = "checkpoint: {interval: 2 s}\nrun: {duration: 5 s}\n"
    for size, is_told in (("4 s", True), ("3 s", False)):
        (tmp_path / "w.yaml").write_text(f"version: 1\njob: {job.replace('SIZE', size)}\n{rest}")
        done = ckptsim("diff w.yaml w.yaml --set-b checkpoint.barriers=unaligned --replications 1 --jobs 1")

        assert done.exit_code == 0, done.stderr
        assert ("it may be that no checkpoint meets a firing" in " ".join(done.stdout.split())) == is_told


def test_the_same_twice_runs_nothing(ckptsim, tmp_path):
    """No input differs: one line."""
    a, _ = files(tmp_path)
    done = ckptsim(f"diff {a} {a}")

    assert (done.exit_code, done.stdout) == (
        0,
        "Nothing that is simulated differs: the same values, or values that mean the same.\n",
    )


def test_mistakes_have_one_message(ckptsim, tmp_path):
    """Several strategies, a file that is not there, a value that is none: what to do, and a code."""
    (tmp_path / "tiny.yaml").write_text(TINY)
    a, b = files(tmp_path)
    (tmp_path / "swept").mkdir()
    (tmp_path / "swept" / ANSWER).write_text("{}")
    cases = {
        f"{a} swept": "swept: holds results, not a job: compare scenarios",
        f"tiny.yaml {a}": "choose with --strategy one of aligned, unaligned",
        f"{a} none.yaml": "none.yaml",
        f"{a} {b} --set-b 'job.nobody.service=1 ms'": "there is no vertex 'nobody'",
    }
    for arguments, message in cases.items():
        done = ckptsim(f"diff {arguments}")
        assert done.exit_code == 3
        assert message in done.stderr
        assert done.stdout == ""


def test_what_is_kept_makes_a_page(ckptsim, tmp_path):
    """The folder has the answer, every row, and a command; `report` draws it."""
    done = ckptsim("diff", *files(tmp_path), "--replications", "1", "--jobs", "1", "--out", "kept")
    page = ckptsim("report kept -o page.html")
    kept = json.loads((tmp_path / "kept" / "diff.json").read_text())

    assert (done.exit_code, page.exit_code) == (0, 0), page.stderr
    assert kept["command"].splitlines()[0] == "ckptsim diff a.yaml b.yaml --replications 1 --out kept"
    assert kept["verdict"].split(":")[0] in (tmp_path / "page.html").read_text()
