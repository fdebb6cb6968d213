"""Monitors of output: commits of transactional sinks, and the end of tasks and of the job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Self

from sim.invariants import output as invariants_output
from sim.invariants.checkpoints import activity_after_stop
from sim.invariants.output import ONCE, commit_errors, uncommitted
from sim.invariants.violation import Violation, count_is
from sim.model.faults import StorageOutage
from sim.protocol.commit import Committable
from sim.results.journal import Happening
from sim.results.tables import CommittedEpoch
from sim.runtime.context import TaskSnapshot, Uncommitted
from sim.runtime.monitors.files import deletions
from sim.runtime.monitors.monitor import ByCheckpoint, EndOfRun, InvariantMonitor, WatchedRun

# ---- Commits: the records that writers must commit, and the transactions in the checkpoint that a job starts from.
#
# Within one job instance the commits are checked by channel.  After rescaling channels have other numbers, so the
# transactions that the new instance starts with are counted instead.


class Transaction(NamedTuple):
    """A transaction, identified without the number of its writer task, which rescaling may change."""

    vertex: str
    epoch: int
    opened_ns: int
    records: int


class _Content(NamedTuple):
    """The transactions of a committer in one checkpoint.  The in-flight part grows until the checkpoint is complete."""

    names: Sequence[tuple[str, int]]  # (vertex, index) of each task of the job instance that took the checkpoint
    uncommitted: Uncommitted


class CommitMonitor(InvariantMonitor):
    """Checks that all records are committed once, and that transactions in a restored checkpoint are committed."""

    def __init__(self, watched: WatchedRun) -> None:
        super().__init__(watched)
        self.names = self.context.names
        self._in_checkpoint = ByCheckpoint[int, _Content]()  # transactions of each committer
        self._ended = Counter[Transaction]()  # committed or lost by earlier job instances
        # records that each writer, (vertex, index), has read and not written
        self._held_back = ByCheckpoint[tuple[str, int], int]()
        # transactions in the checkpoint that this instance starts from, until its first checkpoint completes
        self._owed = Counter[Transaction]()
        self._begun_from = 0  # that checkpoint

    def cut(self, checkpoint: int, task: int, part: TaskSnapshot) -> None:
        """Record the committables of a task in its snapshot, and the records that its writer has read but not written."""
        if part.committables is not None:
            self._in_checkpoint.setdefault(checkpoint, {})[task] = _Content(self.names, part.committables)
        if any(part.held_back):
            self._held_back.setdefault(checkpoint, {})[self.names[task]] = sum(part.held_back)

    def part_kept(self, checkpoint: int, task: int, before: int) -> None:
        self._in_checkpoint.keep(checkpoint, before, task)
        self._held_back.keep(checkpoint, before, self.names[task])

    def continue_from(self, before: Self, checkpoint: int) -> None:
        """Check that records which writers have not written are redistributed completely, and take over open transactions."""
        self._held_back[checkpoint] = before._held_back.get(checkpoint, {})
        held_back, restored = Counter[str](), Counter[str]()
        for (vertex, _), records in self._held_back[checkpoint].items():
            held_back[vertex] += records
        for task, part in self.contents.checkpoints[checkpoint].items():
            restored[self.names[task][0]] += sum(part.held_back)
        for vertex in {*held_back, *restored}:
            if held_back[vertex] != restored[vertex]:
                where = f"{vertex}, in checkpoint {checkpoint} the job began from"
                fact = f"its writers held {held_back[vertex]} records back, they begin with {restored[vertex]}"
                self.found.append(Violation(ONCE, self.now_ns, where, fact))
        self._begun_from = checkpoint
        self._in_checkpoint[checkpoint] = before._in_checkpoint.get(checkpoint, {})
        contents = self._in_checkpoint[checkpoint].values()
        self._owed = Counter(
            _transaction(content.names, row) for content in contents for row in content.uncommitted.all
        )
        self._ended = before.ended

    @property
    def ended(self) -> Counter[Transaction]:
        """The transactions committed, or reported lost, by this job instance and the earlier ones."""
        rows = self.context.commits
        return self._ended + Counter(
            _transaction(self.names, committable) for row in rows for committable in (*row.committed, *row.lost)
        )

    def completed(self, checkpoint: int, retained: Sequence[int]) -> None:
        """Check that the transactions in the checkpoint that the job started from are committed by now, or reported lost."""
        if not self._owed:
            return
        missing, self._owed = self._owed - self.ended, Counter()
        for transaction, times in missing.items():
            where = f"epoch {transaction.epoch} of {transaction.vertex}, in checkpoint {self._begun_from} the job began from"
            fact = f"{count_is(times * transaction.records, 'record')} lost: the transaction that the checkpoint held is never committed"
            story = self.formatter.story(lambda row: row.checkpoint == self._begun_from)
            self.found.append(Violation(ONCE, self.now_ns, where, fact, story))

    def at_the_end(self, end: EndOfRun) -> Iterator[Violation]:
        context, output, formatter = self.context, self.watched.output, self.formatter
        begun_from, covered, counted_from = context.begun_from, output.covered_before, output.counted_from
        yield from commit_errors(
            context.commits,
            context.stats,
            formatter,
            begun_from=begun_from,
            covered=covered,
            counted_from=counted_from,
            checkpointing=context.periodic,
        )
        if end.finished:
            yield from uncommitted(
                context.commits, self._to_commit(), self.now_ns, formatter, covered=covered, counted_from=counted_from
            )

    def _to_commit(self) -> dict[int, list[int]]:
        """Return the records that this job instance must commit: writer task -> records of each input channel."""
        return {
            task: self._to_commit_by(task, commit.holds_back)
            for task in self.context.tasks
            if (commit := self.context.vertex(task).commit) is not None
        }

    def _to_commit_by(self, task: int, holds_back: int) -> list[int]:
        """Return the records of each input channel that a writer must commit.

        These are all records that it has read.  If the job was stopped with a savepoint and without drain, they are those
        read at the cut of the savepoint, except those not written yet: the rest is in the savepoint, and a job that starts
        from it emits and commits it.
        """
        end = self.ends.end(task)
        read: list[int] = self.context.plane.position(task).records_read.tolist()
        if end.drained:
            return read
        if end.stop is not None and (part := self.contents.of(end.stop, task)) is not None:
            read = part.position.records_read.tolist()
        return [max(0, records - holds_back) for records in read]


def _transaction(names: Sequence[tuple[str, int]], committable: Committable | CommittedEpoch) -> Transaction:
    """Return the transaction of a committable.  `names` are the tasks of its job instance."""
    return Transaction(names[committable.writer][0], committable.epoch, committable.opened_ns, committable.records)


# ---- The end of tasks: how their data has ended, compared with snapshots, timers, and stop requests of the user.

_SOON_NS = 100_000_000
"""Time allowed for a final checkpoint to wait for calls and for the coordinator's lock; deletions are accounted for separately."""


