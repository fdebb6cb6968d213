"""Rows kept as columns: a day of samples takes a tenth of the room that tuples of numbers take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from sim.metrics.growing_column import GrowingColumn

_CHUNK = 4096
"""Rows that stay tuples until they are packed: packing one by one takes longer than the row."""

_Cells: TypeAlias = GrowingColumn | list[Any]


class PackedRows:
    """Rows as columns, in the order in which they are added.  Columns of numbers become arrays; others stay as they are.

    `room`: so many rows may come, where that is known.
    """

    def __init__(self, columns: Sequence[str], room: int = 0) -> None:
        self.columns = list(columns)
        self._fresh: list[tuple[Any, ...]] = []
        self._packed: list[_Cells] = [GrowingColumn(np.int64, room) for _ in columns]

    def __len__(self) -> int:
        return len(self._fresh) + (len(self._packed[0]) if self._packed else 0)

    def add(self, row: tuple[Any, ...]) -> None:
        """A cell per column."""
        self._fresh.append(row)
        if len(self._fresh) == _CHUNK:
            self._pack()

    def extend(self, columns: Sequence[np.ndarray | Sequence[Any]]) -> None:
        """Many rows by column, in the order of the columns; arrays are of int64 or float64."""
        self._pack()
        self._packed = [_extended(column, cells) for column, cells in zip(self._packed, columns, strict=True)]

    def frame(self) -> pd.DataFrame:
        """All rows as a table; the buffer is empty afterwards.  pandas infers the types of the columns."""
        if not len(self):
            return pd.DataFrame.from_records([], columns=self.columns)
        self._pack()
        columns = {name: _without_copy(column) for name, column in zip(self.columns, self._packed, strict=True)}
        self._packed = [GrowingColumn(np.int64) for _ in columns]
        return pd.DataFrame(columns, copy=False)

    def _pack(self) -> None:
        if self._fresh:
            self._packed = [_extended(column, cells) for column, cells in zip(self._packed, zip(*self._fresh, strict=True), strict=True)]
            self._fresh.clear()


def _extended(column: _Cells, cells: np.ndarray | Sequence[Any]) -> _Cells:
    """Numbers are int64 or double.  Columns of anything else hold objects."""
    kinds = {cells.dtype.type} if isinstance(cells, np.ndarray) else set(map(type, cells))
    if isinstance(column, list) or not kinds <= {int, float, np.int64, np.float64}:
        column = column if isinstance(column, list) else column.cells.tolist()
    elif column.kind is np.int64 and not kinds <= {int, np.int64}:
        column = column.of_reals()
    column.extend(cells)
    return column


def _without_copy(column: _Cells) -> Any:
    """Objects as a list, so that pandas infers their type."""
    return column if isinstance(column, list) else column.cells
