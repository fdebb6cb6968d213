"""Checkpoint storage as a scenario describes it: what kind, how fast, what is slow, how often a request is tried.  Frozen.

Flat unless `dfs` or `object_store` is given.  Latencies are distributions of ns, drawn by the names of files.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from sim.model.catalogs.catalog import Catalog
from sim.model.job import Distribution

__all__ = [
    "STORAGES",
    "Dfs",
    "Disk",
    "FileMerging",
    "ObjectStore",
    "Retry",
    "SlowNodes",
    "SlowTrace",
    "Storage",
    "StorageKind",
]

_MS, _SECOND = 1_000_000, 1_000_000_000
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Retry:
    """How long a client of storage insists (S3A: fs.s3a.retry.limit 7, fs.s3a.retry.interval 500 ms, doubling)."""

    attempts: int = 8  # the first one included
    backoff_ns: int = 500 * _MS  # before the second attempt; doubles up to ...
    most_backoff_ns: int = 30 * _SECOND
    timeout_ns: int | None = None  # of one attempt at one request, block or part; None: it waits for ever


@dataclass(frozen=True, slots=True)
class SlowTrace:
    """Measured slowness: one series of (ns since its start, factor) per machine, repeated after `length_ns`."""

    machines: tuple[tuple[tuple[int, Fraction], ...], ...]  # each begins at 0
    length_ns: int
    begin_ns: int | None = None  # nodes are the machines in turn, from then on; None: each is one of them, from a moment of its own on


@dataclass(frozen=True, slots=True)
class SlowNodes:
    """Nodes that are slow for a while: bandwidth divided by `factor`.  Stationary from the start.

    Limpware (Do and Gunawi, SoCC 2013): such a node keeps heart-beating, and clients are sent to it.
    """

    share: Fraction = Fraction(0)  # of the time of each node
    factor: int = 1
    lasts: Distribution = Distribution(1800 * _SECOND, "exponential")  # one slow episode; healthy ones are exponential
    trace: SlowTrace | None = None  # instead of all of these; each node follows one machine


@dataclass(frozen=True, slots=True)
class Dfs:
    """A distributed file system of the HDFS family: files are blocks, a block is written through a pipeline of replicas."""

    nodes: int
    bytes_per_second: int | None = 120_000_000  # of the disk of each node, shared by all that read and write there
    nic_bytes_per_second: int | None = None  # of each node, in and out apart
    stream_bytes_per_second: int | None = None  # of one open file
    replication: int = 3  # dfs.replication
    block_bytes: int = 128 * _MIB  # dfs.blocksize
    latency: Distribution = Distribution(10 * _MS)  # of a request to the metadata server (create, block, close, delete), beside waiting
    requests_per_second: int | None = None  # the metadata server serves, one after the other; None: any number
    service: Literal["constant", "exponential"] = "exponential"  # of one request there
    local_first: bool = False  # a node stands on each task manager's machine and gets the first replica
    slow: SlowNodes | None = None


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """S3 and its kin: no append, no rename, an object is there when it is closed, large ones are sent in parts."""

    bytes_per_second: int | None = 80_000_000  # of one request
    latency: Distribution = Distribution(72 * _MS, "lognormal", 1.5)  # of one request, beside its bytes: median 40 ms, p99 500 ms
    part_bytes: int = 5 * _MIB  # s3.upload.min.part.size
    parallel_parts: int = 4  # of one file (s3.upload.max.concurrent.uploads)
    requests_per_second: int | None = None  # per prefix: more are turned away (503 Slow Down); S3: about 3500 writes
    prefixes: int = 1  # files are spread over so many (s3.entropy.key)
    client: Literal["hadoop", "presto"] = "hadoop"  # presto looks before it writes a new file (HEAD, LIST) or deletes one (HEAD)


@dataclass(frozen=True, slots=True)
class Disk:
    """The local disk of each task manager."""

    bytes_per_second: int | None = None
    space_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class FileMerging:
    """Several small files of one checkpoint share a physical one (FLIP-306, execution.checkpointing.file-merging.*)."""

    max_file_bytes: int = 32 * _MIB
    across: bool = False  # the boundaries of checkpoints
    max_space_amplification: Fraction = Fraction(2)


@dataclass(frozen=True, slots=True)
class Storage:
    """Checkpoint storage.  Flat: every open file is one stream, nothing is shared."""

    bytes_per_second: int | None = None  # flat: per stream; None: unlimited
    close_ns: int = 0  # flat: latency added to each file
    metadata_ns: int = 0  # latency of the _metadata file the coordinator writes, beside what the kind of storage adds
    read_bytes_per_second: int | None = None  # flat
    inline_threshold_bytes: int = 20 * 1024  # smaller state travels in the acknowledgement, no file
    slow_probability: float = 0.0  # flat: a file is slow with this probability ...
    slow_factor: int = 1  # ... bandwidth divided, latency multiplied
    retry: Retry = Retry()
    dfs: Dfs | None = None
    object_store: ObjectStore | None = None
    disk: Disk = Disk()
    nic_bytes_per_second: int | None = None  # of each task manager towards storage, in and out apart; all its streams share it
    merging: FileMerging | None = None
    other: object | None = None  # options of a kind that has no field here

    @property
    def options(self) -> object | None:
        """The options of its kind; None: it is flat."""
        return self.dfs or self.object_store or self.other

    @property
    def kind(self) -> StorageKind | None:
        """Its record; None: it is flat."""
        return next((kind for kind in STORAGES.values() if isinstance(self.options, kind.options)), None)


@dataclass(frozen=True, slots=True)
class StorageKind:
    """A kind of storage that is not flat.

    How it works is a file of `sim.storage`, how it is written a file of `sim.scenario.storage`.
    """

    name: str  # its key in `storage:`
    options: type
    title: str  # in sentences
    appends: bool = True  # to files: small ones can be merged


STORAGES: Catalog[StorageKind] = Catalog(
    StorageKind("dfs", Dfs, "dfs"),
    StorageKind("object-store", ObjectStore, "object store", appends=False),
)
