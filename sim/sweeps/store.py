"""Rows of a sweep in a folder: a file per batch, written as a whole or not at all, and used only if it is unchanged.

A killed sweep loses the rows of its last second; the next call runs the cells that have no row or failed.  Two sweeps may share a
folder: they have the same rows for the same cells.  Untrustworthy files are set aside, and their cells run again.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from sim.cells.cell import Row
from sim.cells.columns import OUTCOME
from sim.cells.plan import Cell, distinct
from sim.foreign import one_line
from sim.sweeps.batch import BatchError, is_batch_name, packed, unpacked
from sim.whole_file import kept_in, remove_partials, replace_file

PATIENCE_S = 1.0
"""The longest time that a finished row waits for a full batch."""
ASIDE = "set-aside"
"""The folder, next to the cells, for files whose rows are not used."""
NAMED = 5
"""Number of files listed in a line."""

_CHECKS = ("violations", "violation")
"""Columns of an outcome that depend on whether the run was checked: comparing two outcomes ignores them."""


class Store:
    """The rows of a sweep in a folder: `folder`/cells/<checksum>.parquet."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._cells = folder / "cells"
        self._cells.mkdir(parents=True, exist_ok=True)
        for place in (folder, self._cells):
            remove_partials(place)
        self._batches: dict[Path, list[Row]] = {}  # content of each file; its name is its checksum, so it never changes
        self._skipped: dict[str, str] = {}  # unused file in `cells` -> reason
        self._moved: dict[str, str] = {}  # file set aside, not yet reported -> reason
        self._reported: set[str] = set()

    def put(self, rows: Sequence[Row]) -> None:
        """Keep a batch.  NotKeptError: the folder cannot be written."""
        name, content = packed(rows)
        with kept_in(self.folder):
            replace_file(self._cells / name, lambda path: path.write_bytes(content))

    @contextmanager
    def keeping(self) -> Iterator[WaitingRows]:
        """A context in which rows wait for a batch.  The last batch is kept however the block ends."""
        waiting = WaitingRows(self)
        try:
            yield waiting
        finally:
            waiting.put()

    def rows(self) -> dict[str, Row]:
        """Cell -> row; of a cell that ran twice the successful one.  Untrustworthy files count as missing: their cells run again."""
        for path in sorted(self._cells.glob("*")):
            if path not in self._batches and path.name not in self._skipped and not path.name.startswith("."):
                self._read(path)
        for path in self._contradicting():
            del self._batches[path]
            self._set_aside(path, "contradicts another file")
        found: dict[str, Row] = {}
        for row in (row for rows in self._batches.values() for row in rows):
            if row["status"] == "ok" or row["cell"] not in found:
                found[row["cell"]] = row
        return found

    def missing(self, planned: Iterable[Cell]) -> list[Cell]:
        """Cells still to run, without duplicates: those without a row, and those whose row is an error."""
        rows = self.rows()
        return [cell for cell in distinct(planned) if rows.get(cell.id, {}).get("status") != "ok"]

    def findings(self) -> list[str]:
        """Lines about unused files, reported once each."""
        lines = []
        if self._moved:
            lines.append(f"{_listing(self._moved)} cannot be trusted and lie now in {self.folder / ASIDE}; their cells run again")
        if new := {name: why for name, why in self._skipped.items() if name not in self._reported}:
            lines.append(f"skipped in {self._cells}: {_listing(new)}")
        self._reported |= new.keys()
        self._moved.clear()
        return lines

    def _read(self, path: Path) -> None:
        if path.is_symlink() or not path.is_file() or not is_batch_name(path.name):  # a pipe would never end
            self._skipped[path.name] = "not of a sweep"
            return
        try:
            self._batches[path] = unpacked(path)
        except BatchError as error:
            self._set_aside(path, str(error))
        except OSError as error:
            self._skipped[path.name] = error.strerror or "unreadable"

    def _set_aside(self, path: Path, why: str) -> None:
        try:
            (self.folder / ASIDE).mkdir(exist_ok=True)
            path.replace(self.folder / ASIDE / path.name)
            self._moved[path.name] = why
        except OSError:  # a read-only folder
            self._skipped[path.name] = why

    def _contradicting(self) -> list[Path]:
        """Files with different outcomes of the same cell.  None of them can be trusted."""
        first: dict[str, tuple[Path, Row]] = {}
        found: dict[Path, None] = {}
        for path, row in ((path, row) for path, rows in self._batches.items() for row in rows if row["status"] == "ok"):
            known = first.setdefault(row["cell"], (path, row))
            if known[1] is not row and _outcome(known[1], row) != _outcome(row, known[1]):
                found |= {known[0]: None, path: None}
        return list(found)


class WaitingRows:
    """Finished rows that are not on disk yet.  None waits for longer than PATIENCE_S, even if no other row comes."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rows: list[Row] = []
        self._last_put_s = time.monotonic()

    def add(self, row: Row) -> None:
        self._rows.append(row)
        self.put_if_due()

    def put_if_due(self) -> None:
        if time.monotonic() - self._last_put_s >= PATIENCE_S:
            self.put()

    def put(self) -> None:
        if self._rows:
            self._store.put(self._rows)
            self._rows.clear()
            self._last_put_s = time.monotonic()


def _outcome(row: Row, other: Row) -> str:
    """The values that both rows must share, as text: so NaN equals NaN."""
    unchecked = -1 in (row["violations"], other["violations"])
    return repr([row[name] for name in OUTCOME if not (unchecked and name in _CHECKS)])


def _listing(reasons: Mapping[str, str]) -> str:
    """A list of files with reasons: ``4 files (a: why, b: why and 2 more)``."""
    named = ", ".join(f"{one_line(name)}: {why}" for name, why in list(reasons.items())[:NAMED])
    others = f" and {len(reasons) - NAMED} more" if len(reasons) > NAMED else ""
    return f"{len(reasons)} file{'s' if len(reasons) > 1 else ''} ({named}{others})"
