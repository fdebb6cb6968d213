"""Base class of the invariants.

An invariant observes the events of a run, which are the methods of `Checks`, and reports violations.  It overrides the
methods of the events that it needs, and need not register for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

from sim.plane.interface import channels_in, channels_out, places
from sim.protocol.coordinator import Coordinator
from sim.results.journal import Entry, EventType
from sim.results.violations import EVENTS, OF_SNAPSHOTS, JournalFormatter, Violation
from sim.runtime.context import Checks, Context, KeptSnapshot
from sim.runtime.invariants.ledger import Ledger
from sim.runtime.task.tasks import Tasks

V = TypeVar("V")


class ByCheckpoint(dict[int, dict[tuple[str, int], V]]):
    """Data of an invariant about checkpoints: checkpoint -> (vertex, index) of a task -> its data."""


class Surplus(NamedTuple):
    """The effect of restoring a completed checkpoint whose cut is inconsistent."""

    twice_bytes: int  # bytes that are read again although restored state contains them
    lost_bytes: int  # bytes that are not read again although restored state does not contain them
    channel: tuple[int, int]  # (writer, reader) of the channel with the largest error
    account: str  # byte counts of that channel, for the evidence
    twice_records: int = 0  # records of mean size that twice_bytes contain; 0: unknown


@dataclass(slots=True, eq=False)
class ObservedRun:
    """The data of one job instance that all its invariants share.  The last four fields are set at the end of the run."""

    context: Context
    ends: Tasks
    formatter: JournalFormatter
    ledger: Ledger  # filled by `RecordPositions`
    deployed: dict[int, frozenset[int]] = field(default_factory=dict)  # restart -> its tasks; filled by `Restarts`
    surpluses: dict[int, Surplus] = field(
        default_factory=dict
    )  # checkpoint with an inconsistent cut; filled by `ConsistentCuts`
    forget: Callable[[Callable[[int], bool]], None] = lambda _: None  # lets all invariants drop the data of checkpoints
    events: Sequence[Entry] = ()  # journal rows of the kinds `EVENTS`
    coordinator: Coordinator = field(init=False)
    kept: Iterable[KeptSnapshot] = ()  # snapshots that can be restored
    finished: bool = False  # whether the job has finished

    @classmethod
    def of(cls, context: Context, ends: Tasks) -> ObservedRun:
        """Create the shared data of a job instance that is about to start."""
        layout = context.layout
        inputs = [places(channels_in(layout, task)) for task in context.tasks]
        outputs = [places(channels_out(layout, task)) for task in context.tasks]
        formatter = JournalFormatter(context.journal, context.names)
        return cls(context, ends, formatter, Ledger.opened(inputs, outputs, len(layout.writer)))

    def end(self, coordinator: Coordinator, kept: Iterable[KeptSnapshot], *, finished: bool) -> None:
        """Set what is known at the end of the run."""
        self.events = list(self.context.journal.only(EVENTS))
        self.coordinator, self.kept, self.finished = coordinator, kept, finished


class Invariant(Checks):
    """One invariant of a job instance, or some about the same subject.

    `found` are the violations so far.  `evidence_kinds` are the kinds of journal rows about a task in a checkpoint that it
    quotes as evidence.
    """

    evidence_kinds: ClassVar[frozenset[EventType]] = OF_SNAPSHOTS

    def __init__(self, run: ObservedRun) -> None:
        self.run = run
        self.context, self.contents, self.ends = run.context, run.context.contents, run.ends
        self.stats, self.ledger, self.formatter = run.context.stats, run.ledger, run.formatter
        self.found: list[Violation] = []
        self._reported: set[Hashable] = set()

    def _by_checkpoint(self) -> Iterator[tuple[str, ByCheckpoint[Any]]]:
        """Yield the attributes that have data about checkpoints."""
        return ((name, data) for name, data in vars(self).items() if isinstance(data, ByCheckpoint))

    def continue_from(self, before: Self, checkpoint: int) -> None:
        """Take over the data about a checkpoint of another job instance, from which the job starts.

        `before` is this invariant of that instance.
        """
        for name, data in self._by_checkpoint():
            data[checkpoint] = getattr(before, name).get(checkpoint, {})

    def part_reused(self, checkpoint: int, task: int, before: int) -> None:
        """Let a task have the data of the earlier checkpoint `before`, whose part it reuses in this one."""
        name = self.context.names[task]
        for _, data in self._by_checkpoint():
            if name in (parts := data.get(before, {})):
                data.setdefault(checkpoint, {})[name] = parts[name]

    def forget(self, gone: Callable[[int], bool]) -> None:
        """Drop the data of checkpoints for which `gone` returns True: they can neither complete nor be restored any more."""
        for _, data in self._by_checkpoint():
            for checkpoint in [number for number in data if gone(number)]:
                del data[checkpoint]

    def at_the_end(self) -> None:
        """Report the violations that can be detected only at the end of the run."""

    def resized(self, before: Self) -> frozenset[str]:
        """Return the vertices whose parallelism differs from that of the previous job instance."""
        mine, theirs = (Counter(vertex for vertex, _ in row.context.names) for row in (self, before))
        return frozenset(vertex for vertex in mine if mine[vertex] != theirs[vertex])

    @property
    def now_ns(self) -> int:
        """The current simulated time [ns]."""
        return int(self.context.env.now)

    def report(
        self,
        invariant: str,
        fact: str,
        *,
        where: str = "",
        checkpoint: int = -1,
        task: int = -1,
        time_ns: int | None = None,
        once: Hashable = None,
        checkpoints: Collection[int] = (),
        tasks: Collection[int] = (),
        notes: Sequence[str] = (),
        records_twice: int = 0,
    ) -> None:
        """Report a violation.

        Parameters
        ----------
        invariant : text of the invariant
        fact : what was found instead
        where : the place; by default the snapshot of `task` for `checkpoint`, the one of them that is given, or the job
        time_ns : when, by default now
        once : if given, later violations of this invariant with the same value are ignored, e.g. those of the same task
        checkpoints, tasks : others that the evidence is about
        notes : evidence that is not in the journal
        records_twice : number of records committed twice
        """
        if once is not None:
            if (invariant, once) in self._reported:
                return
            self._reported.add((invariant, once))
        who = self.formatter.task(task)
        if not where and checkpoint >= 0:
            where = f"checkpoint {checkpoint}" if task < 0 else f"snapshot {checkpoint} of {who}"
        at_ns = self.now_ns if time_ns is None else time_ns
        about = {checkpoint, *checkpoints} - {-1}
        evidence = self.formatter.evidence(at_ns, about, {task, *tasks}, self.evidence_kinds)
        where = where or ("the job" if task < 0 else who)
        self.found.append(Violation(invariant, at_ns, where, fact, (*evidence, *notes), records_twice))
