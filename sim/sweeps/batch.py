"""A batch of rows as a file whose integrity can be checked: its name is the checksum of its bytes.  Its columns are those of this version.

The checksum is checked before anything is parsed: a damaged file can make a parser allocate any amount of memory.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sim.cells.cell import Row
from sim.cells.columns import OUTCOME, PROVENANCE, table

_SUFFIX = ".parquet"
_DIGEST_BYTES = 16
_NAME = re.compile(rf"[0-9a-f]{{20}}(?:[0-9a-f]{{{2 * _DIGEST_BYTES - 20}}})?{re.escape(_SUFFIX)}")  # 20: of versions before the checksum
_COLUMNS = pa.schema(list((OUTCOME | PROVENANCE).items()))
GROUP = 20_000
"""Rows of a row group: so many are read at once."""
KEY = ("cell", "status")
"""The columns that say whether a cell has a row: the only ones that a sweep keeps in memory."""


class BatchError(ValueError):
    """A file whose rows must not be used; the message is a short reason."""


class GoneError(RuntimeError):
    """A file was joined with others, by the command that wrote it: look again."""


def is_batch_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def packed(rows: Sequence[Row]) -> tuple[str, bytes]:
    """(file name, content)."""
    return packed_table(table(rows, OUTCOME | PROVENANCE))


def packed_table(rows: pa.Table) -> tuple[str, bytes]:
    """(file name, content)."""
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, row_group_size=GROUP)
    content = sink.getvalue().to_pybytes()
    return _digest(content) + _SUFFIX, content


def checked(path: Path) -> pa.Table:
    """The columns KEY of a file.  BatchError: the file has changed since it was packed.  OSError: it cannot be read."""
    content = path.read_bytes()
    if _digest(content) + _SUFFIX != path.name:
        raise BatchError("its content does not match the checksum in its name")
    try:
        file = pq.ParquetFile(pa.BufferReader(content))
        if not file.schema_arrow.equals(_COLUMNS):
            raise BatchError("has columns of another version")
        found = file.read(columns=list(KEY))
    except (pa.ArrowException, OSError):
        raise BatchError("is no table") from None
    named = pc.and_(pc.greater(pc.binary_length(found["cell"]), 0), pc.is_in(found["status"], pa.array(["ok", "error"])))
    if not pc.all(pc.fill_null(named, fill_value=False), min_count=0).as_py():
        raise BatchError("has rows of no cell or without a status")
    return found


def read(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Columns of a checked file; None: all.  GoneError: it is there no more."""
    try:
        return pq.read_table(path, columns=None if columns is None else list(columns), partitioning=None)
    except FileNotFoundError:
        raise GoneError(path.name) from None


def groups(path: Path) -> list[int]:
    """The number of rows of each row group.  GoneError: the file is there no more."""
    try:
        found = pq.read_metadata(path)
    except FileNotFoundError:
        raise GoneError(path.name) from None
    return [found.row_group(i).num_rows for i in range(found.num_row_groups)]


def read_group(path: Path, group: int, columns: Sequence[str] | None = None) -> pa.Table:
    """Columns of a row group of a checked file; None: all.  GoneError: it is there no more."""
    try:
        with pq.ParquetFile(path) as file:
            return file.read_row_group(group, columns=None if columns is None else list(columns))
    except FileNotFoundError:
        raise GoneError(path.name) from None


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=_DIGEST_BYTES).hexdigest()
