"""What a run leaves out at its beginning: found where the scenario asks for it, said, and a first upload apart."""

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


def test_a_first_upload_is_a_row_of_its_own(ckptsim, job):
    """Whether a warm-up is found or not; where state is written in full each time there is none."""
    command = f"run {job} --jobs 1 --out out --set"
    complete, settled = (ckptsim(f"{command} 'run.warmup={value}' --json") for value in ("0 s", "auto"))

    assert json.loads(settled.stdout)["warm_up"]["aligned"]["until_settled"] == "the size of checkpoints"
    for done in (complete, settled):
        assert row(done)["first_uploads"] == 1
        assert row(done)["first_upload_ms"] > 400 > row(done)["end_to_end_max_ms"]
        assert pytest.approx(row(done)["first_upload_bytes"], rel=0.01) == 40_000_000
        assert (
            "Checkpoint 1 uploads everything, 40 MB in 654 ms: it has its own row" in json.loads(done.stdout)["verdict"]
        )
    text = ckptsim(f"{command} run.warmup=auto").stdout
    assert "Left out as warm-up: aligned 1 s, until the size of checkpoints settled." in text
    (line,) = [line for line in text.splitlines() if line.startswith("aligned: first upload")]
    assert line.split()[3:10] == ["1", "654", "ms", "654", "ms", "40", "MB"]
    full = ckptsim(f"{command} checkpoint.incremental=false")
    assert "first upload" not in full.stdout
    assert "uploads everything" not in full.stdout


def test_a_warm_up_is_a_time_or_auto(ckptsim, job):
    done = ckptsim(f"run {job} --out out --set run.warmup=soon")

    assert done.exit_code == 3
    assert "run.warmup" in done.stderr
    assert "auto" in done.stderr


UPLOAD = """\
# How long does a checkpoint of 40 GB take?
version: 1
job:
  source: {source: {rate: 20/s, record: 400 B}, parallelism: 2}
  count: {input: {source: hash}, service: 1 ms, state: {size: 40 GB, backend: rocksdb, update: 10 %, value: 1 kB}, parallelism: 2}
checkpoint: {interval: 30 s, incremental: true, barriers: aligned}
storage: {bandwidth: 1 GB/s, file-latency: 10 ms}
cluster: {placement: spread}
run: {duration: 70 s}
"""


def test_an_assumption_that_decides_is_said_unless_told_not_to(ckptsim, tmp_path):
    """On the terminal, in JSON, and in the report of the folder."""
    (tmp_path / "job.yaml").write_text(UPLOAD)
    command = "run job.yaml --jobs 1 --out out"
    plain, silent, as_json = (ckptsim(f"{command} {option}") for option in ("", "--no-assumptions", "--json"))

    assert "takes more than 16 s instead of 5.9 s." in " ".join(plain.stdout.split())
    assert "Assumed" not in silent.stdout
    (sentence,) = json.loads(as_json.stdout)["deciding"]
    assert sentence.endswith("takes more than 16 s instead of 5.9 s.")
    ckptsim("report out -o page.html")
    assert "takes more than 16 s instead of 5.9 s." in (tmp_path / "page.html").read_text().replace("\u00a0", " ")
