"""A column of numbers that grows in place, in memory that is taken once.

Arrays that grow side by side leave holes between them, and a day has a dozen: holes were a quarter of what it left behind.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

MOST_ROOM = 1 << 20
"""No more is asked for before it is needed: a run may be said to last a year, and end with its data."""


class GrowingColumn:
    """Numbers of one type.  `room`: so many may come; memory that nothing is written to is not taken from the machine."""

    __slots__ = ("_cells", "_length")

    def __init__(self, kind: type[np.number], room: int = 0) -> None:
        self._cells = np.empty(min(room, MOST_ROOM), kind)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    @property
    def cells(self) -> np.ndarray:
        """All numbers so far, without a copy."""
        return self._cells[: self._length]

    @property
    def kind(self) -> type[np.number]:
        kind: type[np.number] = self._cells.dtype.type
        return kind

    def extend(self, cells: np.ndarray | Sequence[float]) -> None:
        """Numbers that the type holds."""
        end = self._length + len(cells)
        if end > len(self._cells):
            self._cells = self._moved(self.kind, max(end, 2 * len(self._cells)))
        self._cells[self._length : end] = cells
        self._length = end

    def cut(self, length: int) -> None:
        """Keep so many."""
        self._length = min(self._length, length)

    def of_reals(self) -> GrowingColumn:
        """The same numbers, beside which others may stand that are not whole."""
        column = GrowingColumn(np.float64)
        column._cells, column._length = self._moved(np.float64, len(self._cells)), self._length
        return column

    def _moved(self, kind: type[np.number], room: int) -> np.ndarray:
        moved = np.empty(room, kind)
        moved[: self._length] = self.cells
        return moved
