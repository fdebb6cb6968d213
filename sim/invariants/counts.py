"""Counts of records over restarts: nothing is lost, repeated or sent elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from sim.invariants.recovery import story_of_restore
from sim.invariants.violation import JournalFormatter, Violation, count_is, number_of
from sim.model.randomness import Stream, draws
from sim.results.journal import Entry

# ---- An account of records that no restore touches: where each task must stand, by what it has done since its last start.
#
# The ledger notes where a task stood at each of its cuts.  A restart goes back to a note; from there only counted work
# leads on.  Nothing here is read from what a checkpoint stores, so both can be compared.

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass(slots=True)
class RecordTally:
    """The positions of tasks, in records since the beginning of the job."""

    served: Numbers  # by task
    late: Numbers  # by task: of those served, how many have not written their outputs
    read: Numbers  # by channel
    written: Numbers
    known: np.ndarray[tuple[int], np.dtype[np.bool_]]  # by task: whether it was noted

    @classmethod
    def zero(cls, tasks: int, channels: int) -> RecordTally:
        served, late = np.zeros((2, tasks), np.int64)
        read, written = np.zeros((2, channels), np.int64)
        return cls(served, late, read, written, np.zeros(tasks, np.bool_))


@dataclass(slots=True)
class Ledger:
    """The account of records that no restore changes.

    `inputs`, `outputs`: the channels of each task; `ends`: the task at the read and at the written end of each channel.
    """

    inputs: Sequence[Numbers | slice]
    outputs: Sequence[Numbers | slice]
    ends: tuple[np.ndarray, np.ndarray]
    ahead: RecordTally  # what is to be added to a task's counts to say where it stands
    notes: dict[int, RecordTally] = field(default_factory=dict)  # by checkpoint; `of` gives one to read
    # by channel, and not in their note: few are read
    _fresh: dict[int, list[tuple[int, Numbers, Numbers]]] = field(default_factory=dict)
    _moved: bool = False  # there is something ahead

    @classmethod
    def opened(cls, inputs: Sequence[Numbers | slice], outputs: Sequence[Numbers | slice], channels: int) -> Ledger:
        tally = RecordTally.zero(len(inputs), channels)
        readers, writers = np.zeros((2, len(tally.read)), np.int32)
        for task, (read, written) in enumerate(zip(inputs, outputs, strict=True)):
            readers[read], writers[written] = task, task
        return cls(inputs, outputs, (readers, writers), tally)

    def note(
        self, checkpoint: int, task: int, served: int, late: int, read: Numbers, written: Numbers
    ) -> tuple[int, Numbers, Numbers]:
        """The task is at its cut, with these counts; where it stands: records served, read and written."""
        if self._moved:
            served += int(self.ahead.served[task])
            read, written = self.ahead.read[self.inputs[task]] + read, self.ahead.written[self.outputs[task]] + written
        note = self._noted(checkpoint)
        note.served[task], note.late[task], note.known[task] = served, late, True
        self._fresh.setdefault(checkpoint, []).append((task, read, written))
        return served, read, written

    def served(self, checkpoint: int, task: int) -> int:
        """The records that the task had served at its cut; without a note it begins."""
        note = self.notes.get(checkpoint)
        return 0 if note is None else int(note.served[task])

    def keep(self, checkpoint: int, task: int, before: int) -> None:
        """The part of the task is the one that it has in a checkpoint before."""
        note, old, inputs, outputs = self._noted(checkpoint), self.of(before), self.inputs[task], self.outputs[task]
        note.served[task], note.late[task], note.known[task] = old.served[task], old.late[task], old.known[task]
        note.read[inputs], note.written[outputs] = old.read[inputs], old.written[outputs]

    def _noted(self, checkpoint: int) -> RecordTally:
        note = self.notes.get(checkpoint)
        if note is None:
            note = self.notes[checkpoint] = RecordTally.zero(len(self.inputs), len(self.ahead.read))
        return note

    def of(self, checkpoint: int) -> RecordTally:
        """Where the tasks stood at their cuts; without a note they begin."""
        note = self.notes.get(checkpoint)
        if note is None:
            return RecordTally.zero(len(self.inputs), len(self.ahead.read))
        for task, read, written in self._fresh.pop(checkpoint, ()):
            note.read[self.inputs[task]], note.written[self.outputs[task]] = read, written
        return note

    def stand(self, tally: RecordTally, counted: RecordTally) -> None:
        """The tasks known to the counts have been started where the tally says."""
        self._moved = True
        which = counted.known
        read, written = which[self.ends[0]], which[self.ends[1]]
        self.ahead.served[which] = tally.served[which] - counted.served[which]
        self.ahead.read[read] = tally.read[read] - counted.read[read]
        self.ahead.written[written] = tally.written[written] - counted.written[written]

    def stands(self, counted: RecordTally) -> RecordTally:
        """Where tasks with these counts stand."""
        ahead = self.ahead
        sums = ahead.served + counted.served, counted.late, ahead.read + counted.read, ahead.written + counted.written
        return RecordTally(*sums, counted.known)

    def forget(self, gone: Callable[[int], bool]) -> None:
        """Checkpoints that can neither complete nor be restored any more."""
        for checkpoint in [number for number in self.notes if gone(number)]:
            del self.notes[checkpoint]
            self._fresh.pop(checkpoint, None)


# ---- Restarts, compared with the ledger: every task goes on at the position of its checkpoint, with the state of that moment.
#
# One violation per restart and kind of fault, about the first task it shows in; the others are counted.

PLACE = "a restored task goes on where its checkpoint left it"
NOTED = "a snapshot says where its task stands"
OUTPUTS = "every record served leaves its outputs behind, once"
READ = "a job that has finished has read all that was written, and all its sources have"

_Wording = Callable[[int, int], str]
"""(expected, actual) -> what a violation says."""


class Written(NamedTuple):
    """The rule of an output: `num` records per `den` served, on each channel or (not `per_channel`) on all together."""

    task: int
    channels: Numbers
    num: int
    den: int
    per_channel: bool


def misplaced(
    restored: Entry,
    ledger: Ledger,
    expected: RecordTally,
    stands: RecordTally,
    teller: JournalFormatter,
    *,
    input_differs: bool,
) -> Iterator[Violation]:
    """`stands`: as the restarted tasks count from now on.  `input_differs`: input comes twice or is lost, as another check reports."""
    which, (readers, writers) = stands.known, ledger.ends

    def broken(
        tasks: Numbers, places: Numbers, wording: _Wording, expected: Numbers, stands: Numbers
    ) -> Iterator[Violation]:
        if len(places):
            task, place = int(tasks[0]), int(places[0])
            others = f" (and {len(places) - 1} more)" if len(places) > 1 else ""
            where = f"{teller.task(task)}, restart {restored.number} from checkpoint {restored.checkpoint}"
            fact = wording(int(expected[place]), int(stands[place])) + others
            yield Violation(
                PLACE, restored.time_ns, where, fact, story_of_restore(restored, {restored.checkpoint}, (task,), teller)
            )

    moved = np.flatnonzero(which & (expected.served != stands.served))
    is_source = ~np.isin(moved, ledger.ends[0])
    for tasks, wording in ((moved[is_source], _emitted), (moved[~is_source], _served)):
        yield from broken(tasks, tasks, wording, expected.served, stands.served)
    forgetful = np.flatnonzero(which & (expected.late != stands.late))
    yield from broken(forgetful, forgetful, _waiting, expected.late, stands.late)
    if not input_differs:
        channels = np.flatnonzero(which[readers] & (expected.read != stands.read))
        yield from broken(readers[channels], channels, _read, expected.read, stands.read)
    channels = np.flatnonzero(which[writers] & (expected.written != stands.written))
    yield from broken(writers[channels], channels, _written, expected.written, stands.written)


def misnoted(time_ns: int, checkpoint: int, task: int, fact: str, teller: JournalFormatter) -> Violation:
    return Violation(
        NOTED, time_ns, f"snapshot {checkpoint} of {teller.task(task)}", fact, teller.cut(checkpoint, {task})
    )


def unwritten(
    time_ns: int,
    outputs: Iterable[Written],
    tally: RecordTally,
    before: Sequence[int],
    when: str,
    teller: JournalFormatter,
) -> Iterator[Violation]:
    """`before`: by how much each output exceeded its rule when the job began."""
    for output, surplus in zip(outputs, before, strict=True):
        expected, actual = owed(output, tally), held_by(output, tally)
        if actual - expected != surplus:
            fact = f"it should hold {number_of(expected + surplus, 'record')} and holds {actual} ({when})"
            yield Violation(OUTPUTS, time_ns, f"an output of {teller.task(output.task)}", fact)
            return


def owed(output: Written, tally: RecordTally) -> int:
    """Records this output must hold."""
    copies = int(tally.served[output.task] - tally.late[output.task]) * output.num // output.den
    return copies * len(output.channels) if output.per_channel else copies


def held_by(output: Written, tally: RecordTally) -> int:
    return int(tally.written[output.channels].sum())


def unread(
    time_ns: int,
    ends: Sequence[tuple[int, int]],
    tally: RecordTally,
    totals: Sequence[tuple[int, int]],
    teller: JournalFormatter,
) -> Iterator[Violation]:
    """At the end of a job that finished; `ends`: (writer, reader) of each channel, `totals`: (source, records it has)."""
    left = np.flatnonzero(tally.read != tally.written)
    if len(left):
        writer, reader = ends[int(left[0])]
        written, read = int(tally.written[left].sum()), int(tally.read[left].sum())
        counts = f"{count_is(written, 'record')} written and {read} read, on {number_of(len(left), 'channel')}"
        yield Violation(READ, time_ns, f"{teller.task(writer)} -> {teller.task(reader)}", counts)
    for task, total in totals:
        if tally.served[task] != total:
            fact = f"it has {number_of(total, 'record')} and has emitted {tally.served[task]}, each counted once"
            yield Violation(READ, time_ns, teller.task(task), fact)
            return


def up_to(tally: RecordTally, cut: RecordTally, channels: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> RecordTally:
    """On these channels, what was written behind the cut may be read or not."""
    return replace(tally, written=np.where(channels, np.clip(tally.read, cut.written, tally.written), tally.written))


def unanswered(time_ns: int, tasks: Iterable[int], tally: RecordTally, teller: JournalFormatter) -> Iterator[Violation]:
    """At the end of a job that finished: these tasks owe outputs and have ended their operators."""
    for task in tasks:
        if tally.late[task]:
            fact = f"the job has finished and {count_is(int(tally.late[task]), 'record')} lost: the job did not wait for their outputs"
            yield Violation(OUTPUTS, time_ns, f"an output of {teller.task(task)}", fact)


def _emitted(expected: int, stands: int) -> str:
    effect = "never emitted" if stands > expected else "emitted again"
    return f"it goes on with record {stands}, its checkpoint holds {expected}: {count_is(abs(stands - expected), 'record')} {effect}"


def _served(expected: int, stands: int) -> str:
    return f"it goes on after record {stands}, its checkpoint holds everything up to record {expected}"


def _read(expected: int, stands: int) -> str:
    effect = "never read" if stands > expected else "read again"
    difference = count_is(abs(stands - expected), "record")
    return f"it goes on with record {stands} of an input, its checkpoint holds {expected}: {difference} {effect}"


def _written(expected: int, stands: int) -> str:
    return f"it goes on with record {stands} of an output, in its checkpoint it had written {expected}"


def _waiting(expected: int, stands: int) -> str:
    return f"{count_is(stands, 'record')} waiting for outputs, {expected} in its checkpoint"


# ---- Which reader each record goes to, chosen once more.  Law 119.
#
# Flink: KeyGroupStreamPartitioner, RebalancePartitioner, RescalePartitioner, GlobalPartitioner.

CHOSEN = "each record goes to the reader that its edge chooses"
MAX_DRAWN = 100_000
"""Records of one run whose readers are drawn again: a long run is judged by its first outputs."""


class Route(NamedTuple):
    """How an output of a task chooses among its channels.  `keys`: the stream of its keys; None: the channels take turns."""

    task: int
    channels: Numbers
    keys: Stream | None = None
    weights: Numbers | None = None  # the channel of each slice of the keys; None: equal slices
    first: int = 0  # the channel that begins, where they take turns


def chosen(route: Route, records: int) -> Numbers:
    """The number of the first `records` that belong to each channel."""
    channels = len(route.channels)
    if route.keys is None:
        turns = np.arange(channels, dtype=np.int64)
        return (records - (turns - route.first) % channels + channels - 1) // channels
    keys = draws(route.keys, records)
    if route.weights is None:
        return np.bincount(keys * channels >> 32, minlength=channels)
    return np.bincount(route.weights[keys * len(route.weights) >> 32], minlength=channels)


def misrouted_records(
    time_ns: int, routes: Iterable[Route], written: Numbers, teller: JournalFormatter
) -> Iterator[Violation]:
    """The first output whose channels hold other numbers of records; `written`: since the job began, by channel."""
    left = MAX_DRAWN
    for route in routes:
        own = written[route.channels]
        records = int(own.sum())
        if route.keys is not None:
            if records > left:
                continue
            left -= records
        expected = chosen(route, records)
        if not np.array_equal(own, expected):
            place = int((own != expected).argmax())
            fact = f"its channel {place} has {number_of(int(own[place]), 'record')} of {records}, {expected[place]} choose it"
            yield Violation(CHOSEN, time_ns, f"an output of {teller.task(route.task)}", fact)
            return
