"""Invariants of state: snapshots contain all of it, keys expire in time, and each restored task receives all of its state, once.

The expected sizes, key ages and changelog positions are computed from the records served and from the options of the job,
independently of snapshots.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

from sim.model.job import key_groups
from sim.model.state import State
from sim.results.journal import EventType
from sim.results.violations import milliseconds, number_of, seconds
from sim.runtime.context import Kind, RestoredState, Stamp, StateSnapshot, TaskSnapshot
from sim.runtime.invariants.invariant import ByCheckpoint, Invariant
from sim.runtime.invariants.records import DEALT
from sim.storage.ledger import FileId
from sim.storage.lsm import TreeImage
from sim.storage.state_backends import Ages, Cohort
from sim.storage.state_files import File, FrozenState, Handle

# ---- State TTL: a key expires a fixed time after its last write, also across snapshots, restores and rescales (invariant 87 in docs/checks.md).

TTL_EXACT = "a key expires exactly its time to live after its last write, also after a restore"
_MAX_ROUNDINGS_BETWEEN_CHECKS = 300
"""Maximum number of times that the size of a cohort is rounded between two checks.

An allowance, not a bound: each update of the state rounds once, and a changelog is looked at every 1 to 100 ms
(`subtask_state.LogWriter`)."""


def bytes_written_after(cohorts: Sequence[Cohort], horizon_ns: int) -> int:
    """Return the number of bytes whose last write was after `horizon_ns`."""
    total = 0
    for begin_ns, end_ns, size_bytes in cohorts:
        if horizon_ns <= begin_ns:
            total += size_bytes
        elif horizon_ns < end_ns:
            total += size_bytes * (end_ns - horizon_ns) // (end_ns - begin_ns)
    return total


def _expired(cohort: Cohort, horizon_ns: int) -> int:
    """Return the number of bytes of a cohort whose last write was up to `horizon_ns`, rounded down."""
    begin_ns, end_ns, size_bytes = cohort
    if horizon_ns <= begin_ns:
        return 0
    return size_bytes if horizon_ns >= end_ns else size_bytes * (horizon_ns - begin_ns) // (end_ns - begin_ns)


def _bytes_per_ns(cohort: Cohort) -> int:
    """Return the bytes of a cohort per nanosecond, rounded up: the size of one rounding error."""
    begin_ns, end_ns, size_bytes = cohort
    return max(1, -(-size_bytes // max(1, end_ns - begin_ns)))


def split_cohorts(parts: Sequence[tuple[Sequence[Cohort], Fraction]]) -> Ages:
    """Return the cohorts of a subtask that is restored from several others.

    `parts`: (cohorts, share that the subtask receives) of each of them.
    """
    return tuple(sorted(Cohort(begin, end, int(size * share)) for ages, share in parts for begin, end, size in ages))


def ttl_errors(
    before: Sequence[Cohort],
    before_ns: int,
    after: Sequence[Cohort],
    now_ns: int,
    ttl_ns: int,
    added_bytes: int,
    rewritten_bytes: int,
) -> str | None:
    """Compare the cohorts of a task with those of an earlier time.  Return what is wrong, or None.

    `before`, `after`: cohorts at `before_ns` and at `now_ns`.  `added_bytes`, `rewritten_bytes`: upper bounds of the bytes
    of new and of updated keys since `before_ns`.
    """
    horizon_ns = now_ns - ttl_ns
    expired = [cohort for cohort in after if _expired(cohort, horizon_ns) > _bytes_per_ns(cohort)]
    oldest_ns = min((begin_ns for begin_ns, _, _ in expired), default=now_ns)
    if oldest_ns < horizon_ns:
        return f"state contains keys last written {seconds(now_ns - oldest_ns)} ago; TTL is {seconds(ttl_ns)}"
    # cohorts that were partly alive at `before_ns` and are partly expired now
    expiring = [cohort for cohort in before if cohort[0] < horizon_ns and before_ns - ttl_ns < cohort[1]]
    slack = (_MAX_ROUNDINGS_BETWEEN_CHECKS + len(before) + len(after)) * max(map(_bytes_per_ns, expiring), default=1)
    survived, live = bytes_written_after(before, horizon_ns), sum(size_bytes for _, _, size_bytes in after)
    context = f"state at {seconds(before_ns)}: {number_of(sum(size for _, _, size in before), 'byte')}, {survived} not expired"
    if live < survived - slack:
        return f"keys have expired too early: {number_of(live, 'byte')} are left; {context}"
    # an updated entry may be larger than the average entry
    written = added_bytes + 2 * rewritten_bytes + slack
    young = sum(size_bytes for begin, _, size_bytes in after if begin >= before_ns)
    if young > written:
        return f"{number_of(young, 'byte')} have a last write after {seconds(before_ns)}, but at most {written} were written"
    newest_bytes = before[-1][2] if before else 0  # later writes may have been merged into the newest cohort
    if live > survived + newest_bytes + written:
        return f"expired keys are still in state: {number_of(live, 'byte')}; at most {written} were written since; {context}"
    return None


# ---- The files of a snapshot contain all of its state, and are complete before the checkpoint completes.
#
# Invariants 85, 86 and 117 in docs/checks.md.  A changelog must continue from its materialization to the snapshot without a
# gap::
#
#     base files | log_bytes .. from_bytes (materialized since) .. log_end
#                              ^ snapshots refer to the log from here on

SNAPSHOT_COMPLETE = "the files that a snapshot names hold all of its state"
FILES_DURABLE_BEFORE_COMPLETION = (
    "all files of a completed checkpoint exist in full, and their size equals the frozen state"
)
FINISHED_OPERATORS_STATELESS = "operators restored as finished have no state"

_EXPECTED_PERCENT = 90
"""Minimum size of files in percent of the state.  It is below 100, because sizes of compacted files are expected values."""
_LOG = "log-"
_NO_STATE = frozenset({"meta", "CURRENT", "MANIFEST", "OPTIONS"})
"""Files of RocksDB that contain no entries."""


def find_gap(files: Sequence[tuple[int, int]], begin: int, end: int) -> tuple[int, int] | None:
    """Return the first gap (begin, end) of a log between two positions, or None.

    `files`: (end position, size in bytes) of each file of the log.
    """
    covered_until = begin
    for file_end, size_bytes in sorted(files):
        if file_end - size_bytes > covered_until:
            return covered_until, min(file_end - size_bytes, end)
        covered_until = max(covered_until, file_end)
        if covered_until >= end:
            return None
    return (covered_until, end) if covered_until < end else None


class _Content(NamedTuple):
    """The keyed state of one subtask in a checkpoint.  `handles` are known when the checkpoint is complete."""

    handles: tuple[Handle, ...]
    ages: Ages
    at_ns: int  # when it was frozen


@dataclass(slots=True)
class _Subtask:
    """The expected keyed state of one attempt of a subtask.  Positions of the log are in bytes since its start."""

    state: State
    share: Fraction  # of the key groups
    initial_bytes: int  # size at the start of the job
    served_at_start: int = 0  # records served at the start of the attempt
    base: tuple[Handle, ...] = ()  # files that every snapshot must refer to: restored, or of the latest materialisation
    log_bytes: int = 0  # position of the log at the start of the attempt
    from_bytes: int = 0  # snapshots must refer to the log from this position on
    # materialisation in progress -> position of the log when it started
    materialising: dict[int, int] = field(default_factory=dict)
    ages: Ages = ()  # keys by the time of their last write, at the last check
    last_check: tuple[int, int] = (0, 0)  # (time, records served) of the last check

    def added_bytes(self, served: int) -> int:
        """Return the size of the keys added since the job started [bytes]."""
        if self.state.ttl is not None:
            return self.state.growth_bytes * served
        return self.state.added_bytes(self.initial_bytes, served, self.share)

    def rewritten_bytes(self, served: int) -> int:
        """Return the size of the entries rewritten since the job started [bytes]."""
        return self.state.rewrites(self.initial_bytes, served, self.share) * self.state.value_bytes

    def log_end(self, served: int) -> int:
        """Return the position of the log after `served` records."""
        logged_at_start = self.added_bytes(self.served_at_start) + self.rewritten_bytes(self.served_at_start)
        return self.log_bytes + self.added_bytes(served) + self.rewritten_bytes(served) - logged_at_start

    def live_bytes(self, served: int, ages: Ages) -> int:
        """Return the expected size of the state after `served` records, or of the keys in `ages` if keys expire [bytes]."""
        if self.state.ttl is not None:
            return sum(size_bytes for _, _, size_bytes in ages)
        return self.initial_bytes + self.added_bytes(served)

    def log_error(self, frozen: FrozenState, served: int) -> str | None:
        """Return what a changelog snapshot lacks, or None: its base files, or a part of the log after them."""
        base, named = set(self.base), set(frozen.reused)
        missing = [handle for handle in self.base if handle not in named]
        if missing:
            size_bytes = sum(handle.size_bytes for handle in missing)
            return (
                f"it does not reference {missing[0].name}, so {number_of(size_bytes, 'byte')} of its state are missing"
            )
        files: list[Handle | File] = [*frozen.reused, *frozen.awaited]
        log = [
            (int(file.name.removeprefix(_LOG)), file.size_bytes)
            for file in files
            if file.name.startswith(_LOG) and file not in base
        ]
        if (missing_log := find_gap(log, self.from_bytes, self.log_end(served))) is None:
            return None
        begin, end = missing_log
        return (
            f"positions {begin} to {end} of its changelog are missing from all files ({number_of(end - begin, 'byte')}; "
            f"the materialization contains everything before {self.from_bytes})"
        )

    def size_error(self, frozen: FrozenState, served: int, ages: Ages) -> str | None:
        """Return what the files of a snapshot lack, or None.  The backend has no changelog.

        Files may be larger than the state.  They may lack up to two entries, which are rounding errors.
        """
        sizes = _sizes(frozen)
        if isinstance(frozen.image, TreeImage):
            for table in (table for level in frozen.image.levels for table in level):
                if table.name not in sizes:
                    return f"no file for SST {table.name} ({number_of(table.entries, 'key')})"
        held_bytes, live_bytes = sum(sizes.values()), self.live_bytes(served, ages)
        if held_bytes >= live_bytes * _EXPECTED_PERCENT // 100 - 2 * self.state.value_bytes:
            return None
        return f"its files contain {number_of(held_bytes, 'byte')}, the state has {live_bytes}"


def _sizes(frozen: FrozenState) -> dict[str, int]:
    """Return name -> size of the files of a snapshot that contain entries [bytes]."""
    files: list[Handle | File] = [*(file for step in frozen.steps for file in step.files), *frozen.reused]
    return {file.name: file.size_bytes for file in files if file.name not in _NO_STATE}


class KeyedStates(Invariant):
    """Checks that snapshots contain all keyed state, that keys expire in time, and that restores get the same state."""

    evidence_kinds = frozenset({EventType.SNAPSHOT_BEGUN, EventType.STATE_WRITTEN, EventType.ACKNOWLEDGED})

    def start(self) -> None:
        initial = ((task, self._initial_state(task)) for task in self.context.tasks)
        self._subtasks = {task: subtask for task, subtask in initial if subtask is not None}
        self._frozen = ByCheckpoint[tuple[FrozenState, _Content]]()
        self._completed = ByCheckpoint[_Content]()
        # task restored as finished -> maximum size of its state, which is not opened again [bytes]
        self._closed: dict[int, int] = {}

    def state_taken(self, checkpoint: int, task: int, snapshot: StateSnapshot) -> None:
        """Check that a snapshot contains the expected keyed state, or for a changelog the complete log."""
        frozen, subtask = snapshot.keyed, self._subtasks.get(task)
        if subtask is None:
            if task in self._closed and (held_bytes := sum(_sizes(frozen).values())) > self._closed[task]:
                fact = f"it has {number_of(held_bytes, 'byte')} of state, and was restored as finished"
                self._report(FINISHED_OPERATORS_STATELESS, checkpoint, task, fact)
            return
        served = self.ledger.served(checkpoint, task)
        self._report(TTL_EXACT, checkpoint, task, self._ttl_error(subtask, snapshot.ages, served))
        self._frozen.setdefault(checkpoint, {})[self.context.names[task]] = (
            frozen,
            _Content((), snapshot.ages, self.now_ns),
        )
        is_logged = subtask.state.changelog is not None and snapshot.type in ("checkpoint", "full")
        error = subtask.log_error(frozen, served) if is_logged else subtask.size_error(frozen, served, snapshot.ages)
        self._report(SNAPSHOT_COMPLETE, checkpoint, task, error)

    def materialising(self, task: int, number: int) -> None:
        """Record the position of the log when a materialisation starts."""
        if (subtask := self._subtasks.get(task)) is not None:
            subtask.materialising[number] = subtask.log_end(self.context.plane.position(task).served)

    def materialised(self, task: int, number: int, handles: Sequence[Handle]) -> None:
        """Handle that the files of a materialisation are durable: snapshots need not refer to the log before it."""
        if (subtask := self._subtasks.get(task)) is not None:
            subtask.base, subtask.from_bytes = tuple(handles), subtask.materialising.pop(number)

    def completed(self, checkpoint: int, retained: Sequence[int]) -> None:
        """Check that all files of a completed checkpoint exist, with the size of the state that was frozen."""
        files, contents = self.context.storage.files, self._completed.setdefault(checkpoint, {})
        frozen_parts = self._frozen.pop(checkpoint, {})
        for task, part in self.contents.checkpoints.get(checkpoint, {}).items():
            name = self.context.names[task]
            if name not in frozen_parts or not part.parts:
                continue
            frozen, content = frozen_parts[name]
            snapshot = part.parts[0][0]
            handles = tuple(snapshot.handles)
            contents[name] = content._replace(handles=handles)
            size_bytes, expected = sum(handle.size_bytes for handle in handles), frozen.full_bytes
            if size_bytes != expected:
                fact = f"its {number_of(len(handles), 'file')} contain {size_bytes} bytes of keyed state; {expected} were frozen"
                self._report(FILES_DURABLE_BEFORE_COMPLETION, checkpoint, task, fact)
            named = [handle for handle in snapshot.all_handles if handle.file is not None]
            if gone := [handle.name for handle in named if not files.exists(FileId(handle.file or 0))]:
                does = "does" if len(gone) == 1 else "do"
                fact = f"{number_of(len(gone), 'referenced file')} {does} not exist: {gone[0]}"
                self._report(FILES_DURABLE_BEFORE_COMPLETION, checkpoint, task, fact)

    def restored(
        self, checkpoint: int, task: int, restored_parts: Sequence[RestoredState], restored_record_count: int
    ) -> None:
        """Reset the expected state of a subtask to the content of the checkpoint."""
        if (subtask := self._initial_state(task)) is None:
            return
        part = self.contents.of(checkpoint, task)
        # operators that had finished are not opened again: the task has no state
        if part is not None and part.finished and not part.holds_state:
            self._subtasks.pop(task, None)
            self._closed[task] = 2 * (subtask.initial_bytes + subtask.state.value_bytes)
            return
        self._closed.pop(task, None)
        self._subtasks[task] = subtask
        subtask.served_at_start = self.ledger.served(checkpoint, task)
        contents = self._completed.get(checkpoint, {})
        contributions = [
            (contents[stamp.vertex, stamp.subtask], piece.share)
            for piece in restored_parts
            if piece.kind == "keyed"
            and (stamp := piece.stamp) is not None
            and (stamp.vertex, stamp.subtask) in contents
        ]
        if contributions:
            subtask.base = tuple(handle for content, _ in contributions for handle in content.handles)
            logs = (handle.size_bytes for handle in subtask.base if handle.name.startswith(_LOG))
            subtask.log_bytes = subtask.from_bytes = sum(logs)
        elif part is not None and not any(snapshot.handles for snapshot, _ in part.parts):
            subtask.log_bytes = 0  # all of its keys had expired
        if checkpoint:
            subtask.ages = split_cohorts([(content.ages, share) for content, share in contributions])
            subtask.last_check = (
                max((content.at_ns for content, _ in contributions), default=0),
                subtask.served_at_start,
            )

    def _initial_state(self, task: int) -> _Subtask | None:
        """Return the expected state of a subtask at the start of the job, or None if it has no keyed state."""
        vertex = self.context.vertex(task)
        if vertex.state is None or not (vertex.state.bytes or vertex.state.growth_bytes):
            return None
        groups, index = vertex.max_parallelism, self.context.layout.subtask[task]
        share = Fraction(len(key_groups(index, vertex.parallelism, groups)), groups)
        initial_bytes = int(vertex.state.bytes * share)
        subtask = _Subtask(vertex.state, share, initial_bytes, log_bytes=initial_bytes)
        if vertex.state.ttl is not None and initial_bytes:
            subtask.ages = (Cohort(-vertex.state.ttl.after_ns, 0, initial_bytes),)
        return subtask

    def _ttl_error(self, subtask: _Subtask, ages: Ages, served: int) -> str | None:
        """Compare the ages of the keys in a snapshot with those in the previous one, if keys expire."""
        if subtask.state.ttl is None:
            return None
        (before_ns, served_before), ages_before, now_ns = subtask.last_check, subtask.ages, self.now_ns
        added_bytes = subtask.added_bytes(served) - subtask.added_bytes(served_before)
        rewritten_bytes = subtask.rewritten_bytes(served) - subtask.rewritten_bytes(served_before)
        subtask.ages, subtask.last_check = ages, (now_ns, served)
        ttl_ns = subtask.state.ttl.after_ns
        return ttl_errors(ages_before, before_ns, ages, now_ns, ttl_ns, added_bytes, rewritten_bytes)

    def _report(self, invariant: str, checkpoint: int, task: int, fact: str | None) -> None:
        """Report what is wrong with the snapshot of a task, if anything, once per invariant and task."""
        if fact is not None:
            self.report(invariant, fact, checkpoint=checkpoint, task=task, once=task)


# ---- Materializations of changelogs are an interval apart, and wait until the previous one is in a completed checkpoint.
#
# Source: PeriodicMaterializationManager, ChangelogKeyedStateBackend#initMaterialization.

MATERIALIZATION_INTERVAL = (
    "a changelog is materialized once per interval, when a completed checkpoint contains the previous materialization"
)
_MAX_CUTS_BEFORE_MATERIALISATION = 2
"""Snapshots a task may take while its materialization is overdue.  The first may block the task thread."""
_MAX_NOTIFICATION_NS = 100_000_000
"""Maximum time until a task is notified of a completed checkpoint [ns]."""


class Materialisations(Invariant):
    """Checks when changelogs are materialised, separately for each attempt of a task."""

    def start(self) -> None:
        self._interval_ns: dict[int, int] = {}  # of each task with a changelog
        self._in_memory_log: set[int] = set()  # tasks with an in-memory log materialize immediately after start
        for task in self.context.tasks:
            state = self.context.vertex(task).state
            if state is not None and state.changelog is not None:
                self._interval_ns[task] = state.changelog.materialize_ns
                if state.changelog.in_memory:
                    self._in_memory_log.add(task)
        self._begun_ns: dict[int, int] = {}  # task -> start of its latest materialisation, or of its attempt
        self._confirmed_ns: dict[
            int, int
        ] = {}  # task -> when the one before was in a completed checkpoint; -1: not yet
        self._checkpoints_since_due = Counter[int]()  # task -> its cuts since the next one was due
        self._unconfirmed: dict[int, int] = {}  # task -> its durable materialisation that is in no completed checkpoint
        self._materialization_at_snapshot = ByCheckpoint[int]()  # the durable materialisation of each task at its cut

    def restarted(self, checkpoint: int, tasks: Iterable[int]) -> None:
        for task in tasks:
            self._begun_ns.pop(task, None)
            self._unconfirmed.pop(task, None)
            self._confirmed_ns[task], self._checkpoints_since_due[task] = self.now_ns, 0

    def cut(self, checkpoint: int, task: int, part: TaskSnapshot) -> None:
        """Check that the latest materialisation of a task, or the start of its attempt, is not too long ago."""
        if self.context.scenario.checkpoint.lost_notifications:
            return  # it may not know that the one before is in a completed checkpoint
        since_ns = self._confirmed_ns.get(task, -1)
        if task in self._interval_ns and since_ns >= 0 and not part.finished:
            after_ns, interval_ns = self.now_ns - since_ns, self._interval_ns[task]
            self._checkpoints_since_due[task] += after_ns > 2 * interval_ns + _MAX_NOTIFICATION_NS
            if self._checkpoints_since_due[task] > _MAX_CUTS_BEFORE_MATERIALISATION:
                fact = f"no materialization for {milliseconds(after_ns)}; the interval is {milliseconds(interval_ns)}"
                self.report(MATERIALIZATION_INTERVAL, fact, checkpoint=checkpoint, task=task, once=True)

    def materialising(self, task: int, number: int) -> None:
        now_ns, interval_ns = self.now_ns, self._interval_ns[task]
        after_ns, fact = now_ns - self._begun_ns.get(task, -interval_ns), ""
        # the second materialization of an in-memory log may follow the first one at once
        if after_ns < interval_ns and not (number == 2 and task in self._in_memory_log):
            fact = f"it is materialized after {milliseconds(after_ns)}; the interval is {milliseconds(interval_ns)}"
        elif task in self._unconfirmed:
            fact = f"materialized again before materialization {self._unconfirmed[task]} was part of a completed checkpoint"
        if fact:
            self.report(MATERIALIZATION_INTERVAL, fact, task=task, once=True)
        self._begun_ns[task], self._confirmed_ns[task], self._checkpoints_since_due[task] = now_ns, -1, 0

    def materialised(self, task: int, number: int, handles: Sequence[Handle]) -> None:
        self._unconfirmed[task] = number

    def state_taken(self, checkpoint: int, task: int, snapshot: StateSnapshot) -> None:
        if task in self._unconfirmed and not snapshot.is_savepoint:
            self._materialization_at_snapshot.setdefault(checkpoint, {})[self.context.names[task]] = self._unconfirmed[
                task
            ]

    def completed(self, checkpoint: int, retained: Sequence[int]) -> None:
        numbers = self._materialization_at_snapshot.get(checkpoint, {})
        for task, number in list(self._unconfirmed.items()):
            if numbers.get(self.context.names[task], 0) >= number:
                del self._unconfirmed[task]
                self._confirmed_ns[task] = self.now_ns


# ---- Restored state: each task receives all of its state, once, also after a rescale.
#
# Stored state has a stamp with its owner and its checkpoint.

RESTORED = "a restored task gets all of its state in the checkpoint, once"

Part = dict[Kind, tuple[Stamp, int]]
"""Kind of state -> its stamp and its size [bytes]."""


class RestoredStates(Invariant):
    """Checks that restored tasks get exactly the state that their checkpoint contains."""

    def start(self) -> None:
        self.names = self.context.names
        self.parts = ByCheckpoint[Part]()
        # checkpoint of another job instance -> (invariant of that instance, vertices that were rescaled since)
        self._rescaled_from: dict[int, tuple[RestoredStates, frozenset[str]]] = {}
        # task of a rescaled vertex -> state it has restored
        self._restored_parts: dict[int, Sequence[RestoredState]] = {}

    def state_taken(self, checkpoint: int, task: int, snapshot: StateSnapshot) -> None:
        """Stamp a snapshot with its owner, and record the sizes of its state."""
        stamp = snapshot.stamp = Stamp(self.context.instance, checkpoint, *self.names[task])
        sizes: dict[Kind, int] = {
            "keyed": snapshot.keyed.full_bytes,
            "windows": snapshot.window_bytes,
            "operator": snapshot.operator_bytes,
            "union": snapshot.union_bytes,
        }
        self.parts.setdefault(checkpoint, {})[self.names[task]] = {
            kind: (stamp, size_bytes) for kind, size_bytes in sizes.items() if size_bytes
        }

    def continue_from(self, before: RestoredStates, checkpoint: int) -> None:
        """Handle that the job starts from a checkpoint, which may have been taken by an earlier instance than `before`.

        Vertices that were rescaled since then get redistributed state.
        """
        taker, resized = before._rescaled_from.get(checkpoint, (before, frozenset[str]()))
        resized |= self.resized(before)
        parts, names = taker.parts.get(checkpoint, {}), set(self.names)
        self.parts[checkpoint] = {name: part for name, part in parts.items() if name in names}
        if resized:
            self._rescaled_from[checkpoint] = taker, resized

    def restored(
        self, checkpoint: int, task: int, restored_parts: Sequence[RestoredState], restored_record_count: int
    ) -> None:
        """Check the state that a task has restored, and how many records it contains."""
        vertex, served = self.names[task][0], self.ledger.served(checkpoint, task)
        taker, resized = self._rescaled_from.get(checkpoint, (self, frozenset[str]()))
        is_resized = vertex in resized
        own = [piece for piece in restored_parts if piece.kind != "union"]
        union = [
            part["union"] for part in (taker if is_resized else self).parts_of(checkpoint, vertex) if "union" in part
        ]
        facts = list(_union_errors(union, [piece for piece in restored_parts if piece.kind == "union"]))
        if restored_parts and restored_record_count != served:
            facts.append(
                f"its state goes on as after {restored_record_count} records, its checkpoint holds what {served} records did"
            )
        if is_resized:
            self._restored_parts[task] = own
            self._check_redistribution(checkpoint, self.context.layout.vertex[task])
        else:
            part = self.parts.get(checkpoint, {}).get(self.names[task], {})
            facts += _differences({kind: row for kind, row in part.items() if kind != "union"}, own)
        where = f"{self.formatter.task(task)}, restored from checkpoint {checkpoint}"
        for fact in facts:
            self.report(RESTORED, fact, where=where, checkpoint=checkpoint, task=task)

    def parts_of(self, checkpoint: int, vertex: str) -> Iterator[Part]:
        """Return the state that each subtask of a vertex has stored in a checkpoint."""
        return (part for name, part in self.parts.get(checkpoint, {}).items() if name[0] == vertex)

    def _check_redistribution(self, checkpoint: int, vertex: int) -> None:
        """Check that the new subtasks of a rescaled vertex together received each part of the old state once.

        Nothing is checked before all of them are restored.
        """
        tasks = [task for task, other in enumerate(self.context.layout.vertex) if other == vertex]
        if not all(task in self._restored_parts for task in tasks):
            return
        (taker, _), name = self._rescaled_from[checkpoint], self.names[tasks[0]][0]
        pieces = [piece for task in tasks for piece in self._restored_parts.pop(task)]
        kinds: tuple[Kind, ...] = ("keyed", "windows", "operator")
        for kind in kinds:
            stamps = [part[kind][0] for part in taker.parts_of(checkpoint, name) if kind in part]
            shares: dict[Stamp | None, Fraction] = dict.fromkeys(stamps, Fraction(0))
            for piece in pieces:
                if piece.kind == kind:
                    shares[piece.stamp] = shares.get(piece.stamp, Fraction(0)) + piece.share
            wrong = [stamp for stamp, share in shares.items() if share != (stamp in stamps)]
            if wrong:
                others = f" (and {len(wrong) - 1} more of {name})" if len(wrong) > 1 else ""
                fact = f"{float(shares[wrong[0]]):g} times the {kind} state of {wrong[0]} comes back{others}"
                self.report(DEALT, fact, where=f"{name}, rescaled with checkpoint {checkpoint}")


def _union_errors(stored: Iterable[tuple[Stamp, int]], pieces: Iterable[RestoredState]) -> Iterator[str]:
    """Yield what is wrong if a subtask did not receive the union list state of all subtasks, once.

    `stored`: (stamp, size in bytes) of each part in the checkpoint.
    """
    expected = sorted((stamp, size_bytes, Fraction(1)) for stamp, size_bytes in stored)
    restored = sorted((piece.stamp, piece.size_bytes, piece.share) for piece in pieces if piece.stamp is not None)
    if restored != expected:
        got, held = (
            f"{number_of(len(rows), 'part')}{of_what}, {number_of(sum(row[1] for row in rows), 'byte')}"
            for rows, of_what in ((restored, " of union list state"), (expected, ""))
        )
        yield f"it gets {got}; the checkpoint holds {held}"


def _differences(stored: Mapping[Kind, tuple[Stamp, int]], restored: Sequence[RestoredState]) -> Iterator[str]:
    """Yield what is wrong if a task of a vertex that was not rescaled did not receive its own state, in full, once.

    `stored`: kind of state -> (stamp, size in bytes) in the checkpoint.
    """
    for kind, (stamp, size_bytes) in stored.items():
        pieces = [piece for piece in restored if piece.kind == kind]
        if not pieces:
            yield f"its {kind} state is not restored: {number_of(size_bytes, 'byte')} in the checkpoint"
        elif len(pieces) > 1 or pieces[0].share != 1:
            times = float(sum(piece.share for piece in pieces))
            yield f"its {kind} state comes back {times:g} times, in {number_of(len(pieces), 'part')}"
        elif pieces[0].stamp != stamp:
            yield f"its {kind} state is that of {pieces[0].stamp}, the checkpoint holds that of {stamp}"
        elif pieces[0].size_bytes != size_bytes:
            back = number_of(pieces[0].size_bytes, "byte")
            yield f"its {kind} state comes back with {back}, the checkpoint holds {size_bytes}"
        elif pieces[0].copied_from not in (None, (stamp.vertex, stamp.subtask, stamp.checkpoint)):
            yield f"its {kind} state is read from a local copy of another one, {pieces[0].copied_from}"
    for piece in restored:
        if piece.kind not in stored:
            yield f"it gets {piece.kind} state, that of {piece.stamp}, and its checkpoint holds none"
