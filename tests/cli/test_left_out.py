"""What a run leaves out at its beginning: found where the scenario asks for it, said, and warned of where a first upload counts."""

import json

import pytest

JOB = """\
# A job whose first checkpoint writes everything.
version: 1
job:
  source: {source: {rate: 200/s, record: 400 B}}
  sink: {input: {source: hash}, service: 1 ms, state: {size: 40 MB, backend: rocksdb, update: 10 %, lsm: {level0-files: 40}}}
checkpoint: {interval: 1 s, incremental: true, barriers: aligned}
storage: {bandwidth: 100 MB/s}
run: {duration: 9 s}
"""


@pytest.fixture
def job(tmp_path):
    (tmp_path / "job.yaml").write_text(JOB)
    return "job.yaml"


def row(done):
    return json.loads(done.stdout)["strategies"][0]


def test_the_first_full_upload_is_left_out_and_said(ckptsim, job):
    command = ("run", job, "--jobs", "1", "--out", "out", "--set")
    complete, settled = (ckptsim(*command, f"run.warmup={value}", "--json") for value in ("0 s", "auto"))

    assert row(complete)["end_to_end_max_ms"] > 400 > row(settled)["end_to_end_max_ms"]
    assert row(complete)["completed"] == row(settled)["completed"] + 1
    assert "the size of checkpoints" == json.loads(settled.stdout)["warm_up"]["aligned"]["until_settled"]
    text = ckptsim(*command, "run.warmup=auto")
    assert "Left out as warm-up: aligned 1 s, until the size of checkpoints settled." in text.stdout
    assert "writes all state" not in text.stderr


def test_a_first_upload_that_decides_is_warned_of(ckptsim, job):
    done = ckptsim("run", job, "--jobs", "1", "--out", "out")

    assert "the longest checkpoint is the first, which writes all state (aligned); run.warmup: auto would leave it out" in done.stderr
    assert "Left out" not in done.stdout
    assert "writes all state" not in ckptsim("run", job, "--jobs", "1", "--out", "out", "--set", "checkpoint.incremental=false").stderr


def test_a_sweep_says_what_its_runs_left_out(ckptsim, job, tmp_path):
    (tmp_path / "sweep.yaml").write_text(f"""\
# Which interval?
version: 1
scenario: {job}
vary: {{checkpoint.interval: [1 s, 2 s]}}
answer: {{settings: [checkpoint.interval], show: [end_to_end_p99_ms], least: end_to_end_p99_ms}}
""")
    complete = ckptsim("sweep", "sweep.yaml", "--jobs", "1", "--out", "out")
    settled = ckptsim("sweep", "sweep.yaml", "--jobs", "1", "--out", "out", "--set", "run.warmup=auto")

    assert "the first checkpoint of every run writes all state, and counts in p99; run.warmup: auto leaves it out" in complete.stderr
    assert "Left out" not in complete.stdout
    assert "writes all state" not in settled.stderr
    assert "Left out as warm-up, until checkpoints, queues and lag have settled: 1 s to 2 s, median" in settled.stdout
    assert "warmup_ms" in (tmp_path / "out/results.csv").read_text()


def test_a_warm_up_is_a_time_or_auto(ckptsim, job):
    done = ckptsim("run", job, "--out", "out", "--set", "run.warmup=soon")

    assert 3 == done.exit_code
    assert "run.warmup" in done.stderr
    assert "auto" in done.stderr
