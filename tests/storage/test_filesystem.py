"""Checkpoint storage: a file takes its bytes over the bandwidth and one latency; which files are slow is in their names."""

from dataclasses import replace

import simpy
from hypothesis import given
from hypothesis import strategies as st

from sim.model.storage import Storage
from sim.storage.filesystem import CheckpointStorage

MS = 1_000_000
PLAIN = Storage(bytes_per_second=50_000_000, close_ns=7 * MS, metadata_ns=11 * MS, inline_threshold_bytes=1000)
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

    assert taken_ns(files, files.write(1_500_000, "keyed", "map", 0, 1)) == 37 * MS
    assert (files.files.written, files.files.bytes_written) == (1, 1_500_000)


@given(st.integers(0, 2**50), st.integers(1, 2**40))
def test_transfer_times_are_exact_integers(size_bytes, rate):
    """Rounded down to whole ns, without floating point: the smallest n with n + 1 ns too long."""
    ns = storage(replace(PLAIN, bytes_per_second=rate)).medium.transfer_ns(size_bytes, ("file",))

    assert type(ns) is int
    assert ns * rate <= size_bytes * 10**9 < (ns + 1) * rate


def test_metadata_takes_its_own_latency():
    """The coordinator's file is counted; it is never slow."""
    files = storage(replace(PLAIN, slow_probability=1.0, slow_factor=10))

    assert taken_ns(files, files.write_metadata()) == 11 * MS
    assert (files.files.written, files.files.bytes_written) == (1, 0)


def test_a_slow_file_is_slow_in_both_parts():
    """Bandwidth divided, latency multiplied."""
    files = storage(replace(PLAIN, slow_probability=1.0, slow_factor=10))

    assert taken_ns(files, files.write(1_500_000, "keyed", "map", 0, 1)) == 370 * MS


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
        (0, 17 * MS, 34 * MS),
        (17 * MS, 34 * MS, None),
    ]


def test_every_file_of_flat_storage_takes_its_floor():
    """Beside what the options say, 7 ms; reading and deleting have none."""
    files = CheckpointStorage(simpy.Environment(), PLAIN, 1, floor_ns=3 * MS)

    assert taken_ns(files, files.write(1_500_000, "keyed", "map", 0, 1)) == 40 * MS
    assert taken_ns(files, files.read(1_500_000, "keyed", "map", 0, 1)) == 7 * MS
    assert taken_ns(files, files.delete([files.files[0].id])) == 0
