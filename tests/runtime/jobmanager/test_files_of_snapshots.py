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


class TestDeletions:
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
