"""Invariants of regional checkpoints (FLIP-600), and how the others observe parts that are replaced.

The proposal is simulated as written.  Comments name the findings (F1 to F13) that violate an invariant; the others are
violated by implementations that are known to be wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Self

from sim.model.text import listed
from sim.protocol.regional import RegionalCoordinator, SplitEnumerator, Splits, referenced_by, regions_of
from sim.results.journal import EventType
from sim.results.tables import CommitStats
from sim.results.violations import number_of
from sim.runtime.context import Checks, RestoredState, StateSnapshot, TaskSnapshot
from sim.runtime.invariants.files import FileLifetimes, OwnedFile
from sim.runtime.invariants.invariant import Invariant
from sim.runtime.invariants.output import Commits
from sim.runtime.invariants.state import Materialisations

ONE_CUT = "each region of a completed checkpoint comes from one completed checkpoint"  # R1: F4
EXISTS = "what a retained checkpoint refers to exists"  # R2
AGE = "a region falls back for no more checkpoints in a row than max-consecutive-failures allows"  # R3: F1, F2
HELD = "no task commits what its part of the checkpoint does not hold"  # R4
ONE_OWNER = "each split has exactly one owner in every checkpoint that can be restored"  # R5: F7, F8
DISCARDED = "nothing that was uploaded for a failed region outlives the checkpoint in which it was replaced"  # R6: F3
OWN = "a checkpoint refers to nothing that its job has neither made nor claimed"  # R7: F5
SAME_SUBTASK = "a part is replaced by that of the same subtask in the same parallelism"  # F6

_NOT_JUDGED = frozenset(
    {"CHECKPOINT_COORDINATOR_SUSPEND", "CHECKPOINT_COORDINATOR_SHUTDOWN", "JOB_FAILOVER_REGION", "CHECKPOINT_SUBSUMED"}
)
"""Reasons of aborts that are not about the answers of tasks."""
_OF_SPLITS = frozenset(
    {
        EventType.TRIGGERED,
        EventType.PART_REPLACED,
        EventType.LAST_ACKNOWLEDGED,
        EventType.COMPLETED,
        EventType.JOB_MANAGER_ELECTED,
        EventType.JOB_RESTORED,
    }
)
_DELETED_NS = 500_000_000
"""Time after which a file whose checkpoint is subsumed is deleted [ns]."""


class Regions(Invariant):
    """Checks that parts of failed regions are replaced by consistent ones, which exist, and that their age is bounded."""

    def start(self) -> None:
        layout = self.context.layout
        self._exchanges = tuple(zip(layout.writer, layout.reader, strict=True))
        self._replaced: dict[tuple[int, int], int] = {}  # (checkpoint, task) -> the checkpoint that its part is of
        self._oldest = (0, -1, -1, 0)  # most attempts that a part is old, its checkpoint, task and own number
        self._fallbacks: dict[int, int] = {}  # checkpoint with replaced parts -> the one that it refers to
        self._begun_ns = self.now_ns
        self._first_own = 0  # id of the first file of this job instance
        self._resized = frozenset[
            str
        ]()  # vertices that had another parallelism in the snapshot that the job began from

    def continue_from(self, before: Self, checkpoint: int) -> None:
        self._resized = self.resized(before)
        if self.context.scenario.instances.claim == "no-claim":
            self._first_own = len(self.context.storage.files)

    def is_redistributed(self, checkpoint: int, task: int) -> bool:
        """Return whether the part of a task is one that a rescale has given to it."""
        part = self.contents.of(checkpoint, task)
        resized = self.context.names[task][0] in self._resized
        return part is not None and resized and part.checkpoint <= self.context.begun_from < checkpoint

    def part_reused(self, checkpoint: int, task: int, before: int) -> None:
        """Check where the part comes from."""
        part = self.contents.checkpoints[checkpoint][task]
        self._replaced[checkpoint, task], self._fallbacks[checkpoint] = part.checkpoint, before
        if self.is_redistributed(checkpoint, task):
            fact = "it is taken by subtask index, and was written with another parallelism (simulated: the part that the rescale gave it)"
            self.report(SAME_SUBTASK, fact, checkpoint=checkpoint, task=task, once=True)
        foreign = [file for file in part.files if file < self._first_own]
        if foreign:
            fact = f"it refers to {number_of(len(foreign), 'file')} of the snapshot that the job began from, and did not claim"
            self.report(OWN, fact, checkpoint=checkpoint, task=task, checkpoints=[before], once=True)

    def completed(self, checkpoint: int, retained: Sequence[int]) -> None:
        """Check the regions of a completed checkpoint, and the files and the age of their parts."""
        parts = self.contents.checkpoints.get(checkpoint, {})
        answered = {row.task for row in self.stats[checkpoint].subtasks.values() if row.ack_ns >= 0}
        # a task that had finished before does not answer
        tasks = [row for row in self.context.tasks if row in answered or row not in parts or not parts[row].finished]
        if all(task in parts and parts[task].checkpoint == checkpoint for task in tasks):
            return
        for region in regions_of(tasks, self._exchanges):
            self._check_region(checkpoint, sorted(region), parts)
        for task in tasks:
            if task in parts and (number := parts[task].checkpoint) < checkpoint:
                self._check_files(checkpoint, task, parts[task])
                self._oldest = max(self._oldest, (self._attempts(number, checkpoint), checkpoint, task, number))

    def _check_region(self, checkpoint: int, region: Sequence[int], parts: dict[int, TaskSnapshot]) -> None:
        """Check that all tasks of a region have parts of one checkpoint, and that it has completed."""
        numbers = {parts[task].checkpoint if task in parts else 0: task for task in reversed(region)}
        names = {number: self.formatter.task(task) for number, task in sorted(numbers.items())}
        if len(numbers) > 1:
            of = ", ".join(
                f"that of {name} is of {number}" if number else f"{name} has none" for number, name in names.items()
            )
            self.report(ONE_CUT, f"parts of one region: {of}", checkpoint=checkpoint, tasks=[*numbers.values()])
        for number, task in numbers.items():
            stats = self.stats.get(number)
            if number not in (0, checkpoint) and stats is not None and stats.status != "COMPLETED":
                fact = f"it has the part that {self.formatter.task(task)} took for checkpoint {number}, which did not complete"
                self.report(ONE_CUT, fact, checkpoint=checkpoint, tasks=[task])

    def _check_files(self, checkpoint: int, task: int, part: TaskSnapshot) -> None:
        gone = [file for file in part.files if not self.context.storage.files.exists(file)]
        if gone:
            fact = f"{number_of(len(gone), 'file')} of its part of checkpoint {part.checkpoint} are gone"
            self.report(EXISTS, fact, checkpoint=checkpoint, task=task, once=task)

    def _attempts(self, since: int, until: int) -> int:
        """Return how many checkpoints after `since` tasks have answered, `until` included.  Savepoints do not count."""
        rows = (self.stats[number] for number in range(since + 1, until + 1) if number in self.stats)
        return sum(not row.savepoint_format and row.failure not in _NOT_JUDGED for row in rows)

    def at_the_end(self) -> None:
        coordinator, most = self.run.coordinator, self.context.scenario.checkpoint.region.max_consecutive_failures + 1
        attempts, checkpoint, task, number = self._oldest
        if attempts > most:
            fact = f"its part is of checkpoint {number}, {attempts} attempts before; {most} are the promise"
            self.report(AGE, fact, checkpoint=checkpoint, task=task, checkpoints=[number])
        assert isinstance(coordinator, RegionalCoordinator)
        kept = {*coordinator.retained, *coordinator.referenced}
        if gone := sorted(referenced_by(coordinator.retained, coordinator.references) - kept):
            which = number_of(len(gone), "checkpoint")
            fact = (
                f"{which} that it refers to {'is' if len(gone) == 1 else 'are'} discarded: {', '.join(map(str, gone))}"
            )
            self.report(EXISTS, fact, checkpoint=coordinator.latest_completed, checkpoints=gone)
        self._check_commits()
        for number, vertex in enumerate(self.context.scenario.job.vertices):
            if vertex.source is not None and self.context.scenario.checkpoint.region.split_interval_ns:
                first = self.context.layout.first_task[number]
                self._check_splits(vertex.name, SplitEnumerator(tuple(range(first, first + vertex.parallelism))))

    def _check_commits(self) -> None:
        for commit in self.context.commits:
            number = self._replaced.get((commit.checkpoint, commit.task))
            if number is not None and (ahead := [row.epoch for row in commit.committed if row.epoch > number]):
                fact = f"it makes epoch {ahead[0]} visible with checkpoint {commit.checkpoint}, in which its part is of checkpoint {number}"
                self.report(
                    HELD, fact, time_ns=commit.time_ns, checkpoint=commit.checkpoint, task=commit.task, once=True
                )

    def _check_splits(self, source: str, enumerator: SplitEnumerator) -> None:
        """Check who owns the splits of a source in each completed checkpoint, from the events of the run.

        A job that begins from a snapshot discovers its splits anew (not modelled: those of the job before).
        """
        interval_ns, next_ns = self.context.scenario.checkpoint.region.split_interval_ns or 0, self._begun_ns
        failed: dict[int, set[int]] = {}  # checkpoint -> readers whose part was replaced
        resets = False
        for row in self.context.journal.only(_OF_SPLITS):
            while next_ns + interval_ns <= row.time_ns:
                next_ns += interval_ns
                enumerator = enumerator.discover()
            checkpoint = row.checkpoint
            match row.event_type:
                case EventType.TRIGGERED:
                    enumerator = enumerator.trigger(checkpoint)
                case EventType.PART_REPLACED if row.task in enumerator.readers:
                    failed.setdefault(checkpoint, set()).add(row.task)
                case EventType.LAST_ACKNOWLEDGED if checkpoint in failed:  # follows the replacement of all parts
                    fallback = self._fallbacks[checkpoint]
                    enumerator = enumerator.fall_back(checkpoint, fallback, failed[checkpoint])
                case EventType.COMPLETED:
                    enumerator = enumerator if checkpoint in failed else enumerator.complete(checkpoint)
                    self._check_owners(source, checkpoint, enumerator.checkpoints[checkpoint], row.time_ns)
                case EventType.JOB_MANAGER_ELECTED:
                    resets = True
                case EventType.JOB_RESTORED:
                    readers = self.run.deployed[row.number].intersection(enumerator.readers)
                    enumerator, resets = enumerator.restore(checkpoint, readers, resets=resets), False

    def _check_owners(self, source: str, checkpoint: int, splits: Splits, time_ns: int) -> None:
        for split in range(splits.discovered):
            owners = splits.owners(split)
            if len(owners) == 1:
                continue
            names = [self.formatter.task(owner) if owner >= 0 else "its enumerator" for owner in owners]
            fact = f"split {split} of {source} has {f'several owners: {listed(names)}' if owners else 'no owner'}"
            self.report(ONE_OWNER, fact, time_ns=time_ns, checkpoint=checkpoint, once=bool(owners))
            return


class ReferencedLifetimes(FileLifetimes):
    """Checks that files are deleted, except those of checkpoints that others refer to."""

    def start(self) -> None:
        super().start()
        self._overwritten = set[tuple[int, int]]()  # (checkpoint, task) of acknowledged parts that were replaced
        self._fallbacks: dict[int, int] = {}  # checkpoint with replaced parts -> the one that it refers to
        self._oldest_kept: list[tuple[int, int]] = []  # (time [ns], the oldest checkpoint that is kept since then)

    def completed(self, checkpoint: int, retained: Sequence[int]) -> None:
        super().completed(checkpoint, retained)
        kept = {*retained, *referenced_by(retained, self._fallbacks)}
        self._oldest_kept.append((self.now_ns, min(kept, default=0)))

    def part_reused(self, checkpoint: int, task: int, before: int) -> None:
        super().part_reused(checkpoint, task, before)
        self._fallbacks[checkpoint] = before
        if self.stats[checkpoint].of(task).ack_ns >= 0:
            self._overwritten.add((checkpoint, task))

    def _check_unreferenced(self) -> None:
        """Check files of parts that were replaced (R6, F3), and then all others."""
        super()._check_unreferenced()
        left = [row for row in super()._owned_files() if (row.checkpoint, row.task) in self._overwritten]
        left = [row for row in left if row.last < self._oldest]
        if left:
            size = number_of(sum(row.stored.size_bytes for row in left), "byte")
            fact = f"it was written over and not discarded; so were {number_of(len(left) - 1, 'other file')}, {size} in all"
            where, first = f"the file {'/'.join(map(str, left[0].stored.name))}", left[0]
            self.report(DISCARDED, fact, where=where, checkpoints=[first.checkpoint], tasks=[first.task])

    def _owned_files(self) -> Iterator[OwnedFile]:
        files = (file for file in super()._owned_files() if file.last < self._oldest)
        return (file for file in files if (file.checkpoint, file.task) not in self._overwritten)

    @property
    def _oldest(self) -> int:
        """The oldest checkpoint that was kept when deletions of files that are to be gone by now began."""
        until_ns = self.now_ns - _DELETED_NS
        return max((oldest for time_ns, oldest in self._oldest_kept if time_ns < until_ns), default=0)


class UnconfirmedMaterialisations(Materialisations):
    """Checks when changelogs are materialised: a task of a failed region does not hear of the completion, and waits."""

    def part_reused(self, checkpoint: int, task: int, before: int) -> None:
        """Take over nothing from the checkpoint before."""


class CommitsOfParts(Commits):
    """Checks that all records are committed once.  A job begins with transactions of the parts of a snapshot, which may be older."""

    def _check_completed(self, commit: CommitStats) -> None:
        if commit.checkpoint > self.context.begun_from:
            super()._check_completed(commit)


def regional_invariants(invariants: Iterable[type[Invariant]]) -> list[type[Invariant]]:
    """Return the invariants of a job with regional checkpoints, from those of a job without."""
    others = (ReferencedLifetimes, UnconfirmedMaterialisations, CommitsOfParts)
    by_base: dict[type[Invariant], type[Invariant]] = {other.__mro__[1]: other for other in others}
    return [*(by_base.get(invariant, invariant) for invariant in invariants), Regions]


def forget_replaced_parts(checks: Checks, observers: Iterable[Invariant]) -> None:
    """Let invariants forget what a task does for a checkpoint in which its part is replaced, before and after that."""
    replaced = set[tuple[int, int]]()
    keep, take, restore = checks.part_reused, checks.state_taken, checks.restored
    (regions,) = (row for row in observers if isinstance(row, Regions))

    def part_reused(checkpoint: int, task: int, before: int) -> None:
        replaced.add((checkpoint, task))
        for invariant in observers:
            invariant.ledger.of(checkpoint)  # files the counts of its cut, which are written over then
            for _, data in invariant._by_checkpoint():  # noqa: SLF001
                data.get(checkpoint, {}).pop(invariant.context.names[task], None)
        keep(checkpoint, task, before)

    def state_taken(checkpoint: int, task: int, snapshot: StateSnapshot) -> None:
        if (checkpoint, task) not in replaced:
            take(checkpoint, task, snapshot)

    def restored(
        checkpoint: int, task: int, restored_parts: Sequence[RestoredState], restored_record_count: int
    ) -> None:
        if not regions.is_redistributed(checkpoint, task):
            restore(checkpoint, task, restored_parts, restored_record_count)

    vars(checks).update(part_reused=part_reused, state_taken=state_taken, restored=restored)
