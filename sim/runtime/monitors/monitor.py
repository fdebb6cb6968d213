"""An account hears the moments of a run, and puts the facts before laws.

A moment is a method of `Checks`.  An account overrides those that it needs, and no list names them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, Self

from sim.invariants.counts import Ledger
from sim.invariants.files import KeptSnapshot
from sim.invariants.recovery import Deployed
from sim.invariants.violation import JournalFormatter, Violation
from sim.plane.interface import ChannelPlaces, channels_in, channels_out, places
from sim.protocol.coordinator import Coordinator
from sim.results.journal import Entry, Happening
from sim.runtime.context import CommittedOutput, Contents, Context
from sim.runtime.ports import Checks, Ends

_MAX_STORY = 8


@dataclass(frozen=True, slots=True, eq=False)
class WatchedRun:
    """A job instance as its accounts see it.  `inputs`, `outputs`: the channels of each task, in the order of its position."""

    context: Context
    contents: Contents
    output: CommittedOutput
    ends: Ends
    formatter: JournalFormatter
    inputs: Sequence[ChannelPlaces]
    outputs: Sequence[ChannelPlaces]
    ledger: Ledger  # kept by the account of records
    deployed: list[Deployed] = field(default_factory=list)  # kept by the account of restarts

    @classmethod
    def of(cls, context: Context, contents: Contents, output: CommittedOutput, ends: Ends) -> WatchedRun:
        layout = context.layout
        tasks = range(len(layout.vertex))
        inputs, outputs = (
            [places(channels_in(layout, task)) for task in tasks],
            [places(channels_out(layout, task)) for task in tasks],
        )
        formatter = JournalFormatter(context.journal, context.names)
        return cls(
            context,
            contents,
            output,
            ends,
            formatter,
            inputs,
            outputs,
            Ledger.opened(inputs, outputs, len(layout.writer)),
        )


class EndOfRun(NamedTuple):
    """What is known at the end of a run only."""

    turns: Sequence[Entry]  # the rare rows of the journal
    coordinator: Coordinator
    kept: Iterable[KeptSnapshot]  # that may be restored then
    finished: bool  # the job is


class InvariantMonitor(Checks):
    """An account of one job instance.  `found`: the violations so far; `turns`: the rows of the journal in its stories of tasks."""

    turns: ClassVar[frozenset[Happening]] = frozenset()

    def __init__(self, watched: WatchedRun) -> None:
        self.watched = watched
        self.context, self.contents, self.ends = watched.context, watched.contents, watched.ends
        self.ledger, self.formatter = watched.ledger, watched.formatter
        self.found: list[Violation] = []
        self._reported: set[Hashable] = set()

    def continue_from(self, before: Self, checkpoint: int) -> None:
        """The job begins with what another one held in a checkpoint; `before`: the same account of that one."""

    def forget(self, gone: Callable[[int], bool]) -> None:
        """Checkpoints that can neither complete nor be restored any more."""

    def at_the_end(self, end: EndOfRun) -> Iterator[Violation]:
        """The violations that only the end of the run shows."""
        yield from ()

    def resized(self, before: Self) -> frozenset[str]:
        """Vertices that have another parallelism than in the job before."""
        mine, theirs = (Counter(vertex for vertex, _ in account.context.names) for account in (self, before))
        return frozenset(vertex for vertex in mine if mine[vertex] != theirs[vertex])

    @property
    def now_ns(self) -> int:
        return int(self.context.env.now)

    def is_first(self, *what: Hashable) -> bool:
        """Whether this has not been told: of each law one story is enough, or one for each task."""
        if what in self._reported:
            return False
        self._reported.add(what)
        return True

    def report_once(self, found: Iterable[Violation]) -> None:
        """The first time of each law."""
        self.found.extend(violation for violation in found if self.is_first(violation.law))

    def report_once_of_task(self, law: str, task: int, fact: str | None) -> None:
        """The first time of each law and task; None: nothing is wrong."""
        if fact is not None and self.is_first(law, task):
            self.found.append(Violation(law, self.now_ns, self.formatter.task(task), fact, self.turns_of(task)))

    def turns_of(self, task: int) -> tuple[str, ...]:
        """The story of what befell a task lately."""
        return self.formatter.story(lambda row: row.happening in self.turns and row.task in (-1, task))[-_MAX_STORY:]
