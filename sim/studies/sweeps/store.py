"""Storage of the rows of a sweep.  Finished rows are written to the sweep's folder while it runs, so that it can be resumed."""

# The folder of a sweep.  The name of a file is the checksum of its bytes, so a file never changes.  It may only be
# joined with others, or moved to `set-aside`.
#
#   folder/
#     .ckptsim.lock                    held by the command that adds rows
#     cells/
#       3f9c...e1.parquet              a batch: rows of cells, in row groups of 20,000
#       a07b...42.parquet
#     set-aside/
#       77d0...90.parquet              its checksum or its columns are wrong; its cells run again
#
#   finished row --> Store.add --> Store.put --> one file per batch --> Store.join: 64 files of this command
#                    at most 1 s                                           become one; a file with 50,000 rows
#                                                                          is not joined again
#
# RowIndex is the index of all rows, in memory.  Its columns give the file, the row number in that file, the cell and
# the status of each row:
#
#   position          0      1      2      3       Cell "c" has the rows 1 and 3.  `_first` points to 3, because
#   _file             0      0      0      1       successful rows are preferred.  The other columns of this row
#   _row              0      1      2      0       are read from row 0 of file 1 on demand.
#   _code (cell)      b      c      a      c
#   _ok               yes    no     yes    yes
#
# Cells without a row, or with an error only, run again when the sweep is resumed.  A killed sweep loses at most the
# waiting rows.  One command at a time adds rows.  A cell may have several rows if files were being joined when a command
# was killed, or if files were copied from another folder.  These rows are equal, because a run depends only on its cell.
#
# We first wrote one file per cell, which is too many files for 100,000 cells (commit 0298e2d8).  We first kept rows as
# dicts of 15 kB each, so that 200,000 cells took 3.3 GB; 1,100,000 cells now take 930 MB (commit 8f92d542,
# docs/performance.md).

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sim.model.files import remove_partials, replace_file, writing_to
from sim.studies.cells import OUTCOME, PROVENANCE, Row
from sim.studies.plan import Cell, CellPlan, distinct, planned_of

# ---- Files of rows. The checksum in a file's name is verified before the file is parsed, because a damaged file may make the
# parser allocate any amount of memory. Files with the columns of another version are rejected.

_SUFFIX = ".parquet"
_DIGEST_BYTES = 16
_NAME = re.compile(rf"[0-9a-f]{{{2 * _DIGEST_BYTES}}}{re.escape(_SUFFIX)}")
_ARROW = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
OUTCOME_TYPES, PROVENANCE_TYPES = (
    {name: _ARROW[column.type] for name, column in columns.items()} for columns in (OUTCOME, PROVENANCE)
)
_COLUMNS = pa.schema(list((OUTCOME_TYPES | PROVENANCE_TYPES).items()))
GROUP_ROWS = 20_000
"""Rows per row group, which are read together."""
KEY = ("cell", "status")
"""Columns that identify a row's cell and its status.  A sweep keeps only these columns in memory."""


class InvalidBatchError(ValueError):
    """Raised for a file whose rows must not be used.  The message is a short reason."""


def table(rows: Iterable[Mapping[str, Any]], columns: Mapping[str, pa.DataType]) -> pa.Table:
    """Return a table with these columns; null for missing values."""
    return pa.Table.from_pylist([dict(row) for row in rows], schema=pa.schema(list(columns.items())))


def encode_batch(rows: Sequence[Row]) -> tuple[str, bytes]:
    """Return the (name, content) of a file with these rows."""
    return encode_table(table(rows, OUTCOME_TYPES | PROVENANCE_TYPES))


def encode_table(rows: pa.Table) -> tuple[str, bytes]:
    """Return the (name, content) of a file with the rows of a table."""
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, row_group_size=GROUP_ROWS)
    content = sink.getvalue().to_pybytes()
    return _digest(content) + _SUFFIX, content


