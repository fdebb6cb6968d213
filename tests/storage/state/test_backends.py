"""What each backend writes for each type of snapshot, what it shares, and what a restore of it reads."""

from dataclasses import replace
from fractions import Fraction

import pytest

from sim.model.state import ROCKSDB_FREEZE, Changelog, Lsm, State, StateOptions, Ttl
from sim.storage.lsm import CompactionThread
from sim.storage.state_backends import RocksDb, backend
from sim.storage.state_files import Handle, KeyedPart

MS, S = 1_000_000, 1_000_000_000
HEAP = State(1_000_000, serialize_bytes_per_second=50_000_000, sync_ns=3 * MS)
ROCKS = State(1_000_000, "rocksdb", Fraction(1), 1000, Lsm(memtable_bytes=10**9))
FULL, INCREMENTAL = StateOptions(), StateOptions(incremental=True)


def made(state, options=FULL):
    return backend(state, state.bytes, options)


def take(backend, number, type_="checkpoint", *, confirm=True, may_reuse=lambda _: True):
    """A snapshot with all its files written; (taken, handles)."""
    frozen = backend.take(number, type_, may_reuse)
    written = [
        Handle(file.name, file.size_bytes, file.scope, 100 * number + i) for i, file in enumerate(all_files(frozen))
    ]
    backend.stored(number, type_, [*frozen.reused, *written])
    if confirm:
        backend.notify_complete(number)
    return frozen, [*frozen.reused, *written]


def freeze(backend, number, type_="checkpoint"):
    return backend.take(number, type_, lambda _: True)


def all_files(frozen):
    return [file for step in frozen.steps for file in step.files]


def tables(files):
    return [file.name for file in files if file.name.endswith(".sst")]


def test_heap_state_is_one_full_file_every_time():
    """Written bytes are all bytes; serialising 1 MB at 50 MB/s takes 20 ms beside the writing; freezing costs what it costs."""
    heap = made(HEAP)
    for number in (1, 2):
        frozen, _ = take(heap, number)

        assert (frozen.written_bytes, frozen.full_bytes, frozen.sync_ns) == (1_000_000, 1_000_000, 3 * MS)
        assert all_files(frozen) == [("state", 1_000_000, "exclusive")]
        assert [step.work_ns for step in frozen.steps] == [20 * MS]


