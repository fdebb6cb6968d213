"""Keyed state: backends, size, growth, updates, changelog."""

from __future__ import annotations

from dataclasses import MISSING, replace
from fractions import Fraction
from typing import ClassVar, Literal

from sim.model.catalogs import Catalog
from sim.model.frozen import frozen
from sim.model.options import Flink, ValidationContext, option
from sim.model.units import MS, SECOND
from sim.model.value_types import ByteRate, Duration, Natural, Positive, Share, Size, Switch

# ---- The state backends: one record each, with the facts that other packages need.
#
# The behaviour of a backend is a module of `sim.storage`; documents, Flink's keys, advice and envelope read these records.


@frozen
class Measured:
    """A constant of a backend measured in recordings: median and range."""

    likely: int
    least: int
    most: int
    source: str


ROCKSDB_FREEZE = Measured(
    35 * MS,
    13 * MS,
    80 * MS,
    "sync duration less the flushed bytes at 200 MB/s: 13 to 80 ms in 11 runs on local disks (Checkpoint::CreateCheckpoint syncs its files)",
)
"""Median of 13, 14, 18, 20, 29, 35, 42, 60, 68, 78 and 80 ms: tests/data/users-jobs J3 and R4, tests/data/backends, one report, and the runs of
`docs/truth.md`, "What-ifs of jobs that sleep"."""
ROCKSDB_UPLOAD = Measured(
    7 * MS,
    0,
    150 * MS,
    "async duration less bytes and a file's latency as the same job has it on another backend: 2 to 51 ms in 6 pairs of runs on local disks, "
    "up to 150 ms where cores were busy (RocksDBStateUploader: a pool of threads each)",
)
"""Median of 2, 4, 5, 8, 36 and 51 ms: pairs of `docs/truth.md`, "What-ifs of jobs that sleep".  A job without such a pair does not tell it from
the latency of its files."""
HEAP_SERIALIZE = Measured(
    380_000_000,
    150_000_000,
    500_000_000,
    "asynchronous part of 11 to 225 MB in one stream to a local disk, 8 jobs (CopyOnWriteStateTableSnapshot writes entry by entry)",
)
"""Bytes per second and core: tests/data/users-jobs J1, J2, R6, tests/data/heap-restores, tests/data/backends."""
_ENTRY_NS, _BYTES_PER_SECOND = 220, 400_000_000
"""Time per entry, and per byte.  Measured: 112 B 220 MB/s, 672 B 382 MB/s, 1 kB 361 MB/s, 10 kB 390 MB/s."""


def heap_rate(entry: float) -> float:
    """Return the bytes per second at which a core serializes entries of this size."""
    return entry * SECOND / (_ENTRY_NS + entry * SECOND / _BYTES_PER_SECOND)


LOAD_ENTRY_NS, LOAD_BYTES_PER_SECOND = 2_800, 690_000_000
"""Time per entry that is put into a backend, without its bytes, and rate of the bytes of entries, on idle cores: restores of values of 100 B, 1 kB
and 10 kB to the heap (`tests/data/heap-restores`).  An append to RocksDB takes as long (`ROCKSDB_ACCESS_NS`)."""


def load_rate(entry: float) -> float:
    """Return the bytes per second at which a core puts entries of this size into a backend."""
    return entry * SECOND / (LOAD_ENTRY_NS + entry * SECOND / LOAD_BYTES_PER_SECOND)


@frozen
class BackendKind:
    """A state backend."""

    name: str  # as a scenario and Flink's state.backend.type write it
    keeps_files: bool = False  # on the local disk: a snapshot links them, an incremental one writes the new ones only
    sections: tuple[str, ...] = ()  # keys of `state:` that only it reads
    older: tuple[str, ...] = ()  # names of it in state.backend of 1.x (StateBackendLoader)
    answers_to: tuple[str, ...] = ()  # parts of the names of its classes, in small letters


