"""What an import says of unaligned checkpoints that its job has never taken, and of the start that a short history shows."""

from pathlib import Path

import pytest

from sim.recordings.infer.scenario import infer_scenario
from sim.recordings.source.rest.saved import read_saved

JOBS = Path(__file__).parents[2] / "data" / "users-jobs"


def inferred(name, change=lambda answers: None):
    snapshot = read_saved(JOBS / f"{name}.zip")
    change(snapshot.answers)
    return infer_scenario(snapshot)


def test_an_aligned_history_tells_nothing_of_in_flight_data():
    """Both values are those of recordings, and say so."""
    found = inferred("R6-grow-aligned")

    assert ("12 ms", "25 MB/s") == (found.document["cluster"]["barrier-wake-up"], found.document["storage"]["in-flight-bandwidth"])
    for path, spread in (("cluster.barrier-wake-up", "8 to 43 ms"), ("storage.in-flight-bandwidth", "11 MB/s to 46 MB/s")):
        assert f"assumed, as no unaligned checkpoint tells; {spread} in recordings of other jobs" == " ".join(found.comments[path].split())


def test_a_chain_with_state_is_taken_to_write_it_after_in_flight_data():
    """`count -> out: writer` is one; the source is not, and a chain of one operator has no order."""
    job = inferred("J2-count-aligned").document["job"]

    assert ["count+out-writer"] == [name for name, vertex in job.items() if vertex.get("snapshot", {}).get("after-in-flight")]


def test_the_files_of_an_unaligned_history_have_both_in_their_latency():
    document = inferred("J2-count-unaligned").document

    assert "barrier-wake-up" not in document["cluster"]
    assert "in-flight-bandwidth" not in document["storage"]


def move_triggers(answers, by_ms):
    """Of all checkpoints but the first, in the history and in their details."""
    for path, answer in answers.items():
        points = answer["history"] if path.endswith("/checkpoints") else [answer] if "/checkpoints/details/" in path else []
        for point in points:
            if "trigger_timestamp" in point:
                point["trigger_timestamp"] += by_ms * (point["id"] > 1)


def number_anew(answers):
    """The first checkpoint has another number: the history does not begin with the job."""
    for path, answer in answers.items():
        points = answer["history"] if path.endswith("/checkpoints") else [answer] if path.endswith("/checkpoints/details/1") else []
        for point in points:
            point["id"] += 100 * (point["id"] == 1)


def test_a_short_history_from_the_start_of_the_job_begins_cold():
    found = inferred("J2-count-unaligned")

    assert ("3 s", 4) == (found.document["restart"]["warm-up"], found.document["restart"]["warm-up-factor"])
    assert "1 s" == found.document["run"]["cold-start"]
    assert "of a log up to 2.613 s wait" in " ".join(found.comments["run.cold-start"].split())


@pytest.mark.parametrize("change", [lambda answers: move_triggers(answers, 180_000), number_anew])
def test_a_long_history_or_one_that_lacks_the_start_shows_a_job_that_is_warm(change):
    document = inferred("J2-count-unaligned", change).document

    assert "cold-start" not in document["run"]
    assert "warm-up" not in document.get("restart", {})
