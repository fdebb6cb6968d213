"""The start of a job that a short history shows."""

import re

import pytest

from sim.jobs.infer.heap import infer_cold_start
from sim.jobs.infer.scenario import infer_scenario
from sim.jobs.source.saved import read_saved
from tests.jobs.infer.made_jobs import MadeJob, checkpoint, drafted, flow, flowed, own, vertex
from tests.places import USERS


def later_checkpoints_move(number):
    """By 3 min: the history is long."""
    return {"id": number, "by_ms": 180_000 * (number > 1)}


def nothing_moves(number):
    return {"id": number, "by_ms": 0}


def first_has_another_number(number):
    """The history does not begin with the job."""
    return {"id": 101 if number == 1 else number, "by_ms": 0}


@pytest.mark.parametrize(
    ("change", "is_cold"), [(nothing_moves, True), (later_checkpoints_move, False), (first_has_another_number, False)]
)
def test_a_long_history_or_one_that_lacks_the_start_shows_a_job_that_is_warm(change, is_cold):
    snapshot = read_saved(USERS / "J2-count-unaligned.zip")
    for path, answer in snapshot.answers.items():
        points = (
            answer["history"] if path.endswith("/checkpoints") else [answer] if re.search(r"details/\d+$", path) else []
        )
        for point in points:
            changed = change(point["id"])
            point["id"], point["trigger_timestamp"] = changed["id"], point["trigger_timestamp"] + changed["by_ms"]
    document = infer_scenario(snapshot).document

    assert is_cold == ("cold-start" in document["run"])
    assert is_cold == ("warm-up" in document.get("restart", {}))


@pytest.mark.parametrize(
    ("second_ms", "unaligned", "on_core", "factor"),
    [
        (160, False, "100 %", "1.11"),
        (600, False, "100 %", "2"),
        (160, True, "100 %", "2"),
        (600, False, "8.84 %", "1.09"),
    ],
)
def test_code_is_no_slower_at_first_than_the_second_checkpoint_shows(second_ms, unaligned, on_core, factor):
    """Records of 1 s waited and were gone 2 s later, at a load of 60 %.  Barriers that overtake meet no queue; sleeps are no longer."""
    points = [checkpoint(1, 3000, took_ms=1100), checkpoint(2, 2500, took_ms=second_ms)]
    config = {"interval": 2000, "unaligned_checkpoints": unaligned}
    flows = {"src": flow(), "map": flowed(own(busy=0.6))}
    job = MadeJob([vertex("src"), vertex("map", "src")], points, config, flows=flows)
    job.job.start_time = 1000
    draft = drafted(job)
    draft.document["cluster"] = {"profile": "2.x", "on-core": on_core}
    infer_cold_start(draft, job)

    assert draft.document["restart"]["warm-up-factor"] == factor
