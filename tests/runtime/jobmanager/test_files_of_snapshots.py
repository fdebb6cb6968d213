"""The files that snapshots name, call by call: who registers them, when they are deleted, and what the next job takes over."""

from contextlib import suppress
from types import SimpleNamespace

import pytest
import simpy

from sim.model.storage import Directories
from sim.protocol.options import BarrierOptions
from sim.runtime.jobmanager.snapshot_files import SnapshotFiles
from sim.storage.ledger import FileLedger
from sim.storage.state_files import Handle

TASK = 2
DELETION_NS = 10
CHECKPOINT = BarrierOptions(0)
SAVEPOINT = BarrierOptions(0, savepoint=True)


class Store:
    """Storage in which each deletion takes 10 ns, and a JobManager's knowledge of its files."""

    def __init__(self):
        self.env, self.ledger = simpy.Environment(), FileLedger()
        self.stored_for = []
        contents = SimpleNamespace(checkpoints={}, in_flight_stored=lambda *facts: self.stored_for.append(facts))
        storage = SimpleNamespace(files=self.ledger, delete=self.delete)
        scenario = SimpleNamespace(directories=Directories())
        self.context = SimpleNamespace(env=self.env, storage=storage, scenario=scenario)
        self.contents = contents
        self.files = SnapshotFiles(self.context, contents)

    def delete(self, files):
        for file in files:
            with suppress(simpy.Interrupt):
                yield self.env.timeout(DELETION_NS)
                self.ledger.delete(file, int(self.env.now))
                continue
            return

    def file(self, size_bytes=100):
        stored = self.ledger.create(("keyed", "map", 0, 1), 0, 0, disk=False)
        stored.size_bytes = size_bytes
        self.ledger.close(stored, 0)
        return stored.id

    def begin(self, checkpoint, options=CHECKPOINT):
        self.files.begun(checkpoint, options)

    def acknowledge(self, checkpoint, *handles, task=TASK):
        self.files.offer(checkpoint, task, handles)
        return self.files.acknowledged(checkpoint, task)

    def complete(self, checkpoint, *handles, options=CHECKPOINT):
        """A checkpoint with these files and its metadata, whose file is returned."""
        self.begin(checkpoint, options)
        self.acknowledge(checkpoint, *handles)
        metadata = self.file()
        self.files.metadata(checkpoint, metadata)
        self.files.completed(checkpoint)
        return metadata

    def deleted(self):
        """When each file was deleted, by its id, after everything that goes on."""
        self.env.run()
        return {file.id: file.deleted_ns for file in self.ledger if file.deleted_ns is not None}


@pytest.fixture
def store():
    return Store()


def exclusive(file):
    return Handle("meta", 100, "exclusive", file)


def shared(file):
    return Handle("1.sst", 100, "shared", file)


class TestAcknowledgements:
    def test_its_files_are_those_of_the_checkpoint(self, store):
        """What came in the acknowledgement itself is no file."""
        first, second = store.file(), store.file(70)
        store.begin(1)
        assert store.acknowledge(1, exclusive(first), shared(second), exclusive(None))
        store.files.completed(1)
        (snapshot,) = store.files.kept_here()
        assert [(first, "exclusive", 100), (second, "shared", 70)] == [
            (file.number, file.scope, file.size_bytes) for file in snapshot.files
        ]
        assert all(file.checkpoint == 1 for file in snapshot.files)

    def test_files_of_a_savepoint_lie_in_its_directory(self, store):
        store.complete(1, exclusive(store.file()), options=SAVEPOINT)
        assert [file.scope for file in store.files.kept_here()[0].files] == ["savepoint"]

    def test_one_without_files_is_heard(self, store):
        store.begin(1)
        assert store.acknowledge(1)

    def test_one_that_reuses_what_nobody_registered_is_ignored(self, store):
        """The acknowledgement that brought its shared file never arrived."""
        file = store.file()
        store.files.offer(1, TASK, [shared(file)])
        store.begin(2)
        assert not store.acknowledge(2, shared(file))
        assert [row.last_used for row in store.files.file_rows()] == [-1]

    def test_a_file_keeps_its_first_and_last_checkpoint(self, store):
        file = store.file()
        for checkpoint in (1, 2, 3):
            store.begin(checkpoint)
            store.acknowledge(checkpoint, shared(file))
        (row,) = store.files.file_rows()
        assert (row.created_by, row.last_used, row.deleted_ns) == (1, 3, -1)

    def test_one_that_was_never_registered_has_none(self, store):
        store.files.offer(1, TASK, [exclusive(store.file())])
        (row,) = store.files.file_rows()
        assert (row.created_by, row.last_used) == (-1, -1)

    def test_channel_state_is_named_by_its_group(self, store):
        file = store.file()
        store.begin(1)
        store.files.channel_state(1, [0, 1], file, 55)
        assert [(1, [0, 1], file)] == store.stored_for
        store.files.completed(1)
        assert [(file, 55, "exclusive")] == [
            (row.number, row.size_bytes, row.scope) for row in store.files.kept_here()[0].files
        ]

    def test_a_part_that_is_kept_names_its_files_again(self, store):
        file = store.file()
        store.complete(1, shared(file))
        store.begin(2)
        store.files.keep(2, TASK, SimpleNamespace(handles=[shared(file)]))
        store.files.completed(2)
        assert [file] == [row.number for row in store.files.kept_here()[-1].files]


