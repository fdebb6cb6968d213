"""A checkpoint dealt out to another parallelism: the new tasks together hold what the old ones held, all of it once.

Of vertices and streams that keep their parallelism every subtask keeps its own; of the others only sums can be compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sim.checkers.ledger import Numbers, RecordTally
from sim.checkers.state import Brought, Kind, Stamp
from sim.checkers.violation import Violation, count_is

DEALT = "a rescaled job goes on with everything its checkpoint holds, once"


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of a job: the tasks of each vertex and the channels of each edge."""

    vertices: tuple[str, ...]
    tasks: tuple[Numbers, ...]
    edges: tuple[tuple[int, int], ...]  # vertices written and read by
    channels: tuple[Numbers, ...]

    def channels_alike(self, other: Shape) -> bool:
        """Whether every edge has the same number of channels."""
        return [len(own) for own in self.channels] == [len(theirs) for theirs in other.channels]

    def resized(self, other: Shape) -> set[int]:
        """Vertices with another number of tasks."""
        return {number for number, (own, theirs) in enumerate(zip(self.tasks, other.tasks, strict=True)) if len(own) != len(theirs)}


def misdealt(time_ns: int, where: str, old: tuple[Shape, RecordTally], new: tuple[Shape, RecordTally]) -> Iterator[Violation]:
    """Records served, records that wait for their outputs, records in flight."""
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


def misdealt_state(
    time_ns: int, where: str, vertex: str, stamps_by_kind: Mapping[Kind, Sequence[Stamp]], brought: Sequence[Sequence[Brought]]
) -> Iterator[Violation]:
    """`stamps_by_kind`: those of a vertex in the checkpoint; `brought`: what each of its new subtasks has got."""
    for kind, stamps in stamps_by_kind.items():
        shares: dict[Stamp | None, Fraction] = dict.fromkeys(stamps, Fraction(0))
        for piece in (piece for several in brought for piece in several if piece.kind == kind):
            shares[piece.stamp] = shares.get(piece.stamp, Fraction(0)) + piece.share
        wrong = [stamp for stamp, share in shares.items() if share != (stamp in stamps)]
        if wrong:
            fact = f"{float(shares[wrong[0]]):g} times the {kind} state of {wrong[0]} comes back"
            yield Violation(DEALT, time_ns, where, f"{fact}{f' (and {len(wrong) - 1} more of {vertex})' if len(wrong) > 1 else ''}")


def _streams(tally: RecordTally, channels: Numbers, *, kept: bool) -> dict[str, Numbers]:
    """The numbers to compare, by name.  `kept`: the streams have kept their positions."""
    written, read = tally.written[channels], tally.read[channels]
    if kept:
        return {"written": written, "read": read}
    return {"in flight": np.array([(written - read).sum()])}


def _same(before: Numbers, after: Numbers) -> bool:
    """Whether two rows are equal: subtask by subtask if the parallelism is the same, else in sum."""
    if len(before) == len(after):
        return bool((before == after).all())
    return int(before.sum()) == int(after.sum())


def _fact(before: Numbers, after: Numbers, phrase: str, place: str) -> str:
    """Where subtasks or channels can be compared one by one, the fact names the first that differs."""
    where, count_before, count_after = "", int(before.sum()), int(after.sum())
    if len(before) == len(after) > 1:
        number = int((before != after).argmax())
        where, count_before, count_after = f" ({place} {number})", int(before[number]), int(after[number])
    return f"{count_is(count_before, 'record')} {phrase} in the checkpoint, {count_after} in the new {place}s{where}"
