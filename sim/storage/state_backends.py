"""The changelog and RocksDB state backends, and the choice of a backend."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from sim.model.state import Changelog, State, StateOptions, load_rate
from sim.model.storage import Scope, SnapshotType
from sim.model.units import SECOND
from sim.storage.lsm import CompactionThread, LsmTree, Table, TreeImage, distinct
from sim.storage.state_files import (
    Backend,
    CannotFreeze,
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

# ---- The changelog state backend (FLIP-158), and the ages of keys with a time to live.

# ---- The changelog backend logs state changes and uploads them continuously (FLIP-158, ChangelogKeyedStateBackend).
#
# A checkpoint refers to the last materialisation of the wrapped backend and to the log since then.  It writes little more
# than the tail of the log, however much the wrapped backend compacts.  The initial state of a run is in the log.
#
#   log position   0 ........ from ............ cut ........... end
#                  materialised   uploaded or      not passed to
#                                 being uploaded   the uploader
#
# (`from` is after `cut` if changes were materialised before they were uploaded.)
#
# With the in-memory changelog nothing is uploaded: a checkpoint copies all changes since the last materialisation on the
# task thread, and its acknowledgement contains them (InMemoryStateChangelogWriter#collectChanges).

_LOG = "log-"


class _Image(NamedTuple):
    """The image (`FrozenState.image`) of a changelog backend in a snapshot."""

    below: Hashable  # image of the wrapped backend at its last materialisation


class ChangelogBackend(Backend):
    """A state backend that wraps another one and logs its changes.

    Positions in the log are bytes since its start.  The uploader gets the next file from `cut`, and reports its end to
    `logged` or `given_up`.  Methods without a docstring are documented in `Backend`.
    """

    def __init__(self, inner: Backend, state: State, options: Changelog, size_bytes: int, of_job: StateOptions) -> None:
        self.inner = inner
        self.state = state
        self.options = options
        self.applies_bytes_per_second = of_job.load_bytes_per_second or int(load_rate(state.value_bytes))
        self._applies_initial = of_job.load_bytes_per_second is not None
        self.transfer_threads = of_job.transfer_threads
        self.end_bytes = size_bytes
        # size of the wrapped backend [bytes]; None: unknown, from a restore until the next `resize`
        self._held_bytes: int | None = size_bytes
        self._cut_bytes = 0  # changes before this position were passed to the uploader
        self._from_bytes = 0  # changes before this position are in the materialisation
        self._writing: dict[str, tuple[int, File]] = {}  # file being uploaded, by name: (end position, file)
        self._failed_bytes = 0  # end position of the last file whose upload failed
        self._log: list[tuple[int, Handle]] = []  # uploaded and not materialised: (end position, file)
        self._materialised: tuple[Handle, ...] = ()  # files of the last materialisation
        self._image: Hashable = None  # image of the wrapped backend in the last materialisation
        self._number = 0  # number of the last materialisation that is durable; 0: none
        self._latest = 0  # number of the last materialisation that was started
        self._settled = 0  # last materialisation that is in a completed checkpoint, or that failed
        self._unreported_bytes = 0  # written by the last materialisation, and not reported by a snapshot yet
        self._of_snapshot: dict[int, int] = {}  # snapshot -> materialisation to which it refers
        self._begun: dict[
            int, int
        ] = {}  # materialisation started since the last durable one -> position up to which it contains changes
        if options.in_memory and size_bytes:
            self._log.append((size_bytes, _carried(size_bytes, size_bytes)))
            self._cut_bytes = size_bytes

    # ------------------------------------------------------------------------------------------ the log

    @property
    def pending_bytes(self) -> int:
        """Return the bytes of changes that are neither passed to the uploader nor materialised.

        Source: FsStateChangelogWriter#persistInternal, changes since `from`.
        """
        return self.end_bytes - max(self._cut_bytes, self._from_bytes)

    @property
    def active_bytes(self) -> int:
        """Return the bytes of changes since the last upload, or since a materialisation started if that is later.

        Source: FsStateChangelogWriter#rollover.
        """
        return self.end_bytes - max(self._cut_bytes, *self._begun.values(), self._from_bytes)

    def cut(self) -> File | None:
        """Return the next file to upload, which contains all pending changes, or None if there are no changes."""
        if not self.pending_bytes:
            return None
        file = File(f"{_LOG}{self.end_bytes}", self.pending_bytes, "shared")
        if (
            not self._cut_bytes
        ):  # the first snapshot reports the state that a run begins with, however early it is uploaded
            self._unreported_bytes += file.size_bytes
        self._cut_bytes = self.end_bytes
        self._writing[file.name] = self.end_bytes, file
        return file

    def logged(self, handle: Handle) -> None:
        """Record that a file of the log is durable."""
        end_bytes, _ = self._writing.pop(handle.name)
        if end_bytes > self._from_bytes:
            self._log.append((end_bytes, handle))

    def given_up(self, file: File) -> None:
        """Record that the upload of a file failed for good (FsStateChangelogWriter#handleUploadFailure)."""
        end_bytes, _ = self._writing.pop(file.name)
        self._failed_bytes = max(self._failed_bytes, end_bytes)

    # ------------------------------------------------------------------------------------------ materialisation

    @property
    def may_materialise(self) -> bool:
        """Return True if the previous materialisation failed or is in a completed checkpoint.

        Otherwise the next materialisation could refer to files that are deleted with an aborted checkpoint
        (ChangelogKeyedStateBackend#initMaterialization).
        """
        return self._settled == self._latest

    def materialisation_failed(self, number: int) -> None:
        """Record that a materialisation failed."""
        self._settled = max(self._settled, number)

    def materialise(self, number: int) -> FrozenState:
        """Start materialisation `number`: freeze the wrapped backend, and return what to write.

        All files of a materialisation have the scope "shared", because no checkpoint owns them.
        """
        self._begun[number], self._latest = self.end_bytes, number
        frozen = self.inner.take(number, "checkpoint", lambda _: True)
        steps = tuple(
            step._replace(files=tuple(file._replace(scope="shared") for file in step.files)) for step in frozen.steps
        )
        return replace(frozen, steps=steps)

    def materialised(self, number: int, frozen: FrozenState, handles: Sequence[Handle]) -> None:
        """Record that a materialisation is durable, and drop the log up to the position where it started."""
        self.inner.stored(number, "checkpoint", handles)
        self._from_bytes, self._begun = self._begun[number], {}
        self._log = [(end_bytes, handle) for end_bytes, handle in self._log if end_bytes > self._from_bytes]
        self._number, self._image, self._materialised = number, frozen.image, tuple(handles)
        self._unreported_bytes = frozen.written_bytes if self.options.reports_materialized else 0

    # ------------------------------------------------------------------------------------------ interface of Backend

    def update(self, writes: int, now_ns: int) -> None:
        self.end_bytes += writes * self.state.value_bytes
        self.inner.update(writes, now_ns)

    def resize(self, size_bytes: int, expired_bytes: int = 0, records: int = 0) -> None:
        """Set the size of the live state, and log the bytes of new keys.  Restored and expired bytes are not logged."""
        self.end_bytes += 0 if self._held_bytes is None else size_bytes + expired_bytes - self._held_bytes
        self._held_bytes = size_bytes
        self.inner.resize(size_bytes, expired_bytes, records)

    def take(self, number: int, type_: SnapshotType, may_reuse: Callable[[int], bool]) -> FrozenState:
        if type_ in ("canonical", "native"):
            return self.inner.take(number, type_, may_reuse)
        self._of_snapshot[number] = self._number
        if self.options.in_memory:
            return self._copy_changes()
        # FsStateChangelogWriter#ensureCanPersist; lost changes do not matter once they are materialised
        if self._failed_bytes > self._from_bytes:
            raise CannotFreeze("an upload of the changelog has failed")
        ahead_bytes = self._unreported_bytes
        tail = self.cut()
        ahead_bytes, self._unreported_bytes = ahead_bytes + (0 if tail is None else tail.size_bytes), 0
        return FrozenState(
            reused=(*self._materialised, *(handle for _, handle in self._log)),
            awaited=tuple(file for end_bytes, file in self._writing.values() if end_bytes > self._from_bytes),
            ahead_bytes=ahead_bytes,
            image=_Image(self._image),
        )

    def _copy_changes(self) -> FrozenState:
        """Return a snapshot of the in-memory changelog: a copy of all changes since the last materialisation or the restore."""
        tail_bytes = self.pending_bytes
        changes = tail_bytes // self.state.value_bytes
        tail = (_carried(self.end_bytes, tail_bytes),) if tail_bytes else ()
        ahead_bytes, self._unreported_bytes = self._unreported_bytes + tail_bytes, 0
        return FrozenState(
            changes * self.options.copy_ns,
            (WriteStep((), work_ns=changes * self.options.ship_ns),) if changes else (),
            reused=(*self._materialised, *(handle for _, handle in self._log), *tail),
            ahead_bytes=ahead_bytes,
            image=_Image(self._image),
        )

    def stored(self, number: int, type_: SnapshotType, files: Sequence[Handle]) -> None:
        """Pass savepoints to the wrapped backend.

        Files of checkpoints are ignored, because `logged` and `materialised` have recorded them.
        """
        if type_ in ("canonical", "native"):
            self.inner.stored(number, type_, files)

    def notify_complete(self, number: int) -> None:
        """Confirm the materialisation to which the checkpoint refers, so that the next one can be based on it."""
        materialisation = self._of_snapshot.get(number, 0)
        self._of_snapshot = {
            checkpoint: latest for checkpoint, latest in self._of_snapshot.items() if checkpoint > number
        }
        if materialisation:
            self._settled = max(self._settled, materialisation)
            self.inner.notify_complete(materialisation)

    def stop(self) -> None:
        self.inner.stop()

    def restore(self, number: int, parts: Sequence[KeyedPart], now_ns: int) -> Restoring:
        """Restore the materialisation, then read and replay the log.

        One thread reads the files of the log one after the other, and applies each change through the state
        (ChangelogBackendRestoreOperation#readBackendHandle).
        """
        below, log, replayed_bytes = [], [], 0
        for part in parts:
            log_files = [handle for handle in part.handles if handle.name.startswith(_LOG)]
            if rest := tuple(handle for handle in part.handles if handle not in log_files):
                image = part.image.below if isinstance(part.image, _Image) else part.image
                below.append(part._replace(image=image, handles=rest))
            applied = (handle for handle in log_files if self._applies_initial or not _is_initial(handle))
            replayed_bytes += int(sum(handle.size_bytes for handle in applied) * part.share)
            log += log_files
        restoring = self.inner.restore(0, below, now_ns) if below or not log else Restoring()
        self._stand(log, below)
        reads, then, threads = [*restoring.reads], [], restoring.threads
        for handle in log:
            if not (_is_initial(handle) and self.state.backend == "rocksdb"):
                then.append((handle, handle.size_bytes))
                continue
            threads = max(threads, min(self.transfer_threads, handle.size_bytes))
            bounds = [handle.size_bytes * piece // threads for piece in range(threads + 1)]
            reads += [(handle, end - begin) for begin, end in pairwise(bounds)]
        after_ns = restoring.after_ns + replayed_bytes * SECOND // self.applies_bytes_per_second
        return restoring._replace(reads=tuple(reads), threads=threads, then=tuple(then), after_ns=after_ns)

    def _stand(self, log: Sequence[Handle], below: Sequence[KeyedPart]) -> None:
        """Reset to a restored snapshot.  Checkpoints refer to its files until the next materialisation."""
        self._materialised = tuple(handle for part in below for handle in part.handles)
        self._image = below[0].image if len(below) == 1 else None
        self._writing, self._failed_bytes, self._log = {}, 0, []
        self._from_bytes = self.end_bytes = 0
        for handle in log:
            self.end_bytes += handle.size_bytes
            self._log.append((self.end_bytes, handle))
        self._cut_bytes = self.end_bytes
        self._unreported_bytes = 0
        self._held_bytes = None
        self._of_snapshot, self._begun = {}, {}
        self._number = self._latest = self._settled = 0


def _is_initial(handle: Handle) -> bool:
    """Return True for the first file of a log, with the state that a run begins with.

    In a real job that state would be in files of a materialisation, which for RocksDB several threads read.
    """
    return handle.name == f"{_LOG}{handle.size_bytes}"


def _carried(end_bytes: int, size_bytes: int) -> Handle:
    """Return the handle of a piece of the log that is stored inline, in the acknowledgement and in _metadata."""
    return Handle(f"{_LOG}{end_bytes}", size_bytes, "exclusive", None)


# ---- Keys with a time to live since their last write (StateTtlConfig: processing time, UpdateType.OnCreateAndWrite).
#
# The model tracks the expected number of bytes of each age.  A rewrite hits every live key with the same probability, and
# resets its age.  All arithmetic is in integers, so that results are the same on every machine.

_STEPS_PER_TTL = 32
"""Steps per time to live.  New keys and rewrites are taken as evenly spread over a step."""
_MAX_STEPS = 256
"""Maximum steps in one call of `Expiry.advance`.  If more time has passed, the steps are longer."""


class Cohort(NamedTuple):
    """The keys that were last written between two times, evenly spread over this interval."""

    begin_ns: int
    end_ns: int
    size_bytes: int


Ages = tuple[Cohort, ...]
"""The live keys of a subtask, oldest first."""


class ExpiryTurnover(NamedTuple):
    """Live bytes, and bytes expired since the last call."""

    live_bytes: int
    expired_bytes: int


def together(parts: Iterable[tuple[Ages, Fraction]]) -> Ages:
    """Return the ages of the keys that a subtask restores.

    `parts`: (ages of an old subtask, share of its keys that are in key groups of the restoring subtask).
    """
    return tuple(
        sorted(cohort._replace(size_bytes=int(cohort.size_bytes * share)) for ages, share in parts for cohort in ages)
    )


class Expiry:
    """The live keys of one subtask, by age.

    The initial keys, `size_bytes` in all, were written evenly during one time to live before time 0.
    """

    def __init__(self, ttl_ns: int, size_bytes: int, entry_bytes: int) -> None:
        self.ttl_ns = ttl_ns
        self.entry_bytes = entry_bytes
        self.ages: Ages = (Cohort(-ttl_ns, 0, size_bytes),) if size_bytes else ()
        self._now_ns = 0

    @property
    def live_bytes(self) -> int:
        return sum(cohort.size_bytes for cohort in self.ages)

    def stand(self, ages: Ages, now_ns: int) -> None:
        """Restore the keys of a snapshot, which keep the times of their last writes."""
        self.ages, self._now_ns = ages, now_ns

    def advance(self, added_bytes: int, rewritten: int, now_ns: int) -> ExpiryTurnover:
        """Advance to `now_ns`, and return the live bytes and those that have expired.

        Since the last call, `added_bytes` of new keys and a number of `rewritten` entries were written, evenly over time.
        """
        begin_ns, before_bytes = self._now_ns, self.live_bytes + added_bytes
        steps = max(1, min(-(-(now_ns - begin_ns) * _STEPS_PER_TTL // self.ttl_ns), _MAX_STEPS))
        for step in range(steps):
            first_ns, last_ns = (begin_ns + (now_ns - begin_ns) * at // steps for at in (step, step + 1))
            added, writes = (
                amount * (step + 1) // steps - amount * step // steps for amount in (added_bytes, rewritten)
            )
            self._write(added, writes, first_ns, last_ns)
            self._expire(last_ns)
        self._now_ns = now_ns
        return ExpiryTurnover(self.live_bytes, before_bytes - self.live_bytes)

    def _write(self, added_bytes: int, writes: int, first_ns: int, last_ns: int) -> None:
        """Move new and rewritten keys into the youngest cohort."""
        young_bytes = added_bytes
        if writes and (keys := self.live_bytes // self.entry_bytes):
            rewritten = distinct(writes, keys)
            kept = tuple(
                cohort._replace(size_bytes=cohort.size_bytes - cohort.size_bytes * rewritten // keys)
                for cohort in self.ages
            )
            young_bytes += self.live_bytes - sum(cohort.size_bytes for cohort in kept)
            self.ages = kept
        if not young_bytes:
            return
        # calls may be more frequent than steps, so merge all writes of one step into one cohort
        if self.ages and last_ns - self.ages[-1].begin_ns <= self.ttl_ns // _STEPS_PER_TTL:
            first_ns, young_bytes = self.ages[-1].begin_ns, young_bytes + self.ages[-1].size_bytes
            self.ages = self.ages[:-1]
        self.ages += (Cohort(first_ns, last_ns, young_bytes),)

    def _expire(self, now_ns: int) -> None:
        """Drop the keys whose time to live has passed."""
        horizon_ns = now_ns - self.ttl_ns
        self.ages = tuple(left for cohort in self.ages if (left := _younger(cohort, horizon_ns)).size_bytes)


def _younger(cohort: Cohort, horizon_ns: int) -> Cohort:
    """Return the keys of a cohort that were written after `horizon_ns`.

    The new start of the cohort is computed from the bytes removed, which are rounded, and not set to `horizon_ns`.  So the
    result does not depend on how often this is called.
    """
    if horizon_ns <= cohort.begin_ns:
        return cohort
    if horizon_ns >= cohort.end_ns or not cohort.size_bytes:  # rounding may leave empty cohorts
        return cohort._replace(size_bytes=0)
    span_ns = cohort.end_ns - cohort.begin_ns
    gone_bytes = cohort.size_bytes * (horizon_ns - cohort.begin_ns) // span_ns
    return Cohort(
        cohort.begin_ns + gone_bytes * span_ns // cohort.size_bytes, cohort.end_ns, cohort.size_bytes - gone_bytes
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


class RocksDb(Backend):
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
            self.tree = self.tree.rebuilt(keys, (table.entries for table in self.tree.foreign))
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

        After rescaling, the files of some parts are taken over (`_imported`), and the entries of the others are written into
        them.  A canonical savepoint is written entry by entry.
        """
        self._now_ns = now_ns
        self._added = self._expired = self._expired_bytes = 0
        if not parts:
            return Restoring()
        (only, *others) = parts
        on_end = self._drop_foreign if self.options.compact_after_rescale else None
        threads = self.options.transfer_threads
        if others or only.share != 1 or not isinstance(only.image, TreeImage):
            is_canonical = any(part.type == "canonical" for part in parts)
            imported = [] if is_canonical else self._imported(parts)
            self.tree.leave()
            foreign = (entries for part in imported for entries in self._foreign_entries(part))
            self.tree, self._is_anew = self.tree.rebuilt(self.tree.keys, foreign), True
            self.increments.restart(0, {})
            written_bytes = sum(map(_own_bytes, parts)) - sum(map(_own_bytes, imported))
            merge_ns = written_bytes * SECOND // self.state.lsm.compaction_bytes_per_second
            if is_canonical:
                read = streamed(parts, self.options.load_bytes_per_second)
                return read._replace(work_ns=max(read.work_ns, merge_ns))
            # whole tables are read, even if only some of their key groups are needed
            reads = tuple((handle, handle.size_bytes) for part in parts for handle in part.handles)
            return Restoring(reads, threads, after_ns=merge_ns, on_end=on_end)
        self.tree.stand(only.image, now_ns)
        self._is_anew = False
        tables = {handle.name: handle for handle in only.handles if handle.name.endswith(".sst")}
        # the next incremental checkpoint may refer to the restored tables, also to those of a native savepoint
        self.increments.restart(number, tables if self.options.incremental else {})
        return Restoring(tuple((handle, handle.size_bytes) for handle in only.handles), threads, on_end=on_end)

    def _drop_foreign(self, now_ns: int) -> None:
        self.tree.drop_foreign(now_ns)  # of the tree at that time: `resize` may have made a new one

    def _imported(self, parts: Sequence[KeyedPart]) -> list[KeyedPart]:
        """Return the parts whose files are taken over in a restore after rescaling.

        It is the largest one (RocksDBIncrementalRestoreOperation#mergeStateHandlesWithCopyFromTemporaryInstance).  With
        `ingest_db` it is each one without keys of other subtasks, if there is one (#mergeStateHandlesWithClipAndIngest).
        """
        whole = [part for part in parts if not _foreign_tables(part)] if self.options.ingest_db else []
        return whole or [max(parts, key=_own_bytes)]

    def _foreign_entries(self, part: KeyedPart) -> Iterator[int]:
        """Yield the entries of each file of an imported part that are in key groups of other subtasks.

        They are deleted as a range, but stay in files (RocksDBIncrementalCheckpointUtils#clipDBWithKeyGroupRange).  Those of
        files that have others too, such as all of level 0, are taken as one file.  With `delete_files_in_range` the rest is
        gone (DeleteFilesInRange).  The key groups of the restoring subtask are taken as the last ones of the part.
        """
        yield from (table.entries for table in _foreign_tables(part))
        if not isinstance(part.image, TreeImage):
            return
        end, mixed = int(part.image.density.places * (1 - part.share)), 0
        for table in (table for level in part.image.levels for table in level):
            if table.last > end:
                mixed += table.entries * max(0, end - table.first) // (table.last - table.first)
            elif not self.options.delete_files_in_range:
                yield table.entries
        if mixed:
            yield mixed

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


def _foreign_tables(part: KeyedPart) -> tuple[Table, ...]:
    """Return the tables of a part that have keys of other subtasks, from an earlier rescale."""
    return part.image.foreign if isinstance(part.image, TreeImage) else ()


def _own_bytes(part: KeyedPart) -> int:
    """Return the bytes of a part that belong to the restoring subtask."""
    foreign = {table.name for table in _foreign_tables(part)}
    return keyed_bytes([part._replace(handles=tuple(handle for handle in part.handles if handle.name not in foreign))])


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