BACKENDS: Catalog[BackendKind] = Catalog(
    BackendKind(
        "hashmap",
        sections=("serialize", "ttl-checks", "ttl-filter"),
        older=("filesystem", "jobmanager"),
        answers_to=("hashmap", "fsstate", "memory"),
    ),
    BackendKind("rocksdb", keeps_files=True, sections=("lsm",), answers_to=("rocksdb",)),
)
"""State backends by name; the first one is the default."""


ROCKSDB_ACCESS_NS, MIN_ROCKSDB_ACCESS_NS, MAX_ROCKSDB_ACCESS_NS = 10_000, 3_000, 100_000
"""Additional time per record in RocksDB compared with the heap: assumed, and its likely bounds.

Assumed: one read and one append.  In flink-benchmarks#27 and #48, RocksDB does 145 reads and 315 appends per ms, the heap
2,400 and 3,024.  So an append alone takes 3 us; a read from a disk takes 100 us.  Flink's documentation says that RocksDB is
on average an order of magnitude slower than memory.
"""


def backend_named(text: str) -> str | None:
    """Return the backend with this name in Flink: of the configuration, a class or a factory.  None if it is not modelled."""
    word = text.strip().lower()
    is_class = word.endswith(("backend", "backendfactory"))
    for kind in BACKENDS.values():
        if word in (kind.name, *kind.older) or (
            is_class and any(part in word.rpartition(".")[2] for part in kind.answers_to)
        ):
            return kind.name
    return None


# ---- Options of keyed state.

_MIB = 1 << 20


def _dstl(name: str) -> Flink:
    """Return a key of the changelog's storage, with its shorter name before FLIP-406."""
    return Flink(f"state.changelog.dstl.dfs.{name}", {f"dstl.dfs.{name}": "1.19"})


