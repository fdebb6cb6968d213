"""Cores and heaps of made hosts: how many threads share them, and how long entries take to be read, is known."""

import pytest

from sim.jobs.infer.cores import infer_cores
from sim.jobs.source.rest_answers import TaskManagerInfo, VertexDetails
from tests.jobs.infer.made_jobs import MadeJob, drafted, flowed, own, vertex


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
