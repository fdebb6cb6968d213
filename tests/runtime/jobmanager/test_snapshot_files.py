"""Files of snapshots, call by call and in whole runs: who registers them, what is deleted when, and who waits for it."""

from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace

import pytest
import simpy

from sim.model.job import Distribution
from sim.model.storage import Directories, ObjectStore
from sim.protocol.options import BarrierOptions
from sim.results.journal import EventType
from sim.runtime.job_instance import JobInstance
from sim.runtime.jobmanager.snapshot_files import SnapshotFiles
from sim.runtime.simulate import simulate
from sim.storage.ledger import FileLedger
from sim.storage.media.flat import FlatStorage
from sim.storage.state_files import Handle
from tests.invariants.jobs.small_jobs import (
    MS,
    SECOND,
    UNALIGNED,
    chain,
    completed,
    run,
    scenario,
    started,
    with_options,
)
from tests.runtime.job_chains import jobs

# Files of snapshots in whole runs: what is deleted when, and who waits for it.


def there(instance):
    """(checkpoint, kind) of what is in storage."""
    return {
        (
            int(file.name[-1]) if file.name[0] == "_metadata" else int(file.name[3 if len(file.name) > 3 else 2]),
            file.name[0],
        )
        for file in instance.storage.files
        if file.complete and file.deleted_ns is None
    }


@pytest.mark.parametrize("retained", [1, 3])
def test_what_is_subsumed_is_deleted(retained):
    """Files and metadata of the retained checkpoints stay, and of the one under way."""
    base = scenario(chain(1), seconds=3)
    instance = run(with_options(base, num_retained=retained))
    kept = sorted(completed(instance))[-retained:]

    assert kept == [stored.checkpoint for stored in instance.job.files.kept_here()]
    assert set(kept) == {checkpoint for checkpoint, kind in there(instance) if kind == "_metadata"}
    assert set(kept) <= {checkpoint for checkpoint, _ in there(instance)} <= {*kept, max(instance.stats)}
    assert all(instance.job.files.exists(file) for stored in instance.job.files.kept_here() for file in stored.files)


def test_channel_state_belongs_to_its_checkpoint():
    """One file per group of subtasks; it goes with the directory."""
    instance = run(scenario(chain(1), UNALIGNED, seconds=3))
    (latest,) = instance.job.files.kept_here()
    stored = [file for file in instance.storage.files if file.name[0] == "channel-state" and file.complete]

    assert stored
    newest = {file.id for file in stored if file.deleted_ns is None and file.name[-1] == latest.checkpoint}
    assert newest <= {file.number for file in latest.files}
    assert all(file.deleted_ns is not None for file in stored if file.name[-1] < latest.checkpoint)


def test_an_expired_checkpoint_leaves_nothing():
    """What was acknowledged is deleted with it, what tasks had written and not acknowledged by them."""
    base = scenario(chain(2), seconds=3)
    instance = run(with_options(base, timeout_ns=60 * MS))
    failed = {number for number, row in instance.stats.items() if row.status == "FAILED"}
    late = {checkpoint for checkpoint, _ in there(instance)} & failed

    assert failed
    assert late <= {max(failed)}, "the last one may still be on its way"


def test_metadata_of_a_checkpoint_that_was_given_up_goes():
    """They become durable when nobody waits for them any more; those of the checkpoint under way stay."""
    instance = started(scenario(chain(1), seconds=1))
    while not instance.job.files.store.pending:
        instance.env.step()
    numbers = (min(instance.job.files.store.pending), 999)
    stored = [
        instance.storage.files.create(("_metadata", number), 0, instance.env.now, disk=False) for number in numbers
    ]
    for number, file in zip(numbers, stored, strict=True):
        instance.storage.files.close(file, instance.env.now)
        instance.job.files.metadata(number, file.id)
    instance.env.run(until=instance.env.now + MS)

    assert [instance.storage.files.exists(file.id) for file in stored] == [True, False]


