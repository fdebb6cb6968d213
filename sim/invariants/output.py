"""Invariants of output: exactly-once commits, and the end of data."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from sim.invariants.files import end_of_deletions_ns
from sim.invariants.recovery import Deployed
from sim.invariants.violation import (
    BEGIN_AND_END,
    LIFE,
    JournalFormatter,
    Violation,
    count_is,
    milliseconds,
    number_of,
    time_text,
)
from sim.results.journal import Entry, Happening
from sim.results.tables import CheckpointStats, CommitStats, CommittedEpoch

# ---- End-to-end exactly once: sinks commit each input record once, after its checkpoint has completed, in complete files.
#
# Laws 14, 15 and 17. The records of an input channel are numbered. The intervals that a sink commits must cover each of its
# input channels without gaps and overlaps. A *writer* is the sink task that wrote the records of a transaction.

ONCE = "every record reaches the committed output once (exactly once, end to end)"
AFTER_COMPLETION = "output is committed after its checkpoint is complete, epoch by epoch"
WHOLE_FILES = "every file of committed output exists in full when it is committed"

Covered = Mapping[int, Sequence[int]]
"""Writer -> number of committed records of each input channel."""

_EVIDENCE_KINDS = frozenset(
    {
        Happening.TASK_FAILED,
        Happening.TASK_MANAGER_LOST,
        Happening.JOB_MANAGER_LOST,
        Happening.JOB_RESTORED,
        Happening.JOB_FAILED,
        Happening.JOB_FINISHED,
    }
)
"""Kinds of rows that are always part of the evidence of a wrong commit."""
_ENDS = _EVIDENCE_KINDS | {Happening.COMMITTED, Happening.COMPLETED, Happening.OUTPUT_DROPPED}


def commit_errors(
    commits: Sequence[CommitStats],
    stats: Mapping[int, CheckpointStats],
    formatter: JournalFormatter,
    *,
    begun_from: int = 0,
    covered: Covered | None = None,
    counted_from: int = 0,
    checkpointing: bool = True,
) -> Iterator[Violation]:
    """Check all commits of a job instance, in order.

    `begun_from`: id of the checkpoint that the job started from, or 0.  `covered`: what had been committed by then.
    `counted_from`: epochs up to this id refer to channels of an earlier parallelism and are not checked.
    `checkpointing`: if False, commits do not wait for a checkpoint.
    """
    books = _Books(formatter, covered, counted_from)
    for commit in commits:
        if checkpointing and not 0 < begun_from == commit.checkpoint:
            yield from _too_early(commit, stats, formatter)
        for transaction in commit.lost:
            yield books.given_up(commit, transaction)
        for transaction in commit.committed:
            yield from books.enter(commit, transaction)
            if transaction.missing:
                yield _incomplete(commit, transaction, formatter)


def uncommitted(
    commits: Sequence[CommitStats],
    owed: Mapping[int, Sequence[int]],
    time_ns: int,
    formatter: JournalFormatter,
    *,
    covered: Covered | None = None,
    counted_from: int = 0,
) -> Iterator[Violation]:
    """Check that a finished job has committed everything.

    `owed`: writer -> total number of records of each input channel.  `covered`, `counted_from`: see `broken_commits`.
    """
    books = _Books(formatter, covered, counted_from)
    for commit in commits:
        for transaction in (*commit.lost, *commit.committed):
            books.cover(transaction)
    for writer, channels in owed.items():
        ends = books.covered.get(writer, [0] * len(channels))
        left = sum(max(0, total - done) for total, done in zip(channels, ends, strict=True))
        if left:
            story = formatter.story(lambda row: row.happening in _ENDS)[-8:]
            fact = f"the job has finished and {count_is(left, 'record')} lost: never committed"
            yield Violation(ONCE, time_ns, f"output of {formatter.task(writer)}", fact, story)


class _Books:
    """The number of records that each writer has committed, by input channel."""

    def __init__(self, formatter: JournalFormatter, covered: Covered | None = None, counted_from: int = 0) -> None:
        self.formatter = formatter
        self.counted_from = counted_from
        self.covered = {writer: list(channels) for writer, channels in (covered or {}).items()}
        self._by: dict[int, list[CommitStats]] = {}  # commits by writer, for the evidence

    def cover(self, transaction: CommittedEpoch) -> None:
        """Count the records of a transaction as committed."""
        if transaction.epoch <= self.counted_from:
            return
        covered = self.covered.setdefault(transaction.writer, [0] * len(transaction.inputs))
        for channel, (_, end) in enumerate(transaction.inputs):
            covered[channel] = max(covered[channel], end)

    def given_up(self, commit: CommitStats, transaction: CommittedEpoch) -> Violation:
        """Count the records of a lost transaction, and return the violation."""
        self.cover(transaction)
        fact = f"{count_is(transaction.records, 'record')} lost: {commit.why}"
        return Violation(
            ONCE, commit.time_ns, _where(commit, transaction, self.formatter), fact, self._story(commit, transaction)
        )

    def enter(self, commit: CommitStats, transaction: CommittedEpoch) -> Iterator[Violation]:
        """Count the records of a committed transaction, and yield a violation if it has gaps or overlaps."""
        if transaction.epoch <= self.counted_from:
            return
        covered = self.covered.setdefault(transaction.writer, [0] * len(transaction.inputs))
        twice = sum(
            max(0, min(end, done) - begin) for (begin, end), done in zip(transaction.inputs, covered, strict=True)
        )
        lost = sum(max(0, begin - done) for (begin, _), done in zip(transaction.inputs, covered, strict=True))
        if twice or lost:
            facts = [f"{count_is(lost, 'record')} lost before it"] * bool(lost) + [
                f"{count_is(twice, 'record')} committed twice"
            ] * bool(twice)
            story = (*self._story(commit, transaction), _account(transaction, covered))
            where = _where(commit, transaction, self.formatter)
            yield Violation(ONCE, commit.time_ns, where, " and ".join(facts), story, records_twice=twice)
        self.cover(transaction)
        self._by.setdefault(transaction.writer, []).append(commit)

    def _story(self, commit: CommitStats, transaction: CommittedEpoch) -> tuple[str, ...]:
        """Return the evidence of a wrong commit: rows since the previous commit of the writer."""
        before = self._by.get(transaction.writer, [])[-1:]
        checkpoints = {commit.checkpoint, transaction.epoch, *(earlier.checkpoint for earlier in before)}
        since_ns = before[0].time_ns if before else 0

        def matters(row: Entry) -> bool:
            if row.happening in _EVIDENCE_KINDS:
                return since_ns <= row.time_ns <= commit.time_ns
            if row.happening is Happening.OUTPUT_DROPPED:
                return row.task == commit.task and since_ns <= row.time_ns <= commit.time_ns
            if row.happening is Happening.COMMITTED:
                return row.task == commit.task and row.checkpoint in checkpoints
            return row.checkpoint in checkpoints and row.happening in BEGIN_AND_END

        return self.formatter.story(matters)


def _too_early(
    commit: CommitStats, stats: Mapping[int, CheckpointStats], formatter: JournalFormatter
) -> Iterator[Violation]:
    """Check that the checkpoint of a commit is complete, and that the commit contains no newer epoch."""
    row = stats.get(commit.checkpoint)
    completed = row is not None and row.status == "COMPLETED" and row.completed_ns <= commit.time_ns
    ahead = [transaction for transaction in commit.committed if transaction.epoch > commit.checkpoint]
    if completed and not ahead:
        return
    where = f"commit of {formatter.task(commit.task)} at {time_text(commit.time_ns)}"
    if not completed:
        newest = max((transaction.epoch for transaction in commit.committed), default=commit.checkpoint)
        fact = f"it makes output of epoch {newest} visible without a complete checkpoint"
    else:
        fact = f"it makes epoch {ahead[0].epoch} visible, which is newer than checkpoint {commit.checkpoint}"
    yield Violation(
        AFTER_COMPLETION, commit.time_ns, where, fact, formatter.about(commit.checkpoint, {commit.task}, LIFE)
    )


def _incomplete(commit: CommitStats, transaction: CommittedEpoch, formatter: JournalFormatter) -> Violation:
    """Return the violation of a commit with missing files."""
    fact = f"{transaction.missing} of the {len(transaction.files)} files it names are not there in full"
    tasks = {transaction.writer, commit.task}
    story = formatter.about(transaction.epoch, tasks, BEGIN_AND_END)
    return Violation(WHOLE_FILES, commit.time_ns, _where(commit, transaction, formatter), fact, story)


def _where(commit: CommitStats, transaction: CommittedEpoch, formatter: JournalFormatter) -> str:
    """Return the epoch, the sink task and the checkpoint of a commit."""
    return f"epoch {transaction.epoch} of {formatter.task(transaction.writer)}, committed with checkpoint {commit.checkpoint}"


def _account(transaction: CommittedEpoch, covered: Sequence[int]) -> str:
    """Return the positions of the first input channel with a gap or an overlap, for the evidence."""
    channel = next(
        c for c, ((begin, _), done) in enumerate(zip(transaction.inputs, covered, strict=True)) if begin != done
    )
    begin, end = transaction.inputs[channel]
    return f"input channel {channel}: records up to {covered[channel]} were committed before, this epoch holds {begin} to {end}"


# ---- The end of data: with or without drain, the final checkpoint, finished operators in snapshots, and no timers after it
# (laws 113 to 116).

AS_ASKED = "a stop with a drain lets operators finish, one without does not"
AT_ONCE = "when all data has ended, a checkpoint that holds it begins at once"
KNOWN = "a snapshot says that operators have finished from the end of their data on, and no more when the task was restarted"
SILENT = "no timer fires behind the end of the data"

EVENT_KINDS = frozenset(
    {
        Happening.TRIGGERED,
        Happening.REFUSED,
        Happening.COMPLETED,
        Happening.ABORTED,
        Happening.END_OF_DATA,
        Happening.TASK_FINISHED,
        Happening.JOB_RESTORED,
        Happening.TASK_FAILED,
        Happening.TASK_MANAGER_LOST,
        Happening.JOB_MANAGER_LOST,
        Happening.JOB_RESTARTING,
        Happening.RESCALED,
        Happening.JOB_FAILED,
        Happening.JOB_RECOVERED,
    }
)
"""Kinds of journal rows that these invariants read."""
_BREAKS_OFF = frozenset(
    {
        Happening.TASK_FAILED,
        Happening.TASK_MANAGER_LOST,
        Happening.JOB_MANAGER_LOST,
        Happening.JOB_RESTARTING,
        Happening.RESCALED,
        Happening.JOB_FAILED,
        Happening.REFUSED,
        Happening.TRIGGERED,
    }
)


def wrong_stop_mode(
    events: Sequence[Entry],
    stats: Mapping[int, CheckpointStats],
    request: str,
    stopped: Collection[int],
    formatter: JournalFormatter,
) -> Iterator[Violation]:
    """Check whether data ends with or without a drain, as requested.  Report the first violation.

    `request`: "drain" or "no-drain", "" if no stop was requested.  `stopped`: source tasks that had more records.
    """
    stops = [number for number, row in stats.items() if row.stops and row.status == "COMPLETED"]
    for row in (row for row in events if row.happening is Happening.END_OF_DATA):
        if row.detail == "no-drain" and request != "no-drain":
            fact = f"its data ends without a drain, {f'the stop asked for {request}' if request else 'no stop asked for that'}"
        elif row.detail == "drain" and request == "no-drain" and stops and row.task in stopped:
            fact = "it is drained, the stop was to be without"
        else:
            continue
        if not stops or row.time_ns >= stats[max(stops)].trigger_ns:
            yield _violation(AS_ASKED, row, formatter.task(row.task), fact, formatter)
            return


def commits_missing_at_end(
    events: Iterable[Entry],
    tasks: int,
    within_ns: int,
    now_ns: int,
    deployed: Iterable[Deployed],
    formatter: JournalFormatter,
    deletions: Sequence[tuple[int, int]] = (),
) -> Iterator[Violation]:
    """Check that the final checkpoint is triggered in time: within `within_ns` after all data and pending checkpoints ended.

    `tasks`: number of tasks.  `now_ns`: end of the run.  `deployed`: tasks of each restart.  `deletions`: deletions of
    files, which delay the trigger (see `cleaned_up`).
    """
    ended: set[int] = set()
    under_way: set[int] = set()
    coming, runs = iter(deployed), True
    since: Entry | None = None
    for row in (*events, Entry(now_ns, Happening.TASK_FINISHED)):
        if since is not None and row.time_ns - end_of_deletions_ns(since.time_ns, deletions) > within_ns:
            fact = f"all data has ended, and no checkpoint begins for {milliseconds(row.time_ns - since.time_ns)}"
            yield _violation(AT_ONCE, since, "the coordinator", fact, formatter)
            return
        if row.happening in _BREAKS_OFF:
            since, runs = None, runs and row.happening in (Happening.REFUSED, Happening.TRIGGERED)
        if row.happening is Happening.TRIGGERED:
            under_way.add(row.checkpoint)
        elif row.happening in (Happening.COMPLETED, Happening.ABORTED):
            under_way.discard(row.checkpoint)
            since = row if since is not None else None
        elif row.happening is Happening.JOB_RESTORED:
            ended -= next(coming).tasks
        elif row.happening is Happening.END_OF_DATA and row.detail == "drain":
            ended.add(row.task)
            since = row if len(ended) == tasks and runs and not under_way else None
        elif row.happening is Happening.JOB_RECOVERED:
            runs = True


def finished_count_errors(
    events: Iterable[Entry], deployed: Iterable[Deployed], kept: Callable[[int], int], formatter: JournalFormatter
) -> Iterator[Violation]:
    """Check that a checkpoint does not count more finished tasks than there are.  Report the first violation.

    `deployed`: tasks of each restart.  `kept`: function that returns how many tasks of a checkpoint reuse their part of an
    earlier one; they need not acknowledge either.
    """
    finished: set[int] = set()
    coming = iter(deployed)
    for row in events:
        if row.happening is Happening.TASK_FINISHED:
            finished.add(row.task)
        elif row.happening is Happening.JOB_RESTORED:
            finished -= next(coming).tasks
        elif row.happening is Happening.TRIGGERED and row.number > len(finished):
            counted = row.number - kept(row.checkpoint)
            if counted > len(finished):
                fact = f"{number_of(counted, 'task')} need not acknowledge, {len(finished)} have finished since they were restarted"
                yield _violation(KNOWN, row, f"checkpoint {row.checkpoint}", fact, formatter)
                return


def unknown_end_error(checkpoint: int, task: int, why: str, time_ns: int, formatter: JournalFormatter) -> Violation:
    """Return the violation of a snapshot that does not say that its operators have finished."""
    fact = f"its snapshot for checkpoint {checkpoint} says that its operators go on, and {why}"
    return _violation(
        KNOWN, Entry(time_ns, Happening.SNAPSHOT_BEGUN, checkpoint, task), formatter.task(task), fact, formatter
    )


def late_processing_time_timer(task: int, time_ns: int, due_ns: int, formatter: JournalFormatter) -> Violation:
    """Return the violation of a timer that fires after the end of the data.  `due_ns`: time of the timer."""
    row = Entry(time_ns, Happening.END_OF_DATA, task=task)
    return _violation(
        SILENT, row, formatter.task(task), f"its timer of {time_text(due_ns)} fires, and its data has ended", formatter
    )


def _violation(law: str, row: Entry, where: str, fact: str, formatter: JournalFormatter) -> Violation:
    """Return a violation with the rows about the end of data, failures and checkpoints as its evidence."""

    def matters(other: Entry) -> bool:
        if other.time_ns > row.time_ns:
            return False
        if other.happening in (Happening.END_OF_DATA, Happening.TASK_FINISHED):
            return other.task == row.task or row.task < 0
        return other.happening in EVENT_KINDS and other.happening not in (Happening.REFUSED, Happening.TASK_FINISHED)

    return Violation(law, row.time_ns, where, fact, formatter.story(matters)[-8:])
