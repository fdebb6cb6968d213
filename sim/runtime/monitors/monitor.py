"""Base class of the invariant monitors, which observe the events of a run and check invariants.

The events are the methods of `Checks`.  A monitor overrides the methods of the events that it needs; it need not register
for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, Self, TypeVar

from sim.invariants.counts import Ledger
from sim.invariants.files import KeptSnapshot
from sim.invariants.recovery import Deployed
from sim.invariants.violation import JournalFormatter, Violation
from sim.plane.interface import ChannelPlaces, channels_in, channels_out, places
from sim.protocol.coordinator import Coordinator
from sim.results.journal import Entry, Happening
from sim.runtime.context import Checks, CommittedOutput, Contents, Context
from sim.runtime.task.tasks import Tasks

_MAX_EVIDENCE_ROWS = 8
K = TypeVar("K")
V = TypeVar("V")


class ByCheckpoint(dict[int, dict[K, V]]):
    """Data of a monitor about checkpoints, by checkpoint and task.  `InvariantMonitor.forget` drops those that are gone."""

    def keep(self, checkpoint: int, before: int, task: K) -> None:
        """Let a task have the data of an earlier checkpoint, whose part it reuses in this one."""
        if task in (parts := self.get(before, {})):
            self.setdefault(checkpoint, {})[task] = parts[task]


@dataclass(frozen=True, slots=True, eq=False)
class WatchedRun:
    """The data of one job instance that all its monitors share.

    `inputs` and `outputs` are the channels of each task, in the order of its `Position`.
    """

    context: Context
    contents: Contents
    output: CommittedOutput
    ends: Tasks
    formatter: JournalFormatter
    inputs: Sequence[ChannelPlaces]
    outputs: Sequence[ChannelPlaces]
    ledger: Ledger  # filled by the RecordMonitor
    deployed: list[Deployed] = field(default_factory=list)  # filled by the RestartMonitor

    @classmethod
    def of(cls, context: Context, contents: Contents, output: CommittedOutput, ends: Tasks) -> WatchedRun:
        """Create the shared data of a job instance that is about to start."""
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
    """The data that is known only at the end of a run."""

    events: Sequence[Entry]  # journal rows of rare events, such as failures, restarts and completed checkpoints
    coordinator: Coordinator
    kept: Iterable[KeptSnapshot]  # snapshots that can be restored at the end
    finished: bool  # whether the job has finished


class InvariantMonitor(Checks):
    """A monitor of one job instance, which checks some invariants.

    `found` are the violations so far.  `evidence_kinds` are the kinds of journal rows that it quotes as evidence about a task.
    """

    evidence_kinds: ClassVar[frozenset[Happening]] = frozenset()

    def __init__(self, watched: WatchedRun) -> None:
        self.watched = watched
        self.context, self.contents, self.ends = watched.context, watched.contents, watched.ends
        self.ledger, self.formatter = watched.ledger, watched.formatter
        self.found: list[Violation] = []
        self._reported: set[Hashable] = set()

    def continue_from(self, before: Self, checkpoint: int) -> None:
        """Handle that the job starts from a checkpoint of another job instance.  `before` is the same monitor of that instance."""

    def forget(self, gone: Callable[[int], bool]) -> None:
        """Drop the data of checkpoints for which `gone` returns True: they can neither complete nor be restored any more."""
        for data in vars(self).values():
            if isinstance(data, ByCheckpoint):
                for checkpoint in [number for number in data if gone(number)]:
                    del data[checkpoint]

    def at_the_end(self, end: EndOfRun) -> Iterator[Violation]:
        """Yield the violations that can be detected only at the end of the run."""
        yield from ()

    def resized(self, before: Self) -> frozenset[str]:
        """Return the vertices whose parallelism differs from that of the previous job instance."""
        mine, theirs = (Counter(vertex for vertex, _ in account.context.names) for account in (self, before))
        return frozenset(vertex for vertex in mine if mine[vertex] != theirs[vertex])

    @property
    def now_ns(self) -> int:
        """The current simulated time [ns]."""
        return int(self.context.env.now)

    def is_first(self, *what: Hashable) -> bool:
        """Return whether this method is called with these arguments, e.g. an invariant and a task, for the first time.

        Violations are reported once per invariant, or once per invariant and task.
        """
        if what in self._reported:
            return False
        self._reported.add(what)
        return True

    def report_once(self, violations: Iterable[Violation]) -> None:
        """Report violations, but only the first one of each invariant."""
        self.found.extend(violation for violation in violations if self.is_first(violation.law))

    def report_once_of_task(self, law: str, task: int, fact: str | None) -> None:
        """Report a violation by a task, unless the invariant was reported for it before.

        `fact` describes what is wrong; None means that the invariant holds.
        """
        if fact is not None and self.is_first(law, task):
            self.found.append(Violation(law, self.now_ns, self.formatter.task(task), fact, self.evidence_of(task)))

    def evidence_of(self, task: int) -> tuple[str, ...]:
        """Return the latest journal rows about a task as evidence, oldest first."""
        return self.formatter.story(lambda row: row.happening in self.evidence_kinds and row.task in (-1, task))[
            -_MAX_EVIDENCE_ROWS:
        ]
