"""What asynchronous phases tell where operators upload themselves, and where channel state is written beside state."""

from pathlib import Path

import pytest

from benchmarks.lab.as_answers import as_answers
from sim.jobs.infer.scenario import infer_scenario
from sim.model.units import parse_byte_rate, parse_duration

DATA = Path(__file__).parents[2] / "data"


def document(recording):
    return infer_scenario(as_answers(DATA / f"{recording}.json.gz")).document


def test_operators_that_upload_behind_the_barrier():
    """500 ms each in the recording; state is too small for a file."""
    job = document("recordings/chain3-none-asyncflush500-aligned")["job"]

    assert [
        pytest.approx(parse_duration(job[vertex]["snapshot"]["async"]) / 10**6, abs=10) for vertex in ("c1", "c2", "c3")
    ] == [520, 520, 520]


def test_operators_that_upload_beside_channel_state():
    """500 ms each in the recording, in whose unaligned snapshots each vertex also has a file of its own for data in flight."""
    inferred = document("what-ifs/chain3-severe-asyncflush500-unaligned")

    assert [
        pytest.approx(parse_duration(inferred["job"][vertex]["snapshot"]["async"]) / 10**6, abs=10)
        for vertex in ("c1", "c2", "c3")
    ] == [525, 525, 525]
    # of the source alone
    assert pytest.approx(parse_duration(inferred["storage"]["file-latency"]) / 10**6, abs=15) == 20


def test_slow_files_of_channel_state_are_no_work():
    """150 ms and 300 ms to close a file, of all vertices alike."""
    for recording in ("held-out/slowfs-unaligned-chain", "what-ifs/p2-severe-unaligned-slowdfs"):
        assert not any("async" in vertex.get("snapshot", {}) for vertex in document(recording)["job"].values())


def test_a_shared_file_is_slow_for_all_that_share_it(monkeypatch):
    """A file of all subtasks is written for 150 ms and more.  Those that have little in flight do not work meanwhile."""
    monkeypatch.setattr("benchmarks.lab.as_answers._places", in_one_task_manager)

    assert not any(
        "async" in vertex.get("snapshot", {}) for vertex in document("held-out/slowfs-unaligned-chain")["job"].values()
    )


def in_one_task_manager(recorded, name, vertex):
    parallelism = next(node["parallelism"] for node in recorded["config"]["nodes"] if node["id"] == name)
    return {"id": vertex, "subtasks": [{"subtask": k, "taskmanager-id": "one"} for k in range(parallelism)]}


def test_storage_is_told_by_channel_state_where_nothing_else_is_written():
    """3 MB/s and 150 ms to close a file in the recording, whose last vertex writes no state."""
    storage = document("held-out/slowfs-unaligned-chain")["storage"]

    assert pytest.approx(parse_byte_rate(storage["bandwidth"]), rel=0.1) == 3_000_000
    assert pytest.approx(parse_duration(storage["file-latency"]) / 10**6, rel=0.1) == 150
