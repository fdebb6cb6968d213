"""Flat storage: each open file has its own bandwidth and a latency; no resource is shared.

Whether a file is slow is a function of its name and the seed, not of the order of writes.
"""

from __future__ import annotations

from sim.model.randomness import draw, stream
from sim.model.storage import Storage
from sim.model.units import SECOND
from sim.storage.ledger import Name
from sim.storage.requests import Attempts, Work


def slowness(options: Storage, seed: int, name: Name) -> int:
    """Return the factor by which operations on a file are slower; 1 if the file is not slow."""
    if options.slow_probability == 0:
        return 1
    unlucky = draw(stream(seed, "slow-file", *name), 0) < options.slow_probability * 2**32
    return options.slow_factor if unlucky else 1


class FlatStorage:
    """Storage that gives each open file its own bandwidth and latency, a `Medium`."""

    def __init__(self, attempts: Attempts, options: Storage, seed: int, floor_ns: int = 0) -> None:
        self.attempts = attempts
        self.options = options
        self.seed = seed
        self.floor_ns = floor_ns  # added to the time of each file

    def open(self, name: Name, host: int) -> _FlatFile:  # all hosts are equal
        return _FlatFile(self, name)

    def read(self, size_bytes: int, name: Name, host: int) -> Work[None]:
        """Process: read a file through one stream: the latency, then the transfer at the bandwidth of reads."""
        own_ns = self.options.read_latency_ns
        latency_ns = self.options.close_ns if own_ns is None else own_ns
        yield from self.spend(
            latency_ns * self.slowness(name) + self._ns(size_bytes, self.options.read_bytes_per_second, name)
        )

    def remove(self, name: Name, size_bytes: int, host: int) -> Work[None]:
        """Process: takes no time."""
        yield from self.spend(0)

    def transfer_ns(self, size_bytes: int, name: Name) -> int:
        """Return the time to write `size_bytes` through one stream [ns]."""
        return self._ns(size_bytes, self.options.bytes_per_second, name)

    def close_ns(self, name: Name) -> int:
        return self.options.close_ns * self.slowness(name) + self.floor_ns

    def spend(self, cost_ns: int) -> Work[None]:
        """Process: wait for `cost_ns`.  If it is 0 and storage is reachable, there is no event."""
        if cost_ns or self.attempts.now < self.attempts.down_until_ns:
            yield from self.attempts.spend(cost_ns)

    def _ns(self, size_bytes: int, rate: int | None, name: Name) -> int:
        return 0 if rate is None else size_bytes * SECOND * self.slowness(name) // rate

    def slowness(self, name: Name) -> int:
        return slowness(self.options, self.seed, name)


class _FlatFile:
    """A file of flat storage that is being written."""

    def __init__(self, medium: FlatStorage, name: Name) -> None:
        self.medium = medium
        self.name = name

    def write(self, size_bytes: int) -> Work[None]:
        yield from self.medium.spend(self.medium.transfer_ns(size_bytes, self.name))

    def close(self) -> Work[None]:
        yield from self.medium.spend(self.medium.close_ns(self.name))

    def give_up(self) -> None:
        """Do nothing: a file of flat storage holds no resources."""
