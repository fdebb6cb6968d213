"""Rows of a sweep in a folder, as they come: a parquet file per batch, named by its content, there whole or not at all.

A sweep that is killed loses the rows of its last second; called again, it runs what has no row yet and what failed.  Two sweeps
may share a folder: what both have run is the same.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from sim.sweep.cell import Row
from sim.sweep.columns import OUTCOME, PROVENANCE, table
from sim.sweep.plan import Cell, distinct
from sim.whole_file import replace_file

__all__ = ["NotKeptError", "Store", "kept_in"]

PATIENCE_S = 1.0
"""How long a finished row may wait for others before it is kept."""


class NotKeptError(RuntimeError):
    """A disk that is full or gone, a folder that nobody may write to any more; one line."""


@contextmanager
def kept_in(folder: Path) -> Iterator[None]:
    """NotKeptError if what is written meanwhile cannot be."""
    try:
        yield
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        raise NotKeptError(f"cannot keep results in {folder}: {why}; what was kept before stays, and the same command goes on") from None


class Store:
    """`folder`/cells/<batch>.parquet."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._cells = folder / "cells"
        self._cells.mkdir(parents=True, exist_ok=True)
        self._batches: dict[Path, list[Row]] = {}  # as they were read: their names are their content

    def put(self, rows: Sequence[Row]) -> None:
        """Keep a batch, or NotKeptError."""
        name = hashlib.blake2b(repr(sorted((row["cell"], row["status"]) for row in rows)).encode(), digest_size=10).hexdigest()
        batch = table(rows, OUTCOME | PROVENANCE)
        with kept_in(self.folder):
            replace_file(self._cells / f"{name}.parquet", lambda path: pq.write_table(batch, path))

    @contextmanager
    def keeping(self) -> Iterator[Callable[[Row], None]]:
        """Takes rows one by one and keeps them in batches; what is left is kept however the block ends."""
        waiting: list[Row] = []
        kept = time.monotonic()

        def keep(row: Row) -> None:
            nonlocal kept
            waiting.append(row)
            if time.monotonic() - kept >= PATIENCE_S:
                self.put(waiting)
                waiting.clear()
                kept = time.monotonic()

        try:
            yield keep
        finally:
            if waiting:
                self.put(waiting)

    def rows(self) -> dict[str, Row]:
        """By cell; of a cell that ran twice the row that succeeded.  A file nobody can read is as good as none: its cells run again."""
        found: dict[str, Row] = {}
        for path in sorted(self._cells.glob("*.parquet")):
            if path not in self._batches:
                try:
                    self._batches[path] = pq.read_table(path).to_pylist()
                except (pa.ArrowException, OSError):
                    continue
            for row in self._batches[path]:
                if row["status"] == "ok" or row["cell"] not in found:
                    found[row["cell"]] = row
        return found

    def missing(self, planned: Iterable[Cell]) -> list[Cell]:
        """Cells still to be run, each once: those without a row, and those whose row is an error."""
        rows = self.rows()
        return [cell for cell in distinct(planned) if rows.get(cell.id, {}).get("status") != "ok"]
