"""Invariants of restored state: each task receives all of its state, once, also after a rescale."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from sim.results.violations import number_of
from sim.runtime.context import Kind, RestoredState, Stamp, StateSnapshot
from sim.runtime.invariants.invariant import ByCheckpoint, Invariant, ObservedRun
from sim.runtime.invariants.records import DEALT

# Stored state has a stamp with its owner and its checkpoint.

RESTORED = "a restored task gets all of its state in the checkpoint, once"

Part = dict[Kind, tuple[Stamp, int]]
"""Kind of state -> its stamp and its size [bytes]."""


class RestoredStates(Invariant):
    """Checks that restored tasks get exactly the state that their checkpoint contains."""

    def __init__(self, run: ObservedRun) -> None:
        super().__init__(run)
        self.names = self.context.names
        self.parts = ByCheckpoint[Part]()
        # checkpoint of another job instance -> (invariant of that instance, vertices that were rescaled since)
        self._rescaled_from: dict[int, tuple[RestoredStates, frozenset[str]]] = {}
        # task of a rescaled vertex -> state it has restored
        self._restored_parts: dict[int, Sequence[RestoredState]] = {}

    def state_taken(self, checkpoint: int, task: int, snapshot: StateSnapshot) -> None:
        """Stamp a snapshot with its owner, and record the sizes of its state."""
        stamp = snapshot.stamp = Stamp(self.context.instance, checkpoint, *self.names[task])
        sizes: dict[Kind, int] = {
            "keyed": snapshot.keyed.full_bytes,
            "windows": snapshot.window_bytes,
            "operator": snapshot.operator_bytes,
            "union": snapshot.union_bytes,
        }
        self.parts.setdefault(checkpoint, {})[self.names[task]] = {
            kind: (stamp, size_bytes) for kind, size_bytes in sizes.items() if size_bytes
        }

    def continue_from(self, before: RestoredStates, checkpoint: int) -> None:
        """Handle that the job starts from a checkpoint, which may have been taken by an earlier instance than `before`.

        Vertices that were rescaled since then get redistributed state.
        """
        taker, resized = before._rescaled_from.get(checkpoint, (before, frozenset[str]()))
        resized |= self.resized(before)
        parts, names = taker.parts.get(checkpoint, {}), set(self.names)
        self.parts[checkpoint] = {name: part for name, part in parts.items() if name in names}
        if resized:
            self._rescaled_from[checkpoint] = taker, resized

    def restored(
        self, checkpoint: int, task: int, restored_parts: Sequence[RestoredState], restored_record_count: int
    ) -> None:
        """Check the state that a task has restored, and how many records it contains."""
        vertex, served = self.names[task][0], self.ledger.served(checkpoint, task)
        taker, resized = self._rescaled_from.get(checkpoint, (self, frozenset[str]()))
        is_resized = vertex in resized
        own = [piece for piece in restored_parts if piece.kind != "union"]
        union = [
            part["union"] for part in (taker if is_resized else self).parts_of(checkpoint, vertex) if "union" in part
        ]
        facts = list(_union_errors(union, [piece for piece in restored_parts if piece.kind == "union"]))
        if restored_parts and restored_record_count != served:
            facts.append(
                f"its state goes on as after {restored_record_count} records, its checkpoint holds what {served} records did"
            )
        if is_resized:
            self._restored_parts[task] = own
            self._check_redistribution(checkpoint, self.context.layout.vertex[task])
        else:
            part = self.parts.get(checkpoint, {}).get(self.names[task], {})
            facts += _differences({kind: row for kind, row in part.items() if kind != "union"}, own)
        where = f"{self.formatter.task(task)}, restored from checkpoint {checkpoint}"
        for fact in facts:
            self.report(RESTORED, fact, where=where, checkpoint=checkpoint, task=task)

    def parts_of(self, checkpoint: int, vertex: str) -> Iterator[Part]:
        """Return the state that each subtask of a vertex has stored in a checkpoint."""
        return (part for name, part in self.parts.get(checkpoint, {}).items() if name[0] == vertex)

    def _check_redistribution(self, checkpoint: int, vertex: int) -> None:
        """Check that the new subtasks of a rescaled vertex together received each part of the old state once.

        Nothing is checked before all of them are restored.
        """
        tasks = [task for task, other in enumerate(self.context.layout.vertex) if other == vertex]
        if not all(task in self._restored_parts for task in tasks):
            return
        (taker, _), name = self._rescaled_from[checkpoint], self.names[tasks[0]][0]
        pieces = [piece for task in tasks for piece in self._restored_parts.pop(task)]
        kinds: tuple[Kind, ...] = ("keyed", "windows", "operator")
        for kind in kinds:
            stamps = [part[kind][0] for part in taker.parts_of(checkpoint, name) if kind in part]
            shares: dict[Stamp | None, Fraction] = dict.fromkeys(stamps, Fraction(0))
            for piece in pieces:
                if piece.kind == kind:
                    shares[piece.stamp] = shares.get(piece.stamp, Fraction(0)) + piece.share
            wrong = [stamp for stamp, share in shares.items() if share != (stamp in stamps)]
            if wrong:
                others = f" (and {len(wrong) - 1} more of {name})" if len(wrong) > 1 else ""
                fact = f"{float(shares[wrong[0]]):g} times the {kind} state of {wrong[0]} comes back{others}"
                self.report(DEALT, fact, where=f"{name}, rescaled with checkpoint {checkpoint}")


def _union_errors(stored: Iterable[tuple[Stamp, int]], pieces: Iterable[RestoredState]) -> Iterator[str]:
    """Yield what is wrong if a subtask did not receive the union list state of all subtasks, once.

    `stored`: (stamp, size in bytes) of each part in the checkpoint.
    """
    expected = sorted((stamp, size_bytes, Fraction(1)) for stamp, size_bytes in stored)
    restored = sorted((piece.stamp, piece.size_bytes, piece.share) for piece in pieces if piece.stamp is not None)
    if restored != expected:
        got, held = (
            f"{number_of(len(rows), 'part')}{of_what}, {number_of(sum(row[1] for row in rows), 'byte')}"
            for rows, of_what in ((restored, " of union list state"), (expected, ""))
        )
        yield f"it gets {got}; the checkpoint holds {held}"


def _differences(stored: Mapping[Kind, tuple[Stamp, int]], restored: Sequence[RestoredState]) -> Iterator[str]:
    """Yield what is wrong if a task of a vertex that was not rescaled did not receive its own state, in full, once.

    `stored`: kind of state -> (stamp, size in bytes) in the checkpoint.
    """
    for kind, (stamp, size_bytes) in stored.items():
        pieces = [piece for piece in restored if piece.kind == kind]
        if not pieces:
            yield f"its {kind} state is not restored: {number_of(size_bytes, 'byte')} in the checkpoint"
        elif len(pieces) > 1 or pieces[0].share != 1:
            times = float(sum(piece.share for piece in pieces))
            yield f"its {kind} state comes back {times:g} times, in {number_of(len(pieces), 'part')}"
        elif pieces[0].stamp != stamp:
            yield f"its {kind} state is that of {pieces[0].stamp}, the checkpoint holds that of {stamp}"
        elif pieces[0].size_bytes != size_bytes:
            back = number_of(pieces[0].size_bytes, "byte")
            yield f"its {kind} state comes back with {back}, the checkpoint holds {size_bytes}"
        elif pieces[0].copied_from not in (None, (stamp.vertex, stamp.subtask, stamp.checkpoint)):
            yield f"its {kind} state is read from a local copy of another one, {pieces[0].copied_from}"
    for piece in restored:
        if piece.kind not in stored:
            yield f"it gets {piece.kind} state, that of {piece.stamp}, and its checkpoint holds none"
