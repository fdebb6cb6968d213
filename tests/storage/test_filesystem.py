"""Checkpoint storage: a file takes its bytes over the bandwidth; small files in one physical file."""

from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

import simpy
from hypothesis import given
from hypothesis import strategies as st

from sim.model.storage import FileMerging, Storage
from sim.storage.filesystem import CheckpointStorage
from sim.storage.ledger import FileId
from tests.storage.lab import MB, MS, Lab, dfs

# Checkpoint storage: a file takes its bytes over the bandwidth and one latency; which files are slow is in their names.


FILE_MS = 1_000_000
PLAIN = Storage(
    bytes_per_second=50_000_000, close_ns=7 * FILE_MS, metadata_ns=11 * FILE_MS, inline_threshold_bytes=1000
)
HALF_SLOW = replace(PLAIN, slow_probability=0.5, slow_factor=10)


def storage(options=PLAIN, seed=1):
    return CheckpointStorage(simpy.Environment(), options, seed)


def taken_ns(files, process):
    begun = files.env.now
    files.env.run(until=files.env.process(process))
    return files.env.now - begun


def slow_ones(files, names):
    return {name for name in names if files.medium.close_ns(name) > PLAIN.close_ns}


def test_a_file_takes_its_bytes_and_one_latency():
    """1,500,000 B at 50 MB/s are 30 ms, closing 7 ms."""
    files = storage()

    assert taken_ns(files, files.write(1_500_000, "keyed", "map", 0, 1)) == 37 * FILE_MS
    assert [stored.size_bytes for stored in files.files if stored.complete] == [1_500_000]


@given(st.integers(0, 2**50), st.integers(1, 2**40))
def test_transfer_times_are_exact_integers(size_bytes, rate):
    """Rounded down to whole ns, without floating point: the smallest n with n + 1 ns too long."""
    ns = storage(replace(PLAIN, bytes_per_second=rate)).medium.transfer_ns(size_bytes, ("file",))

    assert type(ns) is int
    assert ns * rate <= size_bytes * 10**9 < (ns + 1) * rate


def test_metadata_takes_its_own_latency():
    """The coordinator's file is counted; it is never slow."""
    files = storage(replace(PLAIN, slow_probability=1.0, slow_factor=10))

    assert taken_ns(files, files.write_metadata()) == 11 * FILE_MS
    assert [stored.size_bytes for stored in files.files if stored.complete] == [0]


def test_a_slow_file_is_slow_in_both_parts():
    """Bandwidth divided, latency multiplied."""
    files = storage(replace(PLAIN, slow_probability=1.0, slow_factor=10))

    assert taken_ns(files, files.write(1_500_000, "keyed", "map", 0, 1)) == 370 * FILE_MS


@given(st.permutations([("keyed", "map", i, n) for i in range(4) for n in range(4)]))
def test_which_files_are_slow_does_not_depend_on_the_order_of_writes(names):
    """A function of name and seed: strategies that write in another order meet the same slow files."""
    assert slow_ones(storage(HALF_SLOW), sorted(names)) == slow_ones(storage(HALF_SLOW), names)


def test_another_seed_has_other_slow_files():
    names = [("keyed", "map", i, n) for i in range(10) for n in range(10)]

    assert slow_ones(storage(HALF_SLOW, seed=1), names) != slow_ones(storage(HALF_SLOW, seed=2), names)


def test_small_state_travels_inline():
    """Up to the threshold, the threshold included (FsCheckpointStreamFactory: fileStateThreshold)."""
    files = storage()

    assert [files.is_inlined(size) for size in (0, 1000, 1001)] == [True, True, False]


def test_a_file_is_there_from_its_close_to_its_delete():
    """Created with the first byte, readable when closed, gone when deleted; ids count up."""
    files = storage()
    first, second = (files.env.run(until=files.env.process(files.write(500_000, name))) for name in "ab")
    files.env.run(until=files.env.process(files.delete([first])))

    assert [first, second] == [0, 1]
    assert [files.files.exists(file) for file in (first, second)] == [False, True]
    assert [(f.created_ns, f.durable_ns, f.deleted_ns) for f in files.files] == [
        (0, 17 * FILE_MS, 34 * FILE_MS),
        (17 * FILE_MS, 34 * FILE_MS, None),
    ]


def test_a_deleted_file_gives_its_space_back_and_a_lost_disk_keeps_none():
    files = storage()
    disk, kept = files.disk(2), []
    for number in (1, 2):
        process = files.env.process(disk.write(MB, "local", "v", 0, number, host=2))
        files.env.run(until=process)
        kept.append(process.value)
    files.env.run(until=files.env.process(disk.delete([kept[0]], host=2)))

    assert disk.medium.used_bytes == MB
    files.lose_disk(2)
    assert not any(files.files.exists(file) for file in kept)


def test_every_file_of_flat_storage_takes_its_floor():
    """Beside what the options say, 7 ms; reading and deleting have none."""
    files = CheckpointStorage(simpy.Environment(), PLAIN, 1, floor_ns=3 * FILE_MS)

    assert taken_ns(files, files.write(1_500_000, "keyed", "map", 0, 1)) == 40 * FILE_MS
    assert taken_ns(files, files.read(1_500_000, "keyed", "map", 0, 1)) == 7 * FILE_MS
    assert taken_ns(files, files.delete([files.files[0].id])) == 0