@frozen
class Lsm:
    """A log-structured merge tree with the defaults of RocksDB (Options: write_buffer_size, level0_file_num_compaction_trigger ...)."""

    memtable_bytes: Size = option(
        64 * _MIB,
        "Size of the memtable.  A full one is flushed to a file in level 0.",
        must_be_positive=True,
        flink="state.backend.rocksdb.writebuffer.size",
    )
    managed_bytes: Size | None = option(  # None: the memtable is the only limit
        None,
        "Managed memory of the slot, shared by memtables and block cache; it limits the memtable to 7/24 of it.",
        key="managed-memory",
        must_be_positive=True,
        default_text="only the memtable limits it",
        flink="state.backend.rocksdb.memory.fixed-per-slot",
    )
    level0_files: Positive = option(4, "Number of level-0 files that triggers a compaction.")
    base_bytes: Size = option(
        256 * _MIB,
        "Size of level 1 that triggers a compaction.",
        must_be_positive=True,
        flink="state.backend.rocksdb.compaction.level.max-size-level-base",
    )
    multiplier: Positive = option(10, "Size ratio between adjacent levels.")
    table_bytes: Size = option(
        64 * _MIB,
        "Size of an SST file below level 0.",
        must_be_positive=True,
        flink="state.backend.rocksdb.compaction.level.target-file-size-base",
    )
    flush_bytes_per_second: ByteRate = option(
        200_000_000, "Rate at which a memtable is flushed to local disk, on the task thread."
    )
    compaction_bytes_per_second: ByteRate = option(100_000_000, "Rate of compaction, in the background.")
    compaction_thread: Literal["subtask", "task-manager"] = option(
        "subtask",
        "Compaction threads: one per subtask (the default), or one shared by all slots of a TaskManager, as in RocksDB.",
    )
    freeze_ns: Duration = option(
        ROCKSDB_FREEZE.likely,
        "Constant part of the synchronous phase, in addition to flush and links, in which files are synced to disk.",
    )
    upload_ns: Duration = option(
        ROCKSDB_UPLOAD.likely,
        "Constant part of the asynchronous phase, in addition to its files: starting threads, listing and removing directories.",
    )
    link_ns: Duration = option(100_000, "Time to hard-link one file, on the task thread.")
    HINTS: ClassVar = {"write-buffer": "did you mean memtable?", "level0": "did you mean level0-files?"}

    wait: Share = option(
        Fraction(0),
        "Share of the remaining time of a running compaction by which a snapshot is delayed, as both use the same disk. "
        "Default: 0 %.",
    )

    def completed(self, at: ValidationContext) -> Lsm:
        if self.multiplier == 1:
            at.error("is 1: a level must be larger than the one above it", "multiplier")
        return self

    @property
    def memtable_limit_bytes(self) -> int:
        """The size at which the memtable is flushed.

        The managed memory of a slot is one cache, of which write buffers may use a third (RocksDBMemoryControllerUtils
        with a write-buffer-ratio of one half); WriteBufferManager::ShouldFlush flushes at 7/8 of that.
        """
        if self.managed_bytes is None:
            return self.memtable_bytes
        return min(self.memtable_bytes, self.managed_bytes * 7 // 24)


@frozen
class Changelog:
    """A changelog: state changes are logged, and uploaded as they happen (FLIP-158, state.changelog.*).

    Flink's own default is `memory`, and TaskManagers read it from their own configuration, not from a job's
    (TaskExecutorStateChangelogStoragesManager).
    """

    materialize_ns: Duration = option(
        600 * SECOND,
        "Time between two materializations, which truncate the changelog.",
        must_be_positive=True,
        flink=Flink(
            "state.changelog.periodic-materialize.interval",
            {"state.backend.changelog.periodic-materialize.interval": "1.19"},
        ),
    )
    preemptive_bytes: Size = option(
        5 * _MIB,
        "Size of the changelog at which it is uploaded before a checkpoint needs it.",
        key="threshold",
        must_be_positive=True,
        flink=_dstl("preemptive-persist-threshold"),
    )
    batch_delay_ns: Duration = option(
        10_000_000,
        "Time that an upload waits for changes of other subtasks of the TaskManager.",
        flink=_dstl("batch.persist-delay"),
    )
    batch_bytes: Size = option(
        10 * _MIB,
        "Size of a batch that is uploaded without further delay.",
        key="batch-size",
        flink=_dstl("batch.persist-size-threshold"),
    )
    upload_threads: Positive = option(5, "Upload threads per TaskManager.", flink=_dstl("upload.num-threads"))
    upload_timeout_ns: Duration | None = option(
        SECOND,
        "Time after which a second attempt is started in parallel; 0 s: never.",
        zero_means_never=True,
        flink=_dstl("upload.timeout"),
    )
    upload_attempts: Positive = option(3, "Maximum attempts per upload.", flink=_dstl("upload.max-attempts"))
    reports_materialized: Switch = option(
        False,
        "Whether the size of a checkpoint includes a materialization that it is the first to refer to.  Default: false, "
        "as in Flink 1.15 and 2.3.",
    )
    storage: Literal["filesystem", "memory"] = option(
        "filesystem",
        "memory: the changelog since the last materialization is copied and sent with each acknowledgement.",
        flink=Flink(
            "state.changelog.storage", {"state.backend.changelog.storage": "1.19"}, form="changelog", default="memory"
        ),
    )
    copy_ns: Duration = option(  # the costs are measured: docs/protocols.md, "The changelog"
        3_000,
        "storage: memory only: time to copy one change, on the task thread.",
        key="change-copy",
        needs=("storage", ("memory",)),
    )
    ship_ns: Duration = option(
        3_000,
        "storage: memory only: time to send one change with the acknowledgement, and to read it on restore.",
        key="change-send",
        needs=("storage", ("memory",)),
    )

    @property
    def in_memory(self) -> bool:
        return self.storage == "memory"


@frozen
class Ttl:
    """The time to live of keys (StateTtlConfig).  Expired keys leave when an access or a compaction meets them."""

    after_ns: int = option(
        MISSING,
        "Time after its last write at which a key expires (StateTtlConfig).  Default, and 0 s: never.",
        key="ttl",
        default_text="never",
        flink=Flink("table.exec.state.ttl", form="duration"),  # of the operators of a SQL job
    )
    checks: Natural = option(  # five when it reads state, five when it writes (cleanupIncrementally)
        10,
        "hashmap only: entries checked for expiry per record (cleanupIncrementally).  Default: 10, five on read and five on write.",
        key="ttl-checks",
    )
    filters_snapshots: Switch = option(
        False,
        "hashmap only: snapshots omit expired entries (cleanupFullSnapshot).  Default: false.",
        key="ttl-filter",
    )


@frozen
class State:
    """Keyed state of a whole vertex, spread over its subtasks by key group."""

    bytes: Size = option(MISSING, "Total size over all subtasks.", key="size")
    backend: str = option(
        "hashmap",
        "State backend: on the heap (hashmap) or in RocksDB.",
        choices=lambda: BACKENDS,
        flink=Flink("state.backend.type", {"state.backend": "1.16"}, form="backend"),
    )
    update_share: Share = option(
        Fraction(0),
        "Share of records that rewrite an existing entry; with a limit, of the records whose key exists.",
        key="update",
    )
    value_bytes: Size = option(1000, "Size of a rewritten entry.")
    lsm: Lsm = option(Lsm(), "rocksdb only: the LSM tree and its snapshots.")
    changelog: Changelog | None = option(
        None,
        "Changelog state backend (FLIP-158): changes are uploaded continuously.",
        default_text="off",
        # FLIP-158: 1.14 has the key, and no storage but the JobManager's memory
        flink=Flink(
            "state.changelog.enabled", {"state.backend.changelog.enabled": "1.19"}, form="boolean", since="1.15"
        ),
        accepts_on_off=True,
    )
    sync_ns: Duration = option(
        0, "Constant part of the synchronous phase, in addition to that of the backend.", key="freeze"
    )
    serialize_bytes_per_second: ByteRate | None = option(
        None, "hashmap only: CPU rate of serialization per subtask, in the asynchronous phase."
    )
    growth_bytes: Size = option(
        0,
        "Mean state added per record, for new keys.  Default: records rewrite existing entries.",
    )
    limit_bytes: Size | None = option(
        None,
        "Total size once all keys exist; growth slows down as it is approached.  These keys do not expire, whatever ttl is.\n"
        "Default, and 0 B: unlimited.",
        zero_means_never=True,
    )
    ttl: Ttl | None = None  # keys go some time after they were last written

    HINTS: ClassVar = {
        "incremental": "write incremental in checkpoint:",
        "memtable": "write lsm: {memtable: ...}",
    }

    def completed(self, at: ValidationContext) -> State:
        lsm = at.written("lsm")
        if self.value_bytes == 0:
            at.error("an entry has at least 1 B", "value")
        # an import writes `wait` for what-ifs
        if lsm is not None and "lsm" not in self.kind.sections and lsm.model_fields_set != {"wait"}:
            backends = [kind.name for kind in BACKENDS.values() if "lsm" in kind.sections]
            at.warn(f"has no effect: only {' or '.join(backends)} has one", "lsm")
        # `freeze` is all that its author knows of: the backend adds nothing
        is_all = self.kind.keeps_files and at.written("freeze") is not None and (lsm is None or lsm.freeze is None)
        return replace(self, lsm=replace(self.lsm, freeze_ns=0)) if is_all else self

    @property
    def backend_name(self) -> str:
        """``rocksdb``, or ``rocksdb+changelog``."""
        return self.backend if self.changelog is None else f"{self.backend}+changelog"

    @property
    def kind(self) -> BackendKind:
        return BACKENDS[self.backend]

    def added_bytes(self, begun: int, records: int, share: Fraction = Fraction(1)) -> int:
        """Return the bytes that records add to a part of the state, `share` of it, with this size at the beginning.

        With a limit and equally likely keys a record has a new key with the share of unseen keys, so it adds on average
        ``growth * (1 - size / limit)``.
        """
        if self.limit_bytes is None:
            return self.growth_bytes * records
        limit = int(self.limit_bytes * share)
        if begun >= limit:
            return 0
        return int((limit - begun) * (1 - max(1 - self.growth_bytes / limit, 0.0) ** records))

    def rewrites(self, begun: int, records: int, share: Fraction = Fraction(1)) -> int:
        """Return how many entries records rewrite in such a part of the state.

        With a limit a record brings a new key or meets one that is there, and only the latter can be rewritten.
        """
        limited = self.limit_bytes is not None and self.growth_bytes
        new = self.added_bytes(begun, records, share) // self.growth_bytes if limited else 0
        return int((records - new) * self.update_share)

    @property
    def new_share(self) -> Fraction:
        """Return the share of keys that do not exist at the beginning, by which growth is reduced."""
        return Fraction(1) if self.limit_bytes is None else max(1 - Fraction(self.bytes, self.limit_bytes), Fraction(0))

    @property
    def turns_over(self) -> bool:
        """Whether keys are added or expire."""
        return self.growth_bytes > 0 or self.ttl is not None


@frozen
class StateOptions:
    """The options of state, the same for the whole job."""

    incremental: Switch = option(
        False,
        "rocksdb: only files that are not in storage yet are uploaded.",
        flink=Flink("execution.checkpointing.incremental", {"state.backend.incremental": "1.19"}),
    )
    transfer_threads: Positive = option(
        4,
        "Threads per subtask that upload and download files of RocksDB.",
        flink="state.backend.rocksdb.checkpoint.transfer.thread.num",
    )
    # FLINK-31238 and FLINK-34050
    ingest_db: Switch = option(
        False,
        "rocksdb: on rescaling, SST files of the previous subtasks are ingested instead of written entry by entry.",
        flink=Flink("state.backend.rocksdb.use-ingest-db-restore-mode", since="1.19"),
    )
    compact_after_rescale: Switch = option(
        False,
        "rocksdb: after rescaling, compaction removes the key groups that now belong to other subtasks.",
        flink=Flink("state.backend.rocksdb.incremental-restore-async-compact-after-rescale", since="1.20"),
    )
    delete_files_in_range: Switch = option(
        False,
        "rocksdb: on rescaling, files without key groups of the subtask are deleted.  Otherwise they remain until a "
        "compaction removes them.",
        flink=Flink("state.backend.rocksdb.rescaling.use-delete-files-in-range", since="1.20"),
    )
    savepoint_bytes_per_second: ByteRate | None = option(  # entries sorted and serialised per slot
        30_000_000,
        "Rate per subtask at which a canonical savepoint is written, as entries are sorted and serialized one by one.",
        key="savepoint-rate",
    )
    savepoint_cpu: Share = option(
        Fraction(0), "Share of its processor that a subtask loses while it writes a canonical savepoint."
    )
    savepoints_keep_base: Switch = option(
        True,
        "false: the first incremental checkpoint after a savepoint uploads all files again (before FLINK-23949).",
        key="savepoint-keeps-base",
    )
    local_recovery: Switch = option(
        False,
        "A second copy of state is kept on the TaskManager's disk and restored from there.",
        flink=(
            Flink("execution.checkpointing.local-backup.enabled", since="1.20"),
            Flink("execution.state-recovery.from-local", since="1.20"),
            Flink("state.backend.local-recovery", last="1.19"),  # counts for both
        ),
    )
    load_bytes_per_second: ByteRate | None = option(
        None,
        "Rate per subtask at which entries are deserialized on restore, in addition to reading the files.  Default: "
        "unlimited; changes of a changelog\n"
        "take 2.8 us each and 690 MB/s.",
        key="restore-rate",
    )

    def completed(self, at: ValidationContext) -> StateOptions:
        kinds = {vertex.state.kind for vertex in at.job.vertices if vertex.state is not None}
        if not any(kind.keeps_files for kind in kinds):
            kept = " or ".join(kind.name for kind in BACKENDS.values() if kind.keeps_files)
            none = f"has no effect on state that is not kept in {kept}"
            if self.incremental:
                at.warn(f"{none}: the heap is always written in full", "incremental")
            for key in ("ingest-db", "compact-after-rescale", "delete-files-in-range"):
                if at.written(key):
                    at.warn(none, key)
        if self.savepoint_cpu == 1:
            at.error("leaves the task nothing to work with: write less than 100 %", "savepoint-cpu")
        return self
