"""Checkpoint storage: kinds and options, stored files and snapshots, directory layout."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import MISSING, field, replace
from fractions import Fraction
from hashlib import blake2b
from typing import ClassVar, Literal, NamedTuple

from sim.model.catalogs import Catalog
from sim.model.frozen import frozen
from sim.model.job import Distribution, RandomDuration
from sim.model.options import Flink, ValidationContext, option, options_of
from sim.model.units import MS, SECOND, format_duration
from sim.model.value_types import ByteRate, Duration, Number, OnOff, Positive, RequestRate, Share, Size

# ---- Options of checkpoint storage.
#
# Storage is flat unless `dfs` or `object_store` is set.  Latencies are distributions [ns], drawn by the names of files.

_MIB = 1 << 20
MAX_NODES = 100_000
_MERGING = "execution.checkpointing.file-merging"


@frozen
class Retry:
    """Retries of the storage client (S3A: fs.s3a.retry.limit 7, fs.s3a.retry.interval 500 ms, doubling)."""

    attempts: Positive = option(8, "Maximum attempts, including the first one.")
    backoff_ns: Duration = option(500 * MS, "Delay before the second attempt; it doubles with each further one.")
    max_backoff_ns: Duration = option(30 * SECOND, "Maximum delay between two attempts.", key="max-backoff")
    timeout_ns: Duration | None = option(
        None,
        "Timeout of an attempt at a request, block or part; during an outage attempts fail immediately.  Default: none.",
        default_text="no timeout",
    )

    def completed(self, at: ValidationContext) -> Retry:
        if self.timeout_ns == 0:
            at.error("of 0 fails every attempt: write at least '1 ms'", "timeout")
        return self


@frozen
class SlowTrace:
    """Measured slowness: one series of (ns since its start, factor) per machine, repeated after `length_ns`."""

    machines: tuple[tuple[tuple[int, Fraction], ...], ...]  # each begins at 0
    length_ns: int
    # nodes are the machines in turn, from this offset on; None: each node is one of them, from a random offset on
    begin_ns: int | None = None


@frozen
class SlowPlaces:
    """Data nodes, prefixes or disks that are slow for a while: bandwidth divided by `factor`.  Stationary from the start.

    Limpware (Do and Gunawi, SoCC 2013): such a node keeps heart-beating, and clients are sent to it.
    """

    share: Share = option(Fraction(0), "Share of the time in which a node is slow; 100 %: always.", is_required=True)
    factor: Positive = option(
        1,
        "Divides the bandwidth; for prefixes of an object store, it also multiplies the latency.",
        is_required=True,
    )
    lasts: RandomDuration = option(  # healthy episodes are exponential
        Distribution(1800 * SECOND, "exponential"),
        "Length of a slow episode; a duration alone is the mean of an exponential distribution.",
    )
    first: Positive | None = option(
        None,
        "Only the first n nodes, prefixes or TaskManagers are slow.  Default: any may be.",
        default_text="any",
    )
    trace: SlowTrace | None = None  # instead of all of these; each node follows one machine

    def completed(self, at: ValidationContext) -> SlowPlaces:
        if self.lasts.mean < MS:
            less = f"is {format_duration(self.lasts.mean)}: write an episode of 1 ms or more"
            at.error(less if self.lasts.mean else "must be more than 0", "lasts")
        return (
            replace(self, lasts=Distribution(self.lasts.mean, "exponential")) if self.lasts.kind == "constant" else self
        )


@frozen
class Dfs:
    """A distributed file system of the HDFS family: files are blocks, a block is written through a pipeline of replicas."""

    nodes: Positive = option(MISSING, "Number of data nodes.")
    bytes_per_second: ByteRate | None = option(120_000_000, "Disk bandwidth per node, shared fairly.", key="bandwidth")
    nic_bytes_per_second: ByteRate | None = option(None, "Network bandwidth per node and direction.")
    stream_bytes_per_second: ByteRate | None = option(None, "Bandwidth per open file.", key="stream-bandwidth")
    replication: Positive = option(3, "Replicas per block.")  # dfs.replication
    block_bytes: Size = option(128 * _MIB, "Block size.", must_be_positive=True)  # dfs.blocksize
    latency: RandomDuration = option(  # of create, block, close, delete
        Distribution(10 * MS), "Latency per request to the NameNode, without queueing."
    )
    requests_per_second: RequestRate | None = option(
        None, "Requests per second that the NameNode processes, one at a time."
    )
    service: Literal["constant", "exponential"] = option(
        "exponential", "Distribution of the NameNode's service time: constant or exponential."
    )
    local_first: OnOff = option(False, "The first replica is written to a node on the TaskManager's host.")
    slow: SlowPlaces | None = option(None, "Some nodes are slow at times.")

    def completed(self, at: ValidationContext) -> Dfs:
        if self.replication > self.nodes and at.written("replication") is not None:
            at.error(f"is {self.replication}, but there are {self.nodes} nodes", "replication")
        if self.nodes > MAX_NODES:
            at.error(f"is {self.nodes}: at most {MAX_NODES} are simulated", "nodes")
        return replace(self, replication=min(self.replication, self.nodes))


@frozen
class ObjectStore:
    """S3 and compatible stores: no append, no rename, objects are visible once closed, large ones are uploaded in parts."""

    bytes_per_second: ByteRate | None = option(80_000_000, "Bandwidth per request.", key="bandwidth")
    latency: RandomDuration = option(  # median 40 ms, p99 500 ms
        Distribution(72 * MS, "lognormal", 1.5), "Latency per request."
    )
    part_bytes: Size = option(
        5 * _MIB,
        "Part size of multipart uploads (s3.upload.min.part.size).",
        key="part",
        must_be_positive=True,
        flink="s3.upload.min.part.size",
    )
    parallel_parts: Positive = option(
        4,
        "Parts of one file that are uploaded in parallel (s3.upload.max.concurrent.uploads).",
        flink="s3.upload.max.concurrent.uploads",
    )
    requests_per_second: RequestRate | None = option(  # 503 Slow Down; S3: about 3500 writes
        None, "Request rate limit per prefix; requests above it are rejected and retried."
    )
    client: Literal["hadoop", "presto"] = option(  # HEAD and LIST, or HEAD
        "hadoop",
        "presto sends an additional request to check for the file before it writes a new one (two requests) or deletes "
        "one (one request).",
    )
    prefixes: Positive = option(1, "Number of prefixes over which files are spread (s3.entropy.key).")
    slow: SlowPlaces | None = option(None, "Some prefixes are slow at times.")


@frozen
class Disk:
    """The local disk of each task manager."""

    bytes_per_second: ByteRate | None = option(None, "Bandwidth, shared by reads and writes.", key="bandwidth")
    space_bytes: Size | None = option(
        None,
        "Capacity for staged files of sinks, which fail if it is full, and for local copies of heap state, which are then skipped.\n"
        "Files of RocksDB are not counted.",
    )
    slow: SlowPlaces | None = option(None, "Disks of some TaskManagers are slow at times.")

    def completed(self, at: ValidationContext) -> Disk:
        if self.slow is not None and at.written("bandwidth") is None:
            at.error("has no effect on a disk that takes no time: write its bandwidth", "slow")
        return self


@frozen
class FileMerging:
    """Several small files of one checkpoint share a physical one (FLIP-306, execution.checkpointing.file-merging.*)."""

    max_file_bytes: Size = option(
        32 * _MIB,
        "Maximum size of a physical file.",
        key="max-file-size",
        must_be_positive=True,
        flink=f"{_MERGING}.max-file-size",
    )
    across: OnOff = option(
        False,
        "Files of several checkpoints may share a physical file.",
        key="across-checkpoints",
        flink=f"{_MERGING}.across-checkpoint-boundary",
    )
    max_space_amplification: Number = option(
        Fraction(2),
        "Space amplification above which live data is written again; below 1: no limit.",
        flink=f"{_MERGING}.max-space-amplification",
    )


NOT_FLAT = ("storage.dfs", "storage.object-store")
"""Keys that exclude the keys of flat storage."""


@frozen
class Storage:
    """Checkpoint storage.  Flat: every open file is one stream, nothing is shared."""

    bytes_per_second: ByteRate | None = option(
        None, "Write bandwidth per open file.", key="bandwidth", excludes=NOT_FLAT
    )
    read_bytes_per_second: ByteRate | None = option(
        None,
        "Read bandwidth per open file.  Default: that of writes.",
        key="read-bandwidth",
        default_text="that of bandwidth",
        excludes=NOT_FLAT,
    )
    close_ns: Duration = option(0, "Latency per file.", key="file-latency", excludes=NOT_FLAT)
    read_latency_ns: Duration | None = option(
        None,
        "Latency per file that is read.  Default: file-latency.",
        key="read-latency",
        default_text="that of file-latency",
        excludes=NOT_FLAT,
    )
    slow_probability: float = option(0.0, "A random share of files is slow.", key="slow", excludes=NOT_FLAT)
    slow_factor: int = 1  # ... bandwidth divided, latency multiplied
    metadata_ns: Duration = option(  # in addition to what the kind of storage adds
        0, "Latency of the _metadata file that the JobManager writes.", key="metadata-latency"
    )
    inline_threshold_bytes: Size = option(
        20 * 1024,
        "State below this size is sent with the acknowledgement instead of being written to a file.",
        flink=Flink(
            "execution.checkpointing.data-inline-threshold",
            {"state.storage.fs.memory-threshold": "1.19", "state.backend.fs.memory-threshold": ""},
        ),
    )
    nic_bytes_per_second: ByteRate | None = option(
        None,
        "Bandwidth per TaskManager to storage, separately for reads and writes; shared by its streams.  Not for flat storage.",
    )
    dfs: Dfs | None = option(
        None, "A distributed file system instead of flat storage.", excludes=("storage.object-store",)
    )
    object_store: ObjectStore | None = option(
        None, "An object store such as S3 instead of flat storage.", excludes=("storage.dfs", "storage.file-merging")
    )
    in_flight_bytes_per_second: ByteRate | None = option(
        None,
        "Bandwidth of channel state: one thread writes that of several subtasks, buffer by buffer.  Default: that of other files.",
        key="in-flight-bandwidth",
        default_text="that of other files",
    )
    disk: Disk = option(Disk(), "Local disk of each TaskManager.")
    retry: Retry = option(Retry(), "Retries of the storage client.")
    merging: FileMerging | None = option(
        None,
        "Small files of a checkpoint are merged into larger physical files (FLIP-306).",
        key="file-merging",
        default_text="off",
        excludes=("storage.object-store",),
        flink=Flink(f"{_MERGING}.enabled", form="boolean", since="1.20"),  # FLIP-306
        accepts_on_off=True,
    )
    other: object | None = None  # options of a kind that has no field here

    HINTS: ClassVar = {
        "slow-share": "write slow: {share: 2 %, factor: 20}",
        "nodes": "write dfs: {nodes: 50}",
        "s3": "write object-store: {}",
        "hdfs": "write dfs: {nodes: 50}",
        "replication": "write replication in dfs:",
    }

    def completed(self, at: ValidationContext) -> Storage:
        kinds = [kind for kind in STORAGES.values() if at.written(kind.name) is not None]
        for other in kinds[1:]:
            at.error(f"storage is a {kinds[0].name} already: write one of the two", other.name)
        for kind in kinds[:1]:
            for key, record in options_of(Storage).items():
                if record.excludes == NOT_FLAT and at.written(key) is not None:
                    has = f": write {kind.name}: {{{kind.instead[key]}: ...}}" if key in kind.instead else ""
                    at.error(f"is a key of flat storage, which has no {kind.name}{has}", key)
            if self.merging is not None and not kind.appends:
                article = "an" if kind.title[0] in "aeiou" else "a"
                at.error(f"needs files that can be appended to: {article} {kind.title} has none", "file-merging")
        if not kinds and at.written("nic") is not None:
            named = " or ".join(f"{name}:" for name in STORAGES)
            at.error(f"has no effect: the streams of flat storage share nothing; write {named}", "nic")
        found, slow = self, at.written("slow")
        if slow is not None:
            found = replace(found, slow_probability=float(slow.share), slow_factor=slow.factor)
        if at.written("read-bandwidth") is None:
            found = replace(found, read_bytes_per_second=found.bytes_per_second)
        return found

    @property
    def options(self) -> object | None:
        """The options of its kind; None for flat storage."""
        return self.dfs or self.object_store or self.other

    @property
    def kind(self) -> StorageKind | None:
        """The record of its kind; None for flat storage."""
        return next((kind for kind in STORAGES.values() if isinstance(self.options, kind.options)), None)


@frozen
class StorageKind:
    """A kind of storage that is not flat.

    How it works is a file of `sim.storage`; it is written as its options say.
    """

    name: str  # its key in `storage:`
    options: type
    title: str  # in sentences
    appends: bool = True  # to files: small ones can be merged
    # key of flat storage -> its own key for the same
    instead: Mapping[str, str] = field(default_factory=dict, hash=False)


_INSTEAD = {"bandwidth": "bandwidth", "file-latency": "latency", "slow": "slow"}
STORAGES: Catalog[StorageKind] = Catalog(
    StorageKind("dfs", Dfs, "dfs", instead=_INSTEAD),
    StorageKind("object-store", ObjectStore, "object store", appends=False, instead=_INSTEAD),
)


# ---- State files and completed snapshots.
#
# Storage and runtime write them; `sim.protocol.snapshot_store` decides when they are deleted.

Scope = Literal["exclusive", "shared", "savepoint"]
"""Scope of a file (CheckpointedStateScope): the directory of its checkpoint, the job's directory of shared files, or the
directory of its savepoint."""

SnapshotType = Literal["checkpoint", "full", "canonical", "native"]
"""CheckpointType.CHECKPOINT (reuses files, may be reused), FULL_CHECKPOINT (reuses nothing, may be reused), and two savepoint formats.

