"""What users asked about their jobs, as far as one key of Flink decides it: the whole command, on jobs that are simulated."""

import pytest

from sim.app.verbs.advise import advise
from tests.app.cli.conftest import short_trials  # noqa: F401 - a fixture of these tests, too
from tests.places import DATA

REPORTS = DATA / "reports"


def advised(folder, file, *changes, **options):
    """The data of an advice, and its text."""
    given = {"budget": "60 s", "within": "10 min", "replications": 1} | options
    found = advise(file, changes=changes, folder=folder / "out", jobs=1, **given)
    return found.facts, repr(found)


@pytest.mark.usefixtures("short_trials")
def test_a_min_pause_above_all_intervals_that_would_help(tmp_path):
    """paimon#4969: interval 15 min, min-pause 2 min.  The pause goes down with the interval; nobody is told to buy machines."""
    data, text = advised(tmp_path, REPORTS / "br21" / "scenario.yaml", recovery="2 min", failure="task")
    keys = {change["key"]: change for change in data["difference"]}

    assert data["advised"]["interval"] in ("5 s", "10 s", "15 s", "30 s", "2 s", "60 s", "1 min")
    assert {"execution.checkpointing.interval", "execution.checkpointing.min-pause"} <= set(keys)
    assert keys["execution.checkpointing.min-pause"]["today"] == "2 min"
    rollback = data["patches"]["rollback.yaml"]
    assert 'execution.checkpointing.min-pause: "2 min"' in rollback
    assert ", with min-pause " in text.splitlines()[0]
    assert "The current min-pause of 2 min prevents more frequent checkpoints" in text
    assert "times as fast" not in text
    assert not data.get("enough")
    assert "checkpoint.min-pause" in (tmp_path / "out" / "sweep.yaml").read_text()


JOB = """\
# A job of which one key binds.
version: 1
job:
  src: {source: {rate: 100/s, record: 400 B}}
  count: {input: {src: hash}, service: 8 ms, state: {size: 100 kB}, connector: at-least-once}
checkpoint: {interval: 2 s}
storage: {bandwidth: 100 MB/s}
restart: {strategy: fixed-delay, delay: 100 ms}
run: {duration: 3 s}
"""
BINDING = {
    "min-pause": (("checkpoint.min-pause=30 s",), {"recovery": "20 s"}, "execution.checkpointing.min-pause"),
    "timeout": (
        (
            "job.count.state.size=3 MB",
            "storage.bandwidth=1 MB/s",
            "checkpoint.timeout=1 s",
            "checkpoint.tolerable-failed=1000",
        ),
        {"p99": "20 s"},
        "execution.checkpointing.timeout",
    ),
    "local recovery": (
        ("job.count.state.size=60 MB", "storage.read-bandwidth=10 MB/s", "job.count.service=1 ms"),
        {"recovery": "4 s"},
        "execution.state-recovery.from-local",
    ),
    "buffers": (
        (
            "cluster.profile=1.20",
            "cluster.network.segment-size=16 KiB",
            "cluster.network.buffers-per-channel=30",
            "job.src.source.rate=unlimited",
            "job.count.connector=iceberg-v1",
            "job.count.service=5 ms",
        ),
        {"p99": "1.2 s"},
        (
            "taskmanager.memory.segment-size",
            "taskmanager.network.memory.buffer-debloat.enabled",
            "taskmanager.network.memory.buffers-per-channel",
        ),
    ),
}


@pytest.mark.usefixtures("short_trials")
@pytest.mark.parametrize("name", BINDING)
def test_the_key_that_binds_is_advised(tmp_path, name):
    """A job in which that key is what prevents the limit, simulated in short trials."""
    changes, limits, key = BINDING[name]
    (tmp_path / "job.yaml").write_text(JOB)
    data, text = advised(tmp_path, tmp_path / "job.yaml", *changes, failure="task", **limits)

    assert data["advised"] is not None, text
    assert ({key} if isinstance(key, str) else set(key)) & {change["key"] for change in data["difference"]}, text
    assert "times as fast" not in text


@pytest.mark.usefixtures("short_trials")
def test_a_state_that_nobody_asked_about_is_never_taken_to_stand_still(tmp_path):
    """Full snapshots say nothing of rewritten entries: increments are the most they can be, and the answer asks."""
    (tmp_path / "job.yaml").write_text(
        JOB.replace("size: 100 kB", "size: 200 MB").replace("interval: 2 s", "interval: 20 s")
    )
    data, text = advised(tmp_path, tmp_path / "job.yaml", p99="1 s", failure="task")

    assert data["advised"] is not None, text
    assert data["advised"]["written_per_hour"] > 10e6  # 100 records per second rewrite 1 kB each, of which some twice
    assert "UNKNOWN: how often do records rewrite state (update)? Assumed: all do" in text
    assert "; up to " in text
    assert "UNKNOWN: Which share of the records that 'count' reads rewrites an entry of its state" in text


@pytest.mark.usefixtures("short_trials")
@pytest.mark.parametrize(
    ("change", "falls_behind"),
    [
        ("job.count.service=8 ms", ""),
        ("job.count.service=14 ms", "'count' is fully busy."),
        (
            "job.count.async-io={latency: 100 ms, capacity: 7}",
            "'count' is fully busy (async-io.capacity 7 allows 70/s).",
        ),
    ],
)
def test_a_job_that_falls_behind_whatever_its_checkpoints_are(tmp_path, change, falls_behind):
    """Limits on checkpoints can be kept by a job that never catches up: the verdict says so."""
    (tmp_path / "job.yaml").write_text(JOB)
    _, text = advised(tmp_path, tmp_path / "job.yaml", "run.duration=20 s", change, p99="2 min", budget="20 s")
    verdict = text.split("\n\n")[0]

    assert ("falls behind with " in verdict) == bool(falls_behind)
    assert verdict.endswith(falls_behind)
