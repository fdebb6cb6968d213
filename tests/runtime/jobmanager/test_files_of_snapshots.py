"""The files that snapshots name, call by call: who registers them, when they are deleted, and what the next job takes over."""

from contextlib import suppress
from types import SimpleNamespace

import simpy

from sim.model.storage import Directories
from sim.protocol.options import BarrierOptions
from sim.runtime.jobmanager.snapshot_files import SnapshotFiles
from sim.storage.ledger import FileLedger
from sim.storage.state_files import Handle

DELETION_NS = 10


class Store:
    """Storage in which each deletion takes 10 ns, and a JobManager's knowledge of its files."""

    def __init__(self):
        self.env, self.ledger = simpy.Environment(), FileLedger()
        storage = SimpleNamespace(files=self.ledger, delete=self.delete)
        scenario = SimpleNamespace(directories=Directories())
        self.files = SnapshotFiles(SimpleNamespace(env=self.env, storage=storage, scenario=scenario), None)

    def delete(self, files):
        for file in files:
            with suppress(simpy.Interrupt):
                yield self.env.timeout(DELETION_NS)
                self.ledger.delete(file, int(self.env.now))
                continue
            return

    def exclusive(self):
        stored = self.ledger.create(("keyed", "map", 0, 1), 0, 0, disk=False)
        self.ledger.close(stored, 0)
        return Handle("meta", 100, "exclusive", stored.id)


class TestDeletions:
    def test_a_lost_job_manager_deletes_nothing_more(self):
        """What tasks delete goes on."""
        store = Store()
        *registered, other = [store.exclusive() for _ in range(5)]
        store.files.begun(1, BarrierOptions(0))
        store.files.offer(1, 2, registered)
        assert store.files.acknowledged(1, 2)
        store.files.discard(1, lambda: None)
        store.files.abandon([other])
        store.env.run(until=DELETION_NS // 2)
        store.files.lose_store()
        store.env.run()
        assert [file.deleted_ns for file in store.ledger] == [None] * 4 + [DELETION_NS]