Savepoints have exclusive files only (SavepointType): canonical ones a sorted key-value file, native ones the files of
the state backend."""

ClaimMode = Literal["claim", "no-claim", "legacy"]
"""Who owns the snapshot a job starts from (RecoveryClaimMode, FLIP-193)."""


class StateFile(NamedTuple):
    """One file of a snapshot; (instance, number) names it."""

    instance: int  # the job instance that wrote it, from 0: its owner
    number: int  # among the files of that instance
    checkpoint: int  # the snapshot it was written for
    scope: Scope
    size_bytes: int

    @property
    def key(self) -> tuple[int, int]:
        return self.instance, self.number


class StoredSnapshot(NamedTuple):
    """A completed checkpoint or savepoint: the files its metadata names."""

    instance: int
    checkpoint: int
    type: SnapshotType
    files: tuple[StateFile, ...]

    @property
    def is_savepoint(self) -> bool:
        return self.type in ("canonical", "native")

    def owns(self, file: StateFile) -> bool:
        """Return whether a file is in the directory of this snapshot."""
        return file.scope != "shared" and (file.instance, file.checkpoint) == (self.instance, self.checkpoint)


@frozen
class Verdict:
    """The dependencies of a snapshot on files outside its directory."""

    files_total: int  # that its metadata names
    bytes_total: int
    files_outside_chk_dir: int
    files_outside_job_dir: int  # a savepoint: outside its own directory
    owners: tuple[int, ...]  # job instances that wrote one of the files
    chain_length: int  # owners older than the snapshot's own job
    absolute_paths: int
    self_contained: bool  # all files are in its own directory
    relocatable_own_dir: bool  # restorable from a copy of its own directory alone
    relocatable_job_dir: bool | None  # ... of its job's directory alone; None: a savepoint does not lie in one


# ---- Directory layout of snapshots, and paths of files in their metadata.
#
# Flink's layout is `<root>/<job>/{chk-<n>, shared}` (FLINK-8531).  Its metadata contains absolute paths, except for files
# in the snapshot's own directory if no entropy is injected (FsCheckpointStreamFactory#createCheckpointStateOutputStream).
# The two other policies were proposed in FLINK-24149: all paths relative to the metadata, or to the directory of the job.

PathPolicy = Literal["absolute", "relative-to-metadata", "relative-to-job"]
"""Paths in metadata.  absolute: as in Flink, relative only inside the snapshot's own directory; relative-to-metadata: all
relative; relative-to-job: relative inside the job's directory, absolute outside."""


