"""Checkpoint storage as a scenario describes it: what kind, how fast, what is slow, how often a request is tried.  Frozen."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Retry", "Storage"]


@dataclass(frozen=True, slots=True)
class Retry:
    """How long a client of storage insists (S3A: fs.s3a.retry.limit 7, fs.s3a.retry.interval 500 ms, doubling)."""

    attempts: int = 8  # the first one included
    backoff_ns: int = 500_000_000  # before the second attempt; doubles up to ...
    most_backoff_ns: int = 30_000_000_000
    timeout_ns: int | None = None  # of one attempt at one request, block or part; None: it waits for ever


@dataclass(frozen=True, slots=True)
class Storage:
    """Checkpoint storage: every open file is one stream."""

    bytes_per_second: int | None = None  # per stream; None: unlimited
    close_ns: int = 0  # latency added to each file
    metadata_ns: int = 0  # latency of the _metadata file the coordinator writes
    read_bytes_per_second: int | None = None
    inline_threshold_bytes: int = 20 * 1024  # smaller state travels in the acknowledgement, no file
    slow_probability: float = 0.0  # a file is slow with this probability ...
    slow_factor: int = 1  # ... bandwidth divided, latency multiplied
    retry: Retry = Retry()