def test_what_a_task_had_written_for_nothing_goes():
    """Tables of a state backend that were stored before the checkpoint expired, by a task that never acknowledged it."""
    base = jobs(count=1, seconds=3)
    instance = run(with_options(base, timeout_ns=300 * MS))
    tables = [file for file in instance.storage.files if str(file.name[-1]).endswith(".sst") and file.complete]

    assert not completed(instance)
    assert len(tables) > 10
    assert {file.name[3] for file in tables if file.deleted_ns is None} <= {max(instance.stats)}


def deleting(latency_ns):
    """Object storage where a request takes a while; deletes are requests too."""
    base = scenario(chain(2), seconds=6, interval_ms=200)
    store = ObjectStore(bytes_per_second=None, latency=Distribution(latency_ns), requests_per_second=None)
    return replace(base, storage=replace(base.storage, object_store=store))


def test_slow_deletes_hold_triggers_back(monkeypatch):
    """Two checkpoints being cleaned up are one more than may run: the next trigger waits for a deletion to end (B.3)."""
    base = scenario(chain(1), seconds=6, interval_ms=100)
    free = simulate(base).checkpoints
    monkeypatch.setattr(FlatStorage, "remove", lambda self, name, size_bytes, host: self.spend(SECOND))
    held_back = simulate(base).checkpoints

    assert len(free) > 40
    assert len(held_back) <= 14, "two deletions of one second at a time, and the first ones"


def test_deleting_takes_several_files_at_a_time():
    """Four, as the I/O executor's threads: a directory of nine files takes three requests' time."""
    instance = JobInstance(deleting(100 * MS), "compiled")
    files = [instance.storage.files.create(("x", i), 0, 0, disk=False) for i in range(9)]
    ended = []
    instance.job.files._delete([file.id for file in files], lambda: ended.append(instance.env.now))
    instance.env.run(until=SECOND)

    assert ended == [300 * MS]


def test_tables_say_who_needed_what():
    """One row per file, with the snapshots that named it; heap state is never shared."""
    result = simulate(scenario(chain(1), seconds=2))
    files, snapshots = result.files, result.snapshots

    assert (files["created_by"] == files["last_used"]).all()
    assert (files["checkpoint"] == files["created_by"]).all()
    assert {"exclusive"} == set(files["scope"])
    (kept,) = snapshots.to_dict("records")
    assert kept["id"] == result.checkpoints.loc[result.checkpoints["status"] == "COMPLETED", "id"].max()
    assert [kept[column] for column in ("self_contained", "relocatable_own_dir", "restorable")] == [True] * 3
    assert files.loc[files["deleted"] < 0, "path"].str.startswith(f"{kept['directory']}/").sum() == kept["files_total"]


def test_increments_that_overlap_lose_each_others_files():
    """What Flink's registry makes of several checkpoints at a time: acknowledgements come to nothing, nothing broken is ever kept."""
    base = jobs(count=1, seconds=8)
    several = replace(base.checkpoint, max_concurrent=3, interval_ns=90 * MS, timeout_ns=3 * SECOND)
    result = simulate(replace(base, checkpoint=several))

    assert result.violations == ()
    assert EventType.STATE_UNKNOWN in {row.event_type for row in result.journal}
    assert "CHECKPOINT_SUBSUMED" in set(result.checkpoints["failure_message"]), (
        "it waits in vain until a newer one completes"
    )
    assert result.snapshots["restorable"].all()


# The files that snapshots name, call by call: who registers them, when they are deleted, and what the next job takes over.


DELETION_NS = 10


class Store:
    """Storage in which each deletion takes 10 ns, and a JobManager's knowledge of its files."""

    def __init__(self):
        self.env, self.ledger = simpy.Environment(), FileLedger()
        storage = SimpleNamespace(files=self.ledger, delete=self.delete)
        scenario = SimpleNamespace(directories=Directories())
        self.files = SnapshotFiles(SimpleNamespace(env=self.env, storage=storage, scenario=scenario))

    def delete(self, files):
        for file in files:
            with suppress(simpy.Interrupt):
                yield self.env.timeout(DELETION_NS)
                self.ledger[file].deleted_ns = int(self.env.now)
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
