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


@pytest.mark.parametrize(("attempts", "expected"), [(1, (5, None)), (2, (515, 1))])
def test_a_failed_attempt_is_followed_by_another_after_a_pause(attempts, expected):
    """An outage at 5 ms breaks the first one off; half a second later storage is back: 10 ms of latency."""
    bench = Bench(attempts=1)
    bench.hand_in(0, "a", 0, Changelog(batch_delay_ns=0, upload_attempts=attempts))
    bench.env.timeout(5 * MS).callbacks.append(lambda _: bench.storage.fail_until(100 * MS))

    assert {"a": expected} == bench.run()
