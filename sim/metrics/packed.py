"""Rows kept as columns: a day of samples takes a tenth of the room that tuples of numbers take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["PackedRows"]

_CHUNK = 4096
"""Rows that stay tuples until they are packed: packing one by one takes longer than the row."""


class PackedRows:
    """Rows in the order they are added.  Numbers become arrays; whatever else a column holds stays as it is."""

    def __init__(self, columns: Sequence[str]) -> None:
        self.columns = list(columns)
        self._fresh: list[tuple[Any, ...]] = []
        self._packed: list[list[np.ndarray[Any, Any]]] = [[] for _ in columns]

    def __len__(self) -> int:
        return len(self._fresh) + sum(map(len, self._packed[0]))

    def add(self, row: tuple[Any, ...]) -> None:
        """A cell per column."""
        self._fresh.append(row)
        if len(self._fresh) == _CHUNK:
            self._pack()

    def frame(self) -> pd.DataFrame:
        """All rows, which are let go.  The type of a column is what pandas finds for its cells."""
        if not len(self):
            return pd.DataFrame.from_records([], columns=self.columns)
        self._pack()
        columns = {}
        for name, parts in zip(self.columns, self._packed, strict=True):
            columns[name] = _joined(parts)
            parts.clear()
        return pd.DataFrame(columns, copy=False)

    def _pack(self) -> None:
        if self._fresh:
            for parts, cells in zip(self._packed, zip(*self._fresh, strict=True), strict=True):
                parts.append(_array(cells))
            self._fresh.clear()


def _array(cells: Sequence[Any]) -> np.ndarray[Any, Any]:
    """Numbers become int64 or double.  Columns of anything else hold objects."""
    kinds = set(map(type, cells))
    if kinds <= {int, np.int64}:
        return np.array(cells, np.int64)
    if kinds <= {float, int, np.float64, np.int64}:
        return np.array(cells, np.float64)
    array = np.empty(len(cells), object)
    array[:] = cells
    return array


def _joined(parts: Sequence[np.ndarray[Any, Any]]) -> Any:
    """Objects as a list: pandas looks what they are."""
    if any(part.dtype == object for part in parts):
        return [cell for part in parts for cell in part.tolist()]
    return np.concatenate(parts)
