"""What a completed checkpoint names is stored: its metadata, all bytes of its files, its in-flight data.  Laws 107 to 112, and 125.

What is read again after a restart is as much as was written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sim.checkers.story import LIFE, Teller
from sim.checkers.violation import Violation, number_of
from sim.metrics.journal import Happening

METADATA_FIRST = "a checkpoint is complete when its metadata is durable"
IN_FULL = "a file has all the bytes that a completed checkpoint names in it"
IN_FLIGHT = "a completed checkpoint has stored all of its in-flight data"
COMPLETE_BASE = "an increment builds upon files of completed checkpoints"
UNCLAIMED = "a job that does not claim a snapshot neither deletes its files nor builds upon them"
SELF_CONTAINED = "a savepoint has files of its own: it shares none with a checkpoint"
READ_BACK = "a restart reads what its checkpoint has stored: state, and in-flight data"

_FRAME = (*LIFE, Happening.JOB_RESTORED)


class InFlight(NamedTuple):
    """The in-flight data of one task in a checkpoint."""

    task: int
    size_bytes: int
    inlined_bytes: int  # of these, in the acknowledgement
    file: int | None  # that holds the rest, perhaps with that of other tasks


def without_metadata(checkpoint: int, time_ns: int, teller: Teller) -> Violation:
    return _violation(METADATA_FIRST, checkpoint, time_ns, "it is complete, and its metadata is no file yet", teller)


def cut_short(checkpoint: int, time_ns: int, what: str, named_bytes: int, there_bytes: int, teller: Teller) -> Violation:
    fact = f"it names {number_of(named_bytes, 'byte')} in {what}, which has {there_bytes}"
    return _violation(IN_FULL, checkpoint, time_ns, fact, teller)


def in_no_file(checkpoint: int, time_ns: int, parts: Iterable[InFlight], sizes: dict[int, int], teller: Teller) -> Iterator[Violation]:
    """`sizes`: of the files.  The first fact is told."""
    named: dict[int, int] = {}
    for part in parts:
        left = part.size_bytes - part.inlined_bytes
        if left > 0 and part.file is None:
            fact = f"{number_of(left, 'byte')} in flight to {teller.task(part.task)} are in no file"
            yield _violation(IN_FLIGHT, checkpoint, time_ns, fact, teller)
            return
        if part.file is not None:
            named[part.file] = named.get(part.file, 0) + left
    for file, size_bytes in named.items():
        if sizes[file] < size_bytes:
            fact = f"{number_of(size_bytes, 'byte')} were in flight, their file has {sizes[file]}"
            yield _violation(IN_FLIGHT, checkpoint, time_ns, fact, teller)
            return


def unfounded(checkpoint: int, time_ns: int, task: int, file: str, base: int, status: str, teller: Teller) -> Violation:
    fact = f"{teller.task(task)} refers to {file} of checkpoint {base}, which is {status.lower().replace('_', ' ')}"
    return _violation(COMPLETE_BASE, checkpoint, time_ns, fact, teller)


def shared(checkpoint: int, time_ns: int, task: int, files: int, teller: Teller) -> Violation:
    fact = f"{teller.task(task)} has {number_of(files, 'file')} in it that checkpoints share"
    return _violation(SELF_CONTAINED, checkpoint, time_ns, fact, teller)


def not_its_own(checkpoint: int, time_ns: int, files: int, doing: str, teller: Teller) -> Violation:
    """`doing`: named or deleted."""
    fact = f"{number_of(files, 'file')} of the snapshot that the job began with, and did not claim, {'is' if files == 1 else 'are'} {doing}"
    return _violation(UNCLAIMED, checkpoint, time_ns, fact, teller)


def read_too_little(checkpoint: int, time_ns: int, what: str, stored_bytes: int, read_bytes: int, teller: Teller) -> Violation:
    fact = f"{number_of(read_bytes, 'byte')} of {what} {'is' if read_bytes == 1 else 'are'} read, {stored_bytes} were stored"
    return _violation(READ_BACK, checkpoint, time_ns, fact, teller)


def _violation(law: str, checkpoint: int, time_ns: int, fact: str, teller: Teller) -> Violation:
    story = teller.story(lambda row: row.checkpoint == checkpoint and row.happening in _FRAME)
    return Violation(law, time_ns, f"checkpoint {checkpoint}", fact, story[-8:])
