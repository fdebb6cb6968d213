"""Watches one run and says what it broke.  What must hold is `sim.checkers`'; here the records are put before it.

A cut is judged in the moment its checkpoint completes, everything else at the end of the run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.checkers.checkpoints import broken_promises, too_many_retained
from sim.checkers.commits import broken_commits
from sim.checkers.story import Teller
from sim.checkers.violation import Violation
from sim.runtime.cut_recorder import CutRecorder

if TYPE_CHECKING:
    from sim.runtime.world import World

__all__ = ["Checking"]

CONSERVED = "credits, buffers, segments and bytes are conserved"


class Checking:
    def __init__(self, world: World, *, keep_cuts: bool = False) -> None:
        self.world = world
        self.keep_cuts = keep_cuts  # of all checkpoints, for those who look closer
        self.recorder = CutRecorder(world.plane, world.layout)
        self.teller = Teller(world.journal, world.names())
        self._found: list[Violation] = []

    def completed(self, checkpoint: int) -> None:
        """Its metadata is durable: from now on it may be restored."""
        exactly_once = self.world.scenario.checkpoint.barriers.kind != "at-least-once"
        found = self.recorder.cuts.judged(checkpoint, self.world.env.now, self.teller, exactly_once=exactly_once)
        if found is not None:
            self._found.append(found)
        if not self.keep_cuts:
            self.recorder.cuts.forget(lambda number: number <= checkpoint)

    def violations(self) -> tuple[Violation, ...]:
        """At the end of the run, in the order of their times."""
        world = self.world
        found = [*self._found, *broken_promises(world.journal, world.stats, self.teller)]
        found.extend(broken_commits(world.commits, world.stats, self.teller))
        retained = world.coordinator.machine.retained
        latest = max((number for number, row in world.stats.items() if row.status == "COMPLETED"), default=0)
        limit = world.coordinator.machine.num_retained
        found.extend(filter(None, [too_many_retained(retained, limit, latest, world.env.now, self.teller)]))
        try:
            world.plane.check()
        except AssertionError as error:
            found.append(Violation(CONSERVED, world.env.now, "the data plane", str(error)))
        return tuple(sorted(found, key=lambda one: one.time_ns))
