"""The changelogs of one task manager on their way: what shares a file, how long it is waited, which attempt counts."""

import pytest
import simpy

from sim.model.job import Distribution
from sim.model.state import Changelog
from sim.model.storage import ObjectStore, Retry, Storage
from sim.runtime.task_manager import LogPart, LogUploads
from sim.storage.filesystem import CheckpointStorage

MS, MB = 1_000_000, 1_000_000
STEADY = Distribution(10 * MS)


class Bench:
    """Storage of 100 MB/s per request and some latency; notes when each part was told, and which file it is in."""

    def __init__(self, latency=STEADY, *, threads=5, attempts=8):
        options = Storage(object_store=ObjectStore(100 * MB, latency, part_bytes=1000 * MB), retry=Retry(attempts, MS))
        self.env = simpy.Environment()
        self.storage = CheckpointStorage(self.env, options, 1)
        self.uploads = LogUploads(self.env, self.storage, 0, threads)
        self.durable = {}

    def hand_in(self, at_ms, name, size_mb, options):
        def heard(file):
            self.durable[name] = self.env.now / MS, file

        part = LogPart(("changelog", name), size_mb * MB, heard)
        self.env.timeout(at_ms * MS).callbacks.append(lambda _: self.uploads.hand_in(part, options))

    def run(self):
        self.env.run()
        return self.durable


def test_what_comes_within_the_delay_is_one_file():
    """a and b: 3 MB from 10 ms on, latency 10 ms, 30 ms of bytes; c comes after the batch was closed."""
    bench = Bench()
    for at_ms, name, size_mb in ((0, "a", 1), (9, "b", 2), (11, "c", 1)):
        bench.hand_in(at_ms, name, size_mb, Changelog())

    assert bench.run() == {"a": (50, 0), "b": (50, 0), "c": (41, 1)}
    assert [stored.size_bytes for stored in bench.storage.files] == [3 * MB, MB]


def test_enough_is_not_waited_with():
    """1 + 4 MB reach 5 MB: gone at 1 ms, and the delay of the first part closes nothing that came after."""
    bench = Bench()
    for at_ms, name, size_mb in ((0, "a", 1), (1, "b", 4), (2, "c", 1)):
        bench.hand_in(at_ms, name, size_mb, Changelog(batch_bytes=5 * MB))

    assert bench.run() == {"a": (61, 0), "b": (61, 0), "c": (32, 1)}


def test_a_few_threads_upload():
    """Two threads, three files of 100 ms and 10 ms of latency: the third has to wait."""
    bench = Bench(threads=2)
    for name in "abc":
        bench.hand_in(0, name, 10, Changelog(batch_delay_ns=0))

    assert [at_ms for at_ms, _ in bench.run().values()] == [110, 110, 220]


def test_another_attempt_begins_beside_one_that_hangs():
    """Latencies with a long tail: with a limit of 30 ms the slowest of 200 uploads is faster, and what came second is deleted."""
    limited, patient = (
        Changelog(batch_delay_ns=0, upload_timeout_ns=limit, upload_attempts=50) for limit in (30 * MS, None)
    )
    slowest = []
    for options in (limited, patient):
        bench = Bench(Distribution(10 * MS, "lognormal", 3.0), threads=10**6)
        for i in range(200):
            bench.hand_in(0, str(i), 0, options)
        durable = bench.run()
        slowest.append(max(at_ms for at_ms, _ in durable.values()))
        kept = {stored.id for stored in bench.storage.files if stored.deleted_ns is None}

        assert kept == {file for _, file in durable.values()}
        assert len(kept) == 200
    assert slowest[0] < slowest[1] / 2


def test_attempts_run_out():
    """Three attempts of 30 ms at something that takes 110 ms: given up at 90 ms, though the first would have ended."""
    bench = Bench(attempts=1)
    bench.hand_in(0, "a", 10, Changelog(batch_delay_ns=0, upload_timeout_ns=30 * MS))

    assert bench.run() == {"a": (90, None)}
    assert sum(stored.deleted_ns is not None for stored in bench.storage.files) == 3


@pytest.mark.parametrize(("attempts", "expected"), [(1, (5, None)), (2, (515, 1))])
def test_a_failed_attempt_is_followed_by_another_after_a_pause(attempts, expected):
    """An outage at 5 ms breaks the first one off; half a second later storage is back: 10 ms of latency."""
    bench = Bench(attempts=1)
    bench.hand_in(0, "a", 0, Changelog(batch_delay_ns=0, upload_attempts=attempts))
    bench.env.timeout(5 * MS).callbacks.append(lambda _: bench.storage.fail_until(100 * MS))

    assert {"a": expected} == bench.run()


def test_another_attempt_is_another_file():
    """The first one has the name of the first part; those that follow have their number besides, and so latencies of their own."""
    bench = Bench(attempts=1)
    bench.hand_in(0, "a", 10, Changelog(batch_delay_ns=0, upload_timeout_ns=30 * MS))
    bench.hand_in(0, "b", 0, Changelog(batch_delay_ns=0))
    bench.run()

    assert {("changelog", "a"), ("changelog", "b"), ("changelog", "a", 2), ("changelog", "a", 3)} == {
        row.name for row in bench.storage.files
    }