def read_verified_keys(path: Path) -> pa.Table:
    """Verify a file, and return its columns KEY.

    Raises:
        InvalidBatchError: It is damaged, or has the columns of another version.
    """
    content = path.read_bytes()
    if _digest(content) + _SUFFIX != path.name:
        raise InvalidBatchError("its content does not match the checksum in its name")
    try:
        file = pq.ParquetFile(pa.BufferReader(content))
        if not file.schema_arrow.equals(_COLUMNS):
            raise InvalidBatchError("written by another version of ckptsim")
        keys = file.read(columns=list(KEY))
    except (pa.ArrowException, OSError):
        raise InvalidBatchError("not a Parquet file") from None
    are_valid = pc.and_(
        pc.greater(pc.binary_length(keys["cell"]), 0), pc.is_in(keys["status"], pa.array(["ok", "error"]))
    )
    if not pc.all(pc.fill_null(are_valid, fill_value=False), min_count=0).as_py():
        raise InvalidBatchError("has rows without a cell id or a status")
    return keys


def _columns_of(path: Path, columns: list[str] | None = None) -> pa.Table:
    """Return columns of a verified file; all of them if `columns` is None."""
    return pq.read_table(path, columns=columns, partitioning=None)


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=_DIGEST_BYTES).hexdigest()


# ---- The index of rows: cell, file and row number in columns. Rows are read from their files on demand.

MAX_CACHED_GROUPS = 4
"""Maximum row groups in the cache.  A few suffice: rows are read in the order of the files, or scattered over all of them."""


class RowIndex:
    """Index of the rows in files: for each cell, the first successful row, or else the first row.

    `keys`: file -> its columns KEY.
    """

    def __init__(self, keys: Mapping[Path, pa.Table]) -> None:
        self.files = list(keys)
        cells = pa.chunked_array([chunk for table in keys.values() for chunk in table["cell"].chunks], pa.string())
        status = pa.chunked_array([chunk for table in keys.values() for chunk in table["status"].chunks], pa.string())
        sizes = np.array([len(table) for table in keys.values()], dtype=np.int64)
        self._file = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        self._row = _numbers(int(sizes.sum())) - np.repeat((np.cumsum(sizes) - sizes).astype(np.int32), sizes)
        self._ok = pc.equal(status, "ok").to_numpy().astype(bool)
        self._encoded = (
            cells.combine_chunks().dictionary_encode() if len(cells) else pa.array([], pa.string()).dictionary_encode()
        )
        self._code = self._encoded.indices.to_numpy()
        # sort by cell, successful rows first
        order = np.lexsort((_numbers(len(self._code)), ~self._ok, self._code)).astype(np.int32)
        self._first = order[np.unique(self._code[order], return_index=True)[1]]
        pa.default_memory_pool().release_unused()

    def __len__(self) -> int:
        return len(self._first)

    @property
    def cells(self) -> pa.Array:
        """Return the ids of all cells that have a row.  Other methods take and return indices into this array."""
        return self._encoded.dictionary

    def indices_of(self, ids: NDArray[np.bytes_]) -> NDArray[np.int64]:
        """Return the index in `cells` of each id, or -1 if the cell has no row."""
        indices = pc.index_in(pa.array(ids, pa.binary()).cast(pa.string()), value_set=self.cells)
        numbers = np.asarray(pc.fill_null(indices, -1).to_numpy(zero_copy_only=False), dtype=np.int64)
        pa.default_memory_pool().release_unused()
        return numbers

    def is_ok(self, cells: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return, for each index in `self.cells`, whether the cell has a successful row; False for -1."""
        if not len(self):
            return np.zeros(len(cells), dtype=bool)
        return np.asarray((cells >= 0) & self._ok[self._first[cells]], dtype=bool)

    def table(self, cells: NDArray[np.int64], columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows of the cells with these indices in `self.cells`, in this order; all columns if `columns` is None."""
        return self._rows(self._first[cells], columns)

    def column(self, name: str) -> NDArray[np.float64]:
        """Return the values of a numeric column for all of `cells`; NaN for missing values."""
        values = np.full(len(self._ok), np.nan)
        offset = 0
        for file in self.files:
            part = _columns_of(file, [name])[name].cast(pa.float64()).to_numpy()
            values[offset : offset + len(part)] = part
            offset += len(part)
        return values[self._first]

    def _rows(self, positions: NDArray[np.signedinteger[Any]], columns: Sequence[str] | None) -> pa.Table:
        """Return the rows at these positions of the index.  Each row group that has some of them is read once."""
        file_of = self._file[positions]
        parts, order = [], []
        for file_number in np.unique(file_of).tolist():
            out_positions, file = np.flatnonzero(file_of == file_number), self.files[file_number]
            rows = self._row[positions[out_positions]]
            begins = _first_rows_of_groups(file)
            group_of = np.searchsorted(begins, rows, side="right") - 1
            for group in np.unique(group_of).tolist():
                in_group = group_of == group
                table = _read(file, group, None if columns is None else tuple(columns))
                parts.append(table.take(pa.array(rows[in_group] - begins[group])))
                order.append(out_positions[in_group])
        if not parts:
            return pa.table({})
        inverse = np.argsort(np.concatenate(order), kind="stable")
        return pa.concat_tables(parts).take(pa.array(inverse))


@lru_cache(maxsize=MAX_CACHED_GROUPS)
def _read(file: Path, group: int, columns: tuple[str, ...] | None) -> pa.Table:
    """Return the rows of a row group.  They can be cached, because a file never changes."""
    with pq.ParquetFile(file) as opened:
        return opened.read_row_group(group, columns=columns and list(columns))


@lru_cache(maxsize=256)
def _first_rows_of_groups(file: Path) -> NDArray[np.int32]:
    """Return the number of the first row in each row group."""
    metadata = pq.read_metadata(file)
    sizes = np.array([metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)], dtype=np.int32)
    return np.cumsum(sizes, dtype=np.int32) - sizes


