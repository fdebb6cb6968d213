"""State as processes: how long uploads, copies and downloads take, exactly; and who else notices."""

from dataclasses import replace
from fractions import Fraction

import pytest
import simpy
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.model.job import Snapshot, Vertex
from sim.model.state import Changelog, Lsm, State, StateOptions, Ttl
from sim.model.storage import Disk, Storage
from sim.runtime.task.keyed_state import StateOwner
from sim.runtime.task.subtask_state import SubtaskState
from sim.storage.filesystem import CheckpointStorage
from sim.storage.state_files import File, WriteStep

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

        assert live_bytes == pytest.approx(again.keyed.turnover.expiry.live_bytes, abs=0.02 * MB)
        again.keyed.count(60_000, int(files.env.now))
        assert live_bytes + 400_000 == pytest.approx(again.keyed.turnover.expiry.live_bytes, abs=0.02 * MB), (
            "10,000 records since, whatever came before"
        )


def test_a_restore_adds_no_record():
    """Five records of 1 MB were served, and five come back."""
    state = State(0, growth_bytes=MB, value_bytes=40, ttl=Ttl(10_000 * MS, checks=0))
    files, task, again = storage(), subtask(state, StateOptions()), subtask(state, StateOptions())
    _, kept = snapshot(task, files, 1, "native", served=5)
    took(files, again.restore(files, 1, [(kept, Fraction(1))], 5))

    assert pytest.approx(again.keyed.turnover.expiry.live_bytes, abs=0.02 * MB) == 5 * MB


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_state_that_expires_levels_off_at_its_rate_times_the_time_to_live(backend):
    """5,000 records of 40 B per second for 10 s."""
    files, sizes = storage(), []
    task = subtask(State(0, backend, growth_bytes=40, value_bytes=40, ttl=Ttl(10_000 * MS)), StateOptions())
    for number in range(1, 13):
        files.env.run(until=number * 5000 * MS)
        sizes.append(snapshot(task, files, number, "canonical", served=25_000 * number)[1].full_bytes)

    assert sizes[:1] == [MB]
    assert sizes[1:] == [pytest.approx(2 * MB, rel=0.11)] * 11


def list_schedule_ns(costs, threads):
    """Graham's list scheduling: each piece goes to the thread that is free first."""
    free = [0] * threads
    for cost in costs:
        free[free.index(min(free))] += cost
    return max(free)


@given(st.lists(st.integers(1, 50), min_size=1, max_size=12), st.integers(1, 6))
@settings(max_examples=60)
def test_files_of_a_step_are_list_scheduled(sizes, threads):
    """k threads take the files in order: the makespan of `latency + bytes / bandwidth` on k machines, to the nanosecond."""
    files, task = storage(), subtask(HEAP, StateOptions())
    step = WriteStep(tuple(File(f"{i}", size * MB, "shared") for i, size in enumerate(sizes)), threads)
    costs = [size * MB + 2 * MS for size in sizes]

    assert list_schedule_ns(costs, threads) == took(files, task.keyed.write_step(files, [], step, ("keyed",)))


@pytest.mark.parametrize(("threads", "tables_ms", "others_ms"), [(1, 14, 6), (4, 12, 2)])
def test_rocksdb_writes_meta_then_tables_then_the_rest(threads, tables_ms, others_ms):
    """2 ms for the stream of columns; tables of 10 MB and 1 kB; three small files: their bytes come on top."""
    files, task = storage(), subtask(ROCKS, StateOptions(incremental=True, transfer_threads=threads))
    task.keyed.backend.tree.flush(0)
    (keyed_ns, _), stored = snapshot(task, files, 1, served=1)
    small = {handle.name: handle.size_bytes for handle in stored.handles if not handle.name.endswith(".sst")}
    others_ns = small["CURRENT"] + small["MANIFEST"] + small["OPTIONS"] if threads == 1 else small["OPTIONS"]

    extra_ns = 1000 if threads == 1 else 0
    assert (2 + tables_ms + others_ms) * MS + small["meta"] + others_ns + extra_ns == keyed_ns


