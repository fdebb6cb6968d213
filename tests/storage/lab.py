"""A storage on a clock of its own, for tests: run processes, and see how long they took."""

from __future__ import annotations

from fractions import Fraction

import simpy

from sim.model.job import Distribution
from sim.model.storage import Dfs, Retry, SlowPlaces, Storage
from sim.storage.filesystem import CheckpointStorage
from sim.storage.ledger import StorageFailed
from sim.storage.requests import in_parallel

MS, SECOND, MB = 1_000_000, 1_000_000_000, 1_000_000


class Lab:
    def __init__(self, options=None, seed=1):
        self.env = simpy.Environment()
        self.storage = CheckpointStorage(self.env, options or Storage(), seed)
        self.ended: dict[str, float] = {}  # label -> ms when it ended
        self.failed: dict[str, str] = {}  # label -> why

    def start(self, label, work, at_ms=0):
        """Have a process run from `at_ms` on."""

        def run():
            if at_ms:
                yield self.env.timeout(round(at_ms * MS))
            try:
                yield from work
            except StorageFailed as failure:
                self.failed[label] = str(failure)
            self.ended[label] = self.env.now / MS

        return self.env.process(run())

    def interrupt(self, at_ms, work):
        """Have a process run from now on, and interrupt it then."""
        process = self.start("interrupted", work)
        process.callbacks.append(lambda event: setattr(event, "defused", True))
        self.env.timeout(at_ms * MS).callbacks.append(lambda _: process.interrupt())

    def run(self, until_ms=None):
        self.env.run(until=None if until_ms is None else round(until_ms * MS))
        return self.ended

    def write_all(self, files, *, threads):
        """A process that writes (bytes, name) of each file, a few at a time."""
        return in_parallel(self.env, [self.storage.write(size, *name) for size, name in files], threads)

    def read_all(self, files, *, threads):
        return in_parallel(self.env, [self.storage.read(size, *name) for size, name in files], threads)

    def took_ms(self, work):
        """How long a process takes from now on."""
        begun = self.env.now
        self.env.run(until=self.env.process(work))
        return (self.env.now - begun) / MS


def dfs(nodes=3, *, rate=100 * MB, replication=1, latency_ms=0, retry=None, nic=None, **options):
    """Storage of a few nodes, 100 MB/s each, no latency, one replica."""
    kind = Dfs(nodes, rate, replication=replication, latency=Distribution(round(latency_ms * MS)), **options)
    return Storage(dfs=kind, nic_bytes_per_second=nic, retry=retry or Retry())


def slow(share, factor, lasts_s=90, kind="exponential", cv=1.0):
    return SlowPlaces(Fraction(share), factor, Distribution(round(lasts_s * SECOND), kind, cv))
