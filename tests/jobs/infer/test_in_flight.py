"""What an import says of unaligned checkpoints that its job has never taken, and of the start that a short history shows."""

from pathlib import Path

import pytest

from sim.jobs.infer.scenario import infer_scenario
from sim.jobs.source.saved import read_saved
from sim.model.units import parse_duration

JOBS = Path(__file__).parents[2] / "data" / "users-jobs"


def inferred(name, change=lambda answers: None):
    snapshot = read_saved(JOBS / f"{name}.zip")
    change(snapshot.answers)
    return infer_scenario(snapshot)


def test_an_aligned_history_does_not_tell_how_fast_in_flight_data_is_written():
    """The value is that of recordings, and says so."""
    found = inferred("R6-grow-aligned")
    comment = " ".join(found.comments["storage.in-flight-bandwidth"].split())

    assert found.document["storage"]["in-flight-bandwidth"] == "25 MB/s"
    assert comment == "assumed, as no unaligned checkpoint tells; 11 MB/s to 46 MB/s in recordings of other jobs"


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


def test_idle_tasks_tell_how_late_they_are_for_a_barrier():
    """`Parse` waits for records most of the time: what its barriers take longer than those before them is no queue."""
    late = [inferred("J2-count-aligned", lambda answers, ms=ms: delay(answers, ms, "Parse")) for ms in (20, 50)]

    first, second = (parse_duration(found.document["cluster"]["barrier-wake-up"]) for found in late)
    assert second - first == 30_000_000
    comment = " ".join(late[0].comments["cluster.barrier-wake-up"].split())
    assert "barriers, from the last task that sent one to tasks that are idle" in comment


def test_busy_tasks_do_not_tell_how_late_they_are():
    """Barriers wait behind records at all of them."""
    found = inferred("J4-pressed-aligned-r1")
    comment = " ".join(found.comments["cluster.barrier-wake-up"].split())

    assert (
        found.document["cluster"]["barrier-wake-up"],
        comment,
    ) == ("12 ms", "assumed, as no task is idle; 2 to 43 ms in recordings of other jobs")


def test_a_chain_with_state_is_taken_to_write_it_after_in_flight_data():
    """`count -> out: writer` is one; the source is not, and a chain of one operator has no order."""
    job = inferred("J2-count-aligned").document["job"]

    assert [name for name, vertex in job.items() if vertex.get("snapshot", {}).get("after-in-flight")] == [
        "count+out-writer"
    ]


def test_the_files_of_an_unaligned_history_have_both_in_their_latency():
    document = inferred("J2-count-unaligned").document

    assert "barrier-wake-up" not in document["cluster"]
    assert "in-flight-bandwidth" not in document["storage"]


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


def test_a_short_history_from_the_start_of_the_job_begins_cold():
    found = inferred("J2-count-unaligned")

    assert (found.document["restart"]["warm-up"], found.document["restart"]["warm-up-factor"]) == ("3 s", 2)
    assert found.document["run"]["cold-start"] == "1 s"
    assert "of a log up to 2.613 s wait" in " ".join(found.comments["run.cold-start"].split())


@pytest.mark.parametrize("change", [lambda answers: move_triggers(answers, 180_000), number_anew])
def test_a_long_history_or_one_that_lacks_the_start_shows_a_job_that_is_warm(change):
    document = inferred("J2-count-unaligned", change).document

    assert "cold-start" not in document["run"]
    assert "warm-up" not in document.get("restart", {})
