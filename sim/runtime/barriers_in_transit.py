"""The options a barrier carries: markers are numbers in the plane, this remembers what each was sent with.

Options may differ per edge (forced aligned ones) and per writer (one that timed out sends unaligned barriers).
"""

from __future__ import annotations

from sim.protocol.options import BarrierOptions

_KEPT = 1000
"""Checkpoints remembered: as many as may expire while one barrier waits behind data."""


class BarriersInTransit:
    """The options of all barriers that are on their way, by checkpoint."""

    def __init__(self) -> None:
        self._sent: dict[int, dict[tuple[int, int], BarrierOptions]] = {}

    def send(self, checkpoint: int, writer: int, edge: int, options: BarrierOptions) -> None:
        if checkpoint not in self._sent:
            self._sent[checkpoint] = {}
            for old in [number for number in self._sent if number <= checkpoint - _KEPT]:
                del self._sent[old]
        self._sent[checkpoint][writer, edge] = options

    def options(self, checkpoint: int, writer: int, edge: int) -> BarrierOptions:
        """The options of a barrier.  Where the end of the data stands for it: those of another barrier on the edge, aligned if possible."""
        row = self._sent[checkpoint]
        if (writer, edge) in row:
            return row[writer, edge]
        return min((options for (_, e), options in row.items() if e == edge), key=lambda options: options.unaligned)

    def was_sent(self, checkpoint: int, writer: int, edge: int) -> bool:
        return (writer, edge) in self._sent[checkpoint]

    def announced_options(self, checkpoint: int, edge: int) -> BarrierOptions:
        """The options of any barrier on this edge that can time out: the announcement carries the deadline, and all barriers share it."""
        return next(row for (_, e), row in self._sent[checkpoint].items() if e == edge and row.timeoutable)
