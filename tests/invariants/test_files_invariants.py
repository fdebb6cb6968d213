"""Stored snapshots, and files that no snapshot needs: these are deleted soon (invariants 91, 107 to 112, and 125)."""

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import pytest

from sim.model.job import Distribution
from sim.model.scenario import Instances
from sim.model.storage import Dfs, ObjectStore, Retry, SlowPlaces, Storage
from sim.model.units import MS
from sim.results.journal import Entry, EventType
from sim.results.tables import CheckpointStats
from sim.runtime.context import KeptSnapshot, RestoredState
from sim.runtime.invariants.files import (
    RETAINED_FILES,
    FileLifetimes,
    OwnedFile,
    StoredSnapshots,
    longest_deletion_ns,
)
from sim.storage.ledger import DeletionLine
from tests.invariants.watched import (
    MAP,
    account_of,
    end_facts,
    ended,
    facts,
    hollow,
    named,
    stateful,
    with_journal,
    with_scenario,
)

S = 1_000_000_000
LIMITED_DFS = Dfs(3, latency=Distribution(MS), requests_per_second=300)
COMPLETED = [(number, number * S) for number in (1, 2, 4, 5, 6, 7)]


def unreferenced(*files, time_s=8, completed=COMPLETED, journal=()):
    stats = {n: CheckpointStats(n, 0, 1, status="COMPLETED", completed_ns=at_ns) for n, at_ns in completed}
    run = {"coordinator": SimpleNamespace(num_retained=1)}
    account = hollow(FileLifetimes, journal, [("map", 0)], now_ns=int(time_s * S), stats=stats, run=run)
    account._owned_files = lambda: files
    account._check_unreferenced()
    return account.found


def found(*files, acknowledged=((1, 0), (3, 0)), fails=True, **options):
    rows = [Entry(S, EventType.ACKNOWLEDGED, checkpoint, task) for checkpoint, task in acknowledged]
    rows += [Entry(S, EventType.TASK_FAILED)] * fails
    return [str(violation) for violation in unreferenced(*files, journal=rows, **options)]


def file(checkpoint, *, task=0, last=None):
    stored = SimpleNamespace(name=("keyed", checkpoint), size_bytes=100)
    return OwnedFile(stored, checkpoint, task, checkpoint if last is None else last)


