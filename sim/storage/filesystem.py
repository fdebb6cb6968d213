"""Checkpoint storage as streams: every open file has its own bandwidth and pays one latency when it is closed.

Knows bytes and files; what they hold is the caller's business.
"""

from __future__ import annotations

from collections.abc import Generator
from fractions import Fraction

import simpy

from sim.model.cluster import Storage
from sim.model.random import draw, stream

__all__ = ["CheckpointStorage"]

_SECOND = 1_000_000_000


class CheckpointStorage:
    """Files of one job.  Whether a file is slow is a function of its name and the seed, not of the order of writes."""

    def __init__(self, env: simpy.Environment, options: Storage, seed: int) -> None:
        self.env = env
        self.options = options
        self.seed = seed
        self.files_written = 0
        self.bytes_written = 0

    def write(self, size_bytes: int, *name: str | int) -> Generator[simpy.Event, None, None]:
        """Process: create a file, write `size_bytes`, close it."""
        yield self.env.timeout(self.transfer_ns(size_bytes, *name))
        yield self.env.timeout(self.close_ns(*name))
        self.note_file(size_bytes)

    def write_metadata(self) -> Generator[simpy.Event, None, None]:
        """Process: the _metadata file of a checkpoint (Flink: on the coordinator's I/O thread)."""
        yield self.env.timeout(self.options.metadata_ns)
        self.note_file(0)

    def note_file(self, size_bytes: int) -> None:
        """Count a file that was closed."""
        self.files_written += 1
        self.bytes_written += size_bytes

    def transfer_ns(self, size_bytes: int, *name: str | int) -> int:
        """Time to push `size_bytes` through one stream."""
        rate = self.options.bytes_per_second
        if rate is None:
            return 0
        return int(Fraction(size_bytes * _SECOND * self._slowness(*name), rate))

    def close_ns(self, *name: str | int) -> int:
        return self.options.close_ns * self._slowness(*name)

    def is_inlined(self, size_bytes: int) -> bool:
        """Small state travels in the acknowledgement (FsCheckpointStreamFactory): no file, no latency."""
        return size_bytes <= self.options.inline_threshold_bytes

    def _slowness(self, *name: str | int) -> int:
        if self.options.slow_probability == 0:
            return 1
        unlucky = draw(stream(self.seed, "slow-file", *name), 0) < self.options.slow_probability * 2**32
        return self.options.slow_factor if unlucky else 1
