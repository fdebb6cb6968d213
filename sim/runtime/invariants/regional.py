"""Invariants of regional checkpoints (FLIP-600), and how the others observe parts that are replaced."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sim.runtime.context import Checks, StateSnapshot
from sim.runtime.invariants.files import FileLifetimes, OwnedFile
from sim.runtime.invariants.invariant import Invariant


class ReferencedLifetimes(FileLifetimes):
    """Checks that files are deleted, except those of checkpoints that are kept because others refer to them."""

    def _owned_files(self) -> Iterator[OwnedFile]:
        oldest = min(self.run.coordinator.needed, default=0)
        return (file for file in super()._owned_files() if file.last < oldest)


def regional_invariants(invariants: Iterable[type[Invariant]]) -> list[type[Invariant]]:
    """Return the invariants of a job with regional checkpoints, from those of a job without."""
    return [ReferencedLifetimes if invariant is FileLifetimes else invariant for invariant in invariants]


def forget_replaced_parts(checks: Checks, observers: Iterable[Invariant]) -> None:
    """Let invariants forget what a task does for a checkpoint in which its part is replaced, before and after that."""
    replaced = set[tuple[int, int]]()
    keep, take = checks.part_kept, checks.state_taken

    def part_kept(checkpoint: int, task: int, before: int) -> None:
        replaced.add((checkpoint, task))
        for invariant in observers:
            invariant.ledger.of(checkpoint)  # files the counts of its cut, which are written over then
            for _, data in invariant._by_checkpoint():  # noqa: SLF001
                data.get(checkpoint, {}).pop(invariant.context.names[task], None)
        keep(checkpoint, task, before)

    def state_taken(checkpoint: int, task: int, snapshot: StateSnapshot) -> None:
        if (checkpoint, task) not in replaced:
            take(checkpoint, task, snapshot)

    vars(checks).update(part_kept=part_kept, state_taken=state_taken)