def clear_row_group_cache() -> None:
    """Free the memory of cached row groups."""
    _read.cache_clear()
    pa.default_memory_pool().release_unused()


def _numbers(count: int) -> NDArray[np.int32]:
    """Return 0, 1, 2, ... `count` - 1."""
    return np.arange(count, dtype=np.int32)


# ---- The store: one file per batch of rows, written atomically, and used only if its checksum is right.

MAX_BUFFER_AGE_S = 1.0
"""Maximum time [s] for which finished rows are buffered, checked whenever a row is added or `flush_if_due` is called."""
ASIDE_FOLDER = "set-aside"
"""Subfolder for files whose rows are not used."""
FILES_TO_JOIN = 64
"""Number of files written by this command at which they are joined."""
MAX_ROWS_TO_JOIN = 50_000
"""Files with at least this many rows are not joined again."""


class Store:
    """The rows of a sweep in a folder: `folder`/cells/<checksum>.parquet."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._cells = folder / "cells"
        self._cells.mkdir(parents=True, exist_ok=True)
        for path in (folder, self._cells):
            remove_partials(path)
        self._keys: dict[Path, pa.Table] = {}  # file -> its columns KEY; files never change
        self._kept: RowIndex | None = None  # index of the files in `_keys`
        self._rows: dict[str, Row] | None = None  # all rows of the index, if they were loaded
        self._files_to_join: dict[Path, int] = {}  # file of this command that may be joined -> number of its rows
        self._waiting: list[Row] = []  # finished rows that are written together
        self._last_put_s = 0.0
        self._quarantined: dict[str, str] = {}  # file that was set aside and not yet reported -> reason

    def put(self, rows: Sequence[Row]) -> None:
        """Write a batch of rows.  Raises ResultsNotWrittenError if the folder cannot be written."""
        self._put(*encode_batch(rows), len(rows))
        if len(self._files_to_join) >= FILES_TO_JOIN:
            self.join()

    def join(self) -> None:
        """Replace the files that this command has written by a single one.

        If the command is killed before it has removed the old files, rows are duplicated, which is harmless.
        """
        if len(self._files_to_join) < 2:
            return
        parts, self._files_to_join = self._files_to_join, {}
        count = sum(parts.values())
        self._put(*encode_table(pa.concat_tables([_columns_of(path) for path in parts])), count)
        for path in parts.keys() - self._files_to_join.keys():
            path.unlink(missing_ok=True)
            self._keys.pop(path, None)
        if count >= MAX_ROWS_TO_JOIN:
            self._files_to_join.clear()

    @contextmanager
    def buffered_rows(self) -> Iterator[Store]:
        """Yield the store for `add`.  Rows that wait are written when the block ends, also by an exception."""
        self._last_put_s = time.monotonic()
        try:
            yield self
        finally:
            self._flush()

    def add(self, row: Row) -> None:
        """Write a row with those that follow within MAX_BUFFER_AGE_S.  Call it in a block of `buffered_rows`."""
        self._waiting.append(row)
        self.flush_if_due()

    def flush_if_due(self) -> None:
        if time.monotonic() - self._last_put_s >= MAX_BUFFER_AGE_S:
            self._flush()

    def _flush(self) -> None:
        rows, self._waiting, self._last_put_s = self._waiting, [], time.monotonic()
        if rows:
            self.put(rows)

    def kept(self) -> RowIndex:
        """Return the index of all rows, including files added since the last call.  Invalid files are ignored, see `report_invalid_files`."""
        if self._read_new_files() or self._kept is None:
            self._kept, self._rows = RowIndex(self._keys), None
        return self._kept

    def drop_index(self) -> None:
        """Free the memory of the index, which is built again when it is needed."""
        self._kept = self._rows = None

    def rows(self) -> dict[str, Row]:
        """Return {id of a cell: its row} for all cells.  Loads all rows into memory; for at most a few thousand cells."""
        kept = self.kept()
        if self._rows is None:
            rows = kept.table(np.arange(len(kept))).to_pylist() if len(kept) else []
            self._rows = {row["cell"]: row for row in rows}
        return dict(self._rows)

    def missing(self, planned: Sequence[Cell]) -> CellPlan:
        """Return the planned cells without a successful row, each id once."""
        plan, kept = distinct(planned_of(planned)), self.kept()
        return plan.take(np.flatnonzero(~kept.is_ok(kept.indices_of(plan.ids))))

    def report_invalid_files(self) -> list[str]:
        """Return a message about the files that were set aside since the last call, or []."""
        if not self._quarantined:
            return []
        (name, why), count = next(iter(self._quarantined.items())), len(self._quarantined)
        self._quarantined.clear()
        named = f"1 file ({name}: {why})" if count == 1 else f"{count} files (as {name}: {why})"
        return [f"{named}: moved to {self.folder / ASIDE_FOLDER}; the cells will run again"]

    def _put(self, name: str, content: bytes, count: int) -> None:
        with writing_to(self.folder):
            replace_file(self._cells / name, lambda path: path.write_bytes(content))
        self._files_to_join[self._cells / name] = count

    def _read_new_files(self) -> bool:
        """Add new files of the folder to the index.  Return True if there are any.  Damaged files are set aside."""
        new = [
            path
            for path in sorted(self._cells.glob(f"*{_SUFFIX}"))
            # not pipes, from which reading would block
            if path not in self._keys and _NAME.fullmatch(path.name) and path.is_file() and not path.is_symlink()
        ]
        for path in new:
            try:
                self._keys[path] = read_verified_keys(path)
            except InvalidBatchError as error:
                (self.folder / ASIDE_FOLDER).mkdir(exist_ok=True)
                path.replace(self.folder / ASIDE_FOLDER / path.name)
                self._quarantined[path.name] = str(error)
        if new:
            self._keys = dict(sorted(self._keys.items()))
            self._kept = None
            clear_row_group_cache()
        return bool(new)