@pytest.mark.parametrize("state", [HEAP, ROCKS])
def test_a_canonical_savepoint_is_one_stream_at_the_pace_of_the_processor(state):
    """1 MB at 30 MB/s, whatever the backend; it belongs to nobody else."""
    frozen, _ = take(made(state, StateOptions(incremental=True)), 1, "canonical")
    (step,) = frozen.steps

    assert all_files(frozen) == [("savepoint", 1_000_000, "savepoint")]
    assert (step.work_ns, step.slows_task) == (1_000_000 * S // 30_000_000, True)


def test_an_incremental_checkpoint_writes_what_is_new():
    """First all 1 MB, then a table per snapshot; what is referred to has been written before."""
    rocks = made(ROCKS, INCREMENTAL)
    first, handles = take(rocks, 1)
    rocks.update(10, S)
    second, _ = take(rocks, 2)

    assert (tables(all_files(first)), tables(all_files(second))) == (["000001.sst"], ["000002.sst"])
    assert [handle for handle in handles if handle.name == "000001.sst"] == list(second.reused)
    assert 1_000_000 < first.written_bytes == first.full_bytes
    assert second.written_bytes < 30_000
    assert second.full_bytes == second.written_bytes + 1_000_000


def test_new_keys_are_in_the_increment():
    """10 new keys of 1 kB beside 1 MB: 10 kB more are written, and a canonical savepoint has them."""
    rocks = made(replace(ROCKS, growth_bytes=1), INCREMENTAL)
    take(rocks, 1)
    rocks.resize(1_010_000)
    rocks.update(0, S)
    frozen, _ = take(rocks, 2)
    saved, _ = take(rocks, 3, "canonical")

    assert [file.size_bytes for file in all_files(frozen) if file.name.endswith(".sst")] == [10_000]
    assert [file.size_bytes for file in all_files(saved)] == [1_010_000]


def test_a_restored_state_has_grown_before():
    """In a new tree (half of the key groups come here) as in the old one: what was restored is not written once more as new."""
    rocks = made(replace(ROCKS, growth_bytes=1), INCREMENTAL)
    rocks.resize(2_000_000)
    rocks.update(0, S)
    frozen, handles = take(rocks, 1)
    for share, size_bytes in ((Fraction(1), 2_000_000), (Fraction(1, 2), 1_000_000)):
        other = made(replace(ROCKS, growth_bytes=1), INCREMENTAL)
        other.restore(1, [KeyedPart("checkpoint", frozen.image, tuple(handles), share)], 2 * S)
        other.resize(size_bytes)
        other.update(0, 3 * S)

        assert size_bytes // 1000 == other.tree.keys
        assert other.tree.memtable_bytes in (0, size_bytes), "all in files, or a tree written from the beginning"


def test_expired_keys_leave_rocksdb_when_tables_are_merged():
    """Half of 1,000 keys expire.  Snapshots refer to them until the fourth table starts a compaction; then 500 kB are left."""
    rocks = made(replace(ROCKS, growth_bytes=1, ttl=Ttl(9 * S)), INCREMENTAL)
    take(rocks, 0)
    rocks.resize(500_000, 500_000)
    rocks.update(0, S)
    rocks.update(1, S)
    sizes = []
    for number in range(1, 5):
        _, handles = take(rocks, number)
        sizes.append(sum(handle.size_bytes for handle in handles if handle.name.endswith(".sst")))
        rocks.update(1, (number + 1) * S)

    assert sizes[:3] == [1_001_000, 1_002_000, 1_003_000]
    assert 500_000 <= sizes[3] <= 502_000
    assert rocks.tree.keys == 500


def test_keys_that_come_and_expire_are_both_counted():
    """As many come as go, in several calls: their entries are written, and the number stays."""
    rocks = made(replace(ROCKS, growth_bytes=1, ttl=Ttl(9 * S)), INCREMENTAL)
    take(rocks, 1)
    rocks.resize(1_004_000, 6_000)
    rocks.resize(1_000_000, 4_000)
    rocks.update(0, S)

    assert [file.size_bytes for file in all_files(take(rocks, 2)[0]) if file.name.endswith(".sst")] == [10_000]
    assert rocks.tree.keys == 1_000


@pytest.mark.parametrize(
    ("ttl", "expected"),
    [
        (Ttl(9 * S, checks=0), [1_000_000, 1_000_000]),
        (Ttl(9 * S), [750_000, 625_000]),
        (Ttl(9 * S, checks=10**9), [500_000, 500_000]),
        (Ttl(9 * S, checks=0, filters_snapshots=True), [500_000, 500_000]),
    ],
)
def test_expired_keys_leave_the_heap_when_the_cleanup_comes_by(ttl, expected):
    """Half of 1,000 entries expire.  50 records look at 10 each: half of all, where expired ones are twice as dense as elsewhere.

    Of 500 the implicit step leaves 250, then of 750 entries 125.
    """
    heap, sizes = made(replace(HEAP, ttl=ttl, serialize_bytes_per_second=None)), []
    for expired_bytes, records in ((500_000, 50), (0, 37)):
        heap.resize(500_000, expired_bytes, records)
        sizes.append(take(heap, 1)[0].full_bytes)

    assert [sizes[0], pytest.approx(sizes[1], rel=0.01)] == expected


def test_a_steady_heap_holds_half_a_round_of_expired_keys():
    """100 keys come and go per second, and 1,000 entries are looked at: a round takes 1.05 s, so 5 % more than those alive."""
    heap = made(replace(HEAP, ttl=Ttl(9 * S)))
    for _ in range(50):
        heap.resize(1_000_000, 100_000, 100)

    assert pytest.approx(take(heap, 1)[0].full_bytes, rel=0.01) == 1_053_000


def test_a_restored_heap_has_its_expired_keys_and_those_that_expired_since():
    """1 MB was read, 400 kB of it are alive: the rest goes with the next rounds of the cleanup."""
    heap = made(replace(HEAP, ttl=Ttl(9 * S)))
    heap.restore(1, [part(*take(heap, 1))], 0)
    heap.resize(400_000, 100_000)
    assert take(heap, 2)[0].full_bytes == 1_000_000
    heap.resize(400_000, 0, 10_000)

    assert take(heap, 3)[0].full_bytes <= 403_000


def test_keys_that_expire_are_not_logged():
    """3 kB came and 5 kB went: the log has 3 kB."""
    logs = made(replace(GROWING, ttl=Ttl(9 * S)))
    logged(logs, logs.cut(), 1)
    logs.resize(998_000, 5_000)

    assert logs.pending_bytes == 3_000


@pytest.mark.parametrize(("wait", "held_ns"), [(Fraction(0), 0), (Fraction(1, 2), 5 * S)])
def test_a_snapshot_that_starts_a_compaction_waits_for_the_disk(wait, held_ns):
    """Four times 250 kB of level 0 are merged at 100 kB/s: 10 s, half of which the fourth snapshot waits beside its own work."""
    lsm = Lsm(memtable_bytes=10**9, compaction_bytes_per_second=100_000, wait=wait)
    rocks = made(State(250_000, "rocksdb", Fraction(1), 1000, lsm, growth_bytes=1), INCREMENTAL)
    waits = []
    for number in range(1, 5):
        waits.append(take(rocks, number)[0].held_ns)
        rocks.resize(250_000 * (number + 1))
        rocks.update(0, number * S)

    assert [0, 0, 0, held_ns] == waits


def test_files_are_written_in_flinks_order():
    """The stream that lists the columns; then new tables, 4 at a time; then everything that is no table."""
    frozen, _ = take(made(ROCKS, INCREMENTAL), 1)

    assert [[file.name for file in step.files] for step in frozen.steps] == [
        ["meta"],
        ["000001.sst"],
        ["CURRENT", "MANIFEST", "OPTIONS"],
    ]
    assert [step.threads for step in frozen.steps] == [1, 4, 4]
    assert [file.scope for file in all_files(frozen)] == ["exclusive", "shared", "shared", "shared", "shared"]


def test_what_is_not_confirmed_is_written_again():
    """The notice of checkpoint 1 has not come: checkpoint 2 cannot build on it."""
    rocks = made(ROCKS, INCREMENTAL)
    take(rocks, 1, confirm=False)
    frozen, _ = take(rocks, 2)

    assert tables(all_files(frozen)) == ["000001.sst"]
    assert frozen.reused == ()


def test_what_may_not_be_reused_is_written_again():
    """Storage wants the file again: its physical file is mostly garbage."""
    rocks = made(ROCKS, INCREMENTAL)
    take(rocks, 1)
    frozen, _ = take(rocks, 2, may_reuse=lambda _: False)

    assert tables(all_files(frozen)) == ["000001.sst"]


def test_without_incremental_every_checkpoint_writes_all_tables():
    """Into its own directory (RocksNativeFullSnapshotStrategy)."""
    rocks = made(ROCKS)
    take(rocks, 1)
    frozen, _ = take(rocks, 2)

    assert tables(all_files(frozen)) == ["000001.sst"]
    assert {"exclusive"} == {file.scope for file in all_files(frozen)}
    assert frozen.written_bytes == frozen.full_bytes


def test_a_full_checkpoint_reuses_nothing_and_may_be_reused():
    """FULL_CHECKPOINT shares forward only."""
    rocks = made(ROCKS, INCREMENTAL)
    take(rocks, 1)
    full, _ = take(rocks, 2, "full")
    third, _ = take(rocks, 3)

    assert (full.reused, tables(all_files(full))) == ((), ["000001.sst"])
    assert {"shared", "exclusive"} == {file.scope for file in all_files(full)}
    assert [handle.file for handle in third.reused] >= [200, 201]


@pytest.mark.parametrize("type_", ["native", "canonical"])
def test_a_savepoint_shares_nothing_and_leaves_the_base(type_):
    """NO_SHARING: all in its own directory, and the next checkpoint is as small as ever."""
    rocks = made(ROCKS, INCREMENTAL)
    take(rocks, 1)
    savepoint, _ = take(rocks, 2, type_)
    after, _ = take(rocks, 3)

    assert savepoint.reused == ()
    assert {"savepoint"} == {file.scope for file in all_files(savepoint)}
    assert tables(all_files(after)) == []


def test_before_flink_23949_the_checkpoint_after_a_savepoint_wrote_everything():
    rocks = made(ROCKS, StateOptions(incremental=True, savepoints_keep_base=False))
    take(rocks, 1)
    take(rocks, 2, "native")
    after, _ = take(rocks, 3)

    assert tables(all_files(after)) == ["000001.sst"]


def test_freezing_rocksdb_costs_its_memtable_and_its_links():
    """1 MB at 200 MB/s and one table linked, beside what it always takes; the next time the memtable is empty."""
    rocks, always = made(ROCKS, INCREMENTAL), ROCKSDB_FREEZE.likely

    assert [always + 5 * MS + MS // 10, always + MS // 10] == [take(rocks, number)[0].sync_ns for number in (1, 2)]


def part(frozen, handles, type_="checkpoint", share=Fraction(1)):
    return KeyedPart(type_, frozen.image, tuple(handles), share)


def test_a_heap_without_entries_is_no_file():
    """It begins empty and grows."""
    heap = made(State(0, growth_bytes=50))

    assert all_files(take(heap, 1)[0]) == []
    heap.resize(100)
    assert [file.size_bytes for file in all_files(take(heap, 2)[0])] == [100]


def test_a_restored_heap_reads_its_file_and_deserialises_it():
    heap = made(HEAP, StateOptions(load_bytes_per_second=100_000_000))
    restoring = heap.restore(1, [part(*take(heap, 1))], 0)

    assert ([size for _, size in restoring.reads], restoring.threads, restoring.work_ns, restoring.after_ns) == (
        [1_000_000],
        1,
        10 * MS,
        0,
    )


def test_a_rescaled_heap_reads_its_key_groups_only():
    """Half of one file and a quarter of another: streams say where key groups begin."""
    heap = made(HEAP)
    frozen, handles = take(heap, 1)
    restoring = heap.restore(1, [part(frozen, handles, share=share) for share in (Fraction(1, 2), Fraction(1, 4))], 0)

    assert [size for _, size in restoring.reads] == [500_000, 250_000]


def test_restored_rocksdb_goes_on_incrementally():
    """All files by four threads; the tables are there under their names, and known to be stored."""
    rocks = made(ROCKS, INCREMENTAL)
    frozen, handles = take(rocks, 1)
    again = made(ROCKS, INCREMENTAL)
    restoring = again.restore(1, [part(frozen, handles)], 7 * S)
    after, _ = take(again, 2)

    assert (len(handles), 4, 0) == (len(restoring.reads), restoring.threads, restoring.after_ns)
    assert tables(all_files(after)) == []
    assert tables(after.reused) == ["000001.sst"]


@pytest.mark.parametrize(
    "shares", [[Fraction(1, 2)], [Fraction(1, 2)] * 2, [Fraction(1, 4), Fraction(1), Fraction(1, 2)]]
)
def test_rescaled_rocksdb_reads_whole_files_and_writes_all_but_its_base(shares):
    """Old databases are read in full; what belongs here of all but the largest part is merged at the pace of a compaction."""
    rocks = made(ROCKS, INCREMENTAL)
    frozen, handles = take(rocks, 1)
    restoring = rocks.restore(1, [part(frozen, handles, share=share) for share in shares], 0)
    total = sum(handle.size_bytes for handle in handles)
    written = [int(total * share) for share in sorted(shares)[:-1]]

    assert len(shares) * total == sum(size for _, size in restoring.reads)
    assert sum(written) * S // 100_000_000 == restoring.after_ns


def test_a_rescaled_tree_is_numbered_from_the_beginning():
    """There were three tables: what it begins with now is one of all keys, and one of the 510 keys of others in the three."""
    rocks = made(ROCKS, INCREMENTAL)
    for number in (1, 2, 3):
        rocks.update(10, number * S)
        frozen, handles = take(rocks, number)
    rocks.restore(3, [part(frozen, handles, share=Fraction(1, 2))] * 2, 4 * S)
    after, _ = take(rocks, 4)

    assert len(tables(handles)) == 3
    assert ([file[:2] for file in all_files(after) if file.name.endswith(".sst")], after.reused) == (
        [("000002.sst", 1_000_000), ("000001.sst", 510_000)],
        (),
    )


WIDE = replace(
    ROCKS, bytes=40_000_000, lsm=Lsm(memtable_bytes=10_000_000, base_bytes=50_000_000, table_bytes=10_000_000)
)
THIRD, HALF = Fraction(1, 3), Fraction(1, 2)


def rescaled(first, shares, **options):
    """A tree of 40 MB that is restored from as many snapshots as there are shares; (backend, restoring, MB in tables)."""
    rocks = RocksDb(WIDE, 20_000_000, StateOptions(incremental=True, **options))
    restoring = rocks.restore(1, [part(*first, share=share) for share in shares], 0)
    if restoring.on_end is not None:
        restoring.on_end(0)
    return rocks, restoring, sizes(rocks, 2)


def sizes(rocks, number):
    _, handles = take(rocks, number)
    return [handle.size_bytes // 1_000_000 for handle in handles if handle.name.endswith(".sst")]


def test_keys_of_other_subtasks_are_written_once_more_after_a_rescale():
    """Two of four files, whose key groups are deleted as a range; a compaction drops them, or the rescale itself."""
    first = take(made(WIDE, INCREMENTAL), 1)
    rocks, _, kept = rescaled(first, [HALF])
    compacted, _, _ = rescaled(first, [HALF], compact_after_rescale=True)
    compacted.update(0, S // 5 + 1)
    again = made(WIDE, INCREMENTAL)
    again.restore(3, [part(*take(rocks, 3))], 0)

    assert kept == sizes(again, 4) == [10, 10, 10, 10], "a restart restores all files"
    assert sizes(compacted, 3) == [10, 10], "20 MB at 100 MB/s"
    assert rescaled(first, [HALF], delete_files_in_range=True)[2] == [10, 10]
    assert rescaled(first, [Fraction(5, 8)], delete_files_in_range=True)[2] == [10, 10, 5], "one file has both"


def test_a_level_that_is_merged_down_drops_keys_of_other_subtasks():
    """The fourth file of level 0 starts it."""
    rocks, _, _ = rescaled(take(made(WIDE, INCREMENTAL), 1), [HALF])
    found = []
    for number in range(3, 7):
        rocks.update(1, number * 10 * S)
        found.append(sum(sizes(rocks, number)))

    assert found == [40, 40, 20, 20]


def test_files_are_ingested_unless_they_have_keys_of_other_subtasks():
    """Nothing is written; then the next rescale writes a third of what is own, of all but the largest, whatever the option."""
    first = take(made(WIDE, INCREMENTAL), 1)
    rocks, ingested, _ = rescaled(first, [HALF, HALF], ingest_db=True)
    again = take(rocks, 3)
    second = RocksDb(WIDE, 20_000_000, StateOptions(incremental=True, ingest_db=True))
    both = second.restore(3, [part(*again, share=THIRD)] * 2, 0)
    one = second.restore(3, [part(*again, share=THIRD), part(*first, share=THIRD)], 0)

    assert (ingested.after_ns, rescaled(first, [HALF, HALF])[1].after_ns) == (0, pytest.approx(S // 5, rel=0.01))
    assert both.after_ns == one.after_ns == pytest.approx(20_000_000 * S / 3 / 100_000_000, rel=0.01)


def test_a_database_that_is_gone_leaves_the_shared_thread():
    """A second of compaction is due in both at the end of the fourth; the first is stopped, so the second has the thread to itself."""
    lsm = Lsm(memtable_bytes=10**12, compaction_bytes_per_second=1_000_000, compaction_thread="task-manager")
    thread = CompactionThread()
    both = [RocksDb(replace(ROCKS, lsm=lsm), 1_000_000, INCREMENTAL, thread) for _ in range(2)]
    for number in range(1, 5):
        for rocks in both:
            rocks.update(1, number)
            take(rocks, number)
    both[0].stop()
    both[1].update(0, 2 * S)

    assert [bool(rocks.tree.levels[0]) for rocks in both] == [True, False]


def test_rocksdb_from_a_canonical_savepoint_is_read_as_one_stream():
    """Every entry is put in anew: the slower of deserialising and writing."""
    rocks = made(ROCKS, StateOptions(incremental=True, load_bytes_per_second=20_000_000))
    frozen, handles = take(rocks, 1, "canonical")
    restoring = rocks.restore(1, [part(frozen, handles, "canonical")], 0)

    assert (restoring.threads, restoring.work_ns, [size for _, size in restoring.reads]) == (1, 50 * MS, [1_000_000])
    assert tables(all_files(take(rocks, 2)[0])) == ["000001.sst"]


LOGGED = State(1_000_000, "rocksdb", Fraction(1), 1000, Lsm(memtable_bytes=10**9), Changelog())


def logged(backend, file, number):
    handle = Handle(file.name, file.size_bytes, file.scope, number)
    backend.logged(handle)
    return handle


GROWING = State(1_000_000, update_share=Fraction(1), value_bytes=100, changelog=Changelog(), growth_bytes=50)


def test_new_keys_are_logged_and_restored_ones_are_not():
    """3 kB of new keys and two entries rewritten are 3200 B of log; a restored state is as large as it was, and its log is empty."""
    first = made(GROWING)
    logged(first, first.cut(), 1)
    first.resize(1_003_000)
    first.update(2, S)
    assert first.pending_bytes == 3200
    logged(first, first.cut(), 2)
    frozen = freeze(first, 1)
    again = made(GROWING)
    again.restore(1, [part(frozen, frozen.reused)], 2 * S)
    again.resize(1_003_000)

    assert again.pending_bytes == 0
    again.resize(1_003_050)
    assert again.pending_bytes == 50
    assert sum(file.size_bytes for file in all_files(freeze(again, 2, "canonical"))) == 1_003_050


def test_the_log_opens_with_the_state_a_run_begins_with():
    """Nothing is materialised yet: the first checkpoint waits for all of it, and none of it is frozen."""
    frozen = freeze(made(LOGGED, INCREMENTAL), 1)

    assert (frozen.sync_ns, frozen.steps) == (0, ())
    assert list(frozen.awaited) == [("log-1000000", 1_000_000, "shared")]
    assert 1_000_000 == frozen.written_bytes == frozen.full_bytes


def test_a_checkpoint_writes_the_tail_of_the_log():
    """What was uploaded early is referred to; the first one reports what a run begins with, too, as other backends do."""
    backend = made(LOGGED, INCREMENTAL)
    early = logged(backend, backend.cut(), 1)
    backend.update(5, S)
    first = freeze(backend, 1)
    backend.update(2, 2 * S)
    second = freeze(backend, 2)

    assert (early,) == first.reused == second.reused
    assert list(first.awaited) == [("log-1005000", 5000, "shared")]
    assert (first.written_bytes, first.full_bytes) == (1_005_000, 1_005_000)
    assert (second.written_bytes, second.full_bytes) == (2000, 1_007_000)


def test_nothing_pending_is_no_file():
    backend = made(LOGGED, INCREMENTAL)
    backend.cut()

    assert None is backend.cut()


def test_a_tail_under_way_is_waited_for_by_the_next_checkpoint_too():
    """It is written once."""
    backend = made(LOGGED, INCREMENTAL)
    freeze(backend, 1)
    backend.update(1, S)
    frozen = freeze(backend, 2)

    assert [file.name for file in frozen.awaited] == ["log-1000000", "log-1001000"]
    assert frozen.written_bytes == 1000


def materialise(backend, number, now_ns):
    frozen = backend.materialise(number)
    handles = [
        Handle(file.name, file.size_bytes, file.scope, 1000 * number + i) for i, file in enumerate(all_files(frozen))
    ]
    backend.materialised(number, frozen, [*frozen.reused, *handles])
    return frozen


def test_materialisation_truncates_the_log():
    """Only what was logged after it is referred to; if reported, its files count as written by the first checkpoint that has them."""
    backend = made(replace(LOGGED, changelog=Changelog(reports_materialized=True)), INCREMENTAL)
    logged(backend, backend.cut(), 1)
    frozen = materialise(backend, 1, S)
    backend.update(2, 2 * S)
    tail = logged(backend, backend.cut(), 2)
    first, second = (freeze(backend, number) for number in (1, 2))

    assert tail == first.reused[-1]
    assert frozen.written_bytes == first.written_bytes
    assert (0, first.full_bytes) == (second.written_bytes, second.full_bytes)
    assert frozen.written_bytes + 2000 == second.full_bytes


def test_the_next_materialisation_builds_on_one_that_a_complete_checkpoint_holds():
    """Confirmed through the checkpoint (ChangelogKeyedStateBackend#notifyCheckpointComplete)."""
    backend = made(LOGGED, INCREMENTAL)
    materialise(backend, 1, S)
    again = materialise(backend, 2, 2 * S)
    freeze(backend, 7)
    backend.notify_complete(7)
    third = materialise(backend, 3, 3 * S)

    assert (tables(all_files(again)), tables(all_files(third))) == (["000001.sst"], [])


def test_a_materialisation_behind_a_restore_waits_for_its_checkpoint_too():
    """Its files are written again until a complete checkpoint holds them; those restored from are not."""
    backend = made(LOGGED, INCREMENTAL)
    materialise(backend, 1, S)
    frozen = freeze(backend, 1)
    again = made(LOGGED, INCREMENTAL)
    again.restore(1, [part(frozen, frozen.reused)], 2 * S)
    again.update(5, 3 * S)
    first, second = (tables(all_files(materialise(again, number, 3 * S))) for number in (1, 2))

    assert [] != first == second


def test_a_restore_reads_the_materialisation_and_replays_the_log():
    """The tree stands as it was materialised; 2000 B of log at 1 MB/s take 2 ms; the files go on being referred to."""
    backend = made(LOGGED, StateOptions(incremental=True, load_bytes_per_second=1_000_000))
    logged(backend, backend.cut(), 1)
    materialise(backend, 1, S)
    backend.update(2, 2 * S)
    logged(backend, backend.cut(), 2)
    frozen = freeze(backend, 1)
    again = made(LOGGED, StateOptions(incremental=True, load_bytes_per_second=1_000_000))
    restoring = again.restore(1, [part(frozen, frozen.reused)], 9 * S)
    after = freeze(again, 2)

    assert set(frozen.reused) == {handle for handle, _ in (*restoring.reads, *restoring.then)}
    assert [size for _, size in restoring.then] == [2000], "one thread reads the log, after the tables"
    assert restoring.after_ns == 2 * MS
    assert frozen.reused == after.reused
    assert after.written_bytes == 0


IN_MEMORY = replace(LOGGED, changelog=Changelog(storage="memory", copy_ns=1000, ship_ns=2000))


def test_a_log_in_memory_is_copied_whole_by_every_checkpoint():
    """Five changes, then seven: 1 us each on the task thread, 2 us each on the way; no file is written.  What a run begins with is not."""
    backend = made(IN_MEMORY, INCREMENTAL)
    backend.update(5, S)
    first = freeze(backend, 1)
    backend.update(2, 2 * S)
    second = freeze(backend, 2)

    assert [
        (frozen.sync_ns, frozen.written_bytes, frozen.steps[0].work_ns, frozen.full_bytes) for frozen in (first, second)
    ] == [(5000, 5000, 10_000, 1_005_000), (7000, 7000, 14_000, 1_007_000)]
    assert [all_files(first), all_files(second)] == [[], []]
    assert second.awaited == ()


def test_a_materialisation_cuts_the_log_in_memory():
    backend = made(IN_MEMORY, INCREMENTAL)
    backend.update(5, S)
    frozen = materialise(backend, 1, S)
    assert freeze(backend, 1).sync_ns == 0
    backend.update(2, 2 * S)
    after = freeze(backend, 2)

    assert (2000, 2000, frozen.written_bytes + 2000) == (after.sync_ns, after.written_bytes, after.full_bytes)


def test_restored_changes_are_referred_to_and_not_copied_again():
    backend = made(IN_MEMORY, INCREMENTAL)
    backend.update(5, S)
    frozen = freeze(backend, 1)
    again = made(IN_MEMORY, INCREMENTAL)
    again.restore(1, [part(frozen, frozen.reused)], 2 * S)
    again.update(2, 3 * S)
    after = freeze(again, 2)

    assert (after.sync_ns, after.written_bytes, after.full_bytes) == (2000, 2000, 1_007_000)


def test_savepoints_with_a_changelog_are_those_of_the_backend_below():
    frozen = freeze(made(LOGGED, INCREMENTAL), 1, "native")

    assert tables(all_files(frozen)) == ["000001.sst"]
    assert frozen.awaited == ()


def test_log_that_is_materialised_is_neither_awaited_nor_kept():
    """It was on its way when the backend below was frozen, and ends where that begins."""
    backend = made(LOGGED, INCREMENTAL)
    file = backend.cut()
    backend.materialised(1, backend.materialise(1), [])

    assert freeze(backend, 1).awaited == ()
    logged(backend, file, 1)
    assert freeze(backend, 2).reused == ()


def test_log_that_is_materialised_is_not_written():
    """A snapshot persists the log from the materialisation on: what nobody uploaded before is not needed."""
    backend = made(LOGGED, INCREMENTAL)
    backend.update(2, S)
    materialise(backend, 1, S)
    assert backend.pending_bytes == 0
    assert written_and_awaited(freeze(backend, 1)) == (0, ())
    backend.update(3, 2 * S)
    assert written_and_awaited(freeze(backend, 2)) == (3000, ("log-1005000",))


def test_the_log_that_is_new_counts_from_an_upload_or_a_materialisation():
    """FsStateChangelogWriter#preEmptiveFlushIfNeeded, whose count begins anew with each FsStateChangelogWriter#nextSequenceNumber."""
    backend = made(LOGGED, INCREMENTAL)
    backend.cut()
    backend.update(3, S)
    assert backend.active_bytes == 3000
    backend.materialise(1)
    backend.update(2, S)
    assert (backend.active_bytes, backend.pending_bytes) == (2000, 5000)
    backend.cut()
    assert backend.active_bytes == 0


def written_and_awaited(frozen):
    return frozen.written_bytes, tuple(file.name for file in frozen.awaited)


def test_a_share_of_the_log_is_replayed():
    """1 MB was logged, the quarter that comes here is applied at 1 MB/s; all of the file is read, by four threads as tables would be."""
    options = replace(INCREMENTAL, load_bytes_per_second=1_000_000)
    backend = made(LOGGED, options)
    handle = logged(backend, backend.cut(), 1)
    frozen = freeze(backend, 1)
    restoring = made(LOGGED, options).restore(1, [KeyedPart("checkpoint", frozen.image, (handle,), Fraction(1, 4))], 0)

    assert ([size for _, size in restoring.reads], restoring.threads) == ([250_000] * 4, 4)
    assert restoring.after_ns == S // 4


def test_a_materialisation_waits_for_the_one_before():
    """It has to be confirmed by a checkpoint that refers to it, or to fail (ChangelogKeyedStateBackend#initMaterialization)."""
    backend = made(LOGGED, INCREMENTAL)
    assert backend.may_materialise
    freeze(backend, 6)
    materialise(backend, 1, S)
    backend.notify_complete(6)
    assert not backend.may_materialise
    freeze(backend, 7)
    backend.notify_complete(7)
    assert backend.may_materialise
    backend.materialise(2)
    assert not backend.may_materialise
    backend.materialisation_failed(2)
    assert backend.may_materialise


def test_the_end_of_a_savepoint_confirms_no_materialisation():
    """Only a checkpoint that refers to it does."""
    backend = made(LOGGED, INCREMENTAL)
    materialise(backend, 1, S)
    backend.notify_complete(9)

    assert tables(all_files(materialise(backend, 2, 2 * S))) == ["000001.sst"]


def restored_log(*, load_bytes_per_second=None):
    """A materialised tree and two pieces of log behind it, restored elsewhere."""
    options = replace(INCREMENTAL, load_bytes_per_second=load_bytes_per_second)
    backend, again = made(LOGGED, options), made(LOGGED, options)
    materialise(backend, 1, S)
    for number in (2, 3):
        backend.update(number, number * S)
        logged(backend, backend.cut(), number)
    frozen = freeze(backend, 1)
    return again, frozen, again.restore(1, [part(frozen, frozen.reused)], 9 * S)


def test_changes_are_applied_one_by_one_without_a_rate():
    """Five changes of 1 kB, at 2.8 us each and 690 MB/s; what a run begins with would be in tables of a materialisation."""
    assert restored_log()[2].after_ns == pytest.approx(5 * 2_800 + 5_000 / 0.69, rel=1e-4)
    backend = made(LOGGED, INCREMENTAL)
    handle = logged(backend, backend.cut(), 1)
    frozen = freeze(backend, 1)
    assert made(LOGGED, INCREMENTAL).restore(1, [part(frozen, (handle,))], 0).after_ns == 0


def test_a_replay_takes_whole_seconds_where_it_does():
    """What was logged behind the materialisation, at 1 B/s."""
    assert restored_log(load_bytes_per_second=1)[2].after_ns == 5000 * S


def test_what_was_restored_can_be_restored_again_as_it_stands():
    """Before it is materialised anew."""
    again, frozen, _ = restored_log()

    assert frozen.image == freeze(again, 2).image


def test_a_materialisation_behind_a_restore_ends_the_restored_log():
    again, _, _ = restored_log()
    materialise(again, 1, 10 * S)
    after = freeze(again, 2)

    assert [handle.name for handle in after.reused if handle.name.startswith("log")] == []


def test_a_materialisation_behind_a_restore_is_what_the_next_one_builds_upon():
    """Its number is that of the first one of the job before, which does not count any more."""
    again, _, _ = restored_log()
    again.update(1, 9 * S)
    materialise(again, 1, 10 * S)
    freeze(again, 2)
    again.notify_complete(2)

    assert tables(all_files(materialise(again, 2, 11 * S))) == []


def test_a_part_is_all_of_it_unless_it_says_so():
    """Restored as it stands, in the same tables."""
    rocks = made(ROCKS, INCREMENTAL)
    frozen, handles = take(rocks, 1)
    again = made(ROCKS, INCREMENTAL)
    again.restore(1, [KeyedPart("checkpoint", frozen.image, tuple(handles))], 0)

    assert [handle.name for handle in take(again, 2)[0].reused] == ["000001.sst"]


def test_the_manifest_grows_with_every_flush():
    """120 B, and 134 B for each; the tree began with one."""
    rocks = made(ROCKS)
    sizes = []
    for number in (1, 2):
        rocks.update(1, number * S)
        sizes += [file.size_bytes for file in all_files(take(rocks, number)[0]) if file.name == "MANIFEST"]

    assert sizes == [120 + 2 * 134, 120 + 3 * 134]
