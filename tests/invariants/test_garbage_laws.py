"""Law 91: files that no snapshot needs are deleted soon."""

from dataclasses import replace
from fractions import Fraction

from sim.invariants.files import OwnedFile, longest_deletion_ns, unreferenced_files
from sim.invariants.violation import JournalFormatter
from sim.model.job import Distribution
from sim.model.storage import Dfs, ObjectStore, Retry, SlowPlaces, Storage
from sim.model.units import MS
from sim.results.journal import Happening, Journal

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
