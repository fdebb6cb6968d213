"""Transactions that a job began with: each is committed, or known to be lost, before the job's first checkpoint is complete.

Within one job the commits themselves are judged; behind a rescale their channels have other numbers, so transactions are counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from sim.checkers.commits import ONCE
from sim.checkers.story import Teller
from sim.checkers.violation import Violation, count_is
from sim.metrics.commits import CommittedEpoch
from sim.protocol.commit.committables import Committable
from sim.runtime.contents import TaskSnapshot, Uncommitted
from sim.runtime.context import Context


class Transaction(NamedTuple):
    """A transaction as external systems know it.  The number of its writer is no part of it."""

    vertex: str
    epoch: int
    opened_ns: int
    records: int


class _Content(NamedTuple):
    """The transactions of a committer in one checkpoint.  The in-flight part grows until the checkpoint is complete."""

    names: Sequence[tuple[str, int]]  # of the tasks, by the numbers of that job instance
    uncommitted: Uncommitted


class Transactions:
    """The transactions of one job instance."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.names = context.names
        self._in_checkpoint: dict[int, dict[int, _Content]] = {}  # by checkpoint and task: what committers hold
        self._ended = Counter[Transaction]()  # in earlier instances
        self._held_back: dict[int, dict[tuple[str, int], int]] = {}  # by checkpoint, vertex and index: records that a writer holds back
        self._owed = Counter[Transaction]()
        self._begun_from = 0

    def cut(self, checkpoint: int, task: int, part: TaskSnapshot) -> None:
        """What the committer of a task holds at its cut, and what its writer holds back."""
        if part.committables is not None:
            self._in_checkpoint.setdefault(checkpoint, {})[task] = _Content(self.names, part.committables)
        if any(part.held_back):
            self._held_back.setdefault(checkpoint, {})[self.names[task]] = sum(part.held_back)

    def keep(self, checkpoint: int, task: int, before: int) -> None:
        """The task takes no part in the checkpoint: what it had in an earlier one, `before`, counts for this one, too."""
        if (content := self._in_checkpoint.get(before, {}).get(task)) is not None:
            self._in_checkpoint.setdefault(checkpoint, {})[task] = content
        if records := self._held_back.get(before, {}).get(self.names[task]):
            self._held_back.setdefault(checkpoint, {})[self.names[task]] = records

    def go_on(self, earlier: Transactions, checkpoint: int, parts: Mapping[int, TaskSnapshot]) -> Iterator[Violation]:
        """The job begins with what an earlier instance held in a checkpoint; `parts`: how that is dealt out to the tasks."""
        self._held_back[checkpoint] = earlier._held_back.get(checkpoint, {})
        kept, dealt = Counter[str](), Counter[str]()
        for (vertex, _), records in self._held_back[checkpoint].items():
            kept[vertex] += records
        for task, part in parts.items():
            dealt[self.names[task][0]] += sum(part.held_back)
        for vertex in {*kept, *dealt}:
            if kept[vertex] != dealt[vertex]:
                where = f"{vertex}, in checkpoint {checkpoint} the job began from"
                fact = f"its writers held {kept[vertex]} records back, they begin with {dealt[vertex]}"
                yield Violation(ONCE, self.context.env.now, where, fact)
        self._begun_from = checkpoint
        self._in_checkpoint[checkpoint] = earlier._in_checkpoint.get(checkpoint, {})
        contents = self._in_checkpoint[checkpoint].values()
        self._owed = Counter(_transaction(content.names, row) for content in contents for row in content.uncommitted.all)
        self._ended = earlier.ended

    @property
    def ended(self) -> Counter[Transaction]:
        """Committed, or known to be lost, by this job and those before it."""
        rows = self.context.commits
        return self._ended + Counter(_transaction(self.names, committable) for row in rows for committable in (*row.committed, *row.lost))

    def completed(self, teller: Teller) -> Iterator[Violation]:
        """A checkpoint of this job is complete.  What the job began with must be committed by now, or known to be lost."""
        if not self._owed:
            return
        missing, self._owed = self._owed - self.ended, Counter()
        for transaction, times in missing.items():
            where = f"epoch {transaction.epoch} of {transaction.vertex}, in checkpoint {self._begun_from} the job began from"
            fact = f"{count_is(times * transaction.records, 'record')} lost: the transaction that the checkpoint held is never committed"
            yield Violation(ONCE, self.context.env.now, where, fact, teller.story(lambda row: row.checkpoint == self._begun_from))

    def forget(self, gone: Callable[[int], bool]) -> None:
        """Checkpoints that can neither complete nor be restored any more."""
        self._in_checkpoint = {number: contents for number, contents in self._in_checkpoint.items() if not gone(number)}
        self._held_back = {number: held_back for number, held_back in self._held_back.items() if not gone(number)}


def _transaction(names: Sequence[tuple[str, int]], committable: Committable | CommittedEpoch) -> Transaction:
    return Transaction(names[committable.writer][0], committable.epoch, committable.opened_ns, committable.records)
