"""Which row of which file is a cell's: names and places in columns, the rows themselves stay in their files until they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sim.cells.cell import Row
from sim.cells.columns import OUTCOME
from sim.sweeps.batch import groups, read, read_group

AT_ONCE = 20_000
"""Rows of files that are compared at once."""
GROUPS_OPEN = 4
"""Row groups that stay in memory while rows are put together: those of a plan stand in its order, or are scattered over all files."""

_CHECKS = ("violations", "violation")
"""Columns of an outcome that depend on whether the run was checked: comparing two outcomes ignores them."""


class KeptRows:
    """The rows of files: of a cell that ran twice the first successful one."""

    def __init__(self, keys: Mapping[Path, pa.Table]) -> None:
        self.files = list(keys)
        cells = pa.chunked_array([chunk for table in keys.values() for chunk in table["cell"].chunks], pa.string())
        status = pa.chunked_array([chunk for table in keys.values() for chunk in table["status"].chunks], pa.string())
        sizes = np.array([len(table) for table in keys.values()], dtype=np.int64)
        self._file = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        self._row = _numbers(int(sizes.sum())) - np.repeat((np.cumsum(sizes) - sizes).astype(np.int32), sizes)
        self._ok = pc.equal(status, "ok").to_numpy().astype(bool)
        self._encoded = cells.combine_chunks().dictionary_encode() if len(cells) else pa.array([], pa.string()).dictionary_encode()
        self._code = self._encoded.indices.to_numpy()
        order = np.lexsort((_numbers(len(self._code)), ~self._ok, self._code)).astype(np.int32)  # of each cell the successful ones first
        self._first = order[np.unique(self._code[order], return_index=True)[1]]
        pa.default_memory_pool().release_unused()

    def __len__(self) -> int:
        return len(self._first)

    @property
    def cells(self) -> pa.Array:
        """The names of all cells that have a row."""
        return self._encoded.dictionary

    def find(self, ids: NDArray[np.bytes_]) -> NDArray[np.int64]:
        """The number of each cell among `cells`; -1: it has no row."""
        found = pc.index_in(pa.array(ids, pa.binary()).cast(pa.string()), value_set=self.cells)
        numbers = np.asarray(pc.fill_null(found, -1).to_numpy(zero_copy_only=False), dtype=np.int64)
        pa.default_memory_pool().release_unused()
        return numbers

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

    def _rows(self, places: NDArray[np.signedinteger[Any]], columns: Sequence[str] | None) -> pa.Table:
        file_of = self._file[places]
        parts, order = [], []
        for number in np.unique(file_of).tolist():
            own, file = np.flatnonzero(file_of == number), self.files[number]
            rows = self._row[places[own]]
            begins = _begins(file)
            group_of = np.searchsorted(begins, rows, side="right") - 1
            for group in np.unique(group_of).tolist():
                inside = group_of == group
                table = _read(file, group, None if columns is None else tuple(columns))
                parts.append(table.take(pa.array(rows[inside] - begins[group])))
                order.append(own[inside])
        if not parts:
            return pa.table({})
        back = np.argsort(np.concatenate(order), kind="stable")
        return pa.concat_tables(parts).take(pa.array(back))


@lru_cache(maxsize=GROUPS_OPEN)
def _read(file: Path, group: int, columns: tuple[str, ...] | None) -> pa.Table:
    """The rows of a row group.  The name of the file is its checksum: it never changes."""
    return read_group(file, group, columns)


@lru_cache(maxsize=256)
def _begins(file: Path) -> NDArray[np.int32]:
    """The first row of each row group."""
    sizes = groups(file)
    return (np.cumsum(sizes) - sizes).astype(np.int32)


def forget_files() -> None:
    """Free the memory of the files that were read last."""
    _read.cache_clear()
    pa.default_memory_pool().release_unused()


def _numbers(count: int) -> NDArray[np.int32]:
    """0, 1, 2 ...: places of rows."""
    return np.arange(count, dtype=np.int32)


def _outcome(row: Row, other: Row) -> str:
    """The values that both rows must share, as text: so NaN equals NaN."""
    unchecked = -1 in (row["violations"], other["violations"])
    return repr([row[name] for name in OUTCOME if not (unchecked and name in _CHECKS)])
