"""The accounts of keyed state, of stamps, of what is stored and of files, told what is not true."""

from dataclasses import replace
from fractions import Fraction

import pytest

from sim.invariants.state import RestoredState
from sim.model.faults import Fault, Kill, When
from sim.model.scenario import Instances
from sim.model.state import Changelog, Ttl
from sim.results.journal import Entry, Happening
from sim.runtime.context import StateSnapshot
from sim.runtime.monitors.files import FileMonitor, StoredStateMonitor
from sim.runtime.monitors.records import StateMonitor
from sim.runtime.monitors.state import KeyedStateMonitor
from sim.storage.ledger import DeletionLine
from sim.storage.lsm import TreeImage
from sim.storage.state_backends import Expiry
from sim.storage.state_files import File, FrozenState, Handle, WriteStep
from tests.runtime.monitors.watched import MAP, account_of, end_of, facts, named, stateful, with_journal, with_scenario

# The accounts of keyed state and of stamps, told what is not true: snapshots that lack state, restores that bring that of another.


LATEST = 6
SHARE_BYTES, VALUE_BYTES = 200_000, 1000  # of the map's state that a subtask has; of an entry
ALL = Fraction(1)


@pytest.fixture
def account():
    """It has heard that both subtasks of the map stood at their cuts."""
    account = account_of(KeyedStateMonitor, stateful())
    note_cuts(account, LATEST)
    return account


def note_cuts(account, checkpoint):
    for task in (MAP, MAP + 1):
        counted = account.context.plane.counted(task)
        account.ledger.note(checkpoint, task, counted.served, 0, counted.read, counted.written)


def snapshot(*sizes, reused=(), awaited=(), image=None, type_="checkpoint", ages=()):
    files = tuple(File(name, size_bytes, "shared") for name, size_bytes in sizes)
    return StateSnapshot(1, type_, FrozenState(0, (WriteStep(files),), reused, awaited, image=image), 0, ages=ages)


def of_subtask(account, **state):
    """The state of map[0], with other options."""
    subtask = account._subtasks[MAP]
    subtask.state = replace(subtask.state, **state)
    return subtask


class TestSizes:
    def facts_of(self, account, *arguments, **options):
        account.state_taken(LATEST, MAP, snapshot(*arguments, **options))
        return facts(account)

    def test_a_snapshot_holds_all_state(self, account):
        """Nine tenths, as merged tables are estimates, less two entries that were rounded off."""
        least = SHARE_BYTES * 9 // 10 - 2 * VALUE_BYTES
        assert self.facts_of(account, ("1.sst", least)) == []
        assert [f"its files hold {least - 1} bytes for {SHARE_BYTES} of state"] == self.facts_of(
            account, ("1.sst", least - 1)
        )

    @pytest.mark.parametrize("name", ["meta", "CURRENT", "MANIFEST", "OPTIONS"])
    def test_files_without_entries_do_not_count(self, account, name):
        assert [f"its files hold 0 bytes for {SHARE_BYTES} of state"] == self.facts_of(account, (name, SHARE_BYTES))

    def test_every_table_of_the_tree_has_a_file(self, account):
        image = stateful().contents.checkpoints[LATEST][MAP].parts[0][0].keyed.image
        assert isinstance(image, TreeImage)
        table = next(table for level in image.levels for table in level)
        (fact,) = self.facts_of(account, ("1.sst", SHARE_BYTES), image=image)
        assert f"it names no file for {table.name}, a table of its tree with {table.entries} keys" == fact

    def test_the_story_is_of_this_snapshot_and_task(self, account):
        account.state_taken(LATEST, MAP, snapshot())
        (found,) = account.found
        assert found.where == "snapshot 6 of map[0]"
        assert any("triggers checkpoint 6" in line for line in found.story)
        assert not any("map[1]" in line or "checkpoint 5" in line for line in found.story)

    def test_keys_that_are_added_are_state(self, account):
        """Twice the entries from before after so many records."""
        served = account.ledger.served(LATEST, MAP)
        of_subtask(account, growth_bytes=100)
        grown_bytes = account._subtasks[MAP].added_bytes(served)
        assert grown_bytes > 0
        assert [f"its files hold 0 bytes for {SHARE_BYTES + grown_bytes} of state"] == self.facts_of(account)


