"""What a month of checkpoints costs in an object store, by hand and by `run`, `diff` and `advise`."""

import json

import pytest

from tests.app.cli.conftest import short_trials  # noqa: F401 - a fixture of these tests, too

JOB = """\
# What does a month of checkpoints cost?
version: 1
job:
  src: {source: {rate: 200/s, record: 400 B}, parallelism: 2}
  map: {input: {src: hash}, service: 1 ms, state: {size: 16 MB}, parallelism: 2}
checkpoint: {interval: 10 s}
storage: {object-store: {client: presto, latency: 10 ms, bandwidth: 80 MB/s}}
run: {duration: 65 s, warmup: 5 s}
"""
PUT, LIST, GET = 360 * (2 * 4 + 1), 360 * 3, 360 * (3 + 3)
"""An hour has 360 checkpoints.  Each writes two files of 8 MB: begin, two parts of at most 5 MiB, end; and one file of metadata.

Presto's client lists once and asks once before each of the three files, and asks once before each deletion.
"""


@pytest.fixture
def job(tmp_path):
    (tmp_path / "s3.yaml").write_text(JOB)
    return "s3.yaml"


def use(ckptsim, job, others=""):
    done = ckptsim(f"run {job} --jobs 1 --no-assumptions --json {others}")
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)["storage_use"]["aligned"]


def test_requests_are_those_counted_by_hand(ckptsim, job):
    """Six checkpoints in a minute after the warm-up; the store holds one checkpoint, and for moments two."""
    found = use(ckptsim, job)

    assert (found["put_requests_per_hour"], found["list_requests_per_hour"], found["get_requests_per_hour"]) == (
        PUT,
        LIST,
        GET,
    )
    assert 16e6 <= found["stored_bytes"] < 18e6
    assert pytest.approx(360 * 16e6, rel=0.01) == found["moved_bytes_per_hour"]


def test_a_month_costs_what_the_list_says(ckptsim, job):
    """730 hours of requests, and stored gigabytes."""
    found = use(ckptsim, job)
    by_hand = 730 * (PUT * 0.005 + LIST * 0.005 + GET * 0.0004) / 1000 + found["stored_bytes"] / 1e9 * 0.023

    assert pytest.approx(by_hand) == found["storage_cost_per_month"]
    assert 16.3 < by_hand < 16.5


def test_a_price_list_of_the_user_holds(ckptsim, job, tmp_path):
    """What it leaves out is that of S3 Standard; its source and currency are said."""
    (tmp_path / "prices.yaml").write_text("source: our contract\ncurrency: EUR\nput-per-1000: 1\nmoved-per-gb: 0.5\n")
    found = use(ckptsim, job, "--prices prices.yaml")
    by_hand = 730 * (PUT * 1 + LIST * 0.005 + GET * 0.0004) / 1000 + 730 * found["moved_bytes_per_hour"] / 1e9 * 0.5

    assert pytest.approx(by_hand + found["stored_bytes"] / 1e9 * 0.023) == found["storage_cost_per_month"]
    text = ckptsim(f"run {job} --jobs 1 --no-assumptions --prices prices.yaml").stdout
    assert "prices: our contract" in text
    assert " EUR" in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("currency: EUR\n", "source: required key is missing"),
        ("source: x\nput-per-1000: dear\n", "put-per-1000"),
        ("source: x\ndelete-per-1000: 1\n", "deleting is free"),
        ("- 1\n", "is not a price list"),
    ],
)
def test_a_wrong_list_is_one_message(ckptsim, job, tmp_path, text, message):
    (tmp_path / "prices.yaml").write_text(text)
    done = ckptsim(f"run {job} --prices prices.yaml")

    assert done.exit_code == 3
    assert message in done.stderr


def test_other_storage_has_no_cost(ckptsim, job, tmp_path):
    """Flat storage has no requests."""
    (tmp_path / "flat.yaml").write_text(
        JOB.replace("{object-store: {client: presto, latency: 10 ms, bandwidth: 80 MB/s}}", "{}")
    )
    found = json.loads(ckptsim("run flat.yaml --jobs 1 --no-assumptions --json").stdout)

    assert found["storage_use"] == {}


def test_diff_says_what_an_interval_costs(ckptsim, job):
    """Twice as many checkpoints cost twice as much."""
    done = ckptsim(f"diff {job} {job} --set-b 'checkpoint.interval=5 s' --replications 1 --jobs 1 --json")
    cost = next(own for own in json.loads(done.stdout)["quantities"] if own["quantity"] == "storage_cost_per_month")

    assert pytest.approx(2 * cost["before"], rel=0.01) == cost["after"]


@pytest.mark.usefixtures("short_trials")
def test_advice_says_what_a_month_costs(ckptsim, job):
    """Beside the p99 and the recovery of each setting."""
    done = ckptsim(f"advise {job} --p99 '10 s' --replications 1 --jobs 1 --budget '10 s' --json")
    found = json.loads(done.stdout)

    assert done.exit_code == 0, done.stderr
    assert all(own["storage_cost"] > 0 for own in found["settings"])


@pytest.mark.parametrize(
    ("event", "at"),
    [("actions: [{savepoint: canonical, at: %s}]", "95 s"), ("faults: [{kill: 'map[0]', at: %s}]", "97 s")],
)
def test_what_happens_once_changes_no_rate(ckptsim, tmp_path, event, at):
    """A savepoint of half a minute, behind which three overdue checkpoints follow; a failure, which cuts an interval short."""
    steady = JOB.replace("duration: 65 s", "duration: 185 s")
    slow = steady.replace("checkpoint: {", "checkpoint: {savepoint-rate: 250 kB/s, ")
    (tmp_path / "once.yaml").write_text(f"{slow}{event % at}\n")
    found = use(ckptsim, "once.yaml")

    assert pytest.approx(PUT, rel=0.02) == found["put_requests_per_hour"]
    assert pytest.approx(360 * 16e6, rel=0.02) == found["moved_bytes_per_hour"]
