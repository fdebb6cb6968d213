"""Laws 91 to 93: files that no snapshot needs are deleted soon, and the savepoint of a stop is the last word."""

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

from sim.invariants.checkpoints import activity_after_stop, leaked_resources, outputs_after_end
from sim.invariants.files import (
    RETAINED_FILES_LAW,
    KeptSnapshot,
    OwnedFile,
    longest_deletion_ns,
    snapshot_errors,
    unreferenced_files,
)
from sim.invariants.violation import JournalFormatter
from sim.model.job import Distribution
from sim.model.storage import Dfs, ObjectStore, Retry, SlowPlaces, Storage
from sim.model.units import MS
from sim.results.journal import Entry, Happening, Journal

# Law 91: files that no snapshot needs are deleted soon.


S = 1_000_000_000
LIMITED_DFS = Dfs(3, latency=Distribution(MS), requests_per_second=300)
COMPLETED = [(number, number * S) for number in (1, 2, 4, 5, 6, 7)]


def found(*files, time_s=8, completed=COMPLETED, acknowledged=((1, 0), (3, 0)), fails=True):
    journal = Journal((S, Happening.ACKNOWLEDGED, checkpoint, task) for checkpoint, task in acknowledged)
    if fails:
        journal.note(S, Happening.TASK_FAILED)
    return [
        str(violation)
        for violation in unreferenced_files(
            files, completed, 1, time_s * S, JournalFormatter(list(journal), [("map", 0)])
        )
    ]


def file(checkpoint, *, task=0, last=None):
    return OwnedFile(f"keyed {checkpoint}", checkpoint, task, checkpoint if last is None else last, 100)


def test_a_file_that_nobody_needs_is_told():
    """Those of an aborted checkpoint go as well: checkpoint 4 is the first that is newer."""
    (violation,) = found(file(1), file(3))

    assert violation.startswith(
        "2.000000 s  keyed 1: it is still there, no snapshot needs it since 2.000000 s; so are 1 other file, 200 bytes in all"
    )


def test_files_that_a_snapshot_names_stay():
    """By the latest one; or three checkpoints have not completed since."""
    assert found(file(1, last=7)) == []
    assert found(file(1, last=4)) == []


def test_what_was_freed_just_now_may_still_be_there():
    assert found(file(1), time_s=2) == []


def test_soon_is_half_a_second():
    completed = [(1, S), (2, 2 * S), (4, 2 * S), (5, 2 * S), (6, 2 * S)]

    assert [len(found(file(1), time_s=time_s, completed=completed)) for time_s in (2.5, 2.500000001)] == [0, 1]


def test_the_story_is_that_of_the_checkpoints_around_the_file():
    journal = Journal((number * S, Happening.COMPLETED, number) for number, _ in COMPLETED)
    (violation,) = unreferenced_files(
        [file(1, last=4)], [*COMPLETED, (8, 8 * S)], 1, 9 * S, JournalFormatter(list(journal), [("map", 0)])
    )

    assert violation.time_ns == 5 * S
    assert [int(line.split()[3]) for line in violation.story] == [4, 5, 6]


def test_a_client_insists_on_a_deletion_for_so_long():
    """Two requests at most, each with its attempts and the waits between them; of a file system all others may be before it."""
    retry = Retry(attempts=3, backoff_ns=20 * MS)
    store = ObjectStore(latency=Distribution(2 * MS), requests_per_second=300)

    assert longest_deletion_ns(Storage(object_store=store, retry=retry), 9) == 2 * (3 * 2 + 20 + 40) * MS
    assert (
        longest_deletion_ns(Storage(object_store=replace(store, slow=SlowPlaces(factor=5)), retry=retry), 9)
        == 2 * (3 * 2 * 5 + 20 + 40) * MS
    )
    assert longest_deletion_ns(Storage(dfs=LIMITED_DFS, retry=Retry(attempts=1)), 300) == 2 * (1 + 2 * 1000) * MS
    assert longest_deletion_ns(Storage(object_store=replace(store, requests_per_second=None)), 9) == 0
    slow = replace(store, requests_per_second=None, slow=SlowPlaces(Fraction(1, 2), 5))
    assert longest_deletion_ns(Storage(object_store=slow, retry=retry), 9) == 2 * (3 * 2 * 5 + 20 + 40) * MS


def test_files_that_no_acknowledgement_brought_have_no_owner():
    """A task that failed leaves them behind, in Flink as well; metadata is the JobManager's own."""
    assert found(file(2)) == []
    assert len(found(file(2, task=-1))) == 1


def test_tasks_that_live_delete_what_they_have_written_for_an_aborted_checkpoint():
    assert len(found(file(2), fails=False)) == 1


