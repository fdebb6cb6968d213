"""Storage of made jobs: its latency and bandwidth are known, so what asynchronous phases tell of them is."""

import pytest

from sim.jobs.infer.storage import (
    infer_storage,
    infer_uploads,
    inline_bytes,
)
from tests.jobs.infer.made_jobs import MadeJob, checkpoint, comment_of, drafted, subtask
from tests.jobs.infer.test_edges_counted import vertex

VERTICES = [vertex("src"), vertex("count", "src", parallelism=2), vertex("sink", "count", parallelism=2)]
LATENCY_MS, PER_MS = 30, 100_000  # 100 MB/s


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


UNALIGNED = {"unaligned_checkpoints": True}


@pytest.mark.parametrize(
    ("async_ms", "written", "config", "expected"),
    [
        (900, 100, {}, "900 ms"),
        (50, 100, {}, None),  # noise
        (900, 1_000_000, {}, None),  # it writes a file
        (900, 100, UNALIGNED, None),  # or waits for barriers
    ],
)
def test_a_long_asynchronous_part_without_a_file_is_work_of_the_operator(async_ms, written, config, expected):
    points = [checkpoint(n, sink=[subtask(i, written, async_=async_ms) for i in (0, 1)]) for n in range(2, 7)]
    job = MadeJob(VERTICES, points, dict(config))
    draft = drafted(job)
    infer_uploads(draft, job)

    assert draft.document["job"]["sink"].get("snapshot", {}).get("async") == expected
