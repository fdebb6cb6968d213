"""`ckptsim import` of a server that means harm: one line or a scenario, in time; nothing outside of the folder, no secrets."""

import json
import time

import pytest

from sim.jobs.source.rest_answers import is_path
from sim.model.schema.study import loads
from tests.app.cli.hostile import MODES, SECRET, is_plain, turn

MESSAGES = {
    "one vertex many times": "the job has a duplicate vertex",
    "20 000 vertices": "the job has 20000 vertices; more than 1000 are not read",
    "to another host": "redirects to http://localhost:9/x",
    "deep": "nested more than 100 levels",
    "millions of lists": "1 GiB of memory",
    "a body without end": "more than 50000000 bytes",
    "a byte now and then": "no time is left: 0.3 s",
    "cycles": "has a cycle",
    "a web page": "answers with a web page",
    "status 503": "HTTP 503",
    "to another host, later": "What is the response to GET /jobs/:id/plan?",
    "reset at once": "cannot be reached",
    "headers without end": "got more than 100 headers",
}

BACKTEST_S = 10
"""What is read is simulated for at most so long."""


@pytest.fixture
def harmless(tmp_path, monkeypatch):
    """Looks at all that an import left behind."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a" / "b")

    def look(done, kept, out):
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert [
            path for path in files if kept not in path.parents and path not in (out, out.with_suffix(".history.json"))
        ] == []
        output = done.stdout + done.stderr
        assert SECRET not in output
        assert [path for path in files if SECRET in path.read_text()] == []
        assert is_plain(output)
        assert all(len(line) < 1000 for line in output.splitlines())
        if done.exit_code == 0:
            assert loads(out.read_text(), "x").scenarios
            assert is_plain(out.read_text())
        else:
            assert done.exit_code == 3
            saved = ": all answers" in done.stderr
            assert 1 + saved == len(done.stderr.splitlines()), done.stderr
            assert not out.exists()

    return look


@pytest.mark.parametrize("mode", MODES)
def test_a_server_that_means_harm(ckptsim, fake_flink, tmp_path, harmless, mode):
    fake = fake_flink()
    seconds = turn(fake, mode)
    kept, out = tmp_path / "a" / "b" / "kept", tmp_path / "a" / "b" / "x.yaml"
    begun = time.monotonic()
    done = ckptsim(
        f"import {fake.url} --sample '0 s' --deadline '{seconds} s' --save {kept} -o {out}"
        f" --header 'Authorization: Bearer {SECRET}'"
    )

    harmless(done, kept, out)
    assert MESSAGES.get(mode, "") in done.stderr
    assert time.monotonic() - begun < seconds + 5 + BACKTEST_S
    assert [path for path in fake.requests if not is_path(path.partition("?")[0])] == []


def test_no_secret_is_saved_unless_asked_for(ckptsim, fake_flink, tmp_path, harmless):
    """And the copy is as good as the job."""
    fake = fake_flink()
    turn(fake, "an error of wrong types")
    del fake.answer
    kept, out = tmp_path / "a" / "b" / "kept", tmp_path / "a" / "b" / "x.yaml"
    done = ckptsim(f"import {fake.url} --sample '0 s' --save {kept} -o {out}")
    harmless(done, kept, out)
    assert done.exit_code == 0
    assert "all answers, without the fields that ckptsim does not read;" in done.stderr
    again = ckptsim(f"import {kept}")

    assert again.exit_code == 0
    assert SECRET not in again.stdout


def test_a_job_that_vanishes(ckptsim, fake_flink, tmp_path, harmless):
    """At any request: what was answered is kept."""
    kept, out = tmp_path / "a" / "b" / "kept", tmp_path / "a" / "b" / "x.yaml"
    for number in (2, 4, 6, 12):
        fake = fake_flink()
        right = fake.answer

        def vanished(handler, path, names, fault, *, right=right, fake=fake, number=number):
            right(handler, path, names, 404 if len(fake.requests) > number and "/jobs/" in path else fault)

        fake.answer = vanished
        place = kept / str(number)
        done = ckptsim(f"import {fake.url} --sample '0 s' --save {place} -o {out}")
        harmless(done, kept, out)
        assert (0 if number > 2 else 3) == done.exit_code
        out.unlink(missing_ok=True)


def test_a_server_that_falls_silent(ckptsim, fake_flink, tmp_path, harmless):
    """What was answered until then is a scenario that says what is missing, and the same again from what was saved."""
    kept, out = tmp_path / "a" / "b" / "kept", tmp_path / "a" / "b" / "x.yaml"
    fake = fake_flink()
    right = fake.answer

    def silent(handler, path, names, fault):
        if "/vertices/" in path or "/details/" in path:
            time.sleep(0.6)
        right(handler, path, names, fault)

    fake.answer = silent
    done = ckptsim(f"import {fake.url} --sample '0 s' --deadline '0.5 s' --save {kept} -o {out}")
    harmless(done, kept, out)
    assert done.exit_code == 0
    questions = [
        line
        for line in out.read_text().splitlines()
        if line.startswith("# UNKNOWN: What is the response to GET /jobs/:id/vertices/")
    ]
    assert len(questions) == 1
    assert "  What is the response to GET /jobs/:id/vertices/" in done.stderr
    again = ckptsim(f"import {kept}")

    assert out.read_text() == again.stdout


def test_clocks_that_go_back(ckptsim, fake_flink, tmp_path, harmless):
    """Samples keep their order."""
    kept, out = tmp_path / "a" / "b" / "kept", tmp_path / "a" / "b" / "x.yaml"
    fake = fake_flink()
    fake.times_ms = [10**12 - 10**6 * number for number, _ in enumerate(fake.times_ms)]
    done = ckptsim(f"import {fake.url} --sample '0.2 s' --save {kept} -o {out}")
    harmless(done, kept, out)
    times = sorted(int(path.name) for path in (kept / "samples").iterdir())

    assert done.exit_code == 0
    assert times == sorted(set(times))
    assert json.loads((kept / "source.json").read_text())["job"] == fake.job
