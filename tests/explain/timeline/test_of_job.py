"""Checkpoints of a real job as a timeline: from the same statistics as their explanation."""

import json

import pytest

from sim.explain.timeline import WindowError
from sim.jobs.history.history import MissingCheckpointError
from sim.jobs.history.path import steps
from sim.jobs.history.reading import history_of
from sim.jobs.history.timeline import job_document, job_timeline, window_of
from sim.jobs.reading import read_source
from sim.model.units import MS
from tests.jobs.history.conftest import DATA


@pytest.fixture(scope="module")
def history():
    return history_of(read_source([DATA / "users-jobs" / "J4-pressed-aligned-r1.zip"]))


def drawn(history, checkpoint=None, begin_ns=0, end_ns=None, limit=100_000):
    return job_timeline(history, window_of(history, checkpoint, begin_ns, end_ns), limit)


def named(events, kind):
    return {(event["pid"], event["tid"]): event["args"]["name"] for event in events if event["name"] == kind}


def test_one_checkpoint_has_its_path_its_subtasks_and_the_ways_of_its_barriers(history):
    events = json.loads(job_document(history, drawn(history, 22)))["traceEvents"]
    tracks = named(events, "thread_name")
    slices = [
        (tracks[event["pid"], event["tid"]], event["name"], round(event["dur"] / 1e3))
        for event in events
        if event["ph"] == "X"
    ]
    path = [(kind, took) for track, kind, took in slices if track == "parts"]

    assert ("checkpoints", "checkpoint 22", 4281) in slices
    assert [step.duration_ns // MS for step in steps(history, history.checkpoint(22))] == [took for _, took in path]
    assert ("upload, count+out-writer[1]", 2273) in path
    assert ("count+out-writer[1]", "async 22", 2273) in slices
    assert ("parse[0] snapshots", "waits for alignment 22", 314) in slices
    arrows = [(event["ph"], event["ts"] / 1e6) for event in events if event["ph"] in "sf"]
    assert len(arrows) == 4, "two barriers lie on the path"
    assert sorted(arrows) == sorted([("s", 105.012), ("f", 105.655), ("s", 105.655), ("f", 106.972)])


def test_all_of_a_history_and_a_part_of_it(history):
    complete, part = drawn(history), drawn(history, begin_ns=60_000 * MS, end_ns=70_000 * MS)
    checkpoints = [
        {event["name"] for event in found.events if event["name"].startswith("checkpoint ")}
        for found in (complete, part)
    ]

    assert {f"checkpoint {point.id}" for point in history.checkpoints} == checkpoints[0]
    assert {f"checkpoint {number}" for number in (13, 14)} <= checkpoints[1] < checkpoints[0]
    assert all(60_000 <= event["ts"] / 1e3 <= 70_000 for event in part.events if "ts" in event)
    cut = drawn(history, limit=100)
    assert (0, len([event for event in complete.events if event["ph"] != "M"]) - 100) == (
        complete.left_out,
        cut.left_out,
    )
    assert 90 <= len([event for event in cut.events if event["ph"] != "M"]) <= 100


def test_what_shows_nothing(history):
    with pytest.raises(WindowError, match="nothing lies behind it"):
        window_of(history, None, 10**15, None)
    with pytest.raises(MissingCheckpointError, match="no checkpoint 99"):
        window_of(history, 99, 0, None)
