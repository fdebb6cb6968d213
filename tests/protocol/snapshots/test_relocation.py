"""What deleting and copying do to stored snapshots: the table of protocols for Flink's paths, and the two other policies."""

import pytest

from sim.model.storage import Directories, StateFile, StoredSnapshot
from sim.protocol.snapshot_store import find_unrestorable_snapshots, restorable, verdict

OWN = StateFile(1, 1, 7, "exclusive", 10)
SHARED = StateFile(1, 2, 5, "shared", 100)
FOREIGN = StateFile(0, 3, 2, "shared", 1000)
SAVED = StateFile(1, 4, 8, "savepoint", 500)

HEAP = StoredSnapshot(1, 7, "checkpoint", (OWN,))
INCREMENTAL = StoredSnapshot(1, 7, "checkpoint", (OWN, SHARED))
CLAIMED = StoredSnapshot(1, 7, "checkpoint", (OWN, SHARED, FOREIGN))
SAVEPOINT = StoredSnapshot(1, 8, "native", (SAVED,))

FLINK, TO_METADATA, TO_JOB = Directories(), Directories("relative-to-metadata"), Directories("relative-to-job")
ENTROPY = Directories(entropy=True)


def test_paths():
    """As Flink lays them out."""
    assert FLINK.path(OWN) == "/checkpoints/job-1/chk-7/1-1"
    assert FLINK.path(SHARED) == "/checkpoints/job-1/shared/1-2"
    assert FLINK.path(SAVED) == "/savepoints/savepoint-1-8/1-4"
    assert Directories(create_subdir=False).path(SHARED) == "/checkpoints/shared/1-2"
    assert ENTROPY.path(OWN).endswith("/checkpoints/job-1/chk-7/1-1")
    assert ENTROPY.path(OWN) != FLINK.path(OWN)


@pytest.mark.parametrize(
    ("directories", "references"),
    [
        (FLINK, ["1-1", "/checkpoints/job-1/shared/1-2", "/checkpoints/job-0/shared/0-3"]),
        (TO_METADATA, ["1-1", "../shared/1-2", "../../job-0/shared/0-3"]),
        (TO_JOB, ["chk-7/1-1", "shared/1-2", "/checkpoints/job-0/shared/0-3"]),
    ],
)
def test_references(directories, references):
    """Each policy writes other paths into the metadata; where nothing moves all mean the same file."""
    paths = [directories.path(file) for file in CLAIMED.files]

    assert references == [directories.reference(path, CLAIMED) for path in paths]
    assert paths == [
        directories.resolved(reference, directories.directory(CLAIMED), CLAIMED) for reference in references
    ]


@pytest.mark.parametrize(
    ("snapshot", "directories", "own", "job"),
    [
        (SAVEPOINT, FLINK, True, None),
        (HEAP, FLINK, True, True),
        (INCREMENTAL, FLINK, False, False),
        (CLAIMED, FLINK, False, False),
        (HEAP, ENTROPY, False, False),
        (SAVEPOINT, ENTROPY, False, None),
        (INCREMENTAL, TO_METADATA, False, True),
        (INCREMENTAL, TO_JOB, False, True),
        (CLAIMED, TO_METADATA, False, False),
        (CLAIMED, TO_JOB, False, False),
        (HEAP, TO_METADATA, True, True),
        (HEAP, TO_JOB, True, True),
        (SAVEPOINT, TO_METADATA, True, None),
        (SAVEPOINT, TO_JOB, True, None),
    ],
)
def test_relocatable(snapshot, directories, own, job):
    """The rows of Flink's table; relative paths help a job directory as long as nothing lies outside it."""
    judged = verdict(snapshot, directories)

    assert (own, job) == (judged.relocatable_own_dir, judged.relocatable_job_dir)


def test_a_claimed_checkpoint_in_numbers():
    """Counts, owners, the length of the chain."""
    judged = verdict(CLAIMED, FLINK)

    assert (judged.files_total, judged.bytes_total, judged.files_outside_chk_dir, judged.files_outside_job_dir) == (
        3,
        1110,
        2,
        1,
    )
    assert (judged.owners, judged.chain_length, judged.absolute_paths, judged.self_contained) == ((0, 1), 1, 2, False)
    assert verdict(HEAP, FLINK).self_contained
    assert verdict(CLAIMED, TO_METADATA).absolute_paths == 0
    assert verdict(CLAIMED, ENTROPY).files_outside_job_dir == 3


def test_copying_the_root():
    """Relative to the metadata everything is found again; absolute paths lead back to the old root."""
    assert restorable(CLAIMED, TO_METADATA, copied="/checkpoints")
    assert not restorable(CLAIMED, FLINK, copied="/checkpoints")
    assert not restorable(CLAIMED, TO_JOB, copied="/checkpoints")
    assert not restorable(CLAIMED, TO_METADATA, copied="/checkpoints", exists=lambda file: file != FOREIGN)


def test_what_breaks():
    """Disposing of a snapshot takes its shared files along; removing a directory takes what lies in it."""
    older = StoredSnapshot(0, 3, "checkpoint", (FOREIGN,))
    everyone = (older, HEAP, CLAIMED, SAVEPOINT)

    assert find_unrestorable_snapshots(everyone, FLINK, older) == (CLAIMED,)
    assert find_unrestorable_snapshots(everyone, FLINK, SAVEPOINT) == ()
    assert find_unrestorable_snapshots(everyone, FLINK, "/checkpoints/job-0") == (CLAIMED,)
    assert find_unrestorable_snapshots(everyone, FLINK, "/checkpoints/job-0/chk-3") == ()
    assert find_unrestorable_snapshots(everyone, FLINK, "/checkpoints/job") == ()
    assert (older, CLAIMED) == find_unrestorable_snapshots(everyone, FLINK, "/checkpoints/job-0/shared")


def test_where_it_lies_a_snapshot_needs_every_file():
    assert restorable(CLAIMED, FLINK)
    assert not restorable(CLAIMED, FLINK, exists=lambda file: file != OWN)


def test_metadata_that_stays_behind_is_a_plain_no():
    """None would say that the question makes no sense, as a job directory does for a savepoint."""
    assert restorable(CLAIMED, FLINK, copied="/elsewhere") is False
