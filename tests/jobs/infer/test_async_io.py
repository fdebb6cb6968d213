"""Requests that wait for answers beside the task thread, told from what snapshots hold."""

import copy
from functools import cache

import pytest

from sim.jobs.infer.cores import usual_checkpoints
from sim.jobs.infer.scenario import infer_scenario
from sim.jobs.source.rest_answers import RestSnapshot
from sim.jobs.source.rest_job import RestJob
from sim.jobs.source.saved import read_saved
from sim.model.schema.study import loads
from sim.model.units import parse_duration
from sim.results.summary import summarize
from sim.runtime.simulate import simulate
from tests.places import DATA, USERS


@cache
def inferred(name):
    return infer_scenario(read_saved(DATA / "async-io" / f"{name}.zip"))


def run_of(name, *overrides):
    inference = inferred(name)
    text = inference.text
    result = simulate(loads(text, overrides=["run.duration=40 s", *overrides]).scenarios[0], check=False)
    return summarize([result.tables], result.scenario.job.edges)


def test_a_queue_with_room_tells_how_long_answers_take():
    """A thread that is idle shows its work; the capacity is asked for.  Answers leave in order, so each waits for those before it."""
    found = inferred("A1-calm-aligned")
    lookup = found.document["job"]["lookup"]

    assert 40_000_000 < parse_duration(lookup["async-io"]["latency"]) < 80_000_000
    assert lookup["async-io"]["capacity"] == 100
    assert parse_duration(lookup["service"]) < 50_000
    assert "lookup: How many requests may be pending in a subtask (capacity)?" in found.unknown


def test_other_barriers_are_predicted_from_a_full_queue():
    """Unaligned: requests under way are a part of the snapshot, and records in front of them are in flight."""
    took = sorted(
        point.end_to_end_duration
        for point in usual_checkpoints(RestJob(read_saved(DATA / "async-io" / "A2-full-unaligned.zip")))
    )

    assert run_of("A2-full-aligned", "checkpoint.barriers=unaligned").end_to_end_p50_ms == pytest.approx(
        took[len(took) // 2], rel=0.15
    )


def test_an_operator_that_says_async_is_asked_for_its_latency():
    """Its snapshots hold no request, but its name says that it makes some."""
    snapshot = read_saved(USERS / "J2-count-aligned.zip")
    answers = copy.deepcopy(dict(snapshot.answers))
    for vertex in answers[f"/jobs/{snapshot.job}"]["vertices"]:
        vertex["name"] = vertex["name"].replace("Parse", "async wait operator")
    found = infer_scenario(RestSnapshot(snapshot.source, snapshot.job, answers, snapshot.samples))

    assert found.document["job"]["async-wait-operator"]["async-io"] == {"latency": "50 ms", "capacity": 100}
    assert "async-wait-operator: How long does a request take until its response?" in found.unknown