# Laws 92 and 93: the savepoint of a stop is the last word, and resources are back.


STATS = {
    number: SimpleNamespace(stops=number == 2, savepoint_format="native" if number in (2, 4) else "")
    for number in (1, 2, 3, 4)
}
TRIGGERED, LAST_COMPLETED, ABORTED = Happening.TRIGGERED, Happening.COMPLETED, Happening.ABORTED


def facts(*rows):
    journal = [Entry(1000 * (place + 1), happening, checkpoint) for place, (happening, checkpoint) in enumerate(rows)]
    return [
        violation.fact for violation in activity_after_stop(journal, STATS, JournalFormatter(journal, [("map", 0)]))
    ]


def test_a_job_that_stops():
    assert (
        facts(
            (TRIGGERED, 1),
            (LAST_COMPLETED, 1),
            (TRIGGERED, 2),
            (TRIGGERED, 4),
            (LAST_COMPLETED, 2),
            (Happening.JOB_FINISHED, -1),
        )
        == []
    )


def test_checkpoints_go_on_behind_the_savepoint_or_beside_it():
    assert facts((TRIGGERED, 2), (LAST_COMPLETED, 2), (TRIGGERED, 3)) == ["the coordinator triggers checkpoint 3"]
    assert facts((TRIGGERED, 2), (TRIGGERED, 3), (LAST_COMPLETED, 2)) == ["the coordinator triggers checkpoint 3"]


def test_the_story_begins_with_the_savepoint():
    journal = [
        Entry(1, TRIGGERED, 1),
        Entry(2, LAST_COMPLETED, 1),
        Entry(3, TRIGGERED, 2),
        Entry(4, LAST_COMPLETED, 2),
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

    assert facts((TRIGGERED, 2), (LAST_COMPLETED, 2), lost, (Happening.JOB_RESTORED, 1), (TRIGGERED, 3)) == []
    assert facts((TRIGGERED, 2), lost, (Happening.JOB_RESTORED, 1), (TRIGGERED, 3)) == []
    assert len(facts(lost, (TRIGGERED, 2), (LAST_COMPLETED, 2), (TRIGGERED, 3))) == 1


def test_a_job_that_drains_has_one_more_checkpoint():
    """When all its data has ended."""
    journal = [
        Entry(1, TRIGGERED, 2),
        Entry(2, Happening.END_OF_DATA, detail="drain"),
        Entry(3, LAST_COMPLETED, 2),
        Entry(4, TRIGGERED, 3),
    ]
    formatter = JournalFormatter(journal, [("map", 0)])

    assert list(activity_after_stop(journal, STATS, formatter)) == []
    assert len(list(activity_after_stop([*journal, Entry(5, TRIGGERED, 1)], STATS, formatter))) == 1


def test_a_restart_behind_the_last_word():
    assert len(facts((TRIGGERED, 2), (LAST_COMPLETED, 2), (Happening.JOB_RESTORED, 2))) == 1


def test_records_behind_the_last_word():
    (behind,) = outputs_after_end(9, 2, [(0, 5, 8)], JournalFormatter([], [("source", 0)]))

    assert (behind.where, behind.fact) == ("source[0]", "3 records are emitted behind savepoint 2")
    assert list(outputs_after_end(9, 2, [(0, 5, 5)], JournalFormatter([], [("source", 0)]))) == []


def test_what_is_not_given_back_is_told_once():
    (kept,) = leaked_resources(9, ["the asynchronous thread of map[0] is at work", "more"])

    assert kept.fact == "it has finished, and the asynchronous thread of map[0] is at work"
    assert list(leaked_resources(9, [])) == []


# A snapshot that is kept and cannot be restored is told, with the files that are gone.


def test_what_is_whole_is_not_told():
    """Nor what names no files."""
    assert list(snapshot_errors([KeptSnapshot("checkpoint 1", 3, ()), KeptSnapshot("checkpoint 2", 0, ())], 7)) == []


def test_what_is_gone_is_told():
    """The first three files by name."""
    (violation,) = snapshot_errors([KeptSnapshot("checkpoint 1", 9, tuple("abcd"))], 7)

    assert (violation.law, violation.time_ns) == (RETAINED_FILES_LAW, 7)
    assert (violation.where, violation.fact) == ("checkpoint 1", "4 of its 9 files are gone")
    assert violation.story == ("missing: a", "missing: b", "missing: c", "...")


def test_three_files_are_told_in_full():
    (violation,) = snapshot_errors([KeptSnapshot("checkpoint 1", 9, tuple("abc"))], 7)

    assert violation.story == ("missing: a", "missing: b", "missing: c")
