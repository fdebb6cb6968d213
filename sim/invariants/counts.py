"""Invariants of record counts across restarts: no record is lost, repeated or sent to the wrong downstream subtask."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from sim.invariants.recovery import story_of_restore
from sim.invariants.violation import JournalFormatter, Violation, count_is, number_of
from sim.model.randomness import Stream, draws
from sim.results.journal import Entry

# ---- The ledger of record positions. It is independent of what checkpoints store, so that both can be compared.
#
# The ledger records the position of each task when it takes a snapshot (its cut). A restart sets tasks back to such a
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


# ---- Restarts, compared with the ledger: each task continues from its position in the restored checkpoint.
#
# There is one violation per restart and kind of error. It describes the first task and counts the others.

PLACE = "a restored task goes on where its checkpoint left it"
NOTED = "a snapshot says where its task stands"
OUTPUTS = "every record served leaves its outputs behind, once"
READ = "a job that has finished has read all that was written, and all its sources have"

# facts of violations, for the expected and the actual position; `position_errors` has the other values
_EMITTED = "it goes on with record {actual}, its checkpoint holds {expected}: {difference} {emitted}"
_SERVED = "it goes on after record {actual}, its checkpoint holds everything up to record {expected}"
_READ = "it goes on with record {actual} of an input, its checkpoint holds {expected}: {difference} {read}"
_WRITTEN = "it goes on with record {actual} of an output, in its checkpoint it had written {expected}"
_WAITING = "{waiting} waiting for outputs, {expected} in its checkpoint"


class Written(NamedTuple):
    """The number of records that a task must write to an output: `num` per `den` processed records.

    The number is that of each channel if `per_channel`, and otherwise the total over all `channels`.
    """

    task: int
    channels: Numbers
    num: int
    den: int
    per_channel: bool


def position_errors(
    restored: Entry,
    ledger: Ledger,
    expected: RecordTally,
    stands: RecordTally,
    formatter: JournalFormatter,
    *,
    input_differs: bool,
) -> Iterator[Violation]:
    """Check that restarted tasks continue from the positions of their checkpoint.

    `restored`: journal row of the restart.  `stands`: actual positions.  `input_differs`: another check reports lost or
    repeated input, so input channels are not compared.
    """
    which, (readers, writers) = stands.known, ledger.ends

    def broken(tasks: Numbers, places: Numbers, fact: str, expected: Numbers, stands: Numbers) -> Iterator[Violation]:
        """Yield the violation for the first of these tasks.  `places`: its indices in `expected` and `stands`."""
        if len(places):
            task, place = int(tasks[0]), int(places[0])
            others = f" (and {len(places) - 1} more)" if len(places) > 1 else ""
            where = f"{formatter.task(task)}, restart {restored.number} from checkpoint {restored.checkpoint}"
            before, actual = int(expected[place]), int(stands[place])
            fact = fact.format(
                actual=actual,
                expected=before,
                difference=count_is(abs(actual - before), "record"),
                waiting=count_is(actual, "record"),
                emitted="never emitted" if actual > before else "emitted again",
                read="never read" if actual > before else "read again",
            )
            yield Violation(
                PLACE,
                restored.time_ns,
                where,
                fact + others,
                story_of_restore(restored, {restored.checkpoint}, (task,), formatter),
            )

    moved = np.flatnonzero(which & (expected.served != stands.served))
    is_source = ~np.isin(moved, ledger.ends[0])
    for tasks, fact in ((moved[is_source], _EMITTED), (moved[~is_source], _SERVED)):
        yield from broken(tasks, tasks, fact, expected.served, stands.served)
    forgetful = np.flatnonzero(which & (expected.late != stands.late))
    yield from broken(forgetful, forgetful, _WAITING, expected.late, stands.late)
    if not input_differs:
        channels = np.flatnonzero(which[readers] & (expected.read != stands.read))
        yield from broken(readers[channels], channels, _READ, expected.read, stands.read)
    channels = np.flatnonzero(which[writers] & (expected.written != stands.written))
    yield from broken(writers[channels], channels, _WRITTEN, expected.written, stands.written)


def snapshot_position_error(
    time_ns: int, checkpoint: int, task: int, fact: str, formatter: JournalFormatter
) -> Violation:
    """Return the violation of a snapshot that contains a wrong position."""
    return Violation(
        NOTED, time_ns, f"snapshot {checkpoint} of {formatter.task(task)}", fact, formatter.cut(checkpoint, {task})
    )


def output_errors(
    time_ns: int,
    outputs: Iterable[Written],
    tally: RecordTally,
    before: Sequence[int],
    when: str,
    formatter: JournalFormatter,
) -> Iterator[Violation]:
    """Check the number of records written to each output.  Report the first violation.

    `before`: surplus of each output when the job started.  `when`: time of the check, for the message.
    """
    for output, surplus in zip(outputs, before, strict=True):
        expected, actual = expected_output(output, tally), actual_output(output, tally)
        if actual - expected != surplus:
            fact = f"it should hold {number_of(expected + surplus, 'record')} and holds {actual} ({when})"
            yield Violation(OUTPUTS, time_ns, f"an output of {formatter.task(output.task)}", fact)
            return


def expected_output(output: Written, tally: RecordTally) -> int:
    """Return the number of records that the output must contain."""
    copies = int(tally.served[output.task] - tally.late[output.task]) * output.num // output.den
    return copies * len(output.channels) if output.per_channel else copies


def actual_output(output: Written, tally: RecordTally) -> int:
    """Return the number of records that the output contains."""
    return int(tally.written[output.channels].sum())


def unread_records(
    time_ns: int,
    ends: Sequence[tuple[int, int]],
    tally: RecordTally,
    totals: Sequence[tuple[int, int]],
    formatter: JournalFormatter,
) -> Iterator[Violation]:
    """Check that a finished job has read all records.

    `ends`: (writer, reader) of each channel.  `totals`: (source task, number of its records).
    """
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
    """Return the tally for comparing written with read records, if records after the cut need not be read.

    On the channels selected by `channels`, `written` becomes the number of read records, limited to the range between the
    number written at the cut and the number written in total.
    """
    return replace(tally, written=np.where(channels, np.clip(tally.read, cut.written, tally.written), tally.written))


def lost_pending_outputs(
    time_ns: int, tasks: Iterable[int], tally: RecordTally, formatter: JournalFormatter
) -> Iterator[Violation]:
    """Yield a violation for each of these tasks of a finished job that has pending outputs."""
    for task in tasks:
        if tally.late[task]:
            fact = f"the job has finished and {count_is(int(tally.late[task]), 'record')} lost: the job did not wait for their outputs"
            yield Violation(OUTPUTS, time_ns, f"an output of {formatter.task(task)}", fact)


# ---- The downstream subtask that reads each record, computed independently of the data plane (law 119).
#
# Source: KeyGroupStreamPartitioner, RebalancePartitioner, RescalePartitioner, GlobalPartitioner.

CHOSEN = "each record goes to the reader that its edge chooses"
MAX_KEYED_RECORDS = 100_000
"""Maximum number of keyed records that are checked.  Outputs that would exceed it are skipped."""


class Route(NamedTuple):
    """How an output of a task selects the channel of a record."""

    task: int
    channels: Numbers
    keys: Stream | None = None  # random stream of the keys; None if channels are selected round-robin
    weights: Numbers | None = None  # channel of each slice of the key range; None if all channels have equal slices
    first: int = 0  # first channel of the round-robin


def chosen(route: Route, records: int) -> Numbers:
    """Return how many of the first `records` records are sent to each channel."""
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
    """Check the number of records on each channel of outputs.  Report the first violation.

    `written`: by channel, records since the start of the job.
    """
    left = MAX_KEYED_RECORDS
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
