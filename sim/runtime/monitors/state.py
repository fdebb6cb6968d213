"""The monitor of keyed state: size, age of keys and position of the changelog of each subtask, compared with snapshots.

The expected values are computed from the records served and from the options of the job, independently of snapshots.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Self

from sim.invariants.checkpoints import AGED, Cohort, split_cohorts, ttl_errors
from sim.invariants.cuts import CLOSED, COVERED, WRITTEN_FIRST, gap, missing_log_error, missing_state_error
from sim.invariants.state import RestoredState
from sim.invariants.violation import Violation, number_of
from sim.model.job import key_groups
from sim.model.state import State
from sim.results.journal import Happening
from sim.runtime.context import StateSnapshot
from sim.runtime.monitors.monitor import ByCheckpoint, InvariantMonitor, WatchedRun
from sim.storage.ledger import FileId
from sim.storage.lsm import TreeImage
from sim.storage.state_files import File, FrozenState, Handle

_LOG = "log-"
_NO_STATE = frozenset({"meta", "CURRENT", "MANIFEST", "OPTIONS"})
"""Files of RocksDB that contain no entries."""
_STEPS = frozenset(
    {
        Happening.TRIGGERED,
        Happening.SNAPSHOT_BEGUN,
        Happening.STATE_WRITTEN,
        Happening.ACKNOWLEDGED,
        Happening.COMPLETED,
    }
)
_EVIDENCE_KINDS = frozenset(
    {Happening.JOB_RESTORED, Happening.TASK_RESTORED, Happening.TASK_FAILED, Happening.RESCALED}
)
_MAX_EVIDENCE_ROWS = 12


@dataclass(frozen=True, slots=True)
class _Content:
    """The keyed state of one subtask in a completed checkpoint."""

    handles: tuple[Handle, ...]
    ages: tuple[Cohort, ...]
    at_ns: int  # when it was frozen


@dataclass(slots=True)
class _Subtask:
    """The expected keyed state of one attempt of a subtask.  Positions of the log are in bytes since its start."""

    state: State
    share: Fraction  # of the key groups
    begun_bytes: int  # size at the start of the job
    served: int = 0  # records served at the start of the attempt
    base: tuple[Handle, ...] = ()  # files that every snapshot must refer to: restored, or of the latest materialisation
    log_bytes: int = 0  # position of the log at the start of the attempt
    from_bytes: int = 0  # snapshots must refer to the log from this position on
    # materialisation in progress -> position of the log when it started
    materialising: dict[int, int] = field(default_factory=dict)
    ages: tuple[Cohort, ...] = ()  # keys by the time of their last write, at the last check
    checked: tuple[int, int] = (0, 0)  # (time, records served) of the last check

    def added_bytes(self, served: int) -> int:
        """Return the size of the keys added since the job started [bytes]."""
        if self.state.ttl is not None:
            return self.state.growth_bytes * served
        return self.state.added_bytes(self.begun_bytes, served, self.share)

    def rewritten_bytes(self, served: int) -> int:
        """Return the size of the entries rewritten since the job started [bytes]."""
        return self.state.rewrites(self.begun_bytes, served, self.share) * self.state.value_bytes

    def log_end(self, served: int) -> int:
        """Return the position of the log after `served` records."""
        begun = self.added_bytes(self.served) + self.rewritten_bytes(self.served)
        return self.log_bytes + self.added_bytes(served) + self.rewritten_bytes(served) - begun

    def live_bytes(self, served: int, ages: Sequence[Cohort]) -> int:
        """Return the expected size of the state after `served` records, or of the keys in `ages` if keys expire [bytes]."""
        if self.state.ttl is not None:
            return sum(size_bytes for _, _, size_bytes in ages)
        return self.begun_bytes + self.added_bytes(served)


class KeyedStateMonitor(InvariantMonitor):
    """Checks that snapshots contain all keyed state, that keys expire in time, and that restores get the same state."""

    def __init__(self, watched: WatchedRun) -> None:
        super().__init__(watched)
        self._subtasks = {
            task: subtask
            for task in range(len(self.context.names))
            if (subtask := self._initial_state(task)) is not None
        }
        self._frozen = ByCheckpoint[int, tuple[FrozenState, _Content]]()
        self._by_checkpoint = ByCheckpoint[tuple[str, int], _Content]()  # tasks are (vertex, index)
        # task restored as finished -> maximum size of its state, which is not opened again [bytes]
        self._closed: dict[int, int] = {}

    def continue_from(self, before: Self, checkpoint: int) -> None:
        self._by_checkpoint[checkpoint] = before._by_checkpoint.get(checkpoint, {})

    # ------------------------------------------------------------------------------------------ while the job runs

    def state_taken(self, checkpoint: int, task: int, snapshot: StateSnapshot) -> None:
        """Check that a snapshot contains the expected keyed state, or for a changelog the complete log."""
        subtask = self._subtasks.get(task)
        if subtask is None:
            if task in self._closed and (held_bytes := sum(_sizes(snapshot.keyed).values())) > self._closed[task]:
                self._report_snapshot(
                    CLOSED,
                    checkpoint,
                    task,
                    f"it has {number_of(held_bytes, 'byte')} of state, and was restored as finished",
                )
            return
        served = self.ledger.served(checkpoint, task)
        self._check_ages(subtask, checkpoint, task, snapshot.ages, served)
        self._frozen.setdefault(checkpoint, {})[task] = snapshot.keyed, _Content((), snapshot.ages, self.now_ns)
        if subtask.state.changelog is not None and snapshot.type in ("checkpoint", "full"):
            fact = self._log_error(subtask, snapshot.keyed, served)
        else:
            fact = _size_error(subtask, snapshot.keyed, served, snapshot.ages)
        if fact is not None:
            self._report_snapshot(COVERED, checkpoint, task, fact)

    def part_kept(self, checkpoint: int, task: int, before: int) -> None:
        self._by_checkpoint.keep(checkpoint, before, self.context.names[task])

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
        files, contents = self.context.storage.files, self._by_checkpoint.setdefault(checkpoint, {})
        parts = self.contents.checkpoints.get(checkpoint, {})
        for task, (frozen, note) in self._frozen.pop(checkpoint, {}).items():
            if task not in parts or not parts[task].parts:
                continue
            snapshot = parts[task].parts[0][0]
            handles = tuple(snapshot.handles)
            contents[self.context.names[task]] = _Content(handles, note.ages, note.at_ns)
            size_bytes, expected = sum(handle.size_bytes for handle in handles), frozen.full_bytes
            if size_bytes != expected:
                fact = f"it names {number_of(len(handles), 'file')} with {size_bytes} bytes of keyed state, {expected} were frozen"
                self._report_snapshot(WRITTEN_FIRST, checkpoint, task, fact)
            gone = [
                handle.name
                for handle in snapshot.all_handles
                if handle.file is not None and not files.exists(FileId(handle.file))
            ]
            if gone:
                self._report_snapshot(
                    WRITTEN_FIRST,
                    checkpoint,
                    task,
                    f"{number_of(len(gone), 'file')} it names {_is(gone)} not there: {gone[0]}",
                )

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
            self._closed[task] = 2 * (subtask.begun_bytes + subtask.state.value_bytes)
            return
        self._closed.pop(task, None)
        self._subtasks[task] = subtask
        subtask.served = self.ledger.served(checkpoint, task)
        contents = self._by_checkpoint.get(checkpoint, {})
        pieces = [
            (piece.stamp, piece.share) for piece in restored_parts if piece.kind == "keyed" and piece.stamp is not None
        ]
        contributions = [
            (contents[stamp.vertex, stamp.subtask], share)
            for stamp, share in pieces
            if (stamp.vertex, stamp.subtask) in contents
        ]
        if contributions:
            subtask.base = tuple(handle for part, _ in contributions for handle in part.handles)
            subtask.log_bytes = subtask.from_bytes = sum(
                handle.size_bytes for handle in subtask.base if handle.name.startswith(_LOG)
            )
        elif part is not None and not any(snapshot.handles for snapshot, _ in part.parts):
            subtask.log_bytes = 0  # all of its keys had expired
        if checkpoint:
            subtask.ages = split_cohorts([(part.ages, share) for part, share in contributions])
            subtask.checked = max((part.at_ns for part, _ in contributions), default=0), subtask.served

    # ------------------------------------------------------------------------------------------ comparisons

    def _initial_state(self, task: int) -> _Subtask | None:
        """Return the expected state of a subtask at the start of the job, or None if it has no keyed state."""
        vertex = self.context.vertex(task)
        if vertex.state is None or not (vertex.state.bytes or vertex.state.growth_bytes):
            return None
        groups, index = vertex.max_parallelism, self.context.layout.subtask[task]
        share = Fraction(len(key_groups(index, vertex.parallelism, groups)), groups)
        begun_bytes = int(vertex.state.bytes * share)
        subtask = _Subtask(vertex.state, share, begun_bytes, log_bytes=begun_bytes)
        if vertex.state.ttl is not None and begun_bytes:
            subtask.ages = ((-vertex.state.ttl.after_ns, 0, begun_bytes),)
        return subtask

    def _check_ages(self, subtask: _Subtask, checkpoint: int, task: int, ages: Sequence[Cohort], served: int) -> None:
        """Check the ages of the keys in a snapshot against those in the previous one, if keys expire."""
        if subtask.state.ttl is None:
            return
        (before_ns, before), now_ns = subtask.checked, self.now_ns
        added_bytes = subtask.added_bytes(served) - subtask.added_bytes(before)
        rewritten_bytes = subtask.rewritten_bytes(served) - subtask.rewritten_bytes(before)
        ttl_ns = subtask.state.ttl.after_ns
        fact = ttl_errors(subtask.ages, before_ns, ages, now_ns, ttl_ns, added_bytes, rewritten_bytes)
        if fact is not None:
            self._report_snapshot(AGED, checkpoint, task, fact)
        subtask.ages, subtask.checked = tuple(ages), (now_ns, served)

    def _log_error(self, subtask: _Subtask, frozen: FrozenState, served: int) -> str | None:
        """Return what a changelog snapshot lacks, or None: its base files, or a part of the log after them."""
        named = set(frozen.reused)
        missing = [handle for handle in subtask.base if handle not in named]
        if missing:
            size_bytes = sum(handle.size_bytes for handle in missing)
            return f"it does not name {missing[0].name}, and so lacks {number_of(size_bytes, 'byte')} of what its state is made of"
        files: list[Handle | File] = [*frozen.reused, *frozen.awaited]
        base = set(subtask.base)
        log = [
            (int(file.name.removeprefix(_LOG)), file.size_bytes)
            for file in files
            if file.name.startswith(_LOG) and file not in base
        ]
        hole = gap(log, subtask.from_bytes, subtask.log_end(served))
        return None if hole is None else missing_log_error(hole, subtask.from_bytes)

    def _report_snapshot(self, law: str, checkpoint: int, task: int, fact: str) -> None:
        """Report a violation by a snapshot of a task, but only the first one of each invariant and task."""
        if not self.is_first(law, task):
            return
        story = self.formatter.story(
            lambda row: (
                (row.checkpoint == checkpoint and row.happening in _STEPS and row.task in (-1, task))
                or (row.happening in _EVIDENCE_KINDS and row.task in (-1, task))
            )
        )
        where = f"snapshot {checkpoint} of {self.formatter.task(task)}"
        self.found.append(Violation(law, self.now_ns, where, fact, story[-_MAX_EVIDENCE_ROWS:]))


def _sizes(frozen: FrozenState) -> dict[str, int]:
    """Return name -> size of the files of a snapshot that contain entries [bytes]."""
    sizes = {file.name: file.size_bytes for step in frozen.steps for file in step.files}
    sizes |= {handle.name: handle.size_bytes for handle in frozen.reused}
    return {name: size_bytes for name, size_bytes in sizes.items() if name not in _NO_STATE}


def _size_error(subtask: _Subtask, frozen: FrozenState, served: int, ages: Sequence[Cohort]) -> str | None:
    """Return what the files of a snapshot lack, or None.  The backend has no changelog."""
    sizes = _sizes(frozen)
    if isinstance(frozen.image, TreeImage):
        for table in (table for level in frozen.image.levels for table in level):
            if table.name not in sizes:
                return f"it names no file for {table.name}, a table of its tree with {number_of(table.entries, 'key')}"
    return missing_state_error(sum(sizes.values()), subtask.live_bytes(served, ages), subtask.state.value_bytes)


def _is(files: Sequence[str]) -> str:
    return "is" if len(files) == 1 else "are"
