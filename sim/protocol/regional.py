"""Regional checkpoints: a coordinator whose checkpoints complete without the regions that fail (FLIP-600, a proposal).

Source: apache/flink#28963 (RegionalCheckpointHandler, PendingCheckpoint), as proposed, defects included.

    all tasks have acknowledged or declined; at the timeout all others count as declined
      -> one region or none                               abort
      -> more failed regions than the ratio allows        abort; counter and flag stay as they are
      -> this one had to complete with all regions        abort; counter and flag are reset
      -> no completed checkpoint                          abort
      -> the parts of failed regions are replaced by those of the latest completed checkpoint

After `max_consecutive` of them the next checkpoint has to complete with all regions.  A checkpoint with replaced parts
refers to the one before (`refCheckpointId`), which is kept as long as a retained checkpoint refers to it, also
indirectly.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field, fields
from fractions import Fraction

from sim.model.checkpoint import RegionalCheckpoints
from sim.protocol.checkpoint_requests import PendingCheckpoint, TaskSet
from sim.protocol.coordinator import Coordinator, _abort_checkpoint
from sim.protocol.machine import replace, value_class
from sim.protocol.messages import (
    CheckpointTimedOut,
    CoordinatorCommand,
    CoordinatorEvent,
    Declined,
    DiscardState,
    LeaderLost,
    MetadataWritten,
    NotifyComplete,
    RecordCompleted,
    RequestKind,
    WriteMetadata,
)
from sim.protocol.options import FailureReason
from sim.protocol.recovery import regions
from sim.protocol.snapshot_store import SnapshotStore

_Answer = tuple[Coordinator, tuple[CoordinatorCommand, ...]]


@value_class
class AllSourcesEnded:
    """All sources have come to the end of their data: the next checkpoint has to complete with all regions."""

    now: int


@value_class
class WriteRegionalMetadata(WriteMetadata):
    """Replace the parts of `tasks` by those of the checkpoint `fallback`, then write the metadata."""

    fallback: int
    tasks: frozenset[int]


@value_class
class NotifyRegionalComplete(NotifyComplete):
    """Notify the tasks of healthy regions of the completion, and `failed` of the checkpoint that their parts are of."""

    fallback: int
    failed: frozenset[int]


@value_class
class RegionalCoordinator(Coordinator):
    """The checkpoint coordinator of a job with regional checkpoints."""

    exchanges: tuple[tuple[int, int], ...] = ()  # (upstream task, downstream task)
    max_failure_ratio: Fraction = Fraction(0)
    max_consecutive: int = 0
    declines: Mapping[int, tuple[Declined, ...]] = field(default_factory=dict)  # by pending checkpoint
    # checkpoint with replaced parts, whose metadata is being written -> its command; at most one, because it holds the lock
    replaced: Mapping[int, WriteRegionalMetadata] = field(default_factory=dict)
    consecutive: int = 0  # completed checkpoints with replaced parts since the last one without
    next_is_global: bool = False  # the next checkpoint has to complete with all regions
    references: Mapping[int, int] = field(default_factory=dict)  # completed checkpoint -> the one that it refers to
    referenced: tuple[int, ...] = ()  # subsumed checkpoints that are kept because others refer to them

    @classmethod
    def of(
        cls, coordinator: Coordinator, options: RegionalCheckpoints, exchanges: tuple[tuple[int, int], ...]
    ) -> RegionalCoordinator:
        """Return the regional coordinator of a job whose tasks exchange data in pairs `exchanges`."""
        values = {row.name: getattr(coordinator, row.name) for row in fields(coordinator)}
        ratio, consecutive = options.max_failure_ratio, options.max_consecutive_failures
        return cls(**values, exchanges=exchanges, max_failure_ratio=ratio, max_consecutive=consecutive)

    @property
    def needed(self) -> frozenset[int]:
        """Checkpoints whose content may be read again, or that others refer to."""
        return frozenset((*self.retained, *self.referenced, *(pending.checkpoint for pending in self.pending)))

    def on(self, event: CoordinatorEvent | AllSourcesEnded) -> _Answer:
        """Return the next coordinator and its commands."""
        return (
            (replace(self, next_is_global=True), ())
            if isinstance(event, AllSourcesEnded)
            else Coordinator.on(self, event)
        )

    def respond(self, event: CoordinatorEvent) -> _Answer:
        """Respond to an event.  Savepoints, and triggers that do not arrive, fail as without regions."""
        if isinstance(event, LeaderLost):  # the next JobManager knows neither declines nor the counter
            coordinator = replace(self, declines={}, replaced={}, consecutive=0, next_is_global=False)
            return Coordinator.respond(coordinator, event)
        pending = _find(self, event)
        if pending is None or pending.kind is RequestKind.SAVEPOINT:
            return Coordinator.respond(self, event)
        answers = not pending.writes_metadata
        match event:
            case Declined() if answers and event.reason is not FailureReason.TRIGGER_CHECKPOINT_FAILURE:
                return _judge(_with_declines(self, pending, (event,)), pending, event.now)
            case CheckpointTimedOut() if answers:
                return _expire(self, pending, event.now)
            case MetadataWritten():
                return _finish(self, pending, event, Coordinator.respond(self, event))
        answer, commands = Coordinator.respond(self, event)
        current = _find(answer, event)
        if current is None or current.writes_metadata or pending.checkpoint not in self.declines:
            return answer, commands
        return _judge(_regional(answer), current, event.now)


# ---------------------------------------------------------------------------------------------- transitions

_RegionalAnswer = tuple[RegionalCoordinator, tuple[CoordinatorCommand, ...]]


def _find(coordinator: Coordinator, event: CoordinatorEvent) -> PendingCheckpoint | None:
    """Return the pending checkpoint of an event, or None if it is about none, or about one that has ended."""
    number = getattr(event, "checkpoint", 0)
    return next((pending for pending in coordinator.pending if pending.checkpoint == number), None)


def _regional(coordinator: Coordinator) -> RegionalCoordinator:
    assert isinstance(coordinator, RegionalCoordinator)
    return coordinator


def _with_declines(
    coordinator: RegionalCoordinator, pending: PendingCheckpoint, declines: tuple[Declined, ...]
) -> RegionalCoordinator:
    """Record declines of a pending checkpoint (recordDecline), and drop those of checkpoints that have ended."""
    number, is_pending = pending.checkpoint, {row.checkpoint for row in coordinator.pending}
    before = {row: declined for row, declined in coordinator.declines.items() if row in is_pending}
    return replace(coordinator, declines={**before, number: (*before.get(number, ()), *declines)})


def _expire(coordinator: RegionalCoordinator, pending: PendingCheckpoint, now: int) -> _RegionalAnswer:
    """Record a decline of all tasks that have not answered (markUnacknowledgedTasksAsDeclined)."""
    number, reason = pending.checkpoint, FailureReason.CHECKPOINT_EXPIRED
    answered = {*pending.acknowledged, *(row.task for row in coordinator.declines.get(number, ()))}
    silent = sorted(pending.plan.wait_for - answered)
    declines = tuple(Declined(now, task, number, reason) for task in silent)
    return _judge(_with_declines(coordinator, pending, declines), pending, now, expired=True)


def _judge(
    coordinator: RegionalCoordinator, pending: PendingCheckpoint, now: int, *, expired: bool = False
) -> _RegionalAnswer:
    """Complete a checkpoint without its failed regions, or abort it, once all tasks have answered (tryCompleteRegionalCheckpoint)."""
    waits, number, fallback = pending.plan.wait_for, pending.checkpoint, coordinator.latest_completed
    declines = coordinator.declines[number]
    declined = {row.task for row in declines}
    if len(declined.union(pending.acknowledged)) < len(waits):
        return coordinator, ()
    reason, task = (FailureReason.CHECKPOINT_EXPIRED, None) if expired else (declines[0].reason, declines[0].task)
    groups = regions_of(waits, coordinator.exchanges)
    failed = [group for group in groups if not group.isdisjoint(declined)]
    is_above = len(failed) > coordinator.max_failure_ratio * len(groups)
    if len(groups) > 1 and not is_above and coordinator.next_is_global:  # the ratio is judged first
        coordinator = replace(coordinator, next_is_global=False, consecutive=0)
        reason, fallback = FailureReason.CHECKPOINT_DECLINED, 0
    if len(groups) < 2 or is_above or not fallback:
        after, commands = _abort_checkpoint(coordinator, pending, reason, now, task)
        return _regional(after), commands
    command = WriteRegionalMetadata(number, fallback, frozenset().union(*failed))
    healthy = waits - command.tasks
    changed = replace(
        pending,
        plan=replace(pending.plan, wait_for=healthy),
        acknowledged=TaskSet(sum(1 << row for row in healthy)),
        latest_ack_ns=now,  # of all answers; what the branch reports is not known (FLINK-40211)
    )
    all_pending = tuple(changed if row.checkpoint == number else row for row in coordinator.pending)
    return replace(coordinator, pending=all_pending, replaced={number: command}), (command,)


def _finish(
    coordinator: RegionalCoordinator, pending: PendingCheckpoint, event: MetadataWritten, answer: _Answer
) -> _RegionalAnswer:
    """Complete or abort a checkpoint; count it, keep what it refers to, and notify failed regions of the fallback.

    `answer` is that of a coordinator without regions.
    """
    number, regional = pending.checkpoint, coordinator.replaced.get(pending.checkpoint)
    if event.failed and regional is not None:  # all its tasks are notified of the abort
        waits = pending.plan.wait_for | regional.tasks
        aborted = replace(pending, plan=replace(pending.plan, wait_for=waits))
        after, commands = _abort_checkpoint(coordinator, aborted, event.reason, event.now)
        return _regional(after), commands
    after, commands = _regional(answer[0]), answer[1]
    if event.failed:
        return after, commands
    count = 0 if regional is None else coordinator.consecutive + 1
    after = replace(after, consecutive=count, next_is_global=count > 0 and count >= coordinator.max_consecutive)
    if regional is not None:
        after = replace(after, references={**coordinator.references, number: regional.fallback})
    return _with_referenced(after, coordinator.retained, [_with_fallback(row, regional) for row in commands])


def _with_referenced(
    coordinator: RegionalCoordinator, before: Collection[int], commands: list[CoordinatorCommand]
) -> _RegionalAnswer:
    """Keep subsumed checkpoints that a retained one refers to, also indirectly; discard those that none refers to any more."""
    subsumed = [row for row in commands if isinstance(row, DiscardState) and row.checkpoint in before]
    held = {*coordinator.referenced, *(row.checkpoint for row in subsumed)}
    needed = held & referenced_by(coordinator.retained, coordinator.references)
    gone = sorted(held - needed)
    after = replace(
        coordinator,
        referenced=tuple(sorted(needed)),
        references={row: to for row, to in coordinator.references.items() if row not in gone},
        cleaning=coordinator.cleaning - len(subsumed) + len(gone),
    )
    others = [row for row in commands if row not in subsumed]
    place = next(number for number, row in enumerate(others, 1) if isinstance(row, RecordCompleted))
    return after, (*others[:place], *map(DiscardState, gone), *others[place:])


def referenced_by(checkpoints: Collection[int], references: Mapping[int, int]) -> frozenset[int]:
    """Return the checkpoints that these refer to, also indirectly."""
    found = set[int]()
    for number in checkpoints:
        while (number := references.get(number, 0)) and number not in found:
            found.add(number)
    return frozenset(found)


def _with_fallback(command: CoordinatorCommand, regional: WriteRegionalMetadata | None) -> CoordinatorCommand:
    if regional is None or not isinstance(command, NotifyComplete):
        return command
    return NotifyRegionalComplete(command.checkpoint, command.tasks, regional.fallback, regional.tasks)


def regions_of(tasks: Collection[int], exchanges: Collection[tuple[int, int]]) -> tuple[frozenset[int], ...]:
    """Return the pipelined regions of some tasks of a job: the components that exchange data with each other."""
    among = [(writer, reader) for writer, reader in exchanges if writer in tasks and reader in tasks]
    return tuple(group for group in regions(max(tasks) + 1, among) if not group.isdisjoint(tasks))


def without_files(store: SnapshotStore, checkpoint: int, files: Collection[int]) -> SnapshotStore:
    """Return the store whose pending checkpoint refers no longer to these files, by number.

    Those that are shared stay registered until the checkpoint is subsumed.  Nobody deletes the others: they are written
    over in PendingCheckpoint, not discarded.
    """
    pending = store.pending[checkpoint]
    others = tuple(file for file in pending.files if file.number not in files)
    return replace(store, pending={**store.pending, checkpoint: pending._replace(files=others)})


def without_claim(store: SnapshotStore) -> SnapshotStore:
    """Return the store that does not delete files of an unclaimed snapshot which a checkpoint of this job refers to.

    Whether the proposal does is not known (assumption).
    """
    if store.unclaimed is None:
        return store
    oldest = store.unclaimed.checkpoint
    entries = {
        key: entry
        if entry.file.instance == store.instance
        else entry._replace(created_by=min(entry.created_by, oldest))
        for key, entry in store.registry.entries.items()
    }
    return replace(store, registry=replace(store.registry, entries=entries))


# ---- The splits of a source: which reader owns each, and what a checkpoint contains of that (SourceCoordinator,
# SplitAssignmentTracker).
#
# An enumerator assigns each split to one of its readers in turn when it discovers the split.  Its snapshot is taken at the
# trigger, and its messages wait until the barrier is in the reader, so that a checkpoint contains all splits as they were
# at the trigger.  A regional checkpoint asks the enumerator for a second, later state, and returns to it what readers of
# failed regions have received since their fallback.  Discovery has a fixed interval; the load of readers does not depend
# on it.


@value_class
class Splits:
    """Who owns the splits of a source, which are numbered as they are discovered."""

    discovered: int = 0
    unassigned: tuple[int, ...] = ()  # owned by the enumerator
    owned: Mapping[int, tuple[int, ...]] = field(default_factory=dict)  # by reader

    def owners(self, split: int) -> list[int]:
        """Return the readers that own a split, and -1 if the enumerator does."""
        readers = [reader for reader, splits in sorted(self.owned.items()) if split in splits]
        return [*readers, *[-1] * (split in self.unassigned)]


@value_class
class Assignment:
    """A split that a reader has got."""

    reader: int
    split: int
    after: int  # the latest checkpoint that had been triggered


@value_class
class SplitEnumerator:
    """The enumerator of a source."""

    readers: tuple[int, ...]
    live: Splits = Splits()
    next_reader: int = 0
    newest: int = 0  # the latest checkpoint that was triggered
    checkpoints: Mapping[int, Splits] = field(default_factory=dict)
    tracked: tuple[Assignment, ...] = ()  # assignments that are in no completed checkpoint, as far as it was told

    def discover(self) -> SplitEnumerator:
        """Discover a split, and assign it with all that have come back."""
        after, owned = self, dict(self.live.owned)
        for split in (*self.live.unassigned, self.live.discovered):
            reader = after.readers[after.next_reader % len(after.readers)]
            owned[reader] = (*owned.get(reader, ()), split)
            tracked = (*after.tracked, Assignment(reader, split, after.newest))
            after = replace(after, next_reader=after.next_reader + 1, tracked=tracked)
        return replace(after, live=Splits(self.live.discovered + 1, (), owned))

    def trigger(self, checkpoint: int) -> SplitEnumerator:
        """Take a snapshot."""
        return replace(self, newest=checkpoint, checkpoints={**self.checkpoints, checkpoint: self.live})

    def fall_back(self, checkpoint: int, fallback: int, failed: Collection[int]) -> SplitEnumerator:
        """Replace the state of a checkpoint by one that fits older parts of some readers (checkpointCoordinatorForRegionFallback).

        As in the proposal's unit test, what these readers have got since then goes back to the live enumerator, although
        they go on reading it.
        """
        before, held = self.checkpoints.get(fallback, Splits()), dict(self.checkpoints[checkpoint].owned)
        held |= {reader: before.owned.get(reader, ()) for reader in failed}
        after = self.take_back(fallback, failed)
        state = Splits(after.live.discovered, after.live.unassigned, held)
        return replace(after, checkpoints={**self.checkpoints, checkpoint: state})

    def take_back(self, checkpoint: int, readers: Collection[int]) -> SplitEnumerator:
        """Take back the splits that these readers have got since a checkpoint (getAndRemoveUncheckpointedAssignment)."""
        since = [row for row in self.tracked if row.reader in readers and row.after >= checkpoint]
        unassigned = (*self.live.unassigned, *(row.split for row in since))
        tracked = tuple(row for row in self.tracked if row not in since)
        return replace(self, live=replace(self.live, unassigned=unassigned), tracked=tracked)

    def complete(self, checkpoint: int) -> SplitEnumerator:
        """Forget the assignments in a completed checkpoint.  After a fallback the enumerator does not hear of the completion."""
        return replace(self, tracked=tuple(row for row in self.tracked if row.after >= checkpoint))

    def restore(self, checkpoint: int, readers: Collection[int], *, resets: bool) -> SplitEnumerator:
        """Restart readers from a checkpoint.  The enumerator goes on, unless it `resets` with a new JobManager."""
        state = self.checkpoints.get(checkpoint, Splits())
        if resets:
            return replace(self, live=state, tracked=())
        after = self.take_back(checkpoint, readers)
        owned = {**after.live.owned, **{reader: state.owned.get(reader, ()) for reader in readers}}
        return replace(after, live=replace(after.live, owned=owned))
