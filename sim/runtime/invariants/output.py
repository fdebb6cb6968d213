"""Invariants of output: exactly-once commits, and the end of data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Self

from sim.model.faults import FailedCommits, StorageOutage
from sim.protocol.commit import Committable
from sim.results.journal import Entry, EventType
from sim.results.tables import CommitStats, CommittedEpoch
from sim.results.violations import OF_JOB, count_is, milliseconds, number_of, time_text
from sim.runtime.context import TaskSnapshot, Uncommitted
from sim.runtime.invariants.files import deletions, end_of_deletions_ns
from sim.runtime.invariants.invariant import ByCheckpoint, Invariant

# ---- End-to-end exactly once: sinks commit each input record once, after its checkpoint has completed, in complete files.
#
# Invariants 14, 15 and 17.  The records of an input channel are numbered.  The intervals that a sink commits must cover each of
# its input channels without gaps and overlaps.  A *writer* is the sink task that wrote the records of a transaction.
#
# Within one job instance the commits are checked by channel.  After rescaling channels have other numbers, so the
# transactions that the new instance starts with are counted instead.

ONCE = "every record reaches the committed output once (exactly once, end to end)"
AFTER_COMPLETION = "output is committed after its checkpoint is complete, epoch by epoch"
TIMELY = "a transaction is committed before its timeout, or lost because of it"
WHOLE_FILES = "every file of committed output exists in full when it is committed"


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


class Commits(Invariant):
    """Checks that all records are committed once, and that transactions in a restored checkpoint are committed."""

    evidence_kinds = frozenset({EventType.COMMITTED, EventType.OUTPUT_DROPPED})

    def start(self) -> None:
        self.names = self.context.names
        self._in_checkpoint = ByCheckpoint[_Content]()  # transactions of each committer
        self._ended = Counter[Transaction]()  # committed or lost by earlier job instances
        # records that each writer has read and not written
        self._held_back = ByCheckpoint[int]()
        # transactions in the checkpoint that this instance starts from, until its first checkpoint completes
        self._owed = Counter[Transaction]()
        self._begun_from = 0  # that checkpoint

    def cut(self, checkpoint: int, task: int, part: TaskSnapshot) -> None:
        """Record the committables of a task in its snapshot, and the records that its writer has read but not written."""
        if part.committables is not None:
            self._in_checkpoint.setdefault(checkpoint, {})[self.names[task]] = _Content(self.names, part.committables)
        if any(part.held_back):
            self._held_back.setdefault(checkpoint, {})[self.names[task]] = sum(part.held_back)

    def continue_from(self, before: Self, checkpoint: int) -> None:
        """Check that records which writers have not written are redistributed completely, and take over open transactions."""
        super().continue_from(before, checkpoint)
        self._begun_from, self._ended = checkpoint, before.ended
        held_back, restored = Counter[str](), Counter[str]()
        for (vertex, _), records in self._held_back[checkpoint].items():
            held_back[vertex] += records
        for task, part in self.contents.checkpoints[checkpoint].items():
            restored[self.names[task][0]] += sum(part.held_back)
        for vertex in {*held_back, *restored}:
            if held_back[vertex] != restored[vertex]:
                fact = f"its writers held {held_back[vertex]} records back, they begin with {restored[vertex]}"
                self.report(ONCE, fact, where=f"{vertex}, in checkpoint {checkpoint} the job began from")
        contents = self._in_checkpoint[checkpoint].values()
        self._owed = Counter(_transaction(part.names, row) for part in contents for row in part.uncommitted.all)

    @property
    def ended(self) -> Counter[Transaction]:
        """The transactions committed, or reported lost, by this job instance and the earlier ones."""
        return self._ended + Counter(
            _transaction(self.names, epoch) for row in self.context.commits for epoch in (*row.committed, *row.lost)
        )

    def completed(self, checkpoint: int, retained: Sequence[int]) -> None:
        """Check that the transactions in the checkpoint that the job started from are committed by now, or reported lost."""
        if not self._owed:
            return
        missing, self._owed = self._owed - self.ended, Counter()
        for row, times in missing.items():
            lost = count_is(times * row.records, "record")
            fact = f"{lost} lost: the transaction that the checkpoint held is never committed"
            where = f"epoch {row.epoch} of {row.vertex}, in checkpoint {self._begun_from} the job began from"
            self.report(ONCE, fact, where=where, checkpoints=[self._begun_from])

    def at_the_end(self) -> None:
        """Check all commits of this job instance, in order, and that a finished job has committed everything.

        Epochs up to `counted_from` refer to channels of an earlier parallelism, and their coverage is not checked.
        """
        output, begun_from = self.context.output, self.context.begun_from
        # writer -> number of committed records of each input channel; and its commits, for the evidence
        covered = {writer: list(channels) for writer, channels in (output.covered_before or {}).items()}
        by_writer: dict[int, CommitStats] = {}
        for commit in self.context.commits:
            if self.context.periodic and not 0 < begun_from == commit.checkpoint:
                self._check_completed(commit)
            for epoch in (*commit.lost, *commit.committed):
                self._check_age(commit, epoch, by_writer)
                ends = [begin for begin, _ in epoch.inputs]
                if epoch.epoch > output.counted_from:
                    ends = covered.setdefault(epoch.writer, [0] * len(ends))
                if epoch in commit.lost:
                    fact = f"{count_is(epoch.records, 'record')} lost: {commit.why}"
                    self._report_epoch(ONCE, fact, commit, epoch, by_writer)
                else:
                    self._check_intervals(commit, epoch, ends, by_writer)
                    by_writer[epoch.writer] = commit
                    if epoch.missing:
                        fact = f"{epoch.missing} of the {len(epoch.files)} files it names are not there in full"
                        self._report_epoch(WHOLE_FILES, fact, commit, epoch, by_writer)
                ends[:] = map(max, ends, (end for _, end in epoch.inputs))
        for writer in self.context.tasks if self.run.finished else ():
            if (sink := self.context.vertex(writer).commit) is not None:
                channels = self._to_commit_by(writer, sink.holds_back)
                ends = covered.get(writer, [0] * len(channels))
                if left := sum(max(0, total - done) for total, done in zip(channels, ends, strict=True)):
                    fact = f"the job has finished and {count_is(left, 'record')} lost: never committed"
                    where, last = f"output of {self.formatter.task(writer)}", by_writer.get(writer)
                    checkpoints = [] if last is None else [last.checkpoint]
                    self.report(ONCE, fact, where=where, tasks=[writer], checkpoints=checkpoints)

    def _check_age(self, commit: CommitStats, epoch: CommittedEpoch, by_writer: dict[int, CommitStats]) -> None:
        """Check the age of a transaction when its commit began, also after a restore.

        A commit that failed and is tried again is not checked: it began earlier.
        """
        sink = self.context.vertex(epoch.writer).commit
        timeout_ns = None if sink is None else sink.transaction_timeout_ns
        fails = any(isinstance(fault.what, FailedCommits) for fault in self.context.scenario.faults)
        if sink is None or timeout_ns is None or fails:
            return
        is_lost = epoch in commit.lost
        age_ns = commit.time_ns - (sink.time_ns if commit.committed else 0) - epoch.opened_ns
        if is_lost != (age_ns > timeout_ns):
            what = "lost" if is_lost else "committed"
            fact = f"its transaction is {what} after {milliseconds(age_ns)}, its timeout is {milliseconds(timeout_ns)}"
            self._report_epoch(TIMELY, fact, commit, epoch, by_writer)

    def _check_completed(self, commit: CommitStats) -> None:
        """Check that the checkpoint of a commit is complete, and that the commit contains no newer epoch."""
        row = self.stats.get(commit.checkpoint)
        epochs = [epoch.epoch for epoch in commit.committed]
        if row is None or row.status != "COMPLETED" or row.completed_ns > commit.time_ns:
            newest = max(epochs, default=commit.checkpoint)
            fact = f"it makes output of epoch {newest} visible without a complete checkpoint"
        elif ahead := [epoch for epoch in epochs if epoch > commit.checkpoint]:
            fact = f"it makes epoch {ahead[0]} visible, which is newer than checkpoint {commit.checkpoint}"
        else:
            return
        where = f"commit of {self.formatter.task(commit.task)} at {time_text(commit.time_ns)}"
        checkpoint, tasks = [commit.checkpoint], [commit.task]
        self.report(AFTER_COMPLETION, fact, where=where, time_ns=commit.time_ns, checkpoints=checkpoint, tasks=tasks)

    def _check_intervals(
        self, commit: CommitStats, epoch: CommittedEpoch, covered: Sequence[int], by_writer: dict[int, CommitStats]
    ) -> None:
        """Check that a committed transaction has neither gaps nor overlaps.  `covered`: committed records by channel.

        With at-least-once a sink commits again the records from behind the barrier, which are sent again.
        """
        channels = list(zip(epoch.inputs, covered, strict=True))
        twice = sum(max(0, min(end, done) - begin) for (begin, end), done in channels)
        lost = sum(max(0, begin - done) for (begin, _), done in channels)
        facts = [f"{count_is(lost, 'record')} lost before it"] * bool(lost)
        if twice and self.context.scenario.checkpoint.barriers.record.exactly_once:
            facts.append(f"{count_is(twice, 'record')} committed twice")
        if facts:
            channel = next(number for number, ((begin, _), done) in enumerate(channels) if begin != done)
            (begin, end), done = channels[channel]
            note = f"input channel {channel}: records up to {done} were committed before, this epoch holds {begin} to {end}"
            self._report_epoch(ONCE, " and ".join(facts), commit, epoch, by_writer, [note], records_twice=twice)

    def _report_epoch(
        self,
        invariant: str,
        fact: str,
        commit: CommitStats,
        epoch: CommittedEpoch,
        by_writer: dict[int, CommitStats],
        notes: Sequence[str] = (),
        records_twice: int = 0,
    ) -> None:
        """Report a violation by a transaction.  The evidence is also about the previous commit of its writer."""
        before = [by_writer[epoch.writer].checkpoint] if epoch.writer in by_writer else []
        self.report(
            invariant,
            fact,
            where=f"epoch {epoch.epoch} of {self.formatter.task(epoch.writer)}, committed with checkpoint {commit.checkpoint}",
            time_ns=commit.time_ns,
            checkpoints=[commit.checkpoint, epoch.epoch, *before],
            tasks=[commit.task],
            notes=notes,
            records_twice=records_twice,
        )

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


# ---- The end of data: with or without drain, the final checkpoint, finished operators in snapshots, and no timers after it
# (invariants 113 to 116).

AS_ASKED = "a stop with a drain lets operators finish, one without does not"
AT_ONCE = "when all data has ended, a checkpoint that holds it begins at once"
KNOWN = "a snapshot says that operators have finished from the end of their data on, and no more when the task was restarted"
SILENT = "no timer fires behind the end of the data"

_INTERRUPTIONS = OF_JOB - {EventType.JOB_RESTORED, EventType.JOB_RECOVERED, EventType.JOB_FINISHED}
_SOON_NS = 100_000_000
"""Time allowed for a final checkpoint to wait for calls and for the coordinator's lock; deletions are accounted for separately."""


