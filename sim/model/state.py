"""Keyed state as its author configures it: how much, in which backend, how often it is rewritten.  Frozen."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from sim.model.catalogs.backends import BACKENDS, BackendKind

__all__ = ["Changelog", "Lsm", "State", "StateOptions", "Ttl"]

_MIB = 1 << 20
_SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Lsm:
    """A log-structured merge tree with the defaults of RocksDB (Options: write_buffer_size, level0_file_num_compaction_trigger ...)."""

    memtable_bytes: int = 64 * _MIB  # a full one becomes a file of level 0
    managed_bytes: int | None = None  # memory of the slot that memtables and cache share; None: the memtable is the only limit
    level0_files: int = 4  # so many files in level 0 start a compaction
    base_bytes: int = 256 * _MIB  # size of level 1
    multiplier: int = 10  # from one level's size to the next
    table_bytes: int = 64 * _MIB  # size of one file below level 0
    flush_bytes_per_second: int = 200_000_000  # memtable to local disk, in the synchronous part
    compaction_bytes_per_second: int = 100_000_000  # merged by the background thread
    link_ns: int = 100_000  # one hard link of a snapshot, in the synchronous part
    compaction_thread: Literal["subtask", "task-manager"] = "subtask"  # whose it is: RocksDB's databases of one process share theirs
    wait: Fraction = Fraction(0)  # of the rest of a compaction under way, by which a snapshot is held up: both use one disk

    @property
    def memtable_limit_bytes(self) -> int:
        """When the memtable is flushed.

        A slot's managed memory goes to one cache; write buffers may have a third of it (RocksDBMemoryControllerUtils with a
        write-buffer-ratio of one half), and WriteBufferManager::ShouldFlush flushes at 7/8 of that.
        """
        if self.managed_bytes is None:
            return self.memtable_bytes
        return min(self.memtable_bytes, self.managed_bytes * 7 // 24)


@dataclass(frozen=True, slots=True)
class Changelog:
    """State changes are logged and uploaded as they happen (FLIP-158, state.changelog.*)."""

    materialize_ns: int = 600 * _SECOND  # between two snapshots of the backend below, which truncate the log
    preemptive_bytes: int = 5 * _MIB  # so much log is uploaded without being asked
    batch_delay_ns: int = 10_000_000  # waited for more, of this and the other subtasks of a task manager, before an upload
    batch_bytes: int = 10 * _MIB  # so much is not waited with
    upload_threads: int = 5  # of a task manager
    upload_timeout_ns: int | None = _SECOND  # then another attempt begins beside the one that hangs; None: it has all the time
    upload_attempts: int = 3
    reports_materialized: bool = False  # whether a checkpoint counts the one it is the first to refer to


@dataclass(frozen=True, slots=True)
class Ttl:
    """Keys expire (StateTtlConfig), and leave when something looks at them."""

    after_ns: int  # a key was last written
    checks: int = 10  # hashmap: entries looked at per record: five when it reads state, five when it writes (cleanupIncrementally)
    filters_snapshots: bool = False  # hashmap: expired entries that are still there are not written (cleanupFullSnapshot)


@dataclass(frozen=True, slots=True)
class State:
    """Keyed state of a whole vertex, spread over its subtasks by key group."""

    bytes: int
    backend: str = "hashmap"  # a name of BACKENDS
    update_share: Fraction = Fraction(0)  # share of the records that rewrite an entry
    value_bytes: int = 1000  # size of the entry rewritten
    lsm: Lsm = Lsm()  # rocksdb only
    changelog: Changelog | None = None
    sync_ns: int = 0  # freezing it, beside what the backend itself does
    serialize_bytes_per_second: int | None = None  # hashmap: processor time of a snapshot; None: never the limit
    growth_bytes: int = 0  # new keys per record served, on average; with a limit while none of its keys has come
    limit_bytes: int | None = None  # what all of its keys take; None: new ones never cease to come
    ttl: Ttl | None = None  # keys go some time after they were last written

    @property
    def kind(self) -> BackendKind:
        return BACKENDS[self.backend]

    def added_bytes(self, begun: int, records: int, share: Fraction = Fraction(1)) -> int:
        """What records add to a part of the state, `share` of it, that began with so many bytes.

        With a limit a record meets a new key as often as keys are left: ``growth * (1 - size / limit)``, all keys being equally likely.
        """
        if self.limit_bytes is None:
            return self.growth_bytes * records
        limit = int(self.limit_bytes * share)
        if begun >= limit:
            return 0
        return int((limit - begun) * (1 - max(1 - self.growth_bytes / limit, 0.0) ** records))

    @property
    def new_share(self) -> Fraction:
        """How much of the growth is left at the beginning: the share of the keys that have not come."""
        return Fraction(1) if self.limit_bytes is None else max(1 - Fraction(self.bytes, self.limit_bytes), Fraction(0))

    @property
    def turns_over(self) -> bool:
        """Whether keys come or go."""
        return self.growth_bytes > 0 or self.ttl is not None


@dataclass(frozen=True, slots=True)
class StateOptions:
    """How state is snapshotted and restored, the same for the whole job."""

    incremental: bool = False  # rocksdb: write only tables that are not stored yet
    transfer_threads: int = 4  # per subtask, to write and to read the tables (checkpoint.transfer.thread.num)
    savepoints_keep_base: bool = True  # False: the checkpoint after a savepoint writes everything again (before FLINK-23949)
    savepoint_bytes_per_second: int | None = 30_000_000  # canonical: entries sorted and serialised per slot; None: never the limit
    savepoint_cpu: Fraction = Fraction(0)  # of the task's processor that writing a canonical savepoint takes
    local_recovery: bool = False  # keep a second copy on the local disk (execution.checkpointing.local-backup.enabled)
    load_bytes_per_second: int | None = None  # restoring: entries deserialised per subtask; None: reading is the only cost
