"""The account of barriers that wait in outputs and may time out there."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sim.checkers.conversion import left_behind
from sim.runtime.accounts.account import RunAccount, WatchedRun


class ConversionAccount(RunAccount):
    """Knows the tasks in whose outputs a barrier waits as it was written, and those that have heard of its deadline meanwhile."""

    def __init__(self, watched: WatchedRun) -> None:
        super().__init__(watched)
        self._waiting: set[tuple[int, int]] = set()  # (checkpoint, task)
        self._late: set[tuple[int, int]] = set()

    def barrier_waits(self, checkpoint: int, task: int) -> None:
        self._waiting.add((checkpoint, task))

    def barrier_left(self, checkpoint: int, task: int) -> None:
        self._waiting.discard((checkpoint, task))

    def barrier_converted(self, checkpoint: int, task: int) -> None:
        self._waiting.discard((checkpoint, task))
        self._late.discard((checkpoint, task))

    def deadline_heard(self, checkpoint: int, task: int) -> None:
        if (checkpoint, task) in self._waiting:
            self._late.add((checkpoint, task))

    def completed(self, checkpoint: int, retained: Sequence[int]) -> None:
        """A task that has given its snapshot up converts nothing: only of a completed checkpoint all have gone on."""
        if self._late:
            found = left_behind(self.now_ns, checkpoint, [task for number, task in self._late if number == checkpoint], self.teller)
            self.tell_first([] if found is None else [found])
        self.forget(lambda number: number <= checkpoint)

    def forget(self, gone: Callable[[int], bool]) -> None:
        for several in (self._waiting, self._late):
            several.difference_update([row for row in several if gone(row[0])])
