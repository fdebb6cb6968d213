"""What an import says of unaligned checkpoints that its job has never taken, and of the start that a short history shows."""

import pytest

from sim.jobs.infer.draft import Draft
from sim.jobs.infer.heap import infer_cold_start
from sim.jobs.infer.scenario import infer_scenario
from sim.jobs.source.rest_job import RestJob
from sim.jobs.source.saved import read_saved
from tests.places import USERS


def inferred(name, change=lambda answers: None):
    snapshot = read_saved(USERS / f"{name}.zip")
    change(snapshot.answers)
    return infer_scenario(snapshot)


def delay(answers, by_ms, vertex):
    """All barriers of a vertex, in every checkpoint."""
    job = next(
        answer for path, answer in answers.items() if "/jobs/" in path and path.count("/") == 2 and "vertices" in answer
    )
    (id_,) = (each["id"] for each in job["vertices"] if each["name"] == vertex)
    for path, answer in answers.items():
        if path.endswith(f"/subtasks/{id_}") and "/details/" in path:
            for subtask in answer["subtasks"]:
                subtask["start_delay"] += by_ms


def move_triggers(answers, by_ms):
    """Of all checkpoints but the first, in the history and in their details."""
    for path, answer in answers.items():
        points = (
            answer["history"] if path.endswith("/checkpoints") else [answer] if "/checkpoints/details/" in path else []
        )
        for point in points:
            if "trigger_timestamp" in point:
                point["trigger_timestamp"] += by_ms * (point["id"] > 1)


def number_anew(answers):
    """The first checkpoint has another number: the history does not begin with the job."""
    for path, answer in answers.items():
        points = (
            answer["history"]
            if path.endswith("/checkpoints")
            else [answer]
            if path.endswith("/checkpoints/details/1")
            else []
        )
        for point in points:
            point["id"] += 100 * (point["id"] == 1)


@pytest.mark.parametrize("change", [lambda answers: move_triggers(answers, 180_000), number_anew])
def test_a_long_history_or_one_that_lacks_the_start_shows_a_job_that_is_warm(change):
    document = inferred("J2-count-unaligned", change).document

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
