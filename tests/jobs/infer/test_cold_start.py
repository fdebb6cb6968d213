"""The start of a job that a short history shows."""

import re

import pytest

from sim.jobs.infer.scenario import infer_scenario
from sim.jobs.source.saved import read_saved
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
