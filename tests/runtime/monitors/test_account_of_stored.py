"""The accounts of what is stored and of files, told what is not true of a checkpoint that is complete."""

from dataclasses import replace
from fractions import Fraction

import pytest

from sim.invariants.state import RestoredState
from sim.model.faults import Fault, Kill, When
from sim.model.scenario import Instances
from sim.results.journal import Entry, Happening
from sim.runtime.monitors.files import FileMonitor, StoredStateMonitor
from sim.storage.ledger import DeletionLine
from tests.runtime.monitors.watched import MAP, account_of, end_of, facts, named, stateful, with_journal, with_scenario

LATEST, BEFORE = 6, 5  # the checkpoints that hold files
FIRST_READER = 0  # a source: what it has in flight is overtaken output


@pytest.fixture
def account():
    return account_of(StoredStateMonitor, stateful())


@pytest.fixture
def files():
    return account_of(FileMonitor, stateful())


def part(account, task=MAP):
    return account.contents.checkpoints[LATEST][task]


class TestCompletedCheckpoints:
    def facts_of(self, account, checkpoint=LATEST):
        account.completed(checkpoint, ())
        return facts(account)

    def test_metadata_that_is_being_written(self, account, monkeypatch):
        monkeypatch.setattr(named(account, "_metadata", LATEST), "durable_ns", None)
        assert self.facts_of(account) == ["it is complete, and its metadata is no file yet"]

    def test_metadata_of_another_checkpoint(self, account, monkeypatch):
        monkeypatch.setattr(named(account, "_metadata", LATEST), "name", ("_metadata", LATEST + 1))
        assert self.facts_of(account) == ["it is complete, and its metadata is no file yet"]

    def test_metadata_that_is_followed_by_other_files(self, account, monkeypatch):
        """It is found among those that were created since the last acknowledgement, and no earlier."""
        files = list(account.context.storage.files)
        monkeypatch.setattr(files[-1], "name", ("channel-state", 0, LATEST + 1))
        monkeypatch.setattr(files[-2], "name", ("_metadata", LATEST))
        assert self.facts_of(account) == []
        monkeypatch.setattr(files[-2], "name", ("channel-state", 0, LATEST + 1))
        monkeypatch.setattr(files[-3], "name", ("_metadata", LATEST))
        assert len(self.facts_of(account)) == 1

    def test_a_file_that_is_cut_short(self, account, monkeypatch):
        handle = part(account).parts[0][0].handles[0]
        there = account.context.storage.files[handle.file]
        monkeypatch.setattr(there, "size_bytes", handle.size_bytes - 1)
        name = "/".join(map(str, there.name))
        assert [
            f"it names {handle.size_bytes} bytes in the file {name}, which has {handle.size_bytes - 1}"
        ] == self.facts_of(account)

    def test_in_flight_data_in_no_file(self, account, monkeypatch):
        here = part(account, FIRST_READER)
        monkeypatch.setattr(here, "channel_file", None)
        assert [f"{here.in_flight_bytes} bytes in flight to src[0] are in no file"] == self.facts_of(account)
        monkeypatch.setattr(here, "inlined_bytes", here.in_flight_bytes)
        assert self.facts_of(account) == []

    def test_in_flight_data_in_a_file_that_is_too_small(self, account, monkeypatch):
        here = part(account, FIRST_READER)
        monkeypatch.setattr(account.context.storage.files[here.channel_file], "size_bytes", here.in_flight_bytes - 1)
        assert [
            f"{here.in_flight_bytes} bytes were in flight, their file has {here.in_flight_bytes - 1}"
        ] == self.facts_of(account)


class TestIncrements:
    """Map[0] refers to files that were written for the checkpoint before: 000006.sst, then 000005.sst."""

    def facts_of(self, account):
        account.state_taken(LATEST, MAP, part(account).parts[0][0])
        return facts(account)

    @pytest.fixture
    def first(self, account):
        return part(account).parts[0][0].keyed.reused[0]

    def test_a_base_that_has_failed(self, account, monkeypatch):
        monkeypatch.setattr(account.context.stats[BEFORE], "status", "FAILED")
        assert self.facts_of(account) == ["map[0] refers to 000006.sst of checkpoint 5, which is failed"]

    def test_files_of_an_older_job(self, account, first, monkeypatch):
        monkeypatch.setattr(account.context.stats[BEFORE], "status", "FAILED")
        account._first_own = first.file + 1
        assert self.facts_of(account) == ["map[0] refers to 000005.sst of checkpoint 5, which is failed"], (
            "the next file is its own"
        )
        account._first_own = first.file + 2
        assert self.facts_of(account) == []

    def test_what_came_with_an_acknowledgement_is_no_file(self, account, first, monkeypatch):
        monkeypatch.setattr(account.context.stats[BEFORE], "status", "FAILED")
        keyed = part(account).parts[0][0].keyed
        monkeypatch.setattr(part(account).parts[0][0], "keyed", replace(keyed, reused=(first._replace(file=None),)))
        assert self.facts_of(account) == []


