"""Storage of made jobs: its latency and bandwidth are known, so what asynchronous phases tell of them is."""

import pytest

from sim.jobs.infer.file_history import inline_bytes
from sim.jobs.infer.storage import infer_in_flight, infer_storage, infer_uploads
from sim.jobs.source.rest_answers import VertexDetails
from tests.jobs.infer.made_jobs import MadeJob, checkpoint, comment_of, drafted, flow, flowed, own, subtask, vertex

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


UNALIGNED = {"unaligned_checkpoints": True}
TIMEOUT = UNALIGNED | {"aligned_checkpoint_timeout": 500}


def test_a_file_of_a_vertex_with_readers_is_closed_after_its_last_barrier():
    """40 ms, of which 20 are a wait for barriers: 1 MB with 10 ms of latency.  Where all but 5 ms are a wait, they tell nothing."""
    subtasks = [subtask(0, 1_000_000, align=20, async_=40), subtask(1, 1_000_000, align=35, async_=40)]
    job = MadeJob(VERTICES, [checkpoint(k, count=subtasks, sink=[subtask()]) for k in range(2, 7)], UNALIGNED)
    draft = drafted(job)
    infer_storage(draft, job)

    assert draft.document["storage"]["file-latency"] == "10 ms"
    assert "median of 5 asynchronous phases" in comment_of(draft, "storage.file-latency")


@pytest.mark.parametrize(
    ("config", "persisted", "stage", "wake_up", "is_assumed"),
    [
        ({}, 0, None, "4 ms", True),  # from the last barrier of the sources, 40 ms after the trigger, to the last one
        (TIMEOUT, 0, None, "4 ms", True),
        (UNALIGNED, 9, None, "7 ms", False),  # from the first one, 10 ms after the trigger, to the first one
        (TIMEOUT, 9, None, "7 ms", False),
        ({}, 0, "local", "12 ms", True),  # rows that a local window flushes come before its barrier
        (UNALIGNED, 9, "local", None, False),
    ],
)
def test_what_overtaking_takes_is_assumed_until_most_checkpoints_show_it(config, persisted, stage, wake_up, is_assumed):
    rows = [vertex("src", parallelism=2), vertex("map", "src", parallelism=1)]
    sources = [subtask(0, start=10), subtask(1, start=40)]
    points = [
        checkpoint(k, src=sources, map=[subtask(0, start=17, align=27, persisted=persisted)]) for k in range(2, 8)
    ]
    job = MadeJob(rows, points, config, flows={"src": flow(), "map": flowed(own(idle=1.0))})
    draft = drafted(job)
    draft.document["job"]["src"] = {"window": {"stage": stage}} if stage else {}
    infer_in_flight(draft, job)

    assert draft.document.get("cluster", {}).get("barrier-wake-up") == wake_up
    assert ("in-flight-bandwidth" in draft.document.get("storage", {})) == is_assumed
