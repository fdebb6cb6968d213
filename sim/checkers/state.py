"""Stored state carries a stamp with its owner and its cut.  A restored task must have got all of its own state, once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Literal, NamedTuple

from sim.checkers.violation import Violation, number_of

RESTORED = "a restored task has the state its checkpoint holds, all of it, once"

Kind = Literal["keyed", "windows", "operator", "union"]


class Stamp(NamedTuple):
    """The stamp on state: the subtask and the cut that it belongs to."""

    instance: int  # of the job
    checkpoint: int
    vertex: str
    subtask: int

    def __str__(self) -> str:
        return f"{self.vertex}[{self.subtask}] at checkpoint {self.checkpoint}{f' of job {self.instance}' if self.instance else ''}"


class Brought(NamedTuple):
    """State that a restored task has received."""

    kind: Kind
    stamp: Stamp | None  # None: the state carries none
    share: Fraction  # of its key groups or elements that come here
    size_bytes: int  # of all files the state was read from, before the share
    copied_from: tuple[str | int, ...] | None = None  # read from a local copy: vertex, index, checkpoint on its label


def union_errors(
    time_ns: int, where: str, stored: Iterable[tuple[Stamp, int]], restored: Iterable[Brought], story: Callable[[], tuple[str, ...]]
) -> Iterator[Violation]:
    """Each subtask has the union list state of all subtasks, each part whole and once; `stored`: stamp and bytes of each part."""
    expected = sorted((stamp, size_bytes, Fraction(1)) for stamp, size_bytes in stored)
    found = sorted((piece.stamp, piece.size_bytes, piece.share) for piece in restored if piece.stamp is not None)
    if found != expected:
        parts, size_bytes = number_of(len(expected), "part"), sum(row[1] for row in expected)
        fact = f"it gets {number_of(len(found), 'part')} of union list state, {number_of(sum(row[1] for row in found), 'byte')}"
        yield Violation(RESTORED, time_ns, where, f"{fact}; the checkpoint holds {parts}, {number_of(size_bytes, 'byte')}", story())


def unlike(
    time_ns: int, where: str, stored: Mapping[Kind, tuple[Stamp, int]], brought: Sequence[Brought], story: Callable[[], tuple[str, ...]]
) -> Iterator[Violation]:
    """`stored`: the stamp and the bytes of each kind of state in the checkpoint; the task was not rescaled."""

    def broken(fact: str) -> Violation:
        return Violation(RESTORED, time_ns, where, fact, story())

    for kind, (stamp, size_bytes) in stored.items():
        own = [piece for piece in brought if piece.kind == kind]
        if not own:
            yield broken(f"its {kind} state is not restored: {number_of(size_bytes, 'byte')} in the checkpoint")
        elif len(own) > 1 or own[0].share != 1:
            times = float(sum(piece.share for piece in own))
            yield broken(f"its {kind} state comes back {times:g} times, in {number_of(len(own), 'part')}")
        elif own[0].stamp != stamp:
            yield broken(f"its {kind} state is that of {own[0].stamp}, the checkpoint holds that of {stamp}")
        elif own[0].size_bytes != size_bytes:
            yield broken(f"its {kind} state comes back with {number_of(own[0].size_bytes, 'byte')}, the checkpoint holds {size_bytes}")
        elif own[0].copied_from not in (None, (stamp.vertex, stamp.subtask, stamp.checkpoint)):
            yield broken(f"its {kind} state is read from a local copy of another one, {own[0].copied_from}")
    for piece in brought:
        if piece.kind not in stored:
            yield broken(f"it gets {piece.kind} state, that of {piece.stamp}, and its checkpoint holds none")