class TestSnapshotsNotClaimed:
    @pytest.fixture
    def free(self, account):
        """A job that begins from its own latest checkpoint, and does not claim it."""
        with_scenario(account, instances=Instances(2, "no-claim")).continue_from(account, LATEST)
        return account

    def test_all_files_of_the_snapshot_are_of_the_older_job(self, free):
        files = free.context.storage.files
        named_files = {
            file
            for row in free.contents.checkpoints[LATEST].values()
            for file in (handle.file for handle in row.handles)
        }

        assert named_files == set(free._not_claimed)
        assert len(files) == free._first_own

    def test_a_checkpoint_must_not_name_them(self, account):
        account._not_claimed = (part(account).parts[0][0].handles[0].file,)
        account.completed(LATEST, ())
        assert facts(account) == ["1 file of the snapshot that the job began with, and did not claim, is named"]

    def test_nobody_deletes_them(self, free, monkeypatch):
        assert list(free.at_the_end(end_of(stateful()))) == []
        monkeypatch.setattr(free.context.storage.files[free._not_claimed[0]], "deleted_ns", 1)
        (found,) = free.at_the_end(end_of(stateful()))
        assert found.fact == "1 file of the snapshot that the job began with, and did not claim, is deleted"


class TestReadingBack:
    @pytest.fixture
    def read(self, account, monkeypatch):
        """So many bytes of in-flight data have been read before."""
        monkeypatch.setitem(account.context.storage.files.bytes_read, "restore", 100)

        def read_bytes(size_bytes):
            account.context.storage.files.bytes_read["restore"] += size_bytes

        return read_bytes

    def test_all_in_flight_data_of_a_restart_is_read(self, account, read):
        size_bytes = part(account, 0).in_flight_bytes + part(account, 1).in_flight_bytes
        account.restarted(LATEST, [0, 1])
        account.restored(LATEST, 0, [], 0)
        read(size_bytes - 1)
        assert facts(account) == [], "one of them reads on"
        account.restored(LATEST, 1, [], 0)
        assert [f"{size_bytes - 1} bytes of in-flight data are read, {size_bytes} were stored"] == facts(account)

    @pytest.mark.parametrize("lack", [0, 1])
    def test_records_that_a_rescale_cut_in_two_may_be_whole_again(self, account, read, monkeypatch, lack):
        """At most a record for each channel and side that has some of it."""
        here = part(account, 0)
        sides = int((here.position.captured > 0).sum() + (here.position.overtaken > 0).sum())
        monkeypatch.setattr(here, "read_bytes", 1)
        record_bytes = max(max(edge.record_bytes) for edge in account.context.spec.edges)
        account.restarted(LATEST, [0])
        read(int(here.position.captured.sum() + here.position.overtaken.sum()) - sides * record_bytes - lack)
        account.restored(LATEST, 0, [], 0)

        assert sides > 0
        assert lack == len(facts(account))

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
    def test_state_is_read(self, account, size_bytes, changes, expected):
        with_journal(account, Entry(0, Happening.TASK_RESTORED, LATEST, MAP, 1000))
        account.restored(LATEST, MAP, [RestoredState("keyed", None, Fraction(1), size_bytes)._replace(**changes)], 0)
        assert expected == facts(account)


class TestFilesThatStay:
    """Files of the first checkpoint are found again at the end: five have completed since."""

    def facts_of(self, account):
        return [violation.where for violation in account.at_the_end(end_of(stateful()))]

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

    def test_a_task_that_failed_keeps_none_alive(self, files, left):
        assert len(self.facts_of(with_scenario(files, faults=(Fault(Kill(), When((0,))),)))) == 1

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
