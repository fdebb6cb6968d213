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
#   finished row --> WaitingRows --> Store.put --> one file per batch --> Store.join: 64 files of this command
#                    at most 1 s                                           become one; a file with 50,000 rows
#                                                                          is not joined again
#
# KeptRows is the index of all rows, in memory.  Its columns give the file, the row number in that file, the cell and
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
from collections.abc import Iterator, Mapping, Sequence
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
from sim.model.text import one_line
from sim.studies.cells import OUTCOME, PROVENANCE, Row, table
from sim.studies.plan import Cell, CellPlan, distinct, planned_of

# ---- Files of rows. The checksum in a file's name is verified before the file is parsed, because a damaged file may make the
# parser allocate any amount of memory. Files with the columns of another version are rejected.

_SUFFIX = ".parquet"
_DIGEST_BYTES = 16
# 20 digits: names of versions before names were checksums; such files are moved to `set-aside`
_NAME = re.compile(rf"[0-9a-f]{{20}}(?:[0-9a-f]{{{2 * _DIGEST_BYTES - 20}}})?{re.escape(_SUFFIX)}")
_COLUMNS = pa.schema(list((OUTCOME | PROVENANCE).items()))
GROUP_ROWS = 20_000
"""Rows per row group, which are read together."""
KEY = ("cell", "status")
"""Columns that identify a row's cell and its status.  A sweep keeps only these columns in memory."""


class InvalidBatchError(ValueError):
    """Raised for a file whose rows must not be used.  The message is a short reason."""


def is_batch_name(name: str) -> bool:
    """Return True for the name of a file of rows, of this or an earlier version."""
    return _NAME.fullmatch(name) is not None


def packed(rows: Sequence[Row]) -> tuple[str, bytes]:
    """Return the (name, content) of a file with these rows."""
    return packed_table(table(rows, OUTCOME | PROVENANCE))


def packed_table(rows: pa.Table) -> tuple[str, bytes]:
    """Return the (name, content) of a file with the rows of a table."""
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, row_group_size=GROUP_ROWS)
    content = sink.getvalue().to_pybytes()
    return _digest(content) + _SUFFIX, content


