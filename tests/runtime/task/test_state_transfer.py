"""State as processes: how long uploads, copies and downloads take, exactly; and who else notices."""

from fractions import Fraction

import pytest
import simpy

from sim.model.job import Snapshot, Vertex
from sim.model.state import Changelog, Lsm, State, StateOptions, Ttl
from sim.model.storage import Disk, Storage
from sim.runtime.task.keyed_state import StateOwner
from sim.runtime.task.subtask_state import SubtaskState
from sim.storage.filesystem import CheckpointStorage

MS, MB = 1_000_000, 1_000_000
HEAP = State(10 * MB)
ROCKS = State(
    10 * MB,
    "rocksdb",
    Fraction(1),
    1000,
    Lsm(memtable_bytes=10**9, flush_bytes_per_second=10**15, freeze_ns=0, upload_ns=0),
)


def storage(**options):
    """1 B per ns and stream, 2 ms per file, reading at 2 B per ns; a disk with 0.5 B per ns."""
    given = {"inline_threshold_bytes": 0, "read_bytes_per_second": 2_000_000_000, "disk": Disk(500_000_000)} | options
    return CheckpointStorage(simpy.Environment(), Storage(1_000_000_000, 2 * MS, **given), seed=1)


def subtask(state, options, operator_bytes=0, **named):
    return SubtaskState(
        StateOwner(
            Vertex("map", state=state, snapshot=Snapshot(operator_state_bytes=operator_bytes)), 0, 1, options, **named
        )
    )


def took(files, work):
    """How long a process takes [ns]."""
    began = files.env.now
    files.env.run(until=files.env.process(work))
    return int(files.env.now) - began


def snapshot(task, files, number, type_="checkpoint", served=0):
    """Take and write one, keyed then operator state; (ns of each part, snapshot)."""
    task.begin(number, type_)
    task.take(number, served, int(files.env.now))
    spent = [took(files, task.write(files, part, number)) for part in ("keyed", "operator")]
    return spent, task.close(number)


