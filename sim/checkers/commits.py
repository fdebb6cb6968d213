"""Exactly once, end to end: sinks commit each input record once, only with its checkpoint, in complete files.

Laws 14, 15 and 17.  Records of an input channel are numbered; the intervals a writer commits must tile each of its channels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sim.checkers.story import BEGIN_AND_END, LIFE, Teller
from sim.checkers.violation import Violation, at, count_is
from sim.metrics.commits import CommitStats, CommittedEpoch
from sim.metrics.journal import Entry, Happening
from sim.metrics.stats import CheckpointStats

ONCE = "every record reaches the committed output once (exactly once, end to end)"
AFTER_COMPLETION = "output is committed after its checkpoint is complete, epoch by epoch"
WHOLE_FILES = "every file of committed output exists in full when it is committed"

Covered = Mapping[int, Sequence[int]]
"""How far each input channel of a writer is committed."""

_TURNS = frozenset({
    Happening.TASK_FAILED, Happening.TASK_MANAGER_LOST, Happening.JOB_MANAGER_LOST, Happening.JOB_RESTORED, Happening.JOB_FAILED,
    Happening.JOB_FINISHED,
})  # fmt: skip
"""Rows every story needs to be understood."""
_ENDS = _TURNS | {Happening.COMMITTED, Happening.COMPLETED, Happening.OUTPUT_DROPPED}


def broken_commits(
    commits: Sequence[CommitStats],
    stats: Mapping[int, CheckpointStats],
    teller: Teller,
    *,
    begun_from: int = 0,
    covered: Covered | None = None,
    counted_from: int = 0,
    checkpointing: bool = True,
) -> Iterator[Violation]:
    """In the order of the commits.  A job that began with a checkpoint of another: its id, and what was committed by then.

    Epochs up to `counted_from` count the records of channels that are no more.  Without `checkpointing` a commit waits for no checkpoint.
    """
    books = _Books(teller, covered, counted_from)
    for commit in commits:
        if checkpointing and (not commit.again or commit.checkpoint != begun_from):
            yield from _too_early(commit, stats, teller)
        for transaction in commit.lost:
            yield books.given_up(commit, transaction)
        for transaction in commit.committed:
            yield from books.enter(commit, transaction)
            if transaction.missing:
                yield _incomplete(commit, transaction, teller)


def uncommitted(
    commits: Sequence[CommitStats],
    owed: Mapping[int, Sequence[int]],
    time_ns: int,
    teller: Teller,
    *,
    covered: Covered | None = None,
    counted_from: int = 0,
) -> Iterator[Violation]:
    """At the end of a job that finished: `owed` are the records each writer had to commit, by input channel."""
    books = _Books(teller, covered, counted_from)
    for commit in commits:
        for transaction in (*commit.lost, *commit.committed):
            books.cover(transaction)
    for writer, channels in owed.items():
        ends = books.covered.get(writer, [0] * len(channels))
        left = sum(max(0, total - done) for total, done in zip(channels, ends, strict=True))
        if left:
            story = teller.story(lambda row: row.happening in _ENDS)[-8:]
            fact = f"the job has finished and {count_is(left, 'record')} lost: never committed"
            yield Violation(ONCE, time_ns, f"output of {teller.task(writer)}", fact, story)


class _Books:
    """The records that each writer has committed, by input channel."""

    def __init__(self, teller: Teller, covered: Covered | None = None, counted_from: int = 0) -> None:
        self.teller = teller
        self.counted_from = counted_from
        self.covered = {writer: list(channels) for writer, channels in (covered or {}).items()}
        self._by: dict[int, list[CommitStats]] = {}  # commits of a writer, for the story

    def cover(self, transaction: CommittedEpoch) -> None:
        if transaction.epoch <= self.counted_from:
            return
        covered = self.covered.setdefault(transaction.writer, [0] * len(transaction.inputs))
        for channel, (_, end) in enumerate(transaction.inputs):
            covered[channel] = max(covered[channel], end)

    def given_up(self, commit: CommitStats, transaction: CommittedEpoch) -> Violation:
        self.cover(transaction)
        fact = f"{count_is(transaction.records, 'record')} lost: {commit.why}"
        return Violation(ONCE, commit.time_ns, _where(commit, transaction, self.teller), fact, self._story(commit, transaction))

    def enter(self, commit: CommitStats, transaction: CommittedEpoch) -> Iterator[Violation]:
        if transaction.epoch <= self.counted_from:
            return
        covered = self.covered.setdefault(transaction.writer, [0] * len(transaction.inputs))
        twice = sum(max(0, min(end, done) - begin) for (begin, end), done in zip(transaction.inputs, covered, strict=True))
        lost = sum(max(0, begin - done) for (begin, _), done in zip(transaction.inputs, covered, strict=True))
        if twice or lost:
            facts = [f"{count_is(lost, 'record')} lost before it"] * bool(lost) + [f"{count_is(twice, 'record')} committed twice"] * bool(
                twice
            )
            story = (*self._story(commit, transaction), _account(transaction, covered))
            yield Violation(ONCE, commit.time_ns, _where(commit, transaction, self.teller), " and ".join(facts), story)
        self.cover(transaction)
        self._by.setdefault(transaction.writer, []).append(commit)

    def _story(self, commit: CommitStats, transaction: CommittedEpoch) -> tuple[str, ...]:
        """From the writer's last commit before this one."""
        before = self._by.get(transaction.writer, [])[-1:]
        checkpoints = {commit.checkpoint, transaction.epoch, *(earlier.checkpoint for earlier in before)}
        since_ns = before[0].time_ns if before else 0

        def matters(row: Entry) -> bool:
            if row.happening in _TURNS:
                return since_ns <= row.time_ns <= commit.time_ns
            if row.happening is Happening.OUTPUT_DROPPED:
                return row.task == commit.task and since_ns <= row.time_ns <= commit.time_ns
            if row.happening is Happening.COMMITTED:
                return row.task == commit.task and row.checkpoint in checkpoints
            return row.checkpoint in checkpoints and row.happening in BEGIN_AND_END

        return self.teller.story(matters)


