"""Restarts, compared with the ledger: every task goes on at the position of its checkpoint, with the state of that moment.

One violation per restart and kind of fault, about the first task it shows in; the others are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sim.checkers.ledger import Ledger, Numbers, RecordTally
from sim.checkers.restores import story_of_restore
from sim.checkers.story import Teller
from sim.checkers.violation import Violation, count_is, number_of
from sim.metrics.journal import Entry

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
    restored: Entry, ledger: Ledger, expected: RecordTally, stands: RecordTally, teller: Teller, *, input_differs: bool
) -> Iterator[Violation]:
    """`stands`: as the restarted tasks count from now on.  `input_differs`: input comes twice or is lost, as another check reports."""
    which, (readers, writers) = stands.known, ledger.ends

    def broken(tasks: Numbers, places: Numbers, wording: _Wording, expected: Numbers, stands: Numbers) -> Iterator[Violation]:
        if len(places):
            task, place = int(tasks[0]), int(places[0])
            others = f" (and {len(places) - 1} more)" if len(places) > 1 else ""
            where = f"{teller.task(task)}, restart {restored.number} from checkpoint {restored.checkpoint}"
            fact = wording(int(expected[place]), int(stands[place])) + others
            yield Violation(PLACE, restored.time_ns, where, fact, story_of_restore(restored, {restored.checkpoint}, (task,), teller))

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


def misnoted(time_ns: int, checkpoint: int, task: int, fact: str, teller: Teller) -> Violation:
    return Violation(NOTED, time_ns, f"snapshot {checkpoint} of {teller.task(task)}", fact, teller.cut(checkpoint, {task}))


def unwritten(
    time_ns: int, outputs: Iterable[Written], tally: RecordTally, before: Sequence[int], when: str, teller: Teller
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
    time_ns: int, ends: Sequence[tuple[int, int]], tally: RecordTally, totals: Sequence[tuple[int, int]], teller: Teller
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


def unanswered(time_ns: int, tasks: Iterable[int], tally: RecordTally, teller: Teller) -> Iterator[Violation]:
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
