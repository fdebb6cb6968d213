"""Base class of the invariants, and the ledger of record positions that some of them share.

An invariant observes the events of a run, which are the methods of `Checks`, and reports violations.  It overrides the
methods of the events that it needs, and need not register for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np

from sim.plane.interface import channels_in, channels_out, places
from sim.protocol.coordinator import Coordinator
from sim.results.journal import Entry, EventType
from sim.results.violations import EVENTS, OF_SNAPSHOTS, JournalFormatter, Violation
from sim.runtime.context import Checks, Context, KeptSnapshot
from sim.runtime.task.tasks import Tasks

# ---- The ledger of record positions.  It is independent of what checkpoints store, so that both can be compared.
#
# The ledger records the position of each task when it takes a snapshot (its cut).  A restart sets tasks back to such a
# position, and from there the number of processed records advances it.

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass(slots=True)
class RecordTally:
    """The positions of all tasks, in records since the start of the job."""

    served: Numbers  # by task: records processed
    late: Numbers  # by task: records processed whose outputs are pending
    read: Numbers  # by channel
    written: Numbers  # by channel
    known: np.ndarray[tuple[int], np.dtype[np.bool_]]  # by task: whether its position was recorded

    @classmethod
    def zero(cls, tasks: int, channels: int) -> RecordTally:
        """Return a tally in which all positions are 0 and unknown."""
        served, late = np.zeros((2, tasks), np.int64)
        read, written = np.zeros((2, channels), np.int64)
        return cls(served, late, read, written, np.zeros(tasks, np.bool_))


@dataclass(slots=True)
class Ledger:
    """The recorded positions of all tasks at their cuts.

    `inputs`, `outputs`: channels of each task.  `ends`: (reader, writer) task of each channel.
    """

    inputs: Sequence[Numbers | slice]
    outputs: Sequence[Numbers | slice]
    ends: tuple[np.ndarray, np.ndarray]
    ahead: RecordTally  # difference between the position of a task and its count since its restart
    notes: dict[int, RecordTally] = field(default_factory=dict)  # checkpoint -> positions; call `of` to read them
    # checkpoint -> (task, read, written): channel positions that `of` merges into `notes` on demand, because few are read
    _fresh: dict[int, list[tuple[int, Numbers, Numbers]]] = field(default_factory=dict)
    _moved: bool = False  # whether some value of `ahead` may differ from 0

    @classmethod
    def opened(cls, inputs: Sequence[Numbers | slice], outputs: Sequence[Numbers | slice], channels: int) -> Ledger:
        """Return an empty ledger.  `inputs`, `outputs`: channels of each task.  `channels`: number of channels."""
        tally = RecordTally.zero(len(inputs), channels)
        readers, writers = np.zeros((2, len(tally.read)), np.int32)
        for task, (read, written) in enumerate(zip(inputs, outputs, strict=True)):
            readers[read], writers[written] = task, task
        return cls(inputs, outputs, (readers, writers), tally)

    def note(
        self, checkpoint: int, task: int, served: int, late: int, read: Numbers, written: Numbers
    ) -> tuple[int, Numbers, Numbers]:
        """Record the counts of a task at its cut.  Return its position: (records processed, read, written)."""
        if self._moved:
            served += int(self.ahead.served[task])
            read, written = self.ahead.read[self.inputs[task]] + read, self.ahead.written[self.outputs[task]] + written
        note = self._noted(checkpoint)
        note.served[task], note.late[task], note.known[task] = served, late, True
        self._fresh.setdefault(checkpoint, []).append((task, read, written))
        return served, read, written

    def served(self, checkpoint: int, task: int) -> int:
        """Return the number of records that a task had processed at its cut, or 0 if unknown."""
        note = self.notes.get(checkpoint)
        return 0 if note is None else int(note.served[task])

    def keep(self, checkpoint: int, task: int, before: int) -> None:
        """Record that a task reuses its part of the earlier checkpoint `before`."""
        note, old, inputs, outputs = self._noted(checkpoint), self.of(before), self.inputs[task], self.outputs[task]
        note.served[task], note.late[task], note.known[task] = old.served[task], old.late[task], old.known[task]
        note.read[inputs], note.written[outputs] = old.read[inputs], old.written[outputs]

    def _noted(self, checkpoint: int) -> RecordTally:
        """Return the positions recorded for a checkpoint, which are added if there are none."""
        note = self.notes.get(checkpoint)
        if note is None:
            note = self.notes[checkpoint] = RecordTally.zero(len(self.inputs), len(self.ahead.read))
        return note

    def of(self, checkpoint: int) -> RecordTally:
        """Return the positions of tasks at their cuts for a checkpoint; unknown ones are 0."""
        note = self.notes.get(checkpoint)
        if note is None:
            return RecordTally.zero(len(self.inputs), len(self.ahead.read))
        for task, read, written in self._fresh.pop(checkpoint, ()):
            note.read[self.inputs[task]], note.written[self.outputs[task]] = read, written
        return note

    def restart_at(self, tally: RecordTally, counted: RecordTally) -> None:
        """Set restarted tasks to the positions in `tally`.

        `counted`: current counts of the data plane; `counted.known` selects the restarted tasks.
        """
        self._moved = True
        which = counted.known
        read, written = which[self.ends[0]], which[self.ends[1]]
        self.ahead.served[which] = tally.served[which] - counted.served[which]
        self.ahead.read[read] = tally.read[read] - counted.read[read]
        self.ahead.written[written] = tally.written[written] - counted.written[written]

    def stands(self, counted: RecordTally) -> RecordTally:
        """Return the positions of tasks whose counts since their restart are `counted`."""
        ahead = self.ahead
        sums = ahead.served + counted.served, counted.late, ahead.read + counted.read, ahead.written + counted.written
        return RecordTally(*sums, counted.known)

    def forget(self, gone: Callable[[int], bool]) -> None:
        """Drop checkpoints that can neither complete nor be restored any more."""
        for checkpoint in [number for number in self.notes if gone(number)]:
            del self.notes[checkpoint]
            self._fresh.pop(checkpoint, None)


# ---- The run that invariants observe, and their base class.

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
        self.start()

    def start(self) -> None:
        """Create the data of this invariant.  The job instance is about to start."""

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
