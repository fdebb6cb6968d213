"""Invariants of state: what restored tasks receive, what completed checkpoints store, and redistribution after a rescale."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, NamedTuple

import numpy as np

from sim.invariants.counts import Numbers, RecordTally
from sim.invariants.violation import LIFE, JournalFormatter, Violation, count_is, number_of
from sim.results.journal import Happening

# ---- Restored state: stored state has a stamp with its owner and its checkpoint. A restored task must receive all of its
# state, once.

RESTORED = "a restored task gets all of its state in the checkpoint, once"

Kind = Literal["keyed", "windows", "operator", "union"]


class Stamp(NamedTuple):
    """The subtask and the checkpoint that state belongs to."""

    instance: int  # number of the job instance
    checkpoint: int
    vertex: str
    subtask: int

    def __str__(self) -> str:
        return f"{self.vertex}[{self.subtask}] at checkpoint {self.checkpoint}{f' of job {self.instance}' if self.instance else ''}"


class RestoredState(NamedTuple):
    """State that a restored task has received."""

    kind: Kind
    stamp: Stamp | None
    share: Fraction  # share of its key groups or list elements that the task receives
    size_bytes: int  # size of all its files, before the share is taken
    # (vertex, subtask, checkpoint) of the local copy that was read; None if it was read from storage
    copied_from: tuple[str | int, ...] | None = None


def union_errors(
    time_ns: int,
    where: str,
    stored: Iterable[tuple[Stamp, int]],
    restored: Iterable[RestoredState],
    story: Callable[[], tuple[str, ...]],
) -> Iterator[Violation]:
    """Check that a subtask receives the union list state of all subtasks, once.

    `stored`: (stamp, size in bytes) of each part in the checkpoint.  `story`: function that returns the evidence.
    """
    expected = sorted((stamp, size_bytes, Fraction(1)) for stamp, size_bytes in stored)
    restored_union = sorted(
        (piece.stamp, piece.size_bytes, piece.share) for piece in restored if piece.stamp is not None
    )
    if restored_union != expected:
        parts, size_bytes = number_of(len(expected), "part"), sum(row[1] for row in expected)
        fact = f"it gets {number_of(len(restored_union), 'part')} of union list state, {number_of(sum(row[1] for row in restored_union), 'byte')}"
        yield Violation(
            RESTORED, time_ns, where, f"{fact}; the checkpoint holds {parts}, {number_of(size_bytes, 'byte')}", story()
        )


def restored_state_differences(
    time_ns: int,
    where: str,
    stored: Mapping[Kind, tuple[Stamp, int]],
    restored_parts: Sequence[RestoredState],
    story: Callable[[], tuple[str, ...]],
) -> Iterator[Violation]:
    """Check that a task of a vertex that was not rescaled receives its own state, in full, once.

    `stored`: kind of state -> (stamp, size in bytes) in the checkpoint.  `story`: function that returns the evidence.
    """

    def broken(fact: str) -> Violation:
        """Return the violation with this fact."""
        return Violation(RESTORED, time_ns, where, fact, story())

    for kind, (stamp, size_bytes) in stored.items():
        pieces = [piece for piece in restored_parts if piece.kind == kind]
        if not pieces:
            yield broken(f"its {kind} state is not restored: {number_of(size_bytes, 'byte')} in the checkpoint")
        elif len(pieces) > 1 or pieces[0].share != 1:
            times = float(sum(piece.share for piece in pieces))
            yield broken(f"its {kind} state comes back {times:g} times, in {number_of(len(pieces), 'part')}")
        elif pieces[0].stamp != stamp:
            yield broken(f"its {kind} state is that of {pieces[0].stamp}, the checkpoint holds that of {stamp}")
        elif pieces[0].size_bytes != size_bytes:
            yield broken(
                f"its {kind} state comes back with {number_of(pieces[0].size_bytes, 'byte')}, the checkpoint holds {size_bytes}"
            )
        elif pieces[0].copied_from not in (None, (stamp.vertex, stamp.subtask, stamp.checkpoint)):
            yield broken(f"its {kind} state is read from a local copy of another one, {pieces[0].copied_from}")
    for piece in restored_parts:
        if piece.kind not in stored:
            yield broken(f"it gets {piece.kind} state, that of {piece.stamp}, and its checkpoint holds none")


# ---- Stored checkpoints: a completed checkpoint has stored its metadata, all bytes of its files, and its in-flight data
# (laws 107 to 112, and 125). A restart reads as many bytes as were written.

METADATA_FIRST = "a checkpoint is complete when its metadata is durable"
IN_FULL = "a file has all the bytes that a completed checkpoint names in it"
IN_FLIGHT = "a completed checkpoint has stored all of its in-flight data"
COMPLETE_BASE = "an increment builds upon files of completed checkpoints"
UNCLAIMED = "a job that does not claim a snapshot neither deletes its files nor builds upon them"
SELF_CONTAINED = "a savepoint has files of its own: it shares none with a checkpoint"
READ_BACK = "a restart reads what its checkpoint has stored: state, and in-flight data"

_FRAME = (*LIFE, Happening.JOB_RESTORED)


def of_stored_checkpoint(law: str, checkpoint: int, time_ns: int, fact: str, formatter: JournalFormatter) -> Violation:
    """Return the violation of one of these invariants, with the last rows about the checkpoint as its evidence."""
    story = formatter.story(lambda row: row.checkpoint == checkpoint and row.happening in _FRAME)
    return Violation(law, time_ns, f"checkpoint {checkpoint}", fact, story[-8:])


# ---- Redistribution after a rescale: the new subtasks together receive all state and records of the old ones, once.
#
# Subtasks and channels are compared one by one if the parallelism is unchanged. Otherwise their sums are compared.

DEALT = "a rescaled job restores everything in its checkpoint, once"


@dataclass(frozen=True, slots=True)
class Shape:
    """The tasks of each vertex, and the channels of each edge of a job."""

    vertices: tuple[str, ...]
    tasks: tuple[Numbers, ...]
    edges: tuple[tuple[int, int], ...]  # (upstream, downstream) vertex
    channels: tuple[Numbers, ...]

    def channels_alike(self, other: Shape) -> bool:
        """Return whether all edges have the same number of channels."""
        return [len(channels) for channels in self.channels] == [len(theirs) for theirs in other.channels]

    def resized(self, other: Shape) -> set[int]:
        """Return the vertices with a different number of tasks."""
        return {
            number
            for number, (tasks, theirs) in enumerate(zip(self.tasks, other.tasks, strict=True))
            if len(tasks) != len(theirs)
        }


def redistribution_errors(
    time_ns: int, where: str, old: tuple[Shape, RecordTally], new: tuple[Shape, RecordTally]
) -> Iterator[Violation]:
    """Check that a restart with another parallelism keeps record counts.

    It compares processed records, records with pending outputs, and records in flight.  `old`, `new`: the job and its
    positions in the checkpoint, and after the restart.
    """
    for number, name in enumerate(new[0].vertices):
        for what, phrase in (("served", "served by"), ("late", "waiting for outputs of")):
            before, after = (getattr(tally, what)[shape.tasks[number]] for shape, tally in (old, new))
            if not _same(before, after):
                fact = _fact(before, after, f"{phrase} {name}", "task")
                yield Violation(DEALT, time_ns, where, fact)
    resized = old[0].resized(new[0])
    for number, ends in enumerate(new[0].edges):
        between = f"between {new[0].vertices[ends[0]]} and {new[0].vertices[ends[1]]}"
        kept = resized.isdisjoint(ends) and len(old[0].channels[number]) == len(new[0].channels[number])
        before, after = (_streams(tally, shape.channels[number], kept=kept) for shape, tally in (old, new))
        for phrase, column in before.items():
            if not _same(column, after[phrase]):
                fact = _fact(column, after[phrase], f"{phrase} {between}", "channel")
                yield Violation(DEALT, time_ns, where, fact)


def state_redistribution_errors(
    time_ns: int,
    where: str,
    vertex: str,
    stamps_by_kind: Mapping[Kind, Sequence[Stamp]],
    restored_parts: Sequence[Sequence[RestoredState]],
) -> Iterator[Violation]:
    """Check that the new subtasks of a vertex together receive each part of the old state once.

    `stamps_by_kind`: stamps of the state of the vertex in the checkpoint.  `restored_parts`: state that each new subtask
    received.
    """
    for kind, stamps in stamps_by_kind.items():
        shares: dict[Stamp | None, Fraction] = dict.fromkeys(stamps, Fraction(0))
        for piece in (piece for several in restored_parts for piece in several if piece.kind == kind):
            shares[piece.stamp] = shares.get(piece.stamp, Fraction(0)) + piece.share
        wrong = [stamp for stamp, share in shares.items() if share != (stamp in stamps)]
        if wrong:
            fact = f"{float(shares[wrong[0]]):g} times the {kind} state of {wrong[0]} comes back"
            yield Violation(
                DEALT, time_ns, where, f"{fact}{f' (and {len(wrong) - 1} more of {vertex})' if len(wrong) > 1 else ''}"
            )


def _streams(tally: RecordTally, channels: Numbers, *, kept: bool) -> dict[str, Numbers]:
    """Return the record counts of an edge to compare, by name.  `kept`: its channels are the same as before."""
    written, read = tally.written[channels], tally.read[channels]
    if kept:
        return {"written": written, "read": read}
    # The difference is negative if an at-least-once reader has read records after the barrier, which are sent again.
    return {"in flight": np.array([max(0, (written - read).sum())])}


def _same(before: Numbers, after: Numbers) -> bool:
    """Return whether the numbers are equal: one by one if there are as many, otherwise their sums."""
    if len(before) == len(after):
        return bool((before == after).all())
    return int(before.sum()) == int(after.sum())


def _fact(before: Numbers, after: Numbers, phrase: str, place: str) -> str:
    """Return the fact of a violation.

    It is about the first subtask or channel that differs if they are compared one by one, and otherwise about the sums.
    """
    where, count_before, count_after = "", int(before.sum()), int(after.sum())
    if len(before) == len(after) > 1:
        number = int((before != after).argmax())
        where, count_before, count_after = f" ({place} {number})", int(before[number]), int(after[number])
    return f"{count_is(count_before, 'record')} {phrase} in the checkpoint, {count_after} in the new {place}s{where}"
