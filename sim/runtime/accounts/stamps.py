"""Which state each cut held, and whether restored tasks have got it: stamps that travel with the files, and a list of them apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sim.checkers.dealing import misdealt_state
from sim.checkers.restores import story_of_restore
from sim.checkers.state import RESTORED, Brought, Kind, Stamp, union_errors, unlike
from sim.checkers.violation import Violation
from sim.metrics.journal import Happening
from sim.runtime.accounts.account import RunAccount, WatchedRun
from sim.runtime.contents import StateSnapshot

_Part = dict[Kind, tuple[Stamp, int]]
"""By kind of state: its stamp and its bytes."""


class StampAccount(RunAccount):
    """Knows whose state each cut held."""

    def __init__(self, watched: WatchedRun) -> None:
        super().__init__(watched)
        self.names = self.context.names
        self.parts: dict[int, dict[int, _Part]] = {}  # by checkpoint and task
        self._dealt: dict[int, tuple[StampAccount, frozenset[str]]] = {}  # checkpoint -> who took it, vertices dealt out anew since
        self._brought: dict[int, Sequence[Brought]] = {}  # from there, by task

    def state_taken(self, checkpoint: int, task: int, snapshot: StateSnapshot) -> None:
        stamp = snapshot.stamp = Stamp(self.context.instance, checkpoint, *self.names[task])
        sizes: dict[Kind, int] = {
            "keyed": snapshot.keyed.full_bytes, "windows": snapshot.window_bytes, "operator": snapshot.operator_bytes,
            "union": snapshot.union_bytes,
        }  # fmt: skip
        self.parts.setdefault(checkpoint, {})[task] = {kind: (stamp, size_bytes) for kind, size_bytes in sizes.items() if size_bytes}

    def part_kept(self, checkpoint: int, task: int, before: int) -> None:
        if task in (parts := self.parts.get(before, {})):
            self.parts.setdefault(checkpoint, {})[task] = parts[task]

    def restored(self, checkpoint: int, task: int, brought: Sequence[Brought], stands_after: int) -> None:
        vertex, index = self.names[task]
        where = f"{vertex}[{index}], restored from checkpoint {checkpoint}"
        served = self.ledger.served(checkpoint, task)
        if brought and stands_after != served:
            fact = f"its state goes on as after {stands_after} records, its checkpoint holds what {served} records did"
            self.found.append(Violation(RESTORED, self.context.env.now, where, fact, self._story(checkpoint, task)))
        is_resized = checkpoint in self._dealt and vertex in self._dealt[checkpoint][1]
        taker = self._dealt[checkpoint][0] if is_resized else self
        story = lambda: self._story(checkpoint, task)  # noqa: E731
        union = [part["union"] for part in taker.parts_of(checkpoint, vertex) if "union" in part]
        self.found.extend(union_errors(self.now_ns, where, union, [piece for piece in brought if piece.kind == "union"], story))
        brought = [piece for piece in brought if piece.kind != "union"]
        if is_resized:
            self._brought[task] = brought
            self._judge_dealt(checkpoint, self.context.layout.vertex[task])
            return
        part = dict(self.parts.get(checkpoint, {}).get(task, {}))
        part.pop("union", None)
        self.found.extend(unlike(self.now_ns, where, part, brought, story))

    def parts_of(self, checkpoint: int, vertex: str) -> Iterator[_Part]:
        """What each subtask of a vertex has stored in a checkpoint."""
        return (part for task, part in self.parts.get(checkpoint, {}).items() if self.names[task][0] == vertex)

    def go_on(self, before: StampAccount, checkpoint: int) -> None:
        """What the other job had not taken itself was dealt out to it, and is dealt out again."""
        taker, resized = before._dealt.get(checkpoint, (before, frozenset[str]()))
        resized |= self.resized(before)
        number, self.parts[checkpoint] = {name: task for task, name in enumerate(self.names)}, {}
        for task, part in taker.parts.get(checkpoint, {}).items():
            if taker.names[task] in number:
                self.parts[checkpoint][number[taker.names[task]]] = part
        if resized:
            self._dealt[checkpoint] = taker, resized

    def forget(self, gone: Callable[[int], bool]) -> None:
        self.parts = {number: part for number, part in self.parts.items() if not gone(number)}

    def _story(self, checkpoint: int, task: int) -> tuple[str, ...]:
        """How the checkpoint came about and was restored, for one task."""
        return story_of_restore(self.context.journal.last(Happening.JOB_RESTORED), {checkpoint}, (task,), self.teller)

    def _judge_dealt(self, checkpoint: int, vertex: int) -> None:
        """When all subtasks of the vertex have got something."""
        tasks = [task for task, other in enumerate(self.context.layout.vertex) if other == vertex]
        if not all(task in self._brought for task in tasks):
            return
        (taker, _), name = self._dealt[checkpoint], self.names[tasks[0]][0]
        stamps: dict[Kind, list[Stamp]] = {"keyed": [], "windows": [], "operator": []}
        for part in taker.parts_of(checkpoint, name):
            for kind in stamps.keys() & part.keys():
                stamps[kind].append(part[kind][0])
        where = f"{name}, rescaled with checkpoint {checkpoint}"
        self.found.extend(misdealt_state(self.context.env.now, where, name, stamps, [self._brought.pop(task) for task in tasks]))