def test_an_incremental_checkpoint_reads_back_what_it_wrote_and_reused():
    """In the ledger all files exist; the second snapshot names those of the first."""
    files, task = storage(), subtask(ROCKS, StateOptions(incremental=True), operator_bytes=7)
    first = snapshot(task, files, 1)[1]
    task.keyed.notify_complete(1)
    second = snapshot(task, files, 2, served=3)[1]

    assert second.full_bytes == sum(files.files[handle.file].size_bytes for handle in second.all_handles)
    assert second.written_bytes < first.written_bytes
    assert all(files.files.exists(handle.file) for handle in second.all_handles)
    assert {handle.file for handle in first.handles if handle.name.endswith(".sst")} < {
        handle.file for handle in second.handles
    }


def test_a_cancelled_snapshot_tells_what_it_leaves_behind():
    """Interrupted after the first file of two: that one is nobody's, and nothing is built upon it."""
    files, task = storage(), subtask(ROCKS, StateOptions(incremental=True))
    task.begin(1, "checkpoint")
    task.take(1, 0, 0)
    writing = files.env.process(task.write(files, "keyed", 1))
    writing.defused = True
    files.env.run(until=3 * MS)
    writing.interrupt()
    files.env.run()

    assert [handle.name for handle in task.cancel(1)] == ["meta"]
    assert task.cancel(1) == []
    assert [stored.complete for stored in files.files] == [True, False]
    task.keyed.notify_complete(1)
    assert task.keyed.backend.increments.base == {}


@pytest.mark.parametrize(("rate", "expected_ms"), [(None, 12), (1_000_000_000, 12), (500_000_000, 20)])
def test_serialising_runs_beside_writing(rate, expected_ms):
    """10 MB: 12 ms of writing, or 20 ms at 0.5 B per ns: the slower of the two."""
    files = storage()
    (keyed_ns, _), _ = snapshot(subtask(State(10 * MB, serialize_bytes_per_second=rate), StateOptions()), files, 1)

    assert expected_ms * MS == keyed_ns


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


def test_a_savepoint_under_way_at_the_end_of_a_run_slows_nobody_any_more():
    """Its process is thrown away after the plane, which hears of nothing then: a traceback was printed."""
    factors, files = [], storage()
    task = subtask(HEAP, StateOptions(savepoint_cpu=Fraction(1, 2)), slow=factors.append)
    task.begin(1, "canonical")
    task.take(1, 0, 0)
    writing = task.write(files, "keyed", 1)
    next(writing)
    writing.close()

    assert factors == [2]


# -------------------------------------------------------------------------------------------------- restore


def restored(task, files, parts, served=0):
    return took(files, task.restore(files, 1, parts, served))


