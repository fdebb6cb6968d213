"""What an import says of unaligned checkpoints that its job has never taken, and of the start that a short history shows."""

import re

import pytest

from sim.jobs.infer.draft import Draft
from sim.jobs.infer.heap import infer_cold_start
from sim.jobs.infer.scenario import infer_scenario
from sim.jobs.source.rest_job import RestJob
from sim.jobs.source.saved import read_saved
from tests.jobs.infer.made_jobs import MadeJob, checkpoint, drafted, flow, flowed, own, vertex
from tests.places import USERS


def later_checkpoints_move(number):
    """By 3 min: the history is long."""
    return {"id": number, "by_ms": 180_000 * (number > 1)}


def first_has_another_number(number):
    """The history does not begin with the job."""
    return {"id": 101 if number == 1 else number, "by_ms": 0}


@pytest.mark.parametrize("change", [later_checkpoints_move, first_has_another_number])
def test_a_long_history_or_one_that_lacks_the_start_shows_a_job_that_is_warm(change):
    snapshot = read_saved(USERS / "J2-count-unaligned.zip")
    for path, answer in snapshot.answers.items():
        points = (
            answer["history"] if path.endswith("/checkpoints") else [answer] if re.search(r"details/\d+$", path) else []
        )
        for point in points:
            changed = change(point["id"])
            point["id"], point["trigger_timestamp"] = changed["id"], point["trigger_timestamp"] + changed["by_ms"]
    document = infer_scenario(snapshot).document

    assert "cold-start" not in document["run"]
    assert "warm-up" not in document.get("restart", {})


@pytest.mark.parametrize(("on_core", "factor"), [(None, 2.0), ("25 %", 1.25)])
def test_only_the_time_on_a_core_is_longer_in_cold_code(on_core, factor):
    """Calls and sleeps take as long in code that is not compiled yet."""
    job = RestJob(read_saved(USERS / "J2-count-unaligned.zip"))
    draft = Draft()
    draft.document |= {"cluster": {"profile": "2.x"} | ({"on-core": on_core} if on_core else {})}
    infer_cold_start(draft, job)

    assert draft.document["restart"]["warm-up-factor"] == factor


@pytest.mark.parametrize(("second_ms", "unaligned", "factor"), [(160, False, 1.11), (600, False, 2), (160, True, 2)])
def test_code_is_no_slower_at_first_than_lets_the_second_checkpoint_find_no_queue(second_ms, unaligned, factor):
    """Records of 1 s waited and were gone 2 s later, at a load of 60 %.  Barriers that overtake meet no queue anyway."""
    points = [checkpoint(1, 3000, took_ms=1100), checkpoint(2, 2500, took_ms=second_ms)]
    own_flows = {"src": flow(), "map": flowed(own(busy=0.6))}
    config = {"interval": 2000, "unaligned_checkpoints": unaligned}
    job = MadeJob([vertex("src"), vertex("map", "src")], points, config, flows=own_flows)
    job.job.start_time = 1000
    draft = drafted(job)
    draft.document["cluster"] = {"profile": "2.x"}
    infer_cold_start(draft, job)

    assert draft.document["restart"]["warm-up-factor"] == factor
