"""Conservation of records across restarts: none is lost, repeated or sent to the wrong reader."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from sim.invariants.recovery import story_of_restore
from sim.invariants.violation import JournalFormatter, Violation, count_is, number_of
from sim.model.randomness import Stream, draws
from sim.results.journal import Entry

# ---- The ledger of record positions, kept independently of what checkpoints store, so that both can be compared.
#
# The ledger records the position of each task at each of its cuts.  A restart goes back to such a position; from there,
# only counted records move it.

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass(slots=True)
class RecordTally:
    """Positions of tasks, in records since the start of the job."""

    served: Numbers  # by task
    late: Numbers  # by task: records served whose outputs are pending
    read: Numbers  # by channel
    written: Numbers
    known: np.ndarray[tuple[int], np.dtype[np.bool_]]  # by task: whether its position was recorded

    @classmethod
    def zero(cls, tasks: int, channels: int) -> RecordTally:
        served, late = np.zeros((2, tasks), np.int64)
        read, written = np.zeros((2, channels), np.int64)
        return cls(served, late, read, written, np.zeros(tasks, np.bool_))


@dataclass(slots=True)
class Ledger:
    """The ledger of record positions.

    `inputs`, `outputs`: channels of each task; `ends`: (reader, writer) task of each channel.
    """

    inputs: Sequence[Numbers | slice]
    outputs: Sequence[Numbers | slice]
    ends: tuple[np.ndarray, np.ndarray]
    ahead: RecordTally  # added to the counts of a restarted task to get its position
    notes: dict[int, RecordTally] = field(default_factory=dict)  # by checkpoint; to be read by `of`
    # channel positions that are not merged into `notes` yet, because few are read
    _fresh: dict[int, list[tuple[int, Numbers, Numbers]]] = field(default_factory=dict)
    _moved: bool = False  # whether `ahead` is not all 0

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
        """Record a task's counts at its cut.  Return its position: records served, read and written."""
        if self._moved:
            served += int(self.ahead.served[task])
            read, written = self.ahead.read[self.inputs[task]] + read, self.ahead.written[self.outputs[task]] + written
        note = self._noted(checkpoint)
        note.served[task], note.late[task], note.known[task] = served, late, True
        self._fresh.setdefault(checkpoint, []).append((task, read, written))
        return served, read, written

    def served(self, checkpoint: int, task: int) -> int:
        """Return the records that a task had served at its cut, 0 if unknown."""
        note = self.notes.get(checkpoint)
        return 0 if note is None else int(note.served[task])

    def keep(self, checkpoint: int, task: int, before: int) -> None:
        """Record that the task reuses its part of an earlier checkpoint."""
        note, old, inputs, outputs = self._noted(checkpoint), self.of(before), self.inputs[task], self.outputs[task]
        note.served[task], note.late[task], note.known[task] = old.served[task], old.late[task], old.known[task]
        note.read[inputs], note.written[outputs] = old.read[inputs], old.written[outputs]

    def _noted(self, checkpoint: int) -> RecordTally:
        note = self.notes.get(checkpoint)
        if note is None:
            note = self.notes[checkpoint] = RecordTally.zero(len(self.inputs), len(self.ahead.read))
        return note

    def of(self, checkpoint: int) -> RecordTally:
        """Return the positions of tasks at their cuts, 0 if unknown."""
        note = self.notes.get(checkpoint)
        if note is None:
            return RecordTally.zero(len(self.inputs), len(self.ahead.read))
        for task, read, written in self._fresh.pop(checkpoint, ()):
            note.read[self.inputs[task]], note.written[self.outputs[task]] = read, written
        return note

    def stand(self, tally: RecordTally, counted: RecordTally) -> None:
        """Set the positions of restarted tasks (those in `counted.known`) to `tally`."""
        self._moved = True
        which = counted.known
        read, written = which[self.ends[0]], which[self.ends[1]]
        self.ahead.served[which] = tally.served[which] - counted.served[which]
        self.ahead.read[read] = tally.read[read] - counted.read[read]
        self.ahead.written[written] = tally.written[written] - counted.written[written]

    def stands(self, counted: RecordTally) -> RecordTally:
        """Return the positions of tasks with these counts."""
        ahead = self.ahead
        sums = ahead.served + counted.served, counted.late, ahead.read + counted.read, ahead.written + counted.written
        return RecordTally(*sums, counted.known)

    def forget(self, gone: Callable[[int], bool]) -> None:
        """Drop checkpoints that can neither complete nor be restored any more."""
        for checkpoint in [number for number in self.notes if gone(number)]:
            del self.notes[checkpoint]
            self._fresh.pop(checkpoint, None)


# ---- Restarts, compared with the ledger: each task continues from the position of its checkpoint.
#
# There is one violation per restart and kind of error, about the first task; the others are counted.

PLACE = "a restored task goes on where its checkpoint left it"
NOTED = "a snapshot says where its task stands"
OUTPUTS = "every record served leaves its outputs behind, once"
READ = "a job that has finished has read all that was written, and all its sources have"

_Wording = Callable[[int, int], str]
"""(expected, actual) -> fact of the violation."""


