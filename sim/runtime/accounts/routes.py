"""The account of routes: at the end of a run the records of each output are dealt to its readers once more."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sim.checkers.routes import Route, astray
from sim.checkers.violation import Violation
from sim.model.randomness.streams import draw, stream
from sim.plane.seam.interface import Ship
from sim.runtime.accounts.account import EndOfRun, RunAccount

_CHOOSING = frozenset({Ship.HASH, Ship.REBALANCE, Ship.RESCALE})
"""Others send to all readers, or to the first one."""


class RouteAccount(RunAccount):
    """Knows how each output chooses.  A job that goes on with the output of another one has begun elsewhere in its turns."""

    def at_the_end(self, end: EndOfRun) -> Iterator[Violation]:
        if self.context.origin is None:
            yield from astray(self.now_ns, self._routes(), self.context.plane.channels("records_out")["records_out"], self.teller)

    def _routes(self) -> Iterator[Route]:
        spec, layout = self.context.spec, self.context.layout
        for task, number, channels in layout.partitions:
            edge = spec.edges[number]
            if edge.ship not in _CHOOSING or len(channels) == 1:
                continue
            own = np.array(channels, np.int64)
            if edge.ship == Ship.HASH:
                keys = stream(spec.seed, "route", edge.name, layout.subtask[task])
                yield Route(task, own, keys, np.array(edge.weights, np.int64) if edge.weights else None)
            else:
                turn = draw(stream(spec.seed, "start", edge.name, layout.subtask[task]), 0) if edge.ship == Ship.REBALANCE else 0
                yield Route(task, own, first=turn * len(own) >> 32)