# Small files of a checkpoint in one physical file: fewer files, later deletes.


ON = FileMerging(max_file_bytes=4 * MB)


def lab(merging=ON):
    """1 MB takes 10 ms, a request 1 ms: a file of its own is 3 requests."""
    return Lab(replace(dfs(latency_ms=1), merging=merging))


def written(here, *names, size=MB, merge=1, host=0):
    return [
        here.env.run(until=here.env.process(here.storage.write(size, name, host=host, merge=merge))) for name in names
    ]


def physical(here):
    return [stored for stored in here.storage.files if stored.name[0] == "merged"]


def test_what_was_deleted_before_the_end_goes_with_it():
    here = lab()
    (a,) = written(here, "a")

    assert here.took_ms(here.storage.delete([a])) == 0
    assert here.took_ms(here.storage.end_merging(1)) == 2, "close, delete"


def test_the_worst_wasters_go_first():
    """24 MB hold 16, which is within 1.5; with one MB less they do not, and wearing out one file that wastes 3 of its 4 is enough."""
    here = lab(replace(ON, max_space_amplification=Fraction(3, 2)))
    kept = []
    for checkpoint, needed in ((1, 1), (2, 1), (3, 2), (4, 4), (5, 4), (6, 4)):
        files = written(here, *"wxyz", merge=checkpoint)
        kept.append(files[0])
        here.took_ms(here.storage.delete(files[needed:]))
    here.took_ms(here.storage.end_merging(1))

    assert sum(stored.size_bytes for stored in physical(here)) == 24 * MB
    assert [here.storage.may_reuse(file) for file in kept] == [True] * 6
    here.took_ms(here.storage.delete([kept[5]]))
    here.took_ms(here.storage.end_merging(2))

    assert [here.storage.may_reuse(file) for file in kept] == [False, True, True, True, True, True]


def test_without_a_limit_nothing_is_worn():
    """Below 1: no control of space."""
    here = lab(replace(ON, max_space_amplification=Fraction(0)))
    a, b, c = written(here, "a", "b", "c")
    here.took_ms(here.storage.delete([b, c]))
    here.took_ms(here.storage.end_merging(1))

    assert here.storage.may_reuse(a)


def test_files_of_an_older_job_go_together_too():
    """A new storage begins with the files of the one before it: the physical file still goes with the last one in it."""
    older, here = lab(), lab()
    a, b = written(older, "a", "b")
    older.took_ms(older.storage.end_merging(1))
    here.storage.files.adopt(older.storage.files)

    assert [here.took_ms(here.storage.delete([file])) for file in (b, a)] == [0, 1]
    assert [here.storage.files.exists(stored.id) for stored in physical(here)] == [False]


def test_a_file_that_wastes_no_more_than_allowed_is_referred_to():
    """4 MB with 2 needed, 4 MB with 1 needed, an open one with nothing: too much in all, and only the second one wastes more than half."""
    here = lab(replace(ON, across=True))
    files = written(here, *"abcdefghijk")
    here.took_ms(here.storage.delete([*files[2:4], *files[5:8], *files[8:]]))
    here.took_ms(here.storage.end_merging(1))

    assert [here.storage.may_reuse(files[0]), here.storage.may_reuse(files[4])] == [True, False]


def test_merged_files_are_not_lost_with_the_disk_of_their_task_manager():
    here = lab()
    (file,) = written(here, "a", host=3)
    here.storage.lose_disk(3)

    assert here.storage.files.exists(file)


def interrupted(here, work, at_ms):
    """The process of this work, which hears at that time that nobody waits for it."""

    def waiter():
        with suppress(simpy.Interrupt):
            yield from work

    process = here.env.process(waiter())
    here.env.run(until=at_ms * MS)
    process.interrupt()
    return process


def test_a_writer_that_is_interrupted_while_it_closes_leaves_nothing_behind():
    """Written at 12 ms, closed at 13: interrupted between, the physical file is closed all the same, and deleted with all in it."""
    here = lab(replace(ON, max_file_bytes=MB + 1))
    here.took_ms(here.storage.end_merging(1))
    interrupted(here, here.storage.write(MB, "a", merge=1), at_ms=12.5)
    here.env.run()

    assert [stored.deleted_ns is not None for stored in here.storage.files] == [True, True]


def test_other_files_outlast_a_writer_that_is_interrupted_while_it_closes():
    """The second file fills the physical one; its writer is interrupted while that is closed."""
    here = lab(replace(ON, max_file_bytes=2 * MB))
    (first,) = written(here, "a", size=MB + 1)
    interrupted(here, here.storage.write(MB, "b", merge=1), at_ms=22.5)
    here.env.run()
    second = here.storage.files[FileId(2)]

    assert here.storage.files.exists(first)
    assert [stored.complete for stored in physical(here)] == [True]
    assert second.name == ("b",)
    assert second.deleted_ns is not None
    here.took_ms(here.storage.delete([first]))
    assert [here.storage.files.exists(stored.id) for stored in physical(here)] == [False]