def test_a_wait_for_the_disk_falls_into_one_part_of_the_snapshot_or_both():
    """Four times 2.5 MB are merged at 1 MB/s: the fourth snapshot takes 10 s longer, some of it on the task thread."""

    def spent(wait, index):
        files = storage()
        lsm = Lsm(memtable_bytes=10**9, compaction_bytes_per_second=MB, wait=wait)
        state = State(5 * MB, "rocksdb", growth_bytes=MB, lsm=lsm)
        task = SubtaskState(
            StateOwner(Vertex("map", parallelism=2, state=state), index, 1, StateOptions(incremental=True))
        )
        for number in range(1, 4):
            snapshot(task, files, number, served=(number - 1) * 5 // 2)
        task.begin(4, "checkpoint")
        sync_ns = task.take(4, 7, int(files.env.now))
        return sync_ns, took(files, task.write(files, "keyed", 4))

    for index in (0, 1):
        plain, delayed = spent(Fraction(0), index), spent(Fraction(1), index)
        assert sum(delayed) - sum(plain) == pytest.approx(9_500_000_000, rel=0.1)
        assert all(after > before for before, after in zip(plain, delayed, strict=True)), (
            "drawn: none of both parts is spared here"
        )
    assert spent(Fraction(1), 0)[0] != spent(Fraction(1), 1)[0]


@pytest.mark.parametrize("changelog", [None, Changelog()])
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_state_grows_with_the_records_served(backend, changelog):
    """10 MB and 40 B per record: a snapshot holds what its task has served, and so does whoever is restored from it."""
    growing = State(10 * MB, backend, growth_bytes=40, changelog=changelog)
    files, task, again = storage(), subtask(growing, StateOptions()), subtask(growing, StateOptions())
    assert task.keyed.counts_records
    _, kept = snapshot(task, files, 1, "native", served=50_000)
    began = took(files, again.restore(files, 1, [(kept, Fraction(1))], 50_000))
    _, next_one = snapshot(again, files, 2, "native", served=60_000)

    assert sum(handle.size_bytes for handle in kept.handles if handle.name in ("state", "000001.sst")) == 12 * MB
    assert began > 0
    tables = [
        handle.size_bytes for handle in next_one.handles if handle.name == "state" or handle.name.endswith(".sst")
    ]
    assert {"hashmap": [12 * MB + 400_000], "rocksdb": [400_000, 12 * MB]}[backend] == tables


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_state_that_expires_is_restored_with_the_times_of_its_keys(backend):
    """40 B per record live for 10 s.  A snapshot of 10 s ago is empty, whatever had been served; that of 5 s ago is half full."""
    state = State(0, backend, growth_bytes=40, value_bytes=40, ttl=Ttl(10_000 * MS, checks=0))
    for rest_s, live_bytes in ((0, 2 * MB), (5, MB), (10, 0)):
        files, task, again = storage(), subtask(state, StateOptions()), subtask(state, StateOptions())
        assert task.keyed.counts_records
        files.env.run(until=10_000 * MS)
        _, kept = snapshot(task, files, 1, "native", served=50_000)
        if rest_s:
            files.env.run(until=(10 + rest_s) * 1000 * MS)
        took(files, again.restore(files, 1, [(kept, Fraction(1))], 50_000))

        assert live_bytes == pytest.approx(again.keyed.expiry.live_bytes, abs=0.02 * MB)
        again.keyed.count(60_000, int(files.env.now))
        assert live_bytes + 400_000 == pytest.approx(again.keyed.expiry.live_bytes, abs=0.02 * MB), (
            "10,000 records since, whatever came before"
        )


def test_a_canonical_savepoint_goes_at_the_pace_of_the_processor_and_slows_the_task():
    """10 MB at 20 MB/s are 500 ms, and 1 / (1 - 40 %) = 5/3 as long per record all the while; a checkpoint slows nothing."""
    factors, files = [], storage()
    options = StateOptions(savepoint_bytes_per_second=20 * MB, savepoint_cpu=Fraction(2, 5))
    task = subtask(ROCKS, options, slow=lambda factor: factors.append((int(files.env.now), factor)))
    (keyed_ns, _), _ = snapshot(task, files, 1, "canonical")

    assert keyed_ns == 500 * MS
    assert [(0, Fraction(5, 3)), (500 * MS, 1)] == factors
    snapshot(task, files, 2)
    assert len(factors) == 2


def test_a_cancelled_savepoint_slows_nobody():
    """The share of the processor comes back when it is interrupted."""
    factors, files = [], storage()
    task = subtask(HEAP, StateOptions(savepoint_cpu=Fraction(1, 2)), slow=factors.append)
    task.begin(1, "canonical")
    task.take(1, 0, 0)
    writing = files.env.process(task.write(files, "keyed", 1))
    writing.defused = True
    files.env.run(until=MS)
    writing.interrupt()
    files.env.run()

    assert factors == [2, 1]


# -------------------------------------------------------------------------------------------------- restore


def restored(task, files, parts, served=0):
    return took(files, task.restore(files, 1, parts, served))


def test_a_restored_task_counts_its_updates_from_where_it_stands():
    """1000 records served at the checkpoint, 1010 at the next: ten new entries."""
    files, options = storage(), StateOptions(incremental=True)
    stored = snapshot(subtask(ROCKS, options), files, 1, served=1000)[1]
    again = subtask(ROCKS, options)
    restored(again, files, [(stored, Fraction(1))], served=1000)
    after = snapshot(again, files, 2, served=1010)[1]

    assert [handle.size_bytes for handle in after.handles if handle.name == "000002.sst"] == [10_000]
    assert stored.handles[1] in after.handles


# -------------------------------------------------------------------------------------------------- local recovery


LOCAL = StateOptions(incremental=True, local_recovery=True)


def test_a_local_heap_is_read_from_disk():
    """20 ms from this slow disk; from storage on another task manager, after its loss, and when it is rescaled."""
    files = storage()
    stored = snapshot(subtask(HEAP, LOCAL), files, 1)[1]

    assert restored(subtask(HEAP, LOCAL), files, [(stored, Fraction(1))]) == 20 * MS
    assert restored(subtask(HEAP, LOCAL, host=1), files, [(stored, Fraction(1))]) == 7 * MS
    assert restored(subtask(HEAP, LOCAL), files, [(stored, Fraction(1, 2))]) == 4.5 * MS
    files.lose_disk(0)
    assert restored(subtask(HEAP, LOCAL), files, [(stored, Fraction(1))]) == 7 * MS


def test_a_full_disk_costs_the_copy_not_the_checkpoint():
    files = storage(disk=Disk(500_000_000, 5 * MB))
    stored = snapshot(subtask(HEAP, LOCAL), files, 1)[1]

    assert None is stored.local
    assert stored.written_bytes == 10 * MB
