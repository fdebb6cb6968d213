"""Rows of a sweep in a folder: a file per batch, written as a whole or not at all, and used only if it is unchanged.

A killed sweep loses the rows of its last second; the next call runs the cells that have no row or failed.  Two sweeps may share a
folder: they have the same rows for the same cells.  Untrustworthy files are set aside, and their cells run again.
Small files become few: those that a command has written are joined as it goes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import numpy as np
import pyarrow as pa

from sim.cells.cell import Row
from sim.cells.plan import Cell, CellPlan, distinct, planned_of
from sim.folder_lock import FolderInUseError, locked
from sim.foreign import one_line
from sim.sweeps.batch import KEY, BatchError, GoneError, checked, is_batch_name, packed, packed_table, read
from sim.sweeps.kept_rows import KeptRows, forget_files
from sim.whole_file import kept_in, remove_partials, replace_file

PATIENCE_S = 1.0
"""The longest time that a finished row waits for a full batch."""
ASIDE = "set-aside"
"""The folder, next to the cells, for files whose rows are not used."""
NAMED = 5
"""Number of files listed in a line."""
JOINED = 64
"""So many files that a command has written become one."""
LONGEST = 50_000
"""Rows of a file that is not joined any more."""


class Store:
    """The rows of a sweep in a folder: `folder`/cells/<checksum>.parquet."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._cells = folder / "cells"
        self._cells.mkdir(parents=True, exist_ok=True)
        for place in (folder, self._cells):
            remove_partials(place)
        self._keys: dict[Path, pa.Table] = {}  # the columns KEY of each file; its name is its checksum, so it never changes
        self._kept: KeptRows | None = None  # of the files in `_keys`
        self._rows: dict[str, Row] | None = None  # of these
        self._own: dict[Path, int] = {}  # files of this command that may be joined, and their rows
        self._skipped: dict[str, str] = {}  # unused file in `cells` -> reason
        self._moved: dict[str, str] = {}  # file set aside, not yet reported -> reason
        self._reported: set[str] = set()

    @contextmanager
    def sharing(self) -> Iterator[str]:
        """A context of a command that adds rows.  It gives the owner of another command that does so already; empty: there is none."""
        with ExitStack() as stack:
            owner = ""
            try:
                stack.enter_context(locked(self.folder, lambda _: None))
            except FolderInUseError as error:
                owner = error.owner
            yield owner

    def put(self, rows: Sequence[Row]) -> None:
        """Keep a batch.  NotKeptError: the folder cannot be written."""
        self._put(*packed(rows), len(rows))
        if len(self._own) >= JOINED:
            self.join()

    def join(self) -> None:
        """Make one file of those that this command has written.  A command that is killed meanwhile leaves rows twice: they agree."""
        few, self._own = self._own, {}
        if len(few) < 2:
            self._own = few
            return
        count = sum(few.values())
        with suppress(GoneError):  # another command has set one of them aside
            self._put(*packed_table(pa.concat_tables([read(path) for path in few])), count)
            for path in few.keys() - self._own.keys():
                path.unlink(missing_ok=True)
                self._keys.pop(path, None)
        if count >= LONGEST:
            self._own.clear()

    @contextmanager
    def keeping(self) -> Iterator[WaitingRows]:
        """A context in which rows wait for a batch.  The last batch is kept however the block ends."""
        waiting = WaitingRows(self)
        try:
            yield waiting
        finally:
            waiting.put()

    def kept(self) -> KeptRows:
        """All rows.  Untrustworthy files count as missing: their cells run again."""
        if self._look() or self._kept is None:
            while (kept := self._indexed()) is None:
                self._look()
            self._kept, self._rows = kept, None
        return self._kept

    def forget(self) -> None:
        """Free the memory that many rows take.  The next look at them reads their names again."""
        self._kept = self._rows = None

    def rows(self) -> dict[str, Row]:
        """Cell -> row, all in memory: for studies of a few thousand cells."""
        kept = self.kept()
        if self._rows is None:
            try:
                rows = kept.table(np.arange(len(kept))).to_pylist() if len(kept) else []
            except GoneError:  # joined meanwhile
                return self.rows()
            self._rows = {row["cell"]: row for row in rows}
        return dict(self._rows)

    def missing(self, planned: Sequence[Cell]) -> CellPlan:
        """Cells still to run, without duplicates: those without a row, and those whose row is an error."""
        plan, kept = distinct(planned_of(planned)), self.kept()
        return plan.take(np.flatnonzero(~kept.is_ok(kept.find(plan.ids))))

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

    def new_results(self) -> set[str]:
        """The cells whose results other commands have put here since the last look."""
        before = set(self._keys)
        self._look()
        new = [self._keys[path] for path in self._keys.keys() - before]
        return {cell for keys in new for cell, status in zip(*(keys[name].to_pylist() for name in KEY), strict=True) if status == "ok"}

    def _indexed(self) -> KeptRows | None:
        """The rows of the files that can be trusted; None: another command has joined some of them meanwhile."""
        kept = KeptRows(self._keys)
        try:
            wrong = kept.contradicting()
        except GoneError:
            return None
        for path in wrong:
            del self._keys[path]
            self._set_aside(path, "contradicts another file")
        return KeptRows(self._keys) if wrong else kept

    def _put(self, name: str, content: bytes, count: int) -> None:
        with kept_in(self.folder):
            replace_file(self._cells / name, lambda path: path.write_bytes(content))
        self._own[self._cells / name] = count

    def _look(self) -> bool:
        """Read what is new in the folder; whether anything is new or gone."""
        paths = sorted(self._cells.glob("*"))
        gone = self._keys.keys() - set(paths)
        for path in gone:  # joined by the command that wrote it
            del self._keys[path]
        new = [path for path in paths if path not in self._keys and path.name not in self._skipped and not path.name.startswith(".")]
        for path in new:
            self._read(path)
        if new or gone:
            self._keys = dict(sorted(self._keys.items()))
            self._kept = None
            forget_files()
        return bool(new or gone)

    def _read(self, path: Path) -> None:
        if path.is_symlink() or not is_batch_name(path.name) or (path.exists() and not path.is_file()):  # a pipe would never end
            self._skipped[path.name] = "not of a sweep"
            return
        try:
            self._keys[path] = checked(path)
        except BatchError as error:
            self._set_aside(path, str(error))
        except FileNotFoundError:  # joined meanwhile, by the command that wrote it
            return
        except OSError as error:
            self._skipped[path.name] = error.strerror or "unreadable"

    def _set_aside(self, path: Path, why: str) -> None:
        try:
            (self.folder / ASIDE).mkdir(exist_ok=True)
            path.replace(self.folder / ASIDE / path.name)
            self._moved[path.name] = why
        except OSError:  # a read-only folder
            self._skipped[path.name] = why


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


def _listing(reasons: Mapping[str, str]) -> str:
    """A list of files with reasons: ``4 files (a: why, b: why and 2 more)``."""
    named = ", ".join(f"{one_line(name)}: {why}" for name, why in list(reasons.items())[:NAMED])
    others = f" and {len(reasons) - NAMED} more" if len(reasons) > NAMED else ""
    return f"{len(reasons)} file{'s' if len(reasons) > 1 else ''} ({named}{others})"