def _too_early(commit: CommitStats, stats: Mapping[int, CheckpointStats], teller: Teller) -> Iterator[Violation]:
    row = stats.get(commit.checkpoint)
    completed = row is not None and row.status == "COMPLETED" and row.completed_ns <= commit.time_ns
    ahead = [transaction for transaction in commit.committed if transaction.epoch > commit.checkpoint]
    if completed and not ahead:
        return
    where = f"commit of {teller.task(commit.task)} at {at(commit.time_ns)}"
    if not completed:
        newest = max((transaction.epoch for transaction in commit.committed), default=commit.checkpoint)
        fact = f"it makes output of epoch {newest} visible without a complete checkpoint"
    else:
        fact = f"it makes epoch {ahead[0].epoch} visible, which is newer than checkpoint {commit.checkpoint}"
    yield Violation(AFTER_COMPLETION, commit.time_ns, where, fact, teller.about(commit.checkpoint, {commit.task}, LIFE))


def _incomplete(commit: CommitStats, transaction: CommittedEpoch, teller: Teller) -> Violation:
    fact = f"{transaction.missing} of the {len(transaction.files)} files it names are not there in full"
    tasks = {transaction.writer, commit.task}
    story = teller.about(transaction.epoch, tasks, BEGIN_AND_END)
    return Violation(WHOLE_FILES, commit.time_ns, _where(commit, transaction, teller), fact, story)


def _where(commit: CommitStats, transaction: CommittedEpoch, teller: Teller) -> str:
    return f"epoch {transaction.epoch} of {teller.task(transaction.writer)}, committed with checkpoint {commit.checkpoint}"


def _account(transaction: CommittedEpoch, covered: Sequence[int]) -> str:
    channel = next(c for c, ((begin, _), done) in enumerate(zip(transaction.inputs, covered, strict=True)) if begin != done)
    begin, end = transaction.inputs[channel]
    return f"input channel {channel}: records up to {covered[channel]} were committed before, this epoch holds {begin} to {end}"