class EndOfData(Invariant):
    """Checks how tasks and the job end: final snapshots, timers after the end of data, and the requested stop mode.

    Only the first violation of each invariant is reported.
    """

    def start(self) -> None:
        self._ended: dict[int, str] = {}  # task whose data has ended -> how (a value of StopMode)
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
        drained = self._ended.get(task) == "drain"
        if (drained or task in self._closed) and not part.finished:
            why = "its data has ended" if drained else "it was restored as finished"
            fact = f"its snapshot for checkpoint {checkpoint} says that its operators go on, and {why}"
            self.report(KNOWN, fact, task=task, once=True)

    def timer_fired(self, task: int, due_ns: int, records: int) -> None:
        """Report a processing-time timer that fires after the end of data."""
        if task in self._ended:
            fact = f"its timer of {time_text(due_ns)} fires, and its data has ended"
            self.report(SILENT, fact, task=task, once=True)

    def at_the_end(self) -> None:
        scenario = self.context.scenario
        requests = {action.stop or "" for action in scenario.actions if action.stop is not None}
        if len(requests) <= 1 and "savepoint-then-finish" not in requests:
            self._check_stop_mode(next(iter(requests), ""))
        self._check_finished_counts()
        lost = any(isinstance(fault.what, StorageOutage) for fault in scenario.faults)
        waits = scenario.checkpoint.finish == "flink" and scenario.cluster.has_final_trigger
        if self.context.periodic and waits and not requests and not lost:
            self._check_final_checkpoint()

    def _check_stop_mode(self, request: str) -> None:
        """Check whether data ends with or without a drain, as requested: "drain", "no-drain", or "" without a stop."""
        layout, served = self.context.layout, self.context.plane.served()
        stops = [row for row in self.stats.values() if row.stops and row.status == "COMPLETED"]
        for row in self.run.events:
            if row.event_type is not EventType.END_OF_DATA or (stops and row.time_ns < stops[-1].trigger_ns):
                continue
            total = self.context.vertex(row.task).total(layout.subtask[row.task])
            has_more = not layout.task_gates[row.task] and (total is None or int(served[row.task]) < total)
            fact = ""
            if row.detail == "no-drain" and request != "no-drain":
                asked = f"the stop asked for {request}" if request else "no stop asked for that"
                fact = f"its data ends without a drain, {asked}"
            elif row.detail == "drain" and request == "no-drain" and stops and self.run.finished and has_more:
                fact = "it is drained, the stop was to be without"
            if fact:
                self.report(AS_ASKED, fact, task=row.task, time_ns=row.time_ns, once=True)

    def _check_finished_counts(self) -> None:
        """Check that a checkpoint does not count more finished tasks than there are."""
        finished: set[int] = set()
        for row in self.run.events:
            if row.event_type is EventType.TASK_FINISHED:
                finished.add(row.task)
            elif row.event_type is EventType.JOB_RESTORED:
                finished -= self.run.deployed[row.number]
            elif row.event_type is EventType.TRIGGERED and row.number > len(finished):
                fact = f"{number_of(row.number, 'task')} need not acknowledge, {len(finished)} have finished since they were restarted"
                self.report(KNOWN, fact, checkpoint=row.checkpoint, time_ns=row.time_ns, once="triggered")

    def _check_final_checkpoint(self) -> None:
        """Check that the final checkpoint is triggered soon after all data and pending checkpoints ended."""
        context, overheads = self.context, self.context.scenario.overheads
        within_ns = overheads.acknowledge_ns + overheads.trigger_ns + _SOON_NS
        ended, pending = set[int](), set[int]()  # tasks, checkpoints
        deleted, runs = deletions(context), True
        since: Entry | None = None
        for row in (*self.run.events, Entry(self.now_ns, EventType.TASK_FINISHED)):
            if since is not None and row.time_ns - end_of_deletions_ns(since.time_ns, deleted) > within_ns:
                fact = f"all data has ended, and no checkpoint begins for {milliseconds(row.time_ns - since.time_ns)}"
                self.report(AT_ONCE, fact, where="the coordinator", time_ns=since.time_ns, once=True)
                return
            if row.event_type in _INTERRUPTIONS:
                since, runs = None, False
            match row.event_type:
                case EventType.REFUSED:
                    since = None
                case EventType.TRIGGERED:
                    since = None
                    pending.add(row.checkpoint)
                case EventType.COMPLETED | EventType.ABORTED:
                    pending.discard(row.checkpoint)
                    since = row if since is not None else None
                case EventType.JOB_RESTORED:
                    ended -= self.run.deployed[row.number]
                case EventType.END_OF_DATA if row.detail == "drain":
                    ended.add(row.task)
                    since = row if len(ended) == len(context.names) and runs and not pending else None
                case EventType.JOB_RECOVERED:
                    runs = True
