"""`ckptsim import` of a live job and of what else is left of one: a scenario on stdout, what to look at on stderr."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from sim.jobs.source.saved import read_saved, save
from sim.model.schema.study import load, loads
from tests.places import REST, ROOT


def one_line(done, code=3):
    assert (code, "") == (done.exit_code, done.stdout)
    assert len(done.stderr.splitlines()) == 1
    return done.stderr


def test_a_live_job(ckptsim, fake_flink):
    """What is inferred is counted, what is unknown is asked."""
    done = ckptsim("import", fake_flink().url, "--sample", "1 s")

    assert done.exit_code == 0
    assert loads(done.stdout).warnings == ()
    assert "24 values with a source, 5 assumed as in other jobs, 6 UNKNOWN:" in done.stderr
    assert "  src: How many records per second arrive here?" in done.stderr.splitlines()


def test_a_saved_copy_gives_the_same(ckptsim, fake_flink, tmp_path):
    """Wherever it is imported again."""
    live = ckptsim("import", fake_flink().url, "--sample", "0 s", "--save", tmp_path / "kept")
    again = ckptsim(f"import {tmp_path}/kept")

    assert "all answers, without the fields that ckptsim does not read; review them" in live.stderr
    assert live.stdout == again.stdout


@pytest.mark.parametrize("path", ["/jobs/overview", "/jobs/:id"])
def test_answers_without_the_essential_one_are_kept(ckptsim, fake_flink, tmp_path, path):
    """There is no scenario; what is missing is said, and the rest is saved."""
    fake = fake_flink()
    place = path.replace(":id", fake.job)
    fake.faults[place] = [500] * 99
    done = ckptsim(f"import {fake.url} --sample '0 s' --save {tmp_path}/kept -o {tmp_path}/x.yaml")

    assert (done.exit_code, done.stdout) == (3, "")
    kept, why = done.stderr.splitlines()
    assert f"{tmp_path / 'kept'}: all answers but 1, {place}, without the fields that ckptsim does not read; " in kept
    assert f"{place}" in why
    assert "HTTP 500" in why
    assert (tmp_path / "kept" / "jobmanager" / "config.json").is_file()
    assert not (tmp_path / "x.yaml").exists()
    assert place in json.loads((tmp_path / "kept" / "source.json").read_text())["missing"]


def test_a_bad_address_and_bad_options(ckptsim, fake_flink, tmp_path):
    """One line each, and no file is written."""
    url = fake_flink().url
    assert "write http://HOST:8081" in one_line(ckptsim("import ftp://host"))
    assert "--sample" in one_line(ckptsim(f"import {url} --sample soon"), 2)
    assert "--header" in one_line(ckptsim(f"import {url} --header me"), 2)
    assert "--deadline" in one_line(ckptsim(f"import {url} --deadline soon"), 2)
    assert "--deadline: expected more than 0 s" in one_line(ckptsim(f"import {url} --deadline '0 s'"), 2)
    assert "--deadline" in one_line(ckptsim(f"import {REST}/pressed.zip --deadline '1 s'"), 2)
    assert "expected one address" in one_line(ckptsim(f"import {url} {url}"), 2)
    assert "--save" in one_line(ckptsim(f"import {REST}/pressed.zip --save {tmp_path}/new"), 2)
    assert "--out" in one_line(ckptsim(f"import {url} -o {tmp_path}"), 2)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    assert "is not empty" in one_line(ckptsim(f"import {url} --save {tmp_path}/full"), 2)
    assert "has no job 'abc'; running: " in one_line(ckptsim(f"import {url} --job abc -o {tmp_path}/x.yaml"))
    assert not (tmp_path / "x.yaml").exists()
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("file", ["pressed.zip", "keeping-up.zip", "archive.json.gz", "jobmanager.log"])
def test_everything_else_that_is_left_of_a_job(ckptsim, tmp_path, file):
    done = ckptsim(f"import {REST}/{file} -o {tmp_path}/job.yaml")
    assert (done.exit_code, done.stdout) == (0, "")
    assert len(load(tmp_path / "job.yaml").scenarios) == 1


def test_what_was_inferred_is_held_to_what_was_measured(ckptsim, tmp_path):
    """`validate` reads the same sources: our own job checkpoints in the model as it did."""
    save(read_saved(REST / "pressed.zip"), tmp_path / "kept")
    done = ckptsim(f"validate {tmp_path}/kept --seeds 1 --json")
    errors = {(row["quantity"], row["vertex"]): row["relative_error"] for row in json.loads(done.stdout)}

    assert done.exit_code == 0
    assert abs(errors["end_to_end_duration", None]) < 0.1
    assert abs(errors["start_delay", "sink"]) < 0.1
    assert abs(errors["numRecordsInPerSecond", "sink"]) < 0.03
    assert abs(errors["async_duration", "map"]) < 0.1


def test_headers_are_sent(ckptsim, fake_flink):
    fake = fake_flink()
    ckptsim(f"import {fake.url} --sample '0 s' --header 'Authorization: Bearer abc' --header X-Team:blue")

    assert {("Bearer abc", "blue")} == {(headers["Authorization"], headers["X-Team"]) for headers in fake.headers}


def test_ctrl_c_while_watching(fake_flink, tmp_path):
    """Ends it at once: nothing is half-written."""
    command = [
        sys.executable,
        "-m",
        "sim",
        "import",
        fake_flink().url,
        "-o",
        str(tmp_path / "x.yaml"),
        "--save",
        str(tmp_path / "kept"),
    ]
    running = subprocess.Popen(
        command, cwd=ROOT, stderr=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)}
    )
    deadline = time.monotonic() + 30
    while not (tmp_path / "kept").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=20)

    assert (running.returncode, errors) == (130, "interrupted\n")
    assert not (tmp_path / "x.yaml").exists()
    assert list((tmp_path / "kept").iterdir()) == []


def test_run_warns_of_what_is_assumed(ckptsim, tiny):
    """Where the questions stand, in one line."""
    tiny.write_text(tiny.read_text() + "# UNKNOWN: How long does it run? Assumed: 3 s.\n")
    done = ckptsim(f"run {tiny} --json")

    assert done.exit_code == 0
    assert "warning: tiny.yaml: 1 value is assumed, see UNKNOWN in line 9" in done.stderr.splitlines()
    assert json.loads(done.stdout)