class TestDeletions:
    def test_a_subsumed_checkpoint_goes_with_its_metadata(self, store):
        """What the next one shares stays."""
        own, common = store.file(), store.file()
        metadata = store.complete(1, exclusive(own), shared(common))
        store.complete(2, shared(common))
        done = []
        store.files.discard(1, lambda: done.append(store.env.now))
        assert done == []
        assert {own: DELETION_NS, metadata: DELETION_NS} == store.deleted()
        assert done == [DELETION_NS]
        assert not store.files.exists(next(row.file for row in store.files.file_rows() if row.file.number == own))

    def test_an_aborted_checkpoint_goes_with_what_was_acknowledged(self, store):
        file = store.file()
        store.begin(1)
        store.acknowledge(1, exclusive(file))
        store.files.discard(1, lambda: None)
        assert {file: DELETION_NS} == store.deleted()

    def test_what_was_never_stored_is_gone_at_once(self, store):
        done = []
        store.files.discard(9, lambda: done.append(9))
        store.begin(1)
        store.files.discard(1, lambda: done.append(1))
        assert done == [9, 1]

    def test_files_are_deleted_four_at_a_time(self, store):
        files = [store.file() for _ in range(9)]
        store.begin(1)
        store.acknowledge(1, *map(exclusive, files))
        done = []
        store.files.discard(1, lambda: done.append(store.env.now))
        assert [at_ns for _, at_ns in sorted(store.deleted().items())] == [10] * 4 + [20] * 4 + [30]
        assert done == [30]

    def test_metadata_of_a_checkpoint_that_was_aborted_meanwhile_goes(self, store):
        store.begin(1)
        store.files.discard(1, lambda: None)
        metadata = store.file()
        store.files.metadata(1, metadata)
        assert {metadata: DELETION_NS} == store.deleted()

    def test_a_snapshot_that_a_task_gives_up_goes(self, store):
        file = store.file()
        store.files.abandon([exclusive(file), exclusive(None)])
        assert {file: DELETION_NS} == store.deleted()

    def test_a_lost_job_manager_deletes_nothing_more(self, store):
        """What tasks delete goes on."""
        files = [store.file() for _ in range(5)]
        store.begin(1)
        store.acknowledge(1, *map(exclusive, files[:4]))
        store.files.discard(1, lambda: None)
        store.files.abandon([exclusive(files[4])])
        store.env.run(until=DELETION_NS // 2)
        store.files.lose_store()
        assert {files[4]: DELETION_NS} == store.deleted()


class TestTheNextJob:
    def test_it_begins_with_the_files_of_its_snapshot(self, store):
        file = store.file()
        metadata = store.complete(1, shared(file))
        (snapshot,) = store.files.kept_here()
        after = SnapshotFiles(store.context, store.contents)
        after.take_over(store.files, snapshot, "claim")
        assert after.exists(snapshot.files[0])
        assert after.store.instance == 1
        assert after.kept_here() == (), "it is that of the job before"
        assert [kept.what for kept in after.kept()] == ["checkpoint 1 of job 0"]
        assert list(store.files.kept()) == [], "what becomes of it is the next one's doing"
        assert {1: metadata} == after._metadata

    @pytest.mark.parametrize("claim", ["no-claim", "legacy"])
    def test_metadata_that_is_not_claimed_stays(self, store, claim):
        store.complete(1, shared(store.file()))
        after = SnapshotFiles(store.context, store.contents)
        after.take_over(store.files, store.files.kept_here()[0], claim)
        assert after._metadata == {}

    def test_it_is_free_when_nothing_that_it_keeps_needs_the_old_one(self, store):
        file, own = store.file(), store.file()
        store.complete(1, shared(file))
        after = Store()
        after.ledger, after.env = store.ledger, store.env
        after.context.storage.files, after.context.env = store.ledger, store.env
        after.files.take_over(store.files, store.files.kept_here()[0], "claim")
        after.complete(2, shared(file))
        after.files.discard(1, lambda: None)
        assert after.files.free_ns == -1, "the second one builds upon it"
        store.env.run(until=77)
        after.complete(3, shared(own))
        after.files.discard(2, lambda: None)
        assert after.files.free_ns == 77

    def test_the_first_checkpoint_is_no_savepoint(self, store):
        store.complete(1, options=SAVEPOINT)
        assert store.files.first_completed == 0
        store.complete(2)
        store.complete(3)
        assert store.files.first_completed == 2
        assert (store.files.type_of(1), store.files.type_of(2)) == ("canonical", "checkpoint")


class TestWhatIsKept:
    def test_savepoints_and_checkpoints_in_the_order_of_their_numbers(self, store):
        for checkpoint, options in ((1, CHECKPOINT), (2, SAVEPOINT), (3, CHECKPOINT)):
            store.complete(checkpoint, exclusive(store.file()), options=options)
        assert [snapshot.checkpoint for snapshot in store.files.kept_here()] == [1, 2, 3]

    def test_a_savepoint_keeps_its_parts(self, store):
        store.contents.checkpoints[1] = {TASK: "part"}
        store.complete(1, options=SAVEPOINT)
        store.contents.checkpoints[2] = {TASK: "another"}
        store.complete(2)
        store.contents.checkpoints.pop(1)
        saved, checkpoint = store.files.kept_here()
        assert (store.files.parts(saved), store.files.parts(checkpoint)) == ({TASK: "part"}, {TASK: "another"})

    def test_files_that_are_missing_are_named(self, store):
        first, second = store.file(), store.file()
        store.complete(1, exclusive(first), exclusive(second))
        assert [kept.missing for kept in store.files.kept()] == [()]
        store.ledger.delete(second, 5)
        (kept,) = store.files.kept()
        assert (kept.files, len(kept.missing)) == (2, 1)
