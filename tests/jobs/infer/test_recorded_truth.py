"""Imports of recorded jobs, held to what logs of them say, and to recordings of the same jobs with other settings."""

import pytest

from benchmarks.lab.as_answers import as_answers
from sim.jobs.infer.cores import typical_checkpoints
from sim.jobs.infer.scenario import infer_scenario
from sim.jobs.source.rest_job import RestJob
from sim.jobs.source.saved import read_saved
from sim.model.units import parse_byte_rate, parse_duration
from sim.results.summary import summarize
from tests.places import DATA
from tests.scenarios import run_scenario


def saved(name):
    return read_saved(DATA / f"{name}.zip")


def run_of(name, duration, *overrides):
    text = infer_scenario(saved(name)).text
    return run_scenario(text, overrides=[f"run.duration={duration}", *overrides], check=False)


# ---- A full queue of requests that wait for answers beside the task thread, under other barriers.


def test_other_barriers_are_predicted_from_a_full_queue():
    """Unaligned: requests under way are a part of the snapshot, and records in front of them are in flight."""
    points = typical_checkpoints(RestJob(saved("async-io/A2-full-unaligned")))
    took = sorted(point.end_to_end_duration for point in points)
    result = run_of("async-io/A2-full-aligned", "40 s", "checkpoint.barriers=unaligned")
    summary = summarize([result.tables], result.scenario.job.edges)

    assert summary.end_to_end_p50_ms == pytest.approx(took[len(took) // 2], rel=0.15)


# ---- Other state backends, held to the same job on those.


def test_pauses_of_rocksdb_do_not_stay_on_the_heap():
    """Its sync takes 40 ms in the median and 98 ms at times; that of the heap none."""
    stays, goes = (
        run_of("backends/S-rocksdb", "2 min", f'job."profile+out-writer".state.backend={backend}')
        .subtasks.set_index("vertex")
        .loc["profile+out-writer"]
        for backend in ("rocksdb", "hashmap")
    )

    assert pytest.approx(stays["sync_duration"].median(), rel=0.15) == 40
    assert goes["sync_duration"].max() == 0
    assert pytest.approx(goes["async_duration"].median(), rel=0.4) == 22


# ---- What asynchronous phases tell where operators upload themselves, and where channel state is written beside state.


def document(recording):
    return infer_scenario(as_answers(DATA / f"{recording}.json.gz")).document


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


# ---- How fast state is read into the heap: bytes, and seconds of two subtasks (`tests/data/heap-restores/README.md`).

LOGGED = {
    "values-100": (41.73e6, 1.084, 0.885),
    "values-1000": (96.79e6, 0.396, 0.481),
    "values-10000": (226.8e6, 0.679, 0.503),
}


@pytest.mark.parametrize("name", LOGGED)
def test_a_restore_in_the_history_tells_the_rate(name):
    size, *took_s = LOGGED[name]
    inference = infer_scenario(saved(f"heap-restores/{name}"))
    rate = parse_byte_rate(inference.document["checkpoint"]["restore-rate"])

    assert rate == pytest.approx(size / (sum(took_s) / 2), rel=0.15)
    assert "restored from checkpoint" in " ".join(inference.comments["checkpoint.restore-rate"].split())
    assert not any("into the heap" in question for question in inference.unknown)


def test_what_a_rescaled_job_read_is_not_known():
    """Its first restore had four subtasks: the sizes of two are no sizes of what each of them read."""
    snapshot = saved("heap-restores/values-100")
    path = next(path for path in snapshot.answers if "/details/10/subtasks/20ba6b65" in path)
    snapshot.answers[path]["subtasks"] += snapshot.answers[path]["subtasks"]

    assert "UNKNOWN" in infer_scenario(snapshot).comments["checkpoint.restore-rate"]
