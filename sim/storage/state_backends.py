"""The RocksDB state backend, and the choice of a backend."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sim.model.state import State, StateOptions
from sim.model.storage import Scope, SnapshotType
from sim.model.units import SECOND
from sim.storage.changelog import ChangelogBackend
from sim.storage.lsm import CompactionThread, LsmTree, TreeImage
from sim.storage.state_files import (
    Backend,
    File,
    FrozenState,
    Handle,
    Hashmap,
    Increments,
    KeyedPart,
    Restoring,
    WriteStep,
    canonical,
    keyed_bytes,
    streamed,
)

# ---- RocksDB. A snapshot consists of its tables (SST files); an incremental one writes only tables that are not stored yet.
#
# The synchronous part flushes the memtable and makes hard links (RocksDBSnapshotStrategyBase#takeDBNativeCheckpoint).
# The asynchronous part writes the meta stream, then new tables with several threads, then the other files.

# Sizes [bytes] of the files other than tables, for RocksDB 8 with one column family.  They follow from the file formats.
_META_BYTES = 400  # Flink's meta stream: column families and serializers
_CURRENT_BYTES = 16  # "MANIFEST-000004" and a line break
_OPTIONS_BYTES = 12_000  # all options as text
_MANIFEST_BYTES, _EDIT_BYTES = 120, 134  # an empty manifest, and one record per flush or compaction


class RocksDb:
    """The RocksDB state backend of one subtask.  Methods without a docstring are documented in `Backend`.

    `size_bytes`: initial size.  `shared`: the compaction thread of the TaskManager, used if the options of the tree say so;
    otherwise the subtask has a compaction thread of its own.
    """

    def __init__(
        self, state: State, size_bytes: int, options: StateOptions, shared: CompactionThread | None = None
    ) -> None:
        # a subtask without initial state may get entries later, of the usual size
        is_whole = state.turns_over or not size_bytes
        entry_bytes = state.value_bytes if is_whole else min(state.value_bytes, size_bytes)
        self.state = state
        self.options = options
        thread = shared if state.lsm.compaction_thread == "task-manager" else None
        self.tree = LsmTree(state.lsm, size_bytes // entry_bytes, entry_bytes, thread, grows=state.turns_over)
        self.increments = Increments()
        self._now_ns = 0
        self._added = self._expired = 0  # keys since the last update
        self._expired_bytes = 0  # bytes of keys that expired since the last update
        self._is_anew = False  # True: restored into a new tree, which `resize` has still to fill

    def update(self, writes: int, now_ns: int) -> None:
        self.tree.write(writes, self._now_ns, now_ns, self._added, self._expired)
        self._added = self._expired = self._expired_bytes = 0
        self._now_ns = now_ns

    def resize(self, size_bytes: int, expired_bytes: int = 0, records: int = 0) -> None:
        """Set the size of the live state.  The next `update` writes the new keys, and drops the expired ones.

        After a restore into a new tree, the tree is created with this size.  Expired keys stay in
        their tables until a compaction merges these (FlinkCompactionFilter), so they count as present until then.
        """
        keys = size_bytes // self.tree.entry_bytes
        if self._is_anew:
            self.tree.leave()
            self.tree = self.tree.rebuilt(keys)
            self._is_anew = False
        self._expired_bytes += expired_bytes
        self._added = max(keys + self._expired_bytes // self.tree.entry_bytes - self.tree.keys, 0)
        self._expired = self.tree.keys + self._added - keys if self.state.ttl is not None else 0

    def take(self, number: int, type_: SnapshotType, may_reuse: Callable[[int], bool]) -> FrozenState:
        sync_ns = self._freeze()
        if type_ == "canonical":
            return canonical(self.tree.keys * self.tree.entry_bytes, self.options.savepoint_bytes_per_second, sync_ns)
        shared = self.options.incremental and type_ in ("checkpoint", "full")
        own: Scope = "savepoint" if type_ == "native" else "exclusive"
        scope: Scope = "shared" if shared else own
        base = self.increments.base if shared and type_ == "checkpoint" else {}
        base = {name: handle for name, handle in base.items() if handle.file is None or may_reuse(handle.file)}
        live = [(table.name, self.tree.bytes_of(table)) for table in self.tree.live]
        new = tuple(File(name, size_bytes, scope) for name, size_bytes in live if name not in base)
        steps = (
            WriteStep((File("meta", _META_BYTES, own),), work_ns=self.state.lsm.upload_ns),
            WriteStep(new, self.options.transfer_threads),
            WriteStep(self._other_files(scope), self.options.transfer_threads),
        )
        # the snapshot is delayed by a share of the remaining time of a compaction in progress, as both use the disk
        held_ns = int(self.tree.busy_ns(self._now_ns) * self.state.lsm.wait)
        reused = tuple(base[name] for name, _ in live if name in base)
        return FrozenState(sync_ns, steps, reused, image=self.tree.image, held_ns=held_ns)

    def stored(self, number: int, type_: SnapshotType, files: Sequence[Handle]) -> None:
        if self.options.incremental and type_ in ("checkpoint", "full"):
            self.increments.store(number, {file.name: file for file in files if file.name.endswith(".sst")})
        elif type_ in ("canonical", "native") and not self.options.savepoints_keep_base:
            self.increments.forget()

    def notify_complete(self, number: int) -> None:
        self.increments.notify_complete(number)

    def stop(self) -> None:
        self.tree.leave()

    def restore(self, number: int, parts: Sequence[KeyedPart], now_ns: int) -> Restoring:
        """Restore the tables.  After rescaling, or from a canonical savepoint, the entries are in a new tree instead.

        After rescaling, the largest part becomes the base: key groups that the subtask does not own are deleted from it as
        a range, and the entries of the other parts are written into it
        (RocksDBIncrementalRestoreOperation#restoreWithRescaling).  A canonical savepoint is written entry by entry.
        """
        self._now_ns = now_ns
        self._added = self._expired = self._expired_bytes = 0
        if not parts:
            return Restoring()
        (only, *others) = parts
        if others or only.share != 1 or not isinstance(only.image, TreeImage):
            self.tree.leave()
            self.tree, self._is_anew = self.tree.rebuilt(self.tree.keys), True
            self.increments.restart(0, {})
            is_canonical = any(part.type == "canonical" for part in parts)
            base_bytes = 0 if is_canonical else max(keyed_bytes([part]) for part in parts)
            written_bytes = keyed_bytes(parts) - base_bytes
            merge_ns = written_bytes * SECOND // self.state.lsm.compaction_bytes_per_second
            if is_canonical:
                read = streamed(parts, self.options.load_bytes_per_second)
                return read._replace(work_ns=max(read.work_ns, merge_ns))
            # whole tables are read, even if only some of their key groups are needed
            reads = tuple((handle, handle.size_bytes) for part in parts for handle in part.handles)
            return Restoring(reads, self.options.transfer_threads, after_ns=merge_ns)
        self.tree.stand(only.image, now_ns)
        self._is_anew = False
        tables = {handle.name: handle for handle in only.handles if handle.name.endswith(".sst")}
        # the next incremental checkpoint may refer to the restored tables, also to those of a native savepoint
        self.increments.restart(number, tables if self.options.incremental else {})
        return Restoring(tuple((handle, handle.size_bytes) for handle in only.handles), self.options.transfer_threads)

    def _freeze(self) -> int:
        """Flush the memtable, and make hard links to all tables.  Return how long this blocks the task thread [ns]."""
        flush_ns = self.tree.memtable_bytes * SECOND // self.tree.options.flush_bytes_per_second
        self.tree.flush(self._now_ns)
        return self.state.sync_ns + self.state.lsm.freeze_ns + flush_ns + len(self.tree.live) * self.state.lsm.link_ns

    def _other_files(self, scope: Scope) -> tuple[File, ...]:
        """Return the files other than tables.  Every snapshot writes them, because they change all the time."""
        manifest_bytes = _MANIFEST_BYTES + _EDIT_BYTES * self.tree.edits
        sizes = {"CURRENT": _CURRENT_BYTES, "MANIFEST": manifest_bytes, "OPTIONS": _OPTIONS_BYTES}
        return tuple(File(name, size_bytes, scope) for name, size_bytes in sizes.items())


# ---- The choice of a backend by the options of a vertex.

BackendFactory = Callable[[State, int, StateOptions, CompactionThread | None], Backend]
BACKEND_FACTORIES: dict[str, BackendFactory] = {
    "hashmap": lambda state, size_bytes, options, _: Hashmap(state, size_bytes, options),
    "rocksdb": RocksDb,
}
"""Constructor of each backend in BACKENDS."""


def backend(
    state: State, size_bytes: int, options: StateOptions, compaction: CompactionThread | None = None
) -> Backend:
    """Create the state backend of one subtask, wrapped in a `ChangelogBackend` if the changelog is enabled.

    `size_bytes`: initial size of the subtask's state.  `compaction`: the compaction thread of its TaskManager; if None, the
    subtask has its own.
    """
    base = BACKEND_FACTORIES[state.backend](state, size_bytes, options, compaction)
    if state.changelog is None:
        return base
    return ChangelogBackend(base, state, state.changelog, size_bytes, options)