def test_a_file_that_nobody_needs_is_told():
    """Those of an aborted checkpoint go as well: checkpoint 4 is the first that is newer."""
    (violation,) = found(file(1), file(3))

    assert violation.startswith(
        "2.000000 s  the file keyed/1: it is still there, no snapshot needs it since 2.000000 s; so are 1 other file, 200 bytes in all"
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
    journal = [Entry(number * S, EventType.COMPLETED, number) for number, _ in COMPLETED]
    (violation,) = unreferenced(file(1, last=4), time_s=9, completed=[*COMPLETED, (8, 8 * S)], journal=journal)

    assert violation.time_ns == 5 * S
    assert [int(line.split()[3]) for line in violation.evidence] == [4, 5]


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


# A snapshot that is kept and cannot be restored is told, with the files that are gone.


@pytest.mark.parametrize(
    ("missing", "notes"), [("abcd", ("missing: a", "missing: b", "missing: c", "...")), ("a", ("missing: a",))]
)
def test_what_is_gone_is_told(missing, notes):
    """The first three files by name; nothing of what is whole, nor of what names no files."""
    whole = [KeptSnapshot("checkpoint 2", 3, ()), KeptSnapshot("checkpoint 3", 0, ())]
    account = hollow(FileLifetimes, now_ns=7, run={"kept": [KeptSnapshot("checkpoint 1", 9, tuple(missing)), *whole]})
    account._check_unreferenced = lambda: None
    (violation,) = ended(account)

    assert (violation.invariant, violation.time_ns, violation.where) == (RETAINED_FILES, 7, "checkpoint 1")
    assert (f"{len(missing)} of its 9 files are gone", notes) == (violation.fact, violation.evidence)


# Told what is not true of a checkpoint that is complete.


STORED_LATEST, BEFORE = 6, 5  # the checkpoints that hold files
FIRST_READER = 0  # a source: what it has in flight is overtaken output


@pytest.fixture
def stored_account():
    return account_of(StoredSnapshots, stateful())


@pytest.fixture
def files():
    return account_of(FileLifetimes, stateful())


def part(stored_account, task=MAP):
    return stored_account.contents.checkpoints[STORED_LATEST][task]


class TestCompletedCheckpoints:
    def facts_of(self, stored_account, checkpoint=STORED_LATEST):
        stored_account.completed(checkpoint, ())
        return facts(stored_account)

    def test_metadata_that_is_being_written(self, stored_account, monkeypatch):
        monkeypatch.setattr(named(stored_account, "_metadata", STORED_LATEST), "durable_ns", None)
        assert self.facts_of(stored_account) == ["it is complete, and its metadata is no file yet"]

    def test_metadata_that_is_followed_by_other_files(self, stored_account, monkeypatch):
        """It is found among those that were created since the last acknowledgement, and no earlier."""
        files = list(stored_account.context.storage.files)
        monkeypatch.setattr(files[-1], "name", ("channel-state", 0, STORED_LATEST + 1))
        monkeypatch.setattr(files[-2], "name", ("_metadata", STORED_LATEST))
        assert self.facts_of(stored_account) == []
        monkeypatch.setattr(files[-2], "name", ("channel-state", 0, STORED_LATEST + 1))
        monkeypatch.setattr(files[-3], "name", ("_metadata", STORED_LATEST))
        assert len(self.facts_of(stored_account)) == 1

    def test_a_file_that_is_cut_short(self, stored_account, monkeypatch):
        handle = part(stored_account).parts[0][0].handles[0]
        there = stored_account.context.storage.files[handle.file]
        monkeypatch.setattr(there, "size_bytes", handle.size_bytes - 1)
        name = "/".join(map(str, there.name))
        assert [
            f"it names {handle.size_bytes} bytes in the file {name}, which has {handle.size_bytes - 1}"
        ] == self.facts_of(stored_account)

    def test_in_flight_data_in_no_file(self, stored_account, monkeypatch):
        here = part(stored_account, FIRST_READER)
        monkeypatch.setattr(here, "channel_file", None)
        assert [f"{here.in_flight_bytes} bytes in flight to src[0] are in no file"] == self.facts_of(stored_account)
        monkeypatch.setattr(here, "inlined_bytes", here.in_flight_bytes)
        assert self.facts_of(stored_account) == []

    def test_in_flight_data_in_a_file_that_is_too_small(self, stored_account, monkeypatch):
        here = part(stored_account, FIRST_READER)
        monkeypatch.setattr(
            stored_account.context.storage.files[here.channel_file], "size_bytes", here.in_flight_bytes - 1
        )
        assert [
            f"{here.in_flight_bytes} bytes were in flight, their file has {here.in_flight_bytes - 1}"
        ] == self.facts_of(stored_account)


class TestIncrements:
    """Map[0] refers to files that were written for the checkpoint before: 000006.sst, then 000005.sst."""

    def facts_of(self, stored_account):
        stored_account.state_taken(STORED_LATEST, MAP, part(stored_account).parts[0][0])
        return facts(stored_account)

    @pytest.fixture
    def first(self, stored_account):
        return part(stored_account).parts[0][0].keyed.reused[0]

    def test_a_base_that_has_failed(self, stored_account, monkeypatch):
        monkeypatch.setattr(stored_account.context.stats[BEFORE], "status", "FAILED")
        assert self.facts_of(stored_account) == ["map[0] refers to 000006.sst of checkpoint 5, which is failed"]

    def test_files_of_an_older_job(self, stored_account, first, monkeypatch):
        monkeypatch.setattr(stored_account.context.stats[BEFORE], "status", "FAILED")
        stored_account._first_own = first.file + 1
        assert self.facts_of(stored_account) == ["map[0] refers to 000005.sst of checkpoint 5, which is failed"], (
            "the next file is its own"
        )
        stored_account._first_own = first.file + 2
        assert self.facts_of(stored_account) == []


class TestSnapshotsNotClaimed:
    @pytest.fixture
    def free(self, stored_account):
        """A job that begins from its own latest checkpoint, and does not claim it."""
        with_scenario(stored_account, instances=Instances(2, "no-claim")).continue_from(stored_account, STORED_LATEST)
        return stored_account

    def test_all_files_of_the_snapshot_are_of_the_older_job(self, free):
        files = free.context.storage.files
        named_files = {
            file
            for row in free.contents.checkpoints[STORED_LATEST].values()
            for file in (handle.file for handle in row.handles)
        }

        assert named_files == set(free._not_claimed)
        assert len(files) == free._first_own

    def test_a_checkpoint_must_not_name_them(self, stored_account):
        stored_account._not_claimed = (part(stored_account).parts[0][0].handles[0].file,)
        stored_account.completed(STORED_LATEST, ())
        assert facts(stored_account) == ["1 file of the snapshot that the job began with, and did not claim, is named"]

    def test_nobody_deletes_them(self, free, monkeypatch):
        assert end_facts(free) == []
        monkeypatch.setattr(free.context.storage.files[free._not_claimed[0]], "deleted_ns", 1)
        assert end_facts(free) == ["1 file of the snapshot that the job began with, and did not claim, is deleted"]


class TestReadingBack:
    @pytest.fixture
    def read(self, stored_account, monkeypatch):
        """So many bytes of in-flight data have been read before."""
        monkeypatch.setitem(stored_account.context.storage.files.bytes_read, "restore", 100)

        def read_bytes(size_bytes):
            stored_account.context.storage.files.bytes_read["restore"] += size_bytes

        return read_bytes

    def test_all_in_flight_data_of_a_restart_is_read(self, stored_account, read):
        size_bytes = part(stored_account, 0).in_flight_bytes + part(stored_account, 1).in_flight_bytes
        stored_account.restarted(STORED_LATEST, [0, 1])
        stored_account.restored(STORED_LATEST, 0, [], 0)
        read(size_bytes - 1)
        assert facts(stored_account) == [], "one of them reads on"
        stored_account.restored(STORED_LATEST, 1, [], 0)
        assert [f"{size_bytes - 1} bytes of in-flight data are read, {size_bytes} were stored"] == facts(stored_account)

    @pytest.mark.parametrize("lack", [0, 1])
    def test_records_that_a_rescale_cut_in_two_may_be_whole_again(self, stored_account, read, monkeypatch, lack):
        """At most a record for each channel and side that has some of it."""
        here = part(stored_account, 0)
        sides = int((here.position.captured > 0).sum() + (here.position.overtaken > 0).sum())
        monkeypatch.setattr(here, "read_bytes", 1)
        record_bytes = max(max(edge.record_bytes) for edge in stored_account.context.spec.edges)
        stored_account.restarted(STORED_LATEST, [0])
        read(int(here.position.captured.sum() + here.position.overtaken.sum()) - sides * record_bytes - lack)
        stored_account.restored(STORED_LATEST, 0, [], 0)

        assert sides > 0
        assert lack == len(facts(stored_account))

    @pytest.mark.parametrize(
        ("size_bytes", "changes", "expected"),
        [
            (1000, {}, []),
            (1001, {}, ["1000 bytes of the state of map[0] are read, 1001 were stored"]),
            (1001, {"share": Fraction(1, 2)}, []),
            (1001, {"copied_from": ("map", 0, 6)}, []),
        ],
        ids=["all", "too little", "a share", "a local copy"],
    )
    def test_state_is_read(self, stored_account, size_bytes, changes, expected):
        with_journal(stored_account, Entry(0, EventType.TASK_RESTORED, STORED_LATEST, MAP, 1000))
        stored_account.restored(
            STORED_LATEST, MAP, [RestoredState("keyed", None, Fraction(1), size_bytes)._replace(**changes)], 0
        )
        assert expected == facts(stored_account)


class TestFilesThatStay:
    """Files of the first checkpoint are found again at the end: five have completed since."""

    def facts_of(self, stored_account):
        return [violation.where for violation in ended(stored_account)]

    @pytest.fixture(params=["keyed", "operator", "channel-state", "_metadata"])
    def left(self, files, request, monkeypatch):
        name = {
            "keyed": ("keyed", "map", 0, 1),
            "operator": ("operator", "sink", 0, 1),
            "channel-state": ("channel-state", 0, 1),
        }
        file = named(files, *name.get(request.param, ("_metadata", 1)))
        monkeypatch.setattr(file, "deleted_ns", None)
        return file

    def test_a_file_that_nobody_deletes(self, files, left):
        assert ["the file " + "/".join(map(str, left.name))] == self.facts_of(files)

    def test_it_may_wait_in_a_line_that_goes_on(self, files, left, monkeypatch):
        """No limit is known here: a line goes on only in this very moment."""
        monkeypatch.setitem(files.context.storage.files.to_delete, left.id, DeletionLine(files.now_ns + 1))
        assert self.facts_of(files) == []
        monkeypatch.setitem(files.context.storage.files.to_delete, left.id, DeletionLine(files.now_ns))
        assert len(self.facts_of(files)) == 1

    def test_a_log_goes_with_the_last_that_names_it(self, files, left, monkeypatch):
        monkeypatch.setattr(left, "name", ("changelog", "map", 1, "log-7"))
        assert self.facts_of(files) == [], "one that nobody has named is not the coordinator's"
        files._last[int(left.id)] = 1
        assert self.facts_of(files) == ["the file changelog/map/1/log-7"]