def test_a_heap_is_read_as_one_stream():
    """10 MB at 2 B per ns; deserialising at 1 B per ns would be the slower."""
    files = storage()
    stored = snapshot(subtask(HEAP, StateOptions()), files, 1)[1]

    assert restored(subtask(HEAP, StateOptions()), files, [(stored, Fraction(1))]) == 5 * MS
    assert (
        restored(subtask(HEAP, StateOptions(load_bytes_per_second=1_000_000_000)), files, [(stored, Fraction(1))])
        == 10 * MS
    )


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_rocksdb_is_read_by_several_threads(threads):
    """The makespan of its files, in their order."""
    files, options = storage(), StateOptions(incremental=True, transfer_threads=threads)
    task = subtask(ROCKS, options)
    for number in (1, 2, 3):
        stored = snapshot(task, files, number, served=1000 * number)[1]
        task.keyed.notify_complete(number)
    costs = [handle.size_bytes // 2 for handle in stored.handles]

    assert list_schedule_ns(costs, threads) == pytest.approx(
        restored(subtask(ROCKS, options), files, [(stored, Fraction(1))]), abs=10
    )


def test_a_restored_task_counts_its_updates_from_where_it_stands():
    """1000 records served at the checkpoint, 1010 at the next: ten new entries."""
    files, options = storage(), StateOptions(incremental=True)
    stored = snapshot(subtask(ROCKS, options), files, 1, served=1000)[1]
    again = subtask(ROCKS, options)
    restored(again, files, [(stored, Fraction(1))], served=1000)
    after = snapshot(again, files, 2, served=1010)[1]

    assert [handle.size_bytes for handle in after.handles if handle.name == "000002.sst"] == [10_000]
    assert stored.handles[1] in after.handles


def test_operator_state_is_read_after_keyed_state():
    """2 ms for 4 MB of it."""
    files = storage()
    stored = snapshot(subtask(HEAP, StateOptions(), 4 * MB), files, 1)[1]

    assert restored(subtask(HEAP, StateOptions(), 4 * MB), files, [(stored, Fraction(1))]) == 7 * MS


def test_a_restore_says_what_it_read():
    files = storage()
    stored = snapshot(subtask(HEAP, StateOptions(), 4 * MB), files, 1)[1]
    reading = files.env.process(subtask(HEAP, StateOptions()).restore(files, 1, [(stored, Fraction(1))], 0))

    assert files.env.run(until=reading) == 14 * MB


def test_list_state_is_dealt_out():
    """A rescaled subtask reads the share of the elements that comes to it."""
    files = storage()
    stored = snapshot(subtask(None, StateOptions(), 4 * MB), files, 1)[1]
    reading = files.env.process(subtask(None, StateOptions()).restore(files, 1, [(stored, Fraction(1, 4))], 0))

    assert files.env.run(until=reading) == MB


def test_what_travelled_inline_is_read_with_the_metadata():
    """No file, no time."""
    files = storage(inline_threshold_bytes=10 * MB)
    stored = snapshot(subtask(HEAP, StateOptions()), files, 1)[1]

    assert restored(subtask(HEAP, StateOptions()), files, [(stored, Fraction(1))]) == 0


# -------------------------------------------------------------------------------------------------- local recovery


LOCAL = StateOptions(incremental=True, local_recovery=True)


def test_the_heap_writes_its_copy_beside_the_file():
    """20 ms to the disk, 12 ms to storage: the slower counts; savepoints are not copied."""
    files, task = storage(), subtask(HEAP, LOCAL)

    assert [snapshot(task, files, number, type_)[0][0] for number, type_ in ((1, "checkpoint"), (2, "native"))] == [
        20 * MS,
        12 * MS,
    ]


def test_rocksdb_keeps_links_which_cost_nothing():
    files, plain = storage(), storage()
    with_copy, stored = snapshot(subtask(ROCKS, LOCAL), files, 1)

    assert snapshot(subtask(ROCKS, StateOptions(incremental=True)), plain, 1)[0] == with_copy
    assert files.files[stored.local].size_bytes == 0
    assert restored(subtask(ROCKS, LOCAL), files, [(stored, Fraction(1))]) == 0


def test_a_local_heap_is_read_from_disk():
    """20 ms from this slow disk; from storage on another task manager, after its loss, and when it is rescaled."""
    files = storage()
    stored = snapshot(subtask(HEAP, LOCAL), files, 1)[1]

    assert restored(subtask(HEAP, LOCAL), files, [(stored, Fraction(1))]) == 20 * MS
    assert restored(subtask(HEAP, LOCAL, host=1), files, [(stored, Fraction(1))]) == 5 * MS
    assert restored(subtask(HEAP, LOCAL), files, [(stored, Fraction(1, 2))]) == 2.5 * MS
    files.lose_disk(0)
    assert restored(subtask(HEAP, LOCAL), files, [(stored, Fraction(1))]) == 5 * MS


def test_a_complete_checkpoint_lets_older_copies_go():
    files, task = storage(), subtask(HEAP, LOCAL)
    copies = [snapshot(task, files, number)[1].local for number in (1, 2, 3)]
    task.keyed.notify_complete(2)
    files.env.run()

    assert [files.files.exists(copy) for copy in copies] == [False, True, True]


def test_a_full_disk_costs_the_copy_not_the_checkpoint():
    files = storage(disk=Disk(500_000_000, 5 * MB))
    stored = snapshot(subtask(HEAP, LOCAL), files, 1)[1]

    assert None is stored.local
    assert stored.written_bytes == 10 * MB


def test_time_passes_for_a_state_nobody_rewrites():
    """Three full memtables loaded, the rest flushed at the first snapshot; the compaction that begins is over at the second."""
    lsm = Lsm(memtable_bytes=3 * MB, compaction_bytes_per_second=10 * MB)
    files, task = storage(), subtask(replace(ROCKS, update_share=Fraction(0), lsm=lsm), StateOptions(incremental=True))
    first = snapshot(task, files, 1)[1]
    files.env.run(until=5_000 * MS)
    second = snapshot(task, files, 2)[1]

    assert [sum(handle.name.endswith(".sst") for handle in stored.handles) for stored in (first, second)] == [4, 1]
