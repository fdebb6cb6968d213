"""Storage of made jobs: its latency and bandwidth are known, so what asynchronous phases tell of them is."""

import pytest

from sim.jobs.infer.file_history import inline_bytes
from sim.jobs.infer.storage import infer_storage, infer_uploads
from sim.jobs.source.rest_answers import VertexDetails
from tests.jobs.infer.made_jobs import MadeJob, checkpoint, comment_of, drafted, subtask, vertex

VERTICES = [vertex("src"), vertex("count", "src", parallelism=2), vertex("sink", "count", parallelism=2)]
PER_MS = 100_000  # 100 MB/s


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, 20_480),
        ({"state.backend.fs.memory-threshold": "1kb"}, 1024),
        ({"state.storage.fs.memory-threshold": "2kb"}, 2048),
        ({"state.storage.fs.memory-threshold": "2kb", "state.backend.fs.memory-threshold": "1kb"}, 2048),
        ({"execution.checkpointing.data-inline-threshold": "0", "state.storage.fs.memory-threshold": "2kb"}, 0),
        ({"execution.checkpointing.data-inline-threshold": "large"}, 20_480),
    ],
)
def test_the_newest_name_of_the_threshold_counts(options, expected):
    assert expected == inline_bytes(MadeJob([], options=options))


def test_late_checkpoints_tell_the_latency_of_metadata():
    """4 s late ones each end 26 ms before the next trigger, 6 ms of which the coordinator takes."""
    points = [checkpoint(2 + k, 1526, took_ms=1500, count=[subtask(0, 100)]) for k in range(5)]
    job = MadeJob(VERTICES, points, {"interval": 1000, "max_concurrent": 1})
    draft = drafted(job)
    infer_storage(draft, job)

    assert (draft.document["storage"]["file-latency"], draft.document["storage"]["metadata-latency"]) == (
        "20 ms",
        "20 ms",
    )
    assert comment_of(draft, "storage.metadata-latency").startswith("median of 4 gaps between the last acknowledgement")


@pytest.mark.parametrize(
    ("size", "async_ms", "bandwidth", "latency"),
    [
        (
            500_000_000,
            21_520,
            "23.3 MB/s",
            "20 ms",
        ),  # a stream at a quarter of the assumed rate, not 16.5 s for each file
        (500_000, 3005, "100 MB/s", "3 s"),  # 3 s for 500 kB: a slow file
        (5_000_000, 550, "100 MB/s", "500 ms"),
    ],
)
def test_one_size_is_read_as_the_likelier_of_a_slow_stream_and_a_slow_file(size, async_ms, bandwidth, latency):
    own = [subtask(i, size, async_=async_ms) for i in (0, 1)]
    job = MadeJob(VERTICES, [checkpoint(number, count=own) for number in range(2, 7)])
    draft = drafted(job)
    infer_storage(draft, job)

    storage = draft.document["storage"]
    assert (storage["bandwidth"], storage["file-latency"]) == (bandwidth, latency)


UNALIGNED = {"unaligned_checkpoints": True}


def uploads(own, config=(), options=(), hosts="ab"):
    """What vertices do in their asynchronous phase beside writing files."""
    points = [checkpoint(number, **own(number)) for number in range(2, 7)]
    details = {
        name: VertexDetails.model_validate(
            {"subtasks": [{"subtask": i, "taskmanager-id": host} for i, host in enumerate(hosts)]}
        )
        for name in ("src", "count", "sink")
    }
    job = MadeJob(VERTICES, points, dict(config), options, details=details)
    draft = drafted(job)
    infer_uploads(draft, job)
    return {name: section.get("snapshot", {}).get("async") for name, section in draft.document["job"].items()}, draft


def test_unaligned_the_wait_for_the_last_barrier_is_no_work():
    """800 ms of 900, on its own task manager; 100 ms are left, of which all is work."""

    def own(number):
        return {"sink": [subtask(0, 100, async_=900, align=800), subtask(1, 100, async_=900, align=800)]}

    assert uploads(own, UNALIGNED)[0]["sink"] == "900 ms"
    short = {"sink": [subtask(i, 100, async_=850, align=800) for i in (0, 1)]}
    assert uploads(lambda number: short, UNALIGNED)[0]["sink"] is None