@frozen
class Directories:
    """The layout of a checkpoint storage, the same for all jobs that share it."""

    paths: PathPolicy = option(
        "absolute",
        "References to files in metadata.  absolute: as in Flink, relative only within a snapshot's own directory. The others are "
        "proposals for relocatable, self-contained checkpoints (FLINK-24149).",
    )
    root: str = "/checkpoints"  # execution.checkpointing.dir
    savepoints: str = "/savepoints"  # execution.checkpointing.savepoint-dir
    entropy: OnOff = option(  # of state files
        False, "Paths start with a random component (s3.entropy.key)."
    )
    create_subdir: OnOff = option(
        True,
        "false: all jobs share one directory.",
        flink=Flink("execution.checkpointing.create-subdir", {"state.checkpoints.create-subdir": "1.19"}),
    )

    def job_directory(self, instance: int) -> str:
        return f"{self.root}/job-{instance}" if self.create_subdir else self.root

    def directory(self, snapshot: StoredSnapshot) -> str:
        """Return the directory of the metadata, whose path contains no entropy."""
        return self._own(snapshot.instance, snapshot.checkpoint, savepoint=snapshot.is_savepoint)

    def path(self, file: StateFile) -> str:
        shared = file.scope == "shared"
        own = "" if shared else self._own(file.instance, file.checkpoint, savepoint=file.scope == "savepoint")
        folder = f"{self.job_directory(file.instance)}/shared" if shared else own
        entropy = f"/{blake2b(repr(file.key).encode(), digest_size=2).hexdigest()}" if self.entropy else ""
        return f"{entropy}{folder}/{file.instance}-{file.number}"

    def reference(self, path: str, snapshot: StoredSnapshot) -> str:
        """Return the path of a file in the snapshot's metadata: absolute, or relative to `_base`."""
        own = self.directory(snapshot)
        if self.paths == "relative-to-metadata":
            return posixpath.relpath(path, own)
        base = self._base(own, snapshot)
        return posixpath.relpath(path, base) if inside(path, base) else path

    def resolved(self, reference: str, directory: str, snapshot: StoredSnapshot) -> str:
        """Resolve a path in the metadata that was read from `directory`."""
        base = directory if self.paths == "relative-to-metadata" else self._base(directory, snapshot)
        return posixpath.normpath(posixpath.join(base, reference))

    def _base(self, directory: str, snapshot: StoredSnapshot) -> str:
        """Return the directory that paths are relative to.  A job's directory is the parent of its checkpoints."""
        return (
            posixpath.dirname(directory) if self.paths == "relative-to-job" and not snapshot.is_savepoint else directory
        )

    def _own(self, instance: int, checkpoint: int, *, savepoint: bool) -> str:
        return (
            f"{self.savepoints}/savepoint-{instance}-{checkpoint}"
            if savepoint
            else f"{self.job_directory(instance)}/chk-{checkpoint}"
        )


def inside(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip("/") + "/")
