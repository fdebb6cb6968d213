"""Checkpoint storage as a scenario describes it: what kind, how fast, what is slow, how often a request is tried.  Frozen.

Flat unless `dfs` or `object_store` is given.  Latencies are distributions of ns, drawn by the names of files.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from fractions import Fraction
from typing import Literal

from sim.model.catalogs.catalog import Catalog
from sim.model.catalogs.option import Flink, Kind, option
from sim.model.job import Distribution
from sim.units import MS, SECOND

_MIB = 1 << 20
_MERGING = "execution.checkpointing.file-merging"


@dataclass(frozen=True, slots=True)
class Retry:
    """How long a client of storage insists (S3A: fs.s3a.retry.limit 7, fs.s3a.retry.interval 500 ms, doubling)."""

    attempts: int = option(Kind.POSITIVE, 8, "The first one included.")
    backoff_ns: int = option(Kind.DURATION, 500 * MS, "Before the second attempt; doubles.")
    most_backoff_ns: int = option(Kind.DURATION, 30 * SECOND, "Longest wait between two attempts.", key="max-backoff")
    timeout_ns: int | None = option(
        Kind.DURATION, None, "Longest attempt at a request, block or part; default: it waits for ever.", usually="it waits for ever"
    )


@dataclass(frozen=True, slots=True)
class SlowTrace:
    """Measured slowness: one series of (ns since its start, factor) per machine, repeated after `length_ns`."""

    machines: tuple[tuple[tuple[int, Fraction], ...], ...]  # each begins at 0
    length_ns: int
    begin_ns: int | None = None  # nodes are the machines in turn, from then on; None: each is one of them, from a moment of its own on


@dataclass(frozen=True, slots=True)
class SlowPlaces:
    """Data nodes, prefixes or disks that are slow for a while: bandwidth divided by `factor`.  Stationary from the start.

    Limpware (Do and Gunawi, SoCC 2013): such a node keeps heart-beating, and clients are sent to it.
    """

    share: Fraction = option(Kind.SHARE, Fraction(0), "Share of the time that each is slow; 100 %: always.")
    factor: int = option(Kind.POSITIVE, 1, "Bandwidth of a slow one is divided by this; of a slow prefix, latency is multiplied too.")
    lasts: Distribution = option(  # healthy episodes are exponential
        Kind.DURATION_LAW, Distribution(1800 * SECOND, "exponential"),
        "An episode; a duration alone is the mean of an exponential one.",
    )  # fmt: skip
    first: int | None = option(
        Kind.POSITIVE, None, "Only the first so many are ever slow: 1 is node, prefix or task manager 0; default: any.", usually="any"
    )
    trace: SlowTrace | None = None  # instead of all of these; each node follows one machine


@dataclass(frozen=True, slots=True)
class Dfs:
    """A distributed file system of the HDFS family: files are blocks, a block is written through a pipeline of replicas."""

    nodes: int = option(Kind.POSITIVE, MISSING, "Data nodes.")
    bytes_per_second: int | None = option(Kind.BYTE_RATE, 120_000_000, "Rate of the disk of each node, shared fairly.", key="bandwidth")
    nic_bytes_per_second: int | None = option(Kind.BYTE_RATE, None, "Rate of each node, in and out apart.")
    stream_bytes_per_second: int | None = option(Kind.BYTE_RATE, None, "Rate of one open file.", key="stream-bandwidth")
    replication: int = option(Kind.POSITIVE, 3, "Copies of a block.")  # dfs.replication
    block_bytes: int = option(Kind.SIZE, 128 * _MIB, "Size of a block.", above_zero=True)  # dfs.blocksize
    latency: Distribution = option(  # of create, block, close, delete
        Kind.DURATION_LAW, Distribution(10 * MS), "Latency of each request to the metadata server, beside waiting."
    )
    requests_per_second: int | None = option(Kind.RECORD_RATE, None, "Served by the metadata server, one after the other.")
    service: Literal["constant", "exponential"] = option(
        Kind.WORD, "exponential", "How long a request keeps the metadata server: always the same, or exponential."
    )
    local_first: bool = option(Kind.ON_OFF, False, "A node on each task manager's machine gets the first replica.")
    slow: SlowPlaces | None = option(Kind.OWN, None, "Some nodes are slow, for a while.")


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """S3 and its kin: no append, no rename, an object is there when it is closed, large ones are sent in parts."""

    bytes_per_second: int | None = option(Kind.BYTE_RATE, 80_000_000, "Rate of one request.", key="bandwidth")
    latency: Distribution = option(  # median 40 ms, p99 500 ms
        Kind.DURATION_LAW, Distribution(72 * MS, "lognormal", 1.5), "Latency of one request, beside its bytes."
    )
    part_bytes: int = option(
        Kind.SIZE, 5 * _MIB, "Files larger than this go in parts (s3.upload.min.part.size).", key="part", above_zero=True,
        flink="s3.upload.min.part.size",
    )  # fmt: skip
    parallel_parts: int = option(
        Kind.POSITIVE, 4, "Parts of one file at once (s3.upload.max.concurrent.uploads).", flink="s3.upload.max.concurrent.uploads"
    )
    requests_per_second: int | None = option(  # 503 Slow Down; S3: about 3500 writes
        Kind.RECORD_RATE, None, "Per prefix; more are turned away and retried."
    )
    client: Literal["hadoop", "presto"] = option(  # HEAD and LIST, or HEAD
        Kind.WORD, "hadoop",
        "presto asks whether a file is there before it writes a new one (two requests) or deletes one (one request).", keyword=True,
    )  # fmt: skip
    prefixes: int = option(Kind.POSITIVE, 1, "Files are spread over so many (s3.entropy.key).")
    slow: SlowPlaces | None = option(Kind.OWN, None, "Some prefixes are slow, for a while.")


@dataclass(frozen=True, slots=True)
class Disk:
    """The local disk of each task manager."""

    bytes_per_second: int | None = option(Kind.BYTE_RATE, None, "Shared by all that read and write.", key="bandwidth")
    space_bytes: int | None = option(Kind.SIZE, None, "Full is a failure.")
    slow: SlowPlaces | None = option(Kind.OWN, None, "The disks of some task managers are slow, for a while.")


@dataclass(frozen=True, slots=True)
class FileMerging:
    """Several small files of one checkpoint share a physical one (FLIP-306, execution.checkpointing.file-merging.*)."""

    max_file_bytes: int = option(
        Kind.SIZE, 32 * _MIB, "A physical file is not longer.", key="max-file-size", above_zero=True, flink=f"{_MERGING}.max-file-size"
    )
    across: bool = option(
        Kind.ON_OFF, False, "Files of several checkpoints share a physical one.", key="across-checkpoints",
        flink=f"{_MERGING}.across-checkpoint-boundary",
    )  # fmt: skip
    max_space_amplification: Fraction = option(Kind.NUMBER, Fraction(2), "Below 1: no limit.", flink=f"{_MERGING}.max-space-amplification")


NOT_FLAT = ("storage.dfs", "storage.object-store")
"""What keys of flat storage cannot stand beside."""


@dataclass(frozen=True, slots=True)
class Storage:
    """Checkpoint storage.  Flat: every open file is one stream, nothing is shared."""

    bytes_per_second: int | None = option(Kind.BYTE_RATE, None, "Writing, per open file.", key="bandwidth", excludes=NOT_FLAT)
    read_bytes_per_second: int | None = option(
        Kind.BYTE_RATE, None, "Reading, per open file.", key="read-bandwidth", excludes=NOT_FLAT, keyword=True
    )
    close_ns: int = option(Kind.DURATION, 0, "Added to each file.", key="file-latency", excludes=NOT_FLAT)
    slow_probability: float = option(Kind.OWN, 0.0, "Some files are slow, by chance.", key="slow", excludes=NOT_FLAT, keyword=True)
    slow_factor: int = 1  # ... bandwidth divided, latency multiplied
    metadata_ns: int = option(  # beside what the kind of storage adds
        Kind.DURATION, 0, "Latency of the _metadata file the coordinator writes.", key="metadata-latency", keyword=True
    )
    inline_threshold_bytes: int = option(
        Kind.SIZE, 20 * 1024, "Smaller state travels in the acknowledgement, no file.", keyword=True,
        flink=Flink(
            "execution.checkpointing.data-inline-threshold",
            {"state.storage.fs.memory-threshold": "1.19", "state.backend.fs.memory-threshold": ""},
        ),
    )  # fmt: skip
    nic_bytes_per_second: int | None = option(
        Kind.BYTE_RATE, None,
        "Rate of each task manager towards storage, in and out apart; all its streams share it.  Not for flat storage.", keyword=True,
    )  # fmt: skip
    dfs: Dfs | None = option(
        Kind.OWN, None, "A distributed file system instead of flat storage.", excludes=("storage.object-store",), keyword=True
    )
    object_store: ObjectStore | None = option(
        Kind.OWN, None, "An object store instead of flat storage.", excludes=("storage.dfs", "storage.file-merging"), keyword=True
    )
    in_flight_bytes_per_second: int | None = option(
        Kind.BYTE_RATE, None,
        "In-flight data: one thread writes that of a group of subtasks, buffer by buffer, and no faster than so.  Default: as other files.",
        key="in-flight-bandwidth", usually="as other files", keyword=True,
    )  # fmt: skip
    disk: Disk = option(Kind.OWN, Disk(), "The local disk of a task manager.", keyword=True)
    retry: Retry = option(Kind.OWN, Retry(), "How long a client insists.", keyword=True)
    merging: FileMerging | None = option(
        Kind.OWN, None, "Small files of a checkpoint share a physical one.", key="file-merging", usually="off", keyword=True,
        excludes=("storage.object-store",), flink=Flink(f"{_MERGING}.enabled", form="boolean"),
    )  # fmt: skip
    other: object | None = None  # options of a kind that has no field here

    @property
    def options(self) -> object | None:
        """The options of its kind; None: it is flat."""
        return self.dfs or self.object_store or self.other

    @property
    def kind(self) -> StorageKind | None:
        """The record of its kind; None: it is flat."""
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
