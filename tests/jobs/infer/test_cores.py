"""Cores and heaps of made hosts: how many threads share them, and how long entries take to be read, is known."""

import pytest

from sim.jobs.infer.cores import infer_cores
from sim.jobs.infer.scenario import infer_scenario
from sim.jobs.source.rest_answers import RestSnapshot, TaskManagerInfo, VertexDetails
from sim.jobs.source.saved import read_saved
from sim.model.units import parse_duration
from tests.jobs.infer.made_jobs import MadeJob, drafted, flowed, own, vertex
from tests.places import USERS


def on_cores(*shares, cores=2, managers=None, used=None):
    """A vertex whose subtasks are busy for these shares, one per task manager unless told otherwise."""
    places = managers or [str(i) for i in range(len(shares))]
    row = vertex("v", "src", parallelism=len(shares))
    details = VertexDetails.model_validate(
        {"subtasks": [{"subtask": i, "taskmanager-id": place} for i, place in enumerate(places)]}
    )
    infos = tuple(
        TaskManagerInfo.model_validate(
            {"id": place, "path": "pekko.tcp://flink@10.0.0.0:1/x", "hardware": {"cpuCores": cores}}
        )
        for place in dict.fromkeys(places)
    )
    flows = {"v": flowed(*(own(50, 50, share) for share in shares))}
    job = MadeJob([row], details={"v": details}, task_managers=infos, cores_used=used or {}, flows=flows)
    draft = drafted(job)
    draft.document["job"]["v"] = {
        "service": "3 ms",
        "window": {"fire": "6 ms"},
        "input": {"src": {"service": "9 ms", "ship": "hash"}},
    }
    infer_cores(draft, job)
    return draft


def test_threads_that_block_use_a_core_in_part_of_their_time():
    draft = on_cores(1.0, 1.0, cores=1, managers=["a", "a"], used={"a": 0.6})

    assert draft.document["cluster"]["on-core"] == "30 %"


@pytest.mark.parametrize(
    ("used", "services", "service"),
    [(0.6, "side-by-side", "3 ms"), (0.8, "idle-core", "1.2 ms"), (None, "idle-core", "1.5 ms")],
)
def test_threads_that_use_few_cores_block(used, services, service):
    """Less than seven tenths of the core that work would use.  Else a record takes what it uses of a core."""
    draft = on_cores(1.0, 1.0, cores=1, managers=["a", "a"], used={} if used is None else {"a": used})

    assert services == draft.document["cluster"]["services"]
    assert draft.document["job"]["v"]["service"] == service


# ---- The cores of a real job's hosts: how many there are, and what its records take on idle ones.


def with_processor_time(name, cores):
    """The scenario where each task manager uses so many cores; its metric is refreshed every 10 s."""
    snapshot = read_saved(USERS / f"{name}.zip")
    managers = [row["id"] for row in snapshot.answers["/taskmanagers"]["taskmanagers"]]
    begun = min(snapshot.samples)
    samples = {
        now: {
            **sample,
            **{
                f"/taskmanagers/{manager}/metrics": processor_time((now - begun) // 10_000, cores)
                for manager in managers
            },
        }
        for now, sample in snapshot.samples.items()
    }
    return infer_scenario(RestSnapshot(snapshot.source, snapshot.job, snapshot.answers, samples))


def processor_time(changes, cores):
    return [{"id": "Status.JVM.CPU.Time", "value": str(7e9 + changes * 10e9 * cores)}]


def test_threads_that_are_busy_without_processor_time_block():
    """7.7 threads of two processes that use 0.6 cores: services are as measured, and no core is scarce."""
    blocked, working = with_processor_time("R7-cores-aligned", 0.3), with_processor_time("R7-cores-aligned", 0.95)
    laws = [found.document["job"]["stage1"]["service"] for found in (working, blocked)]
    service = [parse_duration(law["lognormal"]["mean"] if isinstance(law, dict) else law) for law in laws]

    assert blocked.document["cluster"]["services"] == "side-by-side"
    assert "use 0.6 cores (Status.JVM.CPU.Time): tasks block" in " ".join(blocked.comments["cluster.services"].split())
    assert blocked.warnings == ()
    assert 3.5 < service[1] / service[0] < 4.2


@pytest.mark.parametrize("value", ["-1", "NaN", "", None])
def test_processor_time_that_a_platform_does_not_tell_proves_nothing(value, monkeypatch):
    monkeypatch.setitem(globals(), "processor_time", lambda *_: [{"id": "Status.JVM.CPU.Time", "value": value}])

    assert (
        "UNKNOWN: Do tasks block or sleep?" in with_processor_time("R7-cores-aligned", 0.3).comments["cluster.services"]
    )