def checked(path: Path) -> pa.Table:
    """Verify a file, and return its columns KEY.

    Raises BatchError if it is damaged or has the columns of another version, and OSError if it cannot be read.
    """
    content = path.read_bytes()
    if _digest(content) + _SUFFIX != path.name:
        raise InvalidBatchError("its content does not match the checksum in its name")
    try:
        file = pq.ParquetFile(pa.BufferReader(content))
        if not file.schema_arrow.equals(_COLUMNS):
            raise InvalidBatchError("has columns of another version")
        keys = file.read(columns=list(KEY))
    except (pa.ArrowException, OSError):
        raise InvalidBatchError("is no table") from None
    are_valid = pc.and_(
        pc.greater(pc.binary_length(keys["cell"]), 0), pc.is_in(keys["status"], pa.array(["ok", "error"]))
    )
    if not pc.all(pc.fill_null(are_valid, fill_value=False), min_count=0).as_py():
        raise InvalidBatchError("has rows of no cell or without a status")
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
    """Index of the rows in files.  Of each cell it uses the first successful row or, if there is none, the first row.

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
        """Return the ids of all cells that have a row.  Their positions in this array identify cells in the other methods."""
        return self._encoded.dictionary

    def find(self, ids: NDArray[np.bytes_]) -> NDArray[np.int64]:
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
        at = 0
        for file in self.files:
            part = _columns_of(file, [name])[name].cast(pa.float64()).to_numpy()
            values[at : at + len(part)] = part
            at += len(part)
        return values[self._first]

    def _rows(self, places: NDArray[np.signedinteger[Any]], columns: Sequence[str] | None) -> pa.Table:
        """Return the rows at these positions of the index.  Each row group that has some of them is read once."""
        file_of = self._file[places]
        parts, order = [], []
        for number in np.unique(file_of).tolist():
            positions, file = np.flatnonzero(file_of == number), self.files[number]
            rows = self._row[places[positions]]
            begins = _first_rows_of_groups(file)
            group_of = np.searchsorted(begins, rows, side="right") - 1
            for group in np.unique(group_of).tolist():
                inside = group_of == group
                table = _read(file, group, None if columns is None else tuple(columns))
                parts.append(table.take(pa.array(rows[inside] - begins[group])))
                order.append(positions[inside])
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


def forget_files() -> None:
    """Free the memory of cached row groups."""
    _read.cache_clear()
    pa.default_memory_pool().release_unused()


def _numbers(count: int) -> NDArray[np.int32]:
    """Return 0, 1, 2, ... `count` - 1."""
    return np.arange(count, dtype=np.int32)


# ---- The store: one file per batch of rows, written atomically, and used only if its checksum is right.

MAX_BUFFER_AGE_S = 1.0
"""Maximum time [s] for which finished rows are buffered, checked whenever a row is added or `put_if_due` is called."""
ASIDE_FOLDER = "set-aside"
"""Subfolder for files whose rows are not used."""
MAX_LISTED_FILES = 5
"""Maximum files named in a message."""
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
        self._own: dict[Path, int] = {}  # file of this command that may be joined -> number of its rows
        self._skipped: dict[str, str] = {}  # unused file in `cells` -> reason
        self._moved: dict[str, str] = {}  # file that was set aside and not yet reported -> reason
        self._reported: set[str] = set()

    def put(self, rows: Sequence[Row]) -> None:
        """Write a batch of rows.  Raises NotKeptError if the folder cannot be written."""
        self._put(*packed(rows), len(rows))
        if len(self._own) >= FILES_TO_JOIN:
            self.join()

    def join(self) -> None:
        """Replace the files that this command has written by a single one.

        If the command is killed before it has removed the old files, rows are duplicated, which is harmless.
        """
        if len(self._own) < 2:
            return
        parts, self._own = self._own, {}
        count = sum(parts.values())
        self._put(*packed_table(pa.concat_tables([_columns_of(path) for path in parts])), count)
        for path in parts.keys() - self._own.keys():
            path.unlink(missing_ok=True)
            self._keys.pop(path, None)
        if count >= MAX_ROWS_TO_JOIN:
            self._own.clear()

    @contextmanager
    def buffered_rows(self) -> Iterator[RowBuffer]:
        """Yield a buffer of rows.  The rows in it are written when the block ends, also by an exception."""
        waiting = RowBuffer(self)
        try:
            yield waiting
        finally:
            waiting.put()

    def kept(self) -> RowIndex:
        """Return the index of all rows, including files added since the last call.  Invalid files are ignored, see `findings`."""
        if self._read_new_files() or self._kept is None:
            self._kept, self._rows = RowIndex(self._keys), None
        return self._kept

    def forget(self) -> None:
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
        return plan.take(np.flatnonzero(~kept.is_ok(kept.find(plan.ids))))

    def findings(self) -> list[str]:
        """Return messages about files whose rows are not used.  Each file is reported once."""
        lines = []
        if self._moved:
            lines.append(
                f"{_listing(self._moved)} cannot be trusted and {'was' if len(self._moved) == 1 else 'were'} moved to "
                f"{self.folder / ASIDE_FOLDER}; the cells run again"
            )
        if new := {name: why for name, why in self._skipped.items() if name not in self._reported}:
            lines.append(f"skipped in {self._cells}: {_listing(new)}")
        self._reported |= new.keys()
        self._moved.clear()
        return lines

    def _put(self, name: str, content: bytes, count: int) -> None:
        with writing_to(self.folder):
            replace_file(self._cells / name, lambda path: path.write_bytes(content))
        self._own[self._cells / name] = count

    def _read_new_files(self) -> bool:
        """Read new files of the folder.  Return True if there are any."""
        new = [
            path
            for path in sorted(self._cells.glob("*"))
            if path not in self._keys and path.name not in self._skipped and not path.name.startswith(".")
        ]
        for path in new:
            self._read(path)
        if new:
            self._keys = dict(sorted(self._keys.items()))
            self._kept = None
            forget_files()
        return bool(new)

    def _read(self, path: Path) -> None:
        """Add a file to the index.  A damaged file is set aside; a file of another kind is skipped."""
        # pipes are skipped too, because reading from them would block
        if path.is_symlink() or not is_batch_name(path.name) or (path.exists() and not path.is_file()):
            self._skipped[path.name] = "not of a sweep"
            return
        try:
            self._keys[path] = checked(path)
        except InvalidBatchError as error:
            self._set_aside(path, str(error))
        except OSError as error:
            self._skipped[path.name] = error.strerror or "unreadable"

    def _set_aside(self, path: Path, why: str) -> None:
        """Move an invalid file to the folder ASIDE_FOLDER, or skip it if the folder is read-only."""
        try:
            (self.folder / ASIDE_FOLDER).mkdir(exist_ok=True)
            path.replace(self.folder / ASIDE_FOLDER / path.name)
            self._moved[path.name] = why
        except OSError:  # a read-only folder
            self._skipped[path.name] = why


class RowBuffer:
    """Buffer of finished rows, which are written together at intervals of at least MAX_WAIT_S."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rows: list[Row] = []
        self._last_put_s = time.monotonic()

    def add(self, row: Row) -> None:
        self._rows.append(row)
        self.put_if_due()

    def put_if_due(self) -> None:
        if time.monotonic() - self._last_put_s >= MAX_BUFFER_AGE_S:
            self.put()

    def put(self) -> None:
        if self._rows:
            self._store.put(self._rows)
            self._rows.clear()
            self._last_put_s = time.monotonic()


def _listing(reasons: Mapping[str, str]) -> str:
    """Return ``4 files (a: why, b: why and 2 more)``."""
    named = ", ".join(f"{one_line(name)}: {why}" for name, why in list(reasons.items())[:MAX_LISTED_FILES])
    others = f" and {len(reasons) - MAX_LISTED_FILES} more" if len(reasons) > MAX_LISTED_FILES else ""
    return f"{len(reasons)} file{'s' if len(reasons) > 1 else ''} ({named}{others})"
