"""Cores and heaps of made hosts: how many threads share them, and how long entries take to be read, is known."""

import math

import pytest

from sim.jobs.infer.cores import _services, infer_cores
from sim.jobs.infer.heap import infer_heap_restore, rate_of
from sim.jobs.source.rest_answers import TaskManagerInfo, VertexDetails
from sim.model.units import parse_byte_rate
from tests.jobs.infer.made_jobs import MB, MadeJob, comment_of, drafted
from tests.jobs.infer.test_edges_counted import flow, vertex
from tests.jobs.infer.test_made_work import flowed, own


def on_cores(*shares, cores=2, managers=None, hosts=1, used=None):
    """A vertex whose subtasks are busy for these shares, one per task manager unless told otherwise."""
    places = managers or [str(i) for i in range(len(shares))]
    row = vertex("v", "src", parallelism=len(shares))
    details = VertexDetails.model_validate(
        {"subtasks": [{"subtask": i, "taskmanager-id": place} for i, place in enumerate(places)]}
    )
    infos = tuple(
        TaskManagerInfo.model_validate(
            {"id": place, "path": f"pekko.tcp://flink@10.0.0.{i % hosts}:1/x", "hardware": {"cpuCores": cores}}
        )
        for i, place in enumerate(dict.fromkeys(places))
    )
    job = MadeJob([row], details={"v": details}, task_managers=infos, cores_used=used or {})
    draft = drafted(job)
    draft.document["job"]["v"] = {
        "service": "3 ms",
        "window": {"fire": "6 ms"},
        "input": {"src": {"service": "9 ms", "ship": "hash"}},
    }
    infer_cores(draft, job, {"v": flowed(*(own(50, 50, share) for share in shares))})
    return draft


def test_threads_that_wait_for_cores_have_shorter_services():
    """Four busy threads on one core take four times as long as on idle ones."""
    draft = on_cores(1.0, 1.0, 1.0, 1.0, cores=1)
    found = draft.document["job"]["v"]

    assert draft.document["cluster"] == {"cores": 1, "hosts": 1, "services": "idle-core"}
    assert (found["service"], found["window"]["fire"], found["input"]["src"]["service"]) == (
        "750 us",
        "1.5 ms",
        "2.25 ms",
    )
    unless = " (unless tasks block or sleep: no sample of their processor time tells)"
    assert [
        f"4 threads of tasks are busy at once on 1 cores, so records take 4 times as long as on idle ones{unless}"
    ] == draft.scarce
    assert comment_of(draft, "job.v.service") == "divided by 4: 4 threads of tasks are busy at once on 1 cores"


def test_cores_that_are_free_change_no_service():
    draft = on_cores(0.2, 0.1, cores=8, managers=["a", "a"])

    assert (
        draft.document["cluster"],
        draft.document["job"]["v"]["service"],
        draft.scarce,
    ) == ({"cores": 8, "services": "idle-core"}, "3 ms", [])
    assert comment_of(draft, "cluster.cores").startswith(
        "hardware.cpuCores in /taskmanagers; 0.3 threads of tasks are busy at once"
    )


@pytest.mark.parametrize(("used", "services"), [(0.6, "side-by-side"), (0.8, "idle-core"), (None, "idle-core")])
def test_threads_that_use_few_cores_block(used, services):
    """Less than seven tenths of the core that work would use."""
    draft = on_cores(1.0, 1.0, cores=1, managers=["a", "a"], used={} if used is None else {"a": used})

    assert services == draft.document["cluster"]["services"]
    assert ("3 ms" if services == "side-by-side" else "1.5 ms") == draft.document["job"]["v"]["service"]


def test_the_busiest_host_counts():
    draft = on_cores(1.0, 1.0, 0.1, cores=1, managers=["a", "a", "b"], hosts=2)

    assert draft.document["cluster"] == {"cores": 1, "services": "idle-core"}
    assert "2 threads of tasks are busy at once on the busiest host, so records take 2 times as long" in comment_of(
        draft, "cluster.cores"
    )


def test_times_of_records_are_services():
    section = {
        "service": "1 ms",
        "window": {"fire": "2 ms", "size": "3 s"},
        "input": {"a": {"service": "4 ms"}, "b": "hash"},
        "snapshot": {"service": "5 ms"},
    }

    assert [path for path, _, _ in _services(section)] == ["service", "window.fire", "input.a.service"]


def restored(entry, size, parallelism=2, read=None):
    """The rate at which a vertex of so much state on the heap is read."""
    row = vertex("v", "src", parallelism=parallelism)
    job = MadeJob([row])
    draft = drafted(job)
    draft.document["job"]["v"] = {"state": {"size": size}}
    infer_heap_restore(draft, job, {"v": flow(50.0 if read is None else read, size=entry)})
    return draft


def test_the_heap_is_filled_by_entries_and_bytes():
    """2.8 us and 1.45 us for an entry of 1 kB: 235 MB/s.  What takes less than a tenth of a second does not matter."""
    assert pytest.approx(rate_of(1000)) == 1000 / (2800 + 1000 / 0.69) * 1e9
    draft = restored(1000.0, "100 MB")

    assert pytest.approx(parse_byte_rate(draft.document["checkpoint"]["restore-rate"]), rel=0.01) == 235 * MB
    assert "entries of 1 kB, as the records, 2.8 us each and 690 MB/s." in comment_of(draft, "checkpoint.restore-rate")
    assert "checkpoint" not in restored(1000.0, "40 MB").document
    assert "checkpoint" in restored(1000.0, "48 MB").document
    assert "entries of 1 kB, 2.8 us" in comment_of(restored(math.nan, "100 MB"), "checkpoint.restore-rate")