class TestChangelogs:
    """The log begins with the share of the subtask; an entry is added for every second record."""

    @pytest.fixture
    def logged(self, account):
        return of_subtask(account, changelog=Changelog())

    def end(self, account, subtask):
        served = account.ledger.served(LATEST, MAP)
        assert SHARE_BYTES + served // 2 * VALUE_BYTES == subtask.log_end(served)
        return subtask.log_end(served)

    def facts_of(self, account, **options):
        account.state_taken(LATEST, MAP, snapshot(**options))
        return facts(account)

    def log(self, *ends):
        return tuple(File(f"log-{end}", end - begin, "shared") for begin, end in zip((0, *ends), ends, strict=False))

    def test_the_log_reaches_to_the_cut(self, account, logged):
        end = self.end(account, logged)
        assert self.facts_of(account, awaited=self.log(1000, end)) == []
        assert [
            f"1 byte of its changelog are in no file: the positions {end - 1} to {end} (the materialisation holds everything before 0)"
        ] == self.facts_of(account, awaited=self.log(1000, end - 1))

    def test_a_hole_in_the_log(self, account, logged):
        end = self.end(account, logged)
        _, *rest = self.log(1000, end)
        assert (self.facts_of(account, awaited=tuple(rest))) == [
            "1000 bytes of its changelog are in no file: the positions 0 to 1000 (the materialisation holds everything before 0)"
        ]

    def test_behind_a_materialisation_the_log_begins_anew(self, account, logged):
        end = self.end(account, logged)
        base = Handle("1.sst", SHARE_BYTES, "shared", 3)
        account.materialising(MAP, 1)
        begun = logged.materialising[1]
        assert begun == logged.log_end(account.context.plane.position(MAP).served)
        account.materialised(MAP, 1, [base])
        assert logged.materialising == {}
        assert begun == logged.from_bytes >= end
        assert self.facts_of(account, reused=(base,)) == []
        assert [
            f"it does not name 1.sst, and so lacks {SHARE_BYTES} bytes of what its state is made of"
        ] == self.facts_of(account)

    @pytest.mark.parametrize(
        ("type_", "is_log"), [("checkpoint", True), ("full", True), ("native", False), ("canonical", False)]
    )
    def test_a_savepoint_names_no_log(self, account, logged, type_, is_log):
        account.state_taken(LATEST, MAP, snapshot(("1.sst", SHARE_BYTES), type_=type_))
        assert is_log == ("changelog" in "".join(facts(account)))


class TestCompletion:
    def facts_of(self, account):
        account.completed(LATEST, ())
        return facts(account)

    @pytest.fixture
    def stored(self, account):
        stored = account.contents.checkpoints[LATEST][MAP].parts[0][0]
        account.state_taken(LATEST, MAP, stored)
        return stored

    def test_less_is_named_than_was_frozen(self, account, stored, monkeypatch):
        frozen_bytes, count = stored.keyed.full_bytes, len(stored.handles)
        shorter = stored.handles[0]._replace(size_bytes=stored.handles[0].size_bytes - 1)
        monkeypatch.setattr(stored, "handles", [shorter, *stored.handles[1:]])
        assert [
            f"it names {count} files with {frozen_bytes - 1} bytes of keyed state, {frozen_bytes} were frozen"
        ] == self.facts_of(account)

    def test_files_are_there(self, account, stored, monkeypatch):
        files = [account.context.storage.files[handle.file] for handle in stored.handles[:2]]
        monkeypatch.setattr(files[0], "deleted_ns", 1)
        assert [f"1 file it names is not there: {stored.handles[0].name}"] == self.facts_of(account)
        account.state_taken(LATEST, MAP, stored)
        monkeypatch.setattr(files[1], "deleted_ns", 1)
        assert [f"2 files it names are not there: {stored.handles[0].name}"] == self.facts_of(account)

    def test_a_task_without_a_part_is_not_looked_at(self, account, stored, monkeypatch):
        monkeypatch.setattr(account.contents.checkpoints[LATEST][MAP], "parts", ())
        assert self.facts_of(account) == []
        assert account._by_checkpoint[LATEST] == {}


