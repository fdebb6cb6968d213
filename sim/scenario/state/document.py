"""`state:` of a vertex as it is written, and the keys of `checkpoint:` that say how state is snapshotted and restored.

Defaults live in the model: a key that is not given is None here.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Tag

from sim.model.catalogs.backends import BACKENDS
from sim.scenario.grammar.fields import Axis, ByteRate, Duration, Natural, Positive, Share, Size, choice, choice_of
from sim.scenario.grammar.section import MAP_OR_TEXT, Section, Texts

__all__ = ["Changelog", "Lsm", "State", "StateKeys", "Switch"]

Switch = Annotated[str, choice("true", "false")]


class Lsm(Section):
    """The log-structured merge tree of one subtask; defaults are those of RocksDB."""

    HINTS: ClassVar[Texts] = {"write-buffer": "did you mean memtable?", "level0": "did you mean level0-files?"}

    memtable: Axis[Size] | None = None
    """A full one becomes a file of level 0."""
    managed_memory: Axis[Size] | None = None
    """Memory of the slot, shared by memtables and cache: bounds the memtable to 7/24 of it."""
    level0_files: Axis[Positive] | None = None
    """So many start a compaction."""
    base: Axis[Size] | None = None
    """Level 1 is compacted when it is larger."""
    multiplier: Axis[Positive] | None = None
    """From the size of one level to that of the next."""
    table: Axis[Size] | None = None
    """Size of one file below level 0."""
    flush: Axis[ByteRate] | None = None
    """Memtable to local disk, on the task thread."""
    compaction: Axis[ByteRate] | None = None
    """Merged by the background thread."""
    compaction_thread: Axis[Annotated[str, choice("subtask", "task-manager")]] | None = None
    """Whose that thread is: each subtask's own (the default), or one for all slots of a task manager, as in RocksDB."""
    link: Axis[Duration] | None = None
    """Hard link of one file, on the task thread."""
    wait: Axis[Share] | None = None
    """Share of the rest of a compaction by which a snapshot is held up, for both use one disk (default 0 %)."""


class Changelog(Section):
    """state.changelog.*: changes are logged and uploaded as they happen."""

    materialize: Axis[Duration] | None = None
    """Between two snapshots of the backend, which truncate the log."""
    threshold: Axis[Size] | None = None
    """So much log is uploaded without being asked."""
    batch_delay: Axis[Duration] | None = None
    """Waited for more, of all subtasks of the task manager, before an upload."""
    batch_size: Axis[Size] | None = None
    """So much is not waited with."""
    upload_threads: Axis[Positive] | None = None
    """Threads of a task manager."""
    upload_timeout: Axis[Duration] | None = None
    """Then another attempt begins beside the one that hangs; 0 s: it has all the time."""
    upload_attempts: Axis[Positive] | None = None
    """Attempts at an upload."""
    reports_materialized: Axis[Switch] | None = None
    """Whether a checkpoint's size counts the materialisation it is the first to refer to (default false, as in Flink 1.15 and 2.3)."""


ChangelogField = Annotated[
    Annotated[str, choice("on", "off", "true", "false"), Tag("text")] | Annotated[Changelog, Tag("map")],
    MAP_OR_TEXT,
]


class State(Section):
    """Keyed state of the whole vertex, spread over its subtasks."""

    HINTS: ClassVar[Texts] = {"incremental": "incremental stands in checkpoint:", "memtable": "write lsm: {memtable: ...}"}

    size: Axis[Size]
    """The sum over all subtasks."""
    backend: Axis[Annotated[str, choice_of(lambda: BACKENDS)]] | None = None
    """Where state lives: on the heap or in RocksDB."""
    update: Axis[Share] | None = None
    """Share of the records that rewrite an entry."""
    value: Axis[Size] | None = None
    """Size of the entry rewritten."""
    lsm: Lsm | None = None
    """rocksdb only."""
    changelog: Axis[ChangelogField] | None = None
    """on: changes are logged and uploaded as they happen."""
    freeze: Axis[Duration] | None = None
    """Synchronous part of a snapshot, beside what the backend itself needs."""
    serialize: Axis[ByteRate] | None = None
    """hashmap only: processor's part of writing it, per subtask."""
    growth: Axis[Size] | None = None
    """Every record served adds so much in new keys, on average; default: records rewrite entries that are there."""
    limit: Axis[Size] | None = None
    """What all of its keys take together: growth slows down as they come, and ends.  They stay, whatever ttl says.
    Default, and 0 B: new keys never cease to come."""
    ttl: Axis[Duration] | None = None
    """A key leaves so long after it was last written (StateTtlConfig); default, and 0 s: never."""
    ttl_checks: Axis[Natural] | None = None
    """hashmap only: entries looked at per record, of which expired ones leave; default 10: five when state is read, five when written."""
    ttl_filter: Axis[Switch] | None = None
    """hashmap only: snapshots leave out expired entries that are still there (cleanupFullSnapshot); default false."""


class StateKeys(Section):
    """How state is snapshotted and restored, the same for all vertices."""

    incremental: Axis[Switch] | None = None
    """rocksdb: write only the files that are not stored yet."""
    transfer_threads: Axis[Positive] | None = None
    """Per subtask, for the files of rocksdb."""
    savepoint_rate: Axis[ByteRate] | None = None
    """Rate of a canonical savepoint, per subtask: entries are sorted and serialised one by one."""
    savepoint_cpu: Axis[Share] | None = None
    """Share of its processor that a subtask loses while it writes one."""
    savepoint_keeps_base: Axis[Switch] | None = None
    """false: after a savepoint the next incremental checkpoint writes everything again (before FLINK-23949)."""
    local_recovery: Axis[Switch] | None = None
    """A second copy on the task manager's disk, restored from there."""
    restore_rate: Axis[ByteRate] | None = None
    """Entries deserialised per subtask, beside reading the files."""