class EndOfTaskMonitor(InvariantMonitor):
    """Checks how tasks and the job end: final snapshots, timers after the end of data, and the requested stop mode."""

    def __init__(self, watched: WatchedRun) -> None:
        super().__init__(watched)
        self._ended: dict[int, str] = {}  # task whose data has ended -> how (a value of Ending)
        self._closed: set[int] = set()  # tasks restored as finished

    def data_ended(self, task: int, ending: str) -> None:
        self._ended[task] = ending

    def restarted(self, checkpoint: int, tasks: Iterable[int]) -> None:
        for task in tasks:
            part = self.contents.of(checkpoint, task)
            self._ended.pop(task, None)
            self._closed.discard(task)
            if part is not None and part.finished:
                self._closed.add(task)

    def cut(self, checkpoint: int, task: int, part: TaskSnapshot) -> None:
        """Check that a snapshot is marked as finished if the operators of its task have finished."""
        if self._ended.get(task) == "drain" and not part.finished:
            self._report_unknown_end(checkpoint, task, "its data has ended")
        elif task in self._closed and not part.finished:
            self._report_unknown_end(checkpoint, task, "it was restored as finished")

    def _report_unknown_end(self, checkpoint: int, task: int, why: str) -> None:
        """Report a snapshot that is not marked as finished although the operators of its task have finished."""
        self.report_once([invariants_output.unknown_end_error(checkpoint, task, why, self.now_ns, self.formatter)])

    def timer_fired(self, task: int, due_ns: int, records: int) -> None:
        """Report a processing-time timer that fires after the end of data."""
        if task in self._ended:
            self.report_once([invariants_output.late_processing_time_timer(task, self.now_ns, due_ns, self.formatter)])

    def at_the_end(self, end: EndOfRun) -> Iterator[Violation]:
        context, formatter, events, deployed = self.context, self.formatter, end.events, self.watched.deployed
        requests = {action.stop or "" for action in context.scenario.actions if action.stop is not None}
        if len(requests) <= 1 and "savepoint-then-finish" not in requests:
            stopped = self._stopped() if end.finished else frozenset()
            yield from invariants_output.wrong_stop_mode(
                events, context.stats, next(iter(requests), ""), stopped, formatter
            )
        yield from invariants_output.finished_count_errors(events, deployed, self._kept, formatter)
        lost = any(isinstance(fault.what, StorageOutage) for fault in context.scenario.faults)
        waits = context.scenario.checkpoint.finish == "flink" and context.scenario.cluster.has_final_trigger
        if context.periodic and waits and not requests and not lost:
            within_ns = context.scenario.overheads.acknowledge_ns + context.scenario.overheads.trigger_ns + _SOON_NS
            yield from invariants_output.commits_missing_at_end(
                events, len(context.names), within_ns, self.now_ns, deployed, formatter, deletions(context)
            )
        yield from activity_after_stop(events, context.stats, formatter)

    def _stopped(self) -> frozenset[int]:
        """Return the source tasks that have not emitted all of their records."""
        layout, served = self.context.layout, self.context.plane.served()
        totals = (self.context.vertex(task).total(subtask) for task, subtask in enumerate(layout.subtask))
        return frozenset(
            task
            for task, total in enumerate(totals)
            if not layout.task_gates[task] and (total is None or int(served[task]) < total)
        )

    def _kept(self, checkpoint: int) -> int:
        """Return the number of tasks that reused their part of an earlier checkpoint."""
        return sum(row.checkpoint == checkpoint for row in self.context.journal.only({Happening.PART_KEPT}))