class TestRestores:
    def restored(self, account, *pieces, checkpoint=LATEST):
        account.restored(checkpoint, MAP, pieces, 0)
        return account._subtasks.get(MAP)

    @pytest.fixture
    def stored(self, account):
        for task in (MAP, MAP + 1):
            stored = account.contents.checkpoints[LATEST][task].parts[0][0]
            account.state_taken(LATEST, task, stored)
        account.completed(LATEST, ())
        facts(account)
        return account.contents.checkpoints[LATEST][MAP].parts[0][0]

    def restored_parts(self, account, index=0, share=ALL):
        stored = account.contents.checkpoints[LATEST][MAP + index].parts[0][0]
        return RestoredState("keyed", stored.stamp, share, stored.keyed.full_bytes)

    def test_a_restored_task_builds_upon_what_it_read(self, account, stored):
        subtask = self.restored(account, self.restored_parts(account))
        assert tuple(stored.handles) == subtask.base
        assert account.ledger.served(LATEST, MAP) == subtask.served
        assert (subtask.log_bytes, subtask.from_bytes) == (0, 0), "none of it is a log"

    def test_when_all_keys_have_expired_its_log_is_empty(self, account, stored, monkeypatch):
        assert self.restored(account).log_bytes == SHARE_BYTES, "nothing was brought: its share"
        monkeypatch.setattr(stored, "handles", [])
        assert self.restored(account).log_bytes == 0

    def test_operators_that_had_finished_are_closed(self, account, monkeypatch):
        part = account.contents.checkpoints[LATEST][MAP]
        monkeypatch.setattr(part, "finished", True)
        assert self.restored(account) is not None, "they hold state"
        monkeypatch.setattr(part, "parts", ())
        assert self.restored(account) is None
        most = 2 * (SHARE_BYTES + VALUE_BYTES)
        account.state_taken(LATEST, MAP, snapshot(("1.sst", most)))
        assert facts(account) == []
        account.state_taken(LATEST, MAP, snapshot(("1.sst", most + 1)))
        assert [f"it has {most + 1} bytes of state, and was restored as finished"] == facts(account)


