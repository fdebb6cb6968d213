"""A batch of rows as a file whose integrity can be checked: its name is the checksum of its bytes.  Its columns are those of this version.

The checksum is checked before anything is parsed: a damaged file can make a parser allocate any amount of memory.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from sim.cells.cell import Row
from sim.cells.columns import OUTCOME, PROVENANCE, table

_SUFFIX = ".parquet"
_DIGEST_BYTES = 16
_NAME = re.compile(rf"[0-9a-f]{{20}}(?:[0-9a-f]{{{2 * _DIGEST_BYTES - 20}}})?{re.escape(_SUFFIX)}")  # 20: of versions before the checksum
_COLUMNS = pa.schema(list((OUTCOME | PROVENANCE).items()))


class BatchError(ValueError):
    """A file whose rows must not be used; the message is a short reason."""


def is_batch_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def packed(rows: Sequence[Row]) -> tuple[str, bytes]:
    """(file name, content)."""
    sink = pa.BufferOutputStream()
    pq.write_table(table(rows, OUTCOME | PROVENANCE), sink)
    content = sink.getvalue().to_pybytes()
    return _digest(content) + _SUFFIX, content


def unpacked(path: Path) -> list[Row]:
    """The rows as they were packed.  BatchError: the file has changed since.  OSError: it cannot be read."""
    content = path.read_bytes()
    if _digest(content) + _SUFFIX != path.name:
        raise BatchError("its content does not match the checksum in its name")
    try:
        found = pq.read_table(pa.BufferReader(content))
    except (pa.ArrowException, OSError):
        raise BatchError("is no table") from None
    if not found.schema.equals(_COLUMNS):
        raise BatchError("has columns of another version")
    rows: list[Row] = found.to_pylist()
    if not all(row["cell"] and row["status"] in ("ok", "error") for row in rows):
        raise BatchError("has rows of no cell or without a status")
    return rows


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=_DIGEST_BYTES).hexdigest()