class Written(NamedTuple):
    """The rule of an output: `num` records per `den` served, on each channel, or in total if not `per_channel`."""

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
    formatter: JournalFormatter,
    *,
    input_differs: bool,
) -> Iterator[Violation]:
    """Compare the positions of restarted tasks.  `stands`: actual ones; `input_differs`: another check reports lost or repeated input."""
    which, (readers, writers) = stands.known, ledger.ends

    def broken(
        tasks: Numbers, places: Numbers, wording: _Wording, expected: Numbers, stands: Numbers
    ) -> Iterator[Violation]:
        if len(places):
            task, place = int(tasks[0]), int(places[0])
            others = f" (and {len(places) - 1} more)" if len(places) > 1 else ""
            where = f"{formatter.task(task)}, restart {restored.number} from checkpoint {restored.checkpoint}"
            fact = wording(int(expected[place]), int(stands[place])) + others
            yield Violation(
                PLACE,
                restored.time_ns,
                where,
                fact,
                story_of_restore(restored, {restored.checkpoint}, (task,), formatter),
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


def misnoted(time_ns: int, checkpoint: int, task: int, fact: str, formatter: JournalFormatter) -> Violation:
    return Violation(
        NOTED, time_ns, f"snapshot {checkpoint} of {formatter.task(task)}", fact, formatter.cut(checkpoint, {task})
    )


def unwritten(
    time_ns: int,
    outputs: Iterable[Written],
    tally: RecordTally,
    before: Sequence[int],
    when: str,
    formatter: JournalFormatter,
) -> Iterator[Violation]:
    """Check the number of records written to each output.  `before`: surplus of each output when the job started."""
    for output, surplus in zip(outputs, before, strict=True):
        expected, actual = owed(output, tally), held_by(output, tally)
        if actual - expected != surplus:
            fact = f"it should hold {number_of(expected + surplus, 'record')} and holds {actual} ({when})"
            yield Violation(OUTPUTS, time_ns, f"an output of {formatter.task(output.task)}", fact)
            return


def owed(output: Written, tally: RecordTally) -> int:
    """Return how many records the output must have."""
    copies = int(tally.served[output.task] - tally.late[output.task]) * output.num // output.den
    return copies * len(output.channels) if output.per_channel else copies


def held_by(output: Written, tally: RecordTally) -> int:
    return int(tally.written[output.channels].sum())


def unread(
    time_ns: int,
    ends: Sequence[tuple[int, int]],
    tally: RecordTally,
    totals: Sequence[tuple[int, int]],
    formatter: JournalFormatter,
) -> Iterator[Violation]:
    """Check that a finished job has read everything.  `ends`: (writer, reader) of each channel; `totals`: (source, its records)."""
    left = np.flatnonzero(tally.read != tally.written)
    if len(left):
        writer, reader = ends[int(left[0])]
        written, read = int(tally.written[left].sum()), int(tally.read[left].sum())
        counts = f"{count_is(written, 'record')} written and {read} read, on {number_of(len(left), 'channel')}"
        yield Violation(READ, time_ns, f"{formatter.task(writer)} -> {formatter.task(reader)}", counts)
    for task, total in totals:
        if tally.served[task] != total:
            fact = f"it has {number_of(total, 'record')} and has emitted {tally.served[task]}, each counted once"
            yield Violation(READ, time_ns, formatter.task(task), fact)
            return


def up_to(tally: RecordTally, cut: RecordTally, channels: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> RecordTally:
    """Return the tally in which records written after the cut may or may not be read, on these channels."""
    return replace(tally, written=np.where(channels, np.clip(tally.read, cut.written, tally.written), tally.written))


def unanswered(
    time_ns: int, tasks: Iterable[int], tally: RecordTally, formatter: JournalFormatter
) -> Iterator[Violation]:
    """Check that these tasks of a finished job have no pending outputs."""
    for task in tasks:
        if tally.late[task]:
            fact = f"the job has finished and {count_is(int(tally.late[task]), 'record')} lost: the job did not wait for their outputs"
            yield Violation(OUTPUTS, time_ns, f"an output of {formatter.task(task)}", fact)


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


# ---- The reader of each record, computed independently (law 119).
#
# Source: KeyGroupStreamPartitioner, RebalancePartitioner, RescalePartitioner, GlobalPartitioner.

CHOSEN = "each record goes to the reader that its edge chooses"
MAX_DRAWN = 100_000
"""Maximum keyed records of a run that are checked; of a long run only the first outputs are."""


class Route(NamedTuple):
    """How an output of a task selects channels.  `keys`: random stream of its keys; None: round-robin."""

    task: int
    channels: Numbers
    keys: Stream | None = None
    weights: Numbers | None = None  # channel of each slice of the key range; None: equal slices
    first: int = 0  # first channel of the round-robin


def chosen(route: Route, records: int) -> Numbers:
    """Return how many of the first `records` go to each channel."""
    channels = len(route.channels)
    if route.keys is None:
        turns = np.arange(channels, dtype=np.int64)
        return (records - (turns - route.first) % channels + channels - 1) // channels
    keys = draws(route.keys, records)
    if route.weights is None:
        return np.bincount(keys * channels >> 32, minlength=channels)
    return np.bincount(route.weights[keys * len(route.weights) >> 32], minlength=channels)


def misrouted_records(
    time_ns: int, routes: Iterable[Route], written: Numbers, formatter: JournalFormatter
) -> Iterator[Violation]:
    """Report the first output with wrong counts.  `written`: records by channel since the start of the job."""
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
            yield Violation(CHOSEN, time_ns, f"an output of {formatter.task(route.task)}", fact)
            return