class TestAges:
    """Keys live for 10 s: all those the job began with were written before it."""

    @pytest.fixture
    def expiring(self, account):
        subtask = of_subtask(account, ttl=Ttl(10 * 10**9), growth_bytes=100)
        subtask.ages = ((0, 1, 5000),)
        return subtask

    def facts_of(self, account, *ages):
        account._check_ages(account._subtasks[MAP], LATEST, MAP, ages, account.ledger.served(LATEST, MAP))
        return facts(account)

    def test_keys_that_live_are_there(self, account, expiring):
        assert self.facts_of(account, (0, 1, 5000)) == []
        assert (account.now_ns, account.ledger.served(LATEST, MAP)) == expiring.checked
        assert expiring.ages == ((0, 1, 5000),)

    def test_keys_expire_too_early(self, account, expiring):
        (fact,) = self.facts_of(account, (0, 1, 4000))
        assert fact.startswith("keys have expired too early: 4000 bytes are left; at 0 s there were 5000 bytes")

    def test_no_more_keys_are_young_than_were_written(self, account, expiring):
        served = account.ledger.served(LATEST, MAP)
        written = 100 * served + 2 * (served // 2 * VALUE_BYTES) + 302
        assert self.facts_of(account, (0, 1, 5000), (5, 5, written - 5000)) == []
        expiring.ages, expiring.checked = ((0, 1, 5000),), (0, 0)
        (fact,) = self.facts_of(account, (0, 1, 5000), (5, 5, written - 5000 + 2))
        assert fact.startswith("keys are young again")

    def test_what_a_job_begins_with_was_written_before_it(self, account):
        """As the backend has it: evenly over the time that keys live."""
        job, ttl = account.context.scenario.job, Ttl(10 * 10**9)
        vertices = [
            replace(vertex, state=replace(vertex.state, ttl=ttl)) if vertex.state else vertex for vertex in job.vertices
        ]
        account = with_scenario(account, job=replace(job, vertices=tuple(vertices)))

        assert Expiry(ttl.after_ns, SHARE_BYTES, VALUE_BYTES).ages == account._initial_state(MAP).ages

    def test_live_state_is_what_has_not_expired(self, account, expiring):
        assert expiring.live_bytes(3, ((0, 1, 3), (1, 2, 4))) == 7
        assert expiring.added_bytes(3) == 300


class TestStamps:
    @pytest.fixture
    def account(self):
        account = with_journal(account_of(StateMonitor, stateful()), Entry(0, Happening.JOB_RESTORED, LATEST, number=1))
        note_cuts(account, LATEST)
        for task in (MAP, MAP + 1):
            account.state_taken(LATEST, task, account.contents.checkpoints[LATEST][task].parts[0][0])
        return account

    def restore(self, account, *pieces, after=0, task=MAP):
        account.restored(LATEST, task, pieces, account.ledger.served(LATEST, task) + after)
        return facts(account)

    def own(self, account, task=MAP):
        stamp, size_bytes = account.parts[LATEST][task]["keyed"]
        return RestoredState("keyed", stamp, ALL, size_bytes)

    def test_a_task_gets_its_own_state(self, account):
        assert self.restore(account, self.own(account)) == []
        assert str(self.own(account).stamp) == "map[0] at checkpoint 6"

    def test_a_task_gets_none(self, account):
        (fact,) = self.restore(account)
        assert fact.startswith("its keyed state is not restored")

    def test_a_task_gets_that_of_another(self, account):
        assert (self.restore(account, self.own(account, MAP + 1))) == [
            "its keyed state is that of map[1] at checkpoint 6, the checkpoint holds that of map[0] at checkpoint 6"
        ]

    @pytest.mark.parametrize("after", [-1, 1])
    def test_a_task_goes_on_elsewhere(self, account, after):
        served = account.ledger.served(LATEST, MAP)
        assert [
            f"its state goes on as after {served + after} records, its checkpoint holds what {served} records did"
        ] == (self.restore(account, self.own(account), after=after))

    def test_a_rescaled_vertex_gets_all_of_it_once(self, account):
        """Judged when both subtasks have theirs: here the second one gets what the first one has."""
        other = account_of(StateMonitor, stateful())
        other.ledger.notes.update(account.ledger.notes)
        other._rescaled_from[LATEST] = account, frozenset({"map"})
        halves = [self.own(account, task)._replace(share=Fraction(1, 2)) for task in (MAP, MAP + 1)]
        assert self.restore(other, *halves) == []
        assert self.restore(other, *halves, task=MAP + 1) == []
        assert other._restored_parts == {}
        assert self.restore(other, *halves) == []
        assert self.restore(other, halves[0], task=MAP + 1), "a half of the second one's state is lost"


# The accounts of what is stored and of files, told what is not true of a checkpoint that is complete.


STORED_LATEST, BEFORE = 6, 5  # the checkpoints that hold files
FIRST_READER = 0  # a source: what it has in flight is overtaken output


@pytest.fixture
def stored_account():
    return account_of(StoredStateMonitor, stateful())


@pytest.fixture
def files():
    return account_of(FileMonitor, stateful())


def part(stored_account, task=MAP):
    return stored_account.contents.checkpoints[STORED_LATEST][task]


class TestCompletedCheckpoints:
    def facts_of(self, stored_account, checkpoint=STORED_LATEST):
        stored_account.completed(checkpoint, ())
        return facts(stored_account)

    def test_metadata_that_is_being_written(self, stored_account, monkeypatch):
        monkeypatch.setattr(named(stored_account, "_metadata", STORED_LATEST), "durable_ns", None)
        assert self.facts_of(stored_account) == ["it is complete, and its metadata is no file yet"]

    def test_metadata_of_another_checkpoint(self, stored_account, monkeypatch):
        monkeypatch.setattr(named(stored_account, "_metadata", STORED_LATEST), "name", ("_metadata", STORED_LATEST + 1))
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

    def test_what_came_with_an_acknowledgement_is_no_file(self, stored_account, first, monkeypatch):
        monkeypatch.setattr(stored_account.context.stats[BEFORE], "status", "FAILED")
        keyed = part(stored_account).parts[0][0].keyed
        monkeypatch.setattr(
            part(stored_account).parts[0][0], "keyed", replace(keyed, reused=(first._replace(file=None),))
        )
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
        assert list(free.at_the_end(end_of(stateful()))) == []
        monkeypatch.setattr(free.context.storage.files[free._not_claimed[0]], "deleted_ns", 1)
        (found,) = free.at_the_end(end_of(stateful()))
        assert found.fact == "1 file of the snapshot that the job began with, and did not claim, is deleted"


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
        with_journal(stored_account, Entry(0, Happening.TASK_RESTORED, STORED_LATEST, MAP, 1000))
        stored_account.restored(
            STORED_LATEST, MAP, [RestoredState("keyed", None, Fraction(1), size_bytes)._replace(**changes)], 0
        )
        assert expected == facts(stored_account)


class TestFilesThatStay:
    """Files of the first checkpoint are found again at the end: five have completed since."""

    def facts_of(self, stored_account):
        return [violation.where for violation in stored_account.at_the_end(end_of(stateful()))]

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
