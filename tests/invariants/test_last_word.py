"""Laws 92 and 93: the savepoint of a stop is the last word, and resources are back."""

from types import SimpleNamespace

from sim.invariants.checkpoints import activity_after_stop, leaked_resources, outputs_after_end
from sim.invariants.violation import JournalFormatter
from sim.results.journal import Entry, Happening

STATS = {
    number: SimpleNamespace(stops=number == 2, savepoint_format="native" if number in (2, 4) else "")
    for number in (1, 2, 3, 4)
}
TRIGGERED, COMPLETED, ABORTED = Happening.TRIGGERED, Happening.COMPLETED, Happening.ABORTED


def facts(*rows):
    journal = [Entry(1000 * (place + 1), happening, checkpoint) for place, (happening, checkpoint) in enumerate(rows)]
    return [
        violation.fact for violation in activity_after_stop(journal, STATS, JournalFormatter(journal, [("map", 0)]))
    ]


def test_a_job_that_stops():
    assert (
        facts(
            (TRIGGERED, 1), (COMPLETED, 1), (TRIGGERED, 2), (TRIGGERED, 4), (COMPLETED, 2), (Happening.JOB_FINISHED, -1)
        )
        == []
    )


def test_checkpoints_go_on_behind_the_savepoint_or_beside_it():
    assert facts((TRIGGERED, 2), (COMPLETED, 2), (TRIGGERED, 3)) == ["the coordinator triggers checkpoint 3"]
    assert facts((TRIGGERED, 2), (TRIGGERED, 3), (COMPLETED, 2)) == ["the coordinator triggers checkpoint 3"]


def test_the_story_begins_with_the_savepoint():
    journal = [
        Entry(1, TRIGGERED, 1),
        Entry(2, COMPLETED, 1),
        Entry(3, TRIGGERED, 2),
        Entry(4, COMPLETED, 2),
        Entry(5, TRIGGERED, 3),
    ]
    (violation,) = activity_after_stop(journal, STATS, JournalFormatter(journal, [("map", 0)]))

    assert [line[line.index("checkpoint") :][:12] for line in violation.story] == [
        "checkpoint 2",
        "checkpoint 2",
        "checkpoint 3",
    ]


def test_a_savepoint_that_fails_stops_nothing():
    assert facts((TRIGGERED, 2), (ABORTED, 2), (TRIGGERED, 3), (Happening.JOB_RESTORED, 1)) == []


def test_a_stop_is_forgotten_with_its_job_manager():
    """The next one goes on from the latest completed checkpoint, and triggers more."""
    lost = (Happening.JOB_MANAGER_LOST, -1)

    assert facts((TRIGGERED, 2), (COMPLETED, 2), lost, (Happening.JOB_RESTORED, 1), (TRIGGERED, 3)) == []
    assert facts((TRIGGERED, 2), lost, (Happening.JOB_RESTORED, 1), (TRIGGERED, 3)) == []
    assert len(facts(lost, (TRIGGERED, 2), (COMPLETED, 2), (TRIGGERED, 3))) == 1


def test_a_job_that_drains_has_one_more_checkpoint():
    """When all its data has ended."""
    journal = [
        Entry(1, TRIGGERED, 2),
        Entry(2, Happening.END_OF_DATA, detail="drain"),
        Entry(3, COMPLETED, 2),
        Entry(4, TRIGGERED, 3),
    ]
    formatter = JournalFormatter(journal, [("map", 0)])

    assert list(activity_after_stop(journal, STATS, formatter)) == []
    assert len(list(activity_after_stop([*journal, Entry(5, TRIGGERED, 1)], STATS, formatter))) == 1


def test_a_restart_behind_the_last_word():
    assert len(facts((TRIGGERED, 2), (COMPLETED, 2), (Happening.JOB_RESTORED, 2))) == 1


def test_records_behind_the_last_word():
    (behind,) = outputs_after_end(9, 2, [(0, 5, 8)], JournalFormatter([], [("source", 0)]))

    assert (behind.where, behind.fact) == ("source[0]", "3 records are emitted behind savepoint 2")
    assert list(outputs_after_end(9, 2, [(0, 5, 5)], JournalFormatter([], [("source", 0)]))) == []


def test_what_is_not_given_back_is_told_once():
    (kept,) = leaked_resources(9, ["the asynchronous thread of map[0] is at work", "more"])

    assert kept.fact == "it has finished, and the asynchronous thread of map[0] is at work"
    assert list(leaked_resources(9, [])) == []
