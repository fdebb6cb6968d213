"""Which row of which file is a cell's: names and places in columns, the rows themselves stay in their files until they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sim.cells.cell import Row
from sim.cells.columns import OUTCOME
from sim.sweeps.batch import read

AT_ONCE = 20_000
"""Rows of files that are compared at once."""
FILES_OPEN = 8
"""Files whose rows are in memory while rows are put together."""

_CHECKS = ("violations", "violation")
"""Columns of an outcome that depend on whether the run was checked: comparing two outcomes ignores them."""


class KeptRows:
    """The rows of files: of a cell that ran twice the first successful one."""

    def __init__(self, keys: Mapping[Path, pa.Table]) -> None:
        self.files = list(keys)
        cells = pa.chunked_array([chunk for table in keys.values() for chunk in table["cell"].chunks], pa.string())
        status = pa.chunked_array([chunk for table in keys.values() for chunk in table["status"].chunks], pa.string())
        sizes = np.array([len(table) for table in keys.values()], dtype=np.int64)
        self._file = np.repeat(np.arange(len(sizes)), sizes)
        self._row = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        self._ok = pc.equal(status, "ok").to_numpy().astype(bool)
        self._encoded = cells.combine_chunks().dictionary_encode() if len(cells) else pa.array([], pa.string()).dictionary_encode()
        self._code = self._encoded.indices.to_numpy()
        order = np.lexsort((np.arange(len(self._code)), ~self._ok, self._code))  # of each cell the successful ones first
        self._first = order[np.unique(self._code[order], return_index=True)[1]]

    def __len__(self) -> int:
        return len(self._first)

    @property
    def cells(self) -> pa.Array:
        """The names of all cells that have a row."""
        return self._encoded.dictionary

    def find(self, ids: NDArray[np.bytes_]) -> NDArray[np.int64]:
        """The number of each cell among `cells`; -1: it has no row."""
        found = pc.index_in(pa.array(ids, pa.binary()).cast(pa.string()), value_set=self.cells)
        return np.asarray(pc.fill_null(found, -1).to_numpy(zero_copy_only=False), dtype=np.int64)

    def is_ok(self, cells: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether these cells have a result; no row is none."""
        if not len(self):
            return np.zeros(len(cells), dtype=bool)
        return np.asarray((cells >= 0) & self._ok[self._first[cells]], dtype=bool)

    def table(self, cells: NDArray[np.int64], columns: Sequence[str] | None = None) -> pa.Table:
        """The rows of these cells, in this order."""
        return self._rows(self._first[cells], columns)

    def column(self, name: str) -> NDArray[np.float64]:
        """A column of numbers for all `cells`; NaN: no value."""
        found = np.full(len(self._ok), np.nan)
        at = 0
        for file in self.files:
            values = read(file, [name])[name].cast(pa.float64()).to_numpy()
            found[at : at + len(values)] = values
            at += len(values)
        return found[self._first]

    def contradicting(self) -> list[Path]:
        """Files with different outcomes of the same cell.  None of them can be trusted."""
        ok = np.flatnonzero(self._ok)
        several = np.bincount(self._code[ok], minlength=len(self))[self._code[ok]] > 1
        places = ok[several][np.argsort(self._code[ok[several]], kind="stable")]
        found: dict[Path, None] = {}
        first: tuple[int, Row] | None = None
        for place, row in self._in_parts(places):
            if first is None or self._code[first[0]] != self._code[place]:
                first = place, row
            elif _outcome(first[1], row) != _outcome(row, first[1]):
                found |= {self.files[self._file[first[0]]]: None, self.files[self._file[place]]: None}
        return list(found)

    def _in_parts(self, places: NDArray[np.int64]) -> Iterator[tuple[int, Row]]:
        for i in range(0, len(places), AT_ONCE):
            part = places[i : i + AT_ONCE]
            yield from zip(part.tolist(), self._rows(part, list(OUTCOME)).to_pylist(), strict=True)

    def _rows(self, places: NDArray[np.int64], columns: Sequence[str] | None) -> pa.Table:
        file_of = self._file[places]
        parts, order = [], []
        for number in np.unique(file_of).tolist():
            own = np.flatnonzero(file_of == number)
            parts.append(_read(self.files[number], None if columns is None else tuple(columns)).take(pa.array(self._row[places[own]])))
            order.append(own)
        if not parts:
            return pa.table({})
        back = np.argsort(np.concatenate(order), kind="stable")
        return pa.concat_tables(parts).take(pa.array(back))


@lru_cache(maxsize=FILES_OPEN)
def _read(file: Path, columns: tuple[str, ...] | None) -> pa.Table:
    """The rows of a file.  Its name is its checksum: it never changes."""
    return read(file, columns)


forget_files: Callable[[], None] = _read.cache_clear
"""Free the memory of the files that were read last."""


def _outcome(row: Row, other: Row) -> str:
    """The values that both rows must share, as text: so NaN equals NaN."""
    unchecked = -1 in (row["violations"], other["violations"])
    return repr([row[name] for name in OUTCOME if not (unchecked and name in _CHECKS)])
