"""The account of cuts: what each completed checkpoint holds of every channel.  A cut is judged in the moment its checkpoint completes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sim.checkers.cut import Cut, Cuts
from sim.checkers.restores import ONCE, Surplus, broken_restores
from sim.checkers.violation import Violation
from sim.plane.seam.positions import is_bare
from sim.runtime.accounts.account import EndOfRun, RunAccount, WatchedRun


class CutAccount(RunAccount):
    """Knows which cuts are not exact, and what became of them."""

    def __init__(self, watched: WatchedRun) -> None:
        super().__init__(watched)
        self.cuts = Cuts(self.context.layout.writer, self.context.layout.reader)
        self.surpluses: dict[int, Surplus] = {}  # by checkpoint
        self._exactly_once = self.context.scenario.checkpoint.barriers.record.exactly_once

    def completed(self, checkpoint: int, retained: Sequence[int]) -> None:
        self._fill(self.cuts.of(checkpoint), checkpoint)
        found = self.cuts.judged(checkpoint, self.now_ns, self.teller, exactly_once=self._exactly_once)
        if found is not None:
            self.found.append(found)
        if (worst := self.cuts.worst(checkpoint)) is not None:
            twice_bytes, lost_bytes, channel, account = worst
            self.surpluses[checkpoint] = Surplus(twice_bytes, lost_bytes, self.cuts.ends(channel), account)
        self.cuts.forget(lambda number: number <= checkpoint)

    def _fill(self, cut: Cut, checkpoint: int) -> None:
        """From what the checkpoint holds: exactly what would be restored."""
        for task, part in self.contents.checkpoints.get(checkpoint, {}).items():
            into, out = self.watched.inputs[task], self.watched.outputs[task]
            cut.consumed[into], cut.written[out] = part.position.consumed, part.position.written
            if not is_bare(part.position):
                cut.captured_input[into], cut.captured_output[out] = part.position.captured, part.position.overtaken

    def at_the_end(self, end: EndOfRun) -> Iterator[Violation]:
        surpluses = self.surpluses if self._exactly_once else {number: row for number, row in self.surpluses.items() if row.lost_bytes}
        yield from broken_restores(end.turns, surpluses, self._savepoints(), self.teller, self.context.begun_from)

    def repetitions(self) -> tuple[Violation, ...]:
        """What restarts did twice and were allowed to: barriers that count promise to lose nothing, and no more (law 12)."""
        if self._exactly_once:
            return ()
        surpluses = {number: row for number, row in self.surpluses.items() if not row.lost_bytes}
        found = broken_restores(self.context.journal, surpluses, self._savepoints(), self.teller, self.context.begun_from)
        return tuple(row for row in found if row.law == ONCE)

    def _savepoints(self) -> set[int]:
        return {number for number, row in self.context.stats.items() if row.savepoint_format}
