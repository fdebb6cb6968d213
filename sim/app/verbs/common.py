"""What all verbs use: the listener, parsing of options, the output folder, and display in notebooks."""

from __future__ import annotations

import errno
import math
import os
import sys
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from html import escape
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sim.model.frozen import frozen
from sim.model.text import one_line, printable
from sim.model.units import UnitError, parse_duration
from sim.studies.progress import Watch, no_watch

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from sim.results.formats import TextTable


# ---- Events of a running verb. The command prints them, a notebook shows the progress, and a program may ignore them.


class Stopped(KeyboardInterrupt):
    """Raised when a verb is interrupted by Ctrl-C or a signal.  The message says which results are kept."""


@frozen
class Work:
    """Description of long work for a display of its progress."""

    name: str
    total_ns: int  # simulated time of all of it
    count: int | None  # number of items, or None if it is unknown
    items: str = "cells"  # the noun that is counted
    best: Callable[[], str] = str  # returns the best result so far, or ""
    left_s: Callable[[], float] = lambda: math.inf  # returns the time [s] that a limit on the time of the work leaves

    def share(self, simulated_ns: int) -> float:
        """Return the share of the work that is done, at most 1."""
        return min(simulated_ns / max(1, self.total_ns), 1.0)


@contextmanager
def stoppable(kept: str) -> Iterator[None]:
    """Turn KeyboardInterrupt into Stopped.  `kept`: message about the results that are kept."""
    try:
        yield
    except KeyboardInterrupt:
        raise Stopped(kept) from None


class Listener:
    """Receiver of a verb's events that ignores all of them.  Subclasses override what they show."""

    def message(self, text: str) -> None:
        """Receive a line about the job, the work or the folder."""

    def warning(self, text: str) -> None:
        """Receive a line about a reason to doubt the results."""
        self.message(f"warning: {text}")

    def result(self, result: Any) -> None:
        """Receive the result of a verb.  Called before results are stored and drawn, which may take long."""

    def progress(self, work: Work) -> AbstractContextManager[Watch]:
        """Return a context around long work; it yields a function to call with (finished items, simulated time [ns])."""
        del work
        return nullcontext(no_watch)


SILENT = Listener()


# ---- Option values. Errors name an option as Python does; the command line prints its flag instead.

T = TypeVar("T")


class OptionError(UnitError):
    """Raised for an invalid option value.  The message is one line that begins with the option's Python name."""

    def __init__(self, option: str, reason: object) -> None:
        super().__init__(f"{option}: {reason}")
        self.option, self.reason = option, str(reason)


def parse_option(option: str, text: str, parse: Callable[[object], T]) -> T:
    """Return `text` parsed by a function of `sim.model.units`.  OptionError: it cannot be parsed."""
    try:
        return parse(text)
    except UnitError as error:
        raise OptionError(option, error) from None


def parse_positive_seconds(option: str, text: str) -> float:
    """Return a duration in s.  OptionError: not a duration, or 0."""
    seconds = parse_option(option, text, parse_duration) / 1e9
    if seconds <= 0:
        raise OptionError(option, f"expected more than 0 s, not '{text}'")
    return seconds


def writable_folder(path: Path) -> Path:
    """Create the output folder, before anything runs, and return it.  OptionError: it cannot be created or written."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        probe = path / f".writable.{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise OptionError("folder", f"{path} {_why_not_written(path, error)}") from None
    return path


def _why_not_written(path: Path, error: OSError) -> str:
    """Return the reason, with the existing folder or file that causes it."""
    existing = next((folder for folder in (path, *path.parents) if folder.exists()), Path("/"))
    if not existing.is_dir():
        return f"cannot be created: {existing} is a file"
    if existing == path:
        return f"cannot be written: {error.strerror}"
    why = (
        error.strerror
        if error.errno in (errno.EACCES, errno.EROFS, errno.ENOSPC)
        else "no folders can be created there"
    )
    return f"cannot be created in {existing}: {why}"


# ---- Display in notebooks and Python consoles: tables of limited size, and figures that need no `%matplotlib`.

MAX_ROWS = 30
"""Rows of a table that are shown; attributes of the result have all rows."""
_MAX_CELL = 120
_DPI = 120


class Picture:
    """A figure that notebooks display as PNG.  `figure`: the matplotlib Figure."""

    def __init__(self, figure: Figure, caption: str = "") -> None:
        self.figure = figure
        self.caption = caption
        figure.set_dpi(_DPI)

    def save(self, file: str | Path) -> Path:
        """Write the figure in the format of the file's suffix (.png, .svg, .pdf), and return the path."""
        self.figure.savefig(file)
        return Path(file)

    def __repr__(self) -> str:
        return f"Picture({self.caption})"

    def _repr_png_(self) -> bytes:
        data = BytesIO()
        self.figure.savefig(data, format="png")
        return data.getvalue()


@dataclass(frozen=True, slots=True, repr=False)
class Embedded:
    """A page that notebooks display below a cell."""

    page: str
    height: int  # pixels

    def __repr__(self) -> str:
        return f"a page of {len(self.page) // 1000} kB; a notebook displays it"

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{escape(self.page)}" style="width: 100%; height: {self.height}px; border: 0"></iframe>'


def table_html(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return an HTML table of at most MAX_ROWS rows, followed by the number of omitted rows."""
    head = "".join(f"<th>{_cell(text)}</th>" for text in header)
    body = "".join(f"<tr>{''.join(f'<td>{_cell(text)}</td>' for text in row)}</tr>" for row in rows[:MAX_ROWS])
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{paragraph(_omitted_rows_text(rows))}"


def format_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, text_cells: bool = False) -> str:
    """Return a plain text table.  The first column is aligned left, the others right unless `text_cells`."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    aligners = [str.ljust, *[str.ljust if text_cells else str.rjust] * (len(widths) - 1)]
    lines = [
        (align(text, width) for align, text, width in zip(aligners, row, widths, strict=True))
        for row in (header, *rows)
    ]
    return "\n".join("  ".join(line).rstrip() for line in lines)


def table_text(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a plain text table of at most MAX_ROWS rows, followed by the number of omitted rows."""
    cells = [[one_line(text, _MAX_CELL) for text in row] for row in (header, *rows[:MAX_ROWS])]
    return "\n".join(filter(None, [format_table(cells[0], cells[1:], text_cells=True), _omitted_rows_text(rows)]))


class Displayed:
    """A result that Python consoles show as text, and notebooks as HTML."""

    @abstractmethod
    def _parts(self) -> Iterable[str | TextTable | pd.DataFrame]:
        """Return what is shown: texts and tables, of which empty texts are left out."""

    def __repr__(self) -> str:
        return "\n\n".join(filter(None, map(_text, self._parts())))

    def _repr_html_(self) -> str:
        return "".join(map(_html, self._parts()))


def _text(part: str | TextTable | pd.DataFrame) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, tuple):
        return "\n".join(filter(None, [part.title, table_text(part.header, part.rows)]))
    return str(part.head(MAX_ROWS))


def _html(part: str | TextTable | pd.DataFrame) -> str:
    """Return a part as HTML; a text of several lines is preformatted."""
    if isinstance(part, str):
        return preformatted(part) if "\n" in part else paragraph(part)
    if isinstance(part, tuple):
        return paragraph(part.title) + table_html(part.header, part.rows)
    return str(part.to_html(index=False, max_rows=MAX_ROWS))


def paragraph(text: str) -> str:
    """Return an HTML paragraph, or "" for an empty text."""
    return f"<p>{escape(printable(text))}</p>" if text else ""


def preformatted(text: str) -> str:
    return f"<pre>{escape(printable(text))}</pre>"


def _cell(text: str) -> str:
    return escape(one_line(text, _MAX_CELL))


def _omitted_rows_text(rows: Sequence[object]) -> str:
    return f"... and {len(rows) - MAX_ROWS} more rows" if len(rows) > MAX_ROWS else ""


# ---- Progress of a command below a notebook's cell: a line, if the work takes longer than two seconds.  Nothing is shown elsewhere.

PATIENCE_S = 2.0
EVERY_S = 0.5
MARK = {"ckptsim": "progress"}
"""Metadata of the line, by which tools that store notebooks can remove it."""


class Notebook(Listener):
    """Listener that shows the progress of a verb below a notebook's cell.  Messages are not shown: results include them."""

    def progress(self, work: Work) -> AbstractContextManager[Watch]:
        return watching(work) if _in_notebook() else super().progress(work)


@contextmanager
def watching(work: Work) -> Iterator[Watch]:
    """Show progress.  Yield a function to call with (finished items, simulated or spent time of all [ns])."""
    begun = drawn = time.monotonic()
    handle: Any = None

    def watch(finished: int, simulated_ns: int) -> None:
        nonlocal drawn, handle
        now = time.monotonic()
        if now - begun < PATIENCE_S or now - drawn < EVERY_S:
            return
        drawn = now
        done = f"{finished}{'' if work.count is None else f' of {work.count}'} {work.items}"
        line = {"text/plain": line_of(work.name, done, work.share(simulated_ns), now - begun)}
        if handle is None:
            handle = _display(line)
        else:
            handle.update(line, raw=True, metadata=MARK)

    try:
        yield watch
    finally:
        if handle is not None:
            handle.update({"text/plain": f"{work.name}: {time.monotonic() - begun:.0f} s"}, raw=True, metadata=MARK)


def line_of(what: str, done: str, share: float, passed_s: float) -> str:
    """Return a line such as ``p4: 3 of 12 runs, 25 %, 9 s left``; the remaining time is given once 1 % is done."""
    left = f", {passed_s * (1 - share) / share:.0f} s left" if share > 0.01 else ""
    return f"{what}: {done}, {100 * share:.0f} %{left}"


def _in_notebook() -> bool:
    """Return True in a Jupyter kernel; False in a terminal, also with IPython."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


def _display(line: dict[str, str]) -> Any:
    from IPython.display import display

    return display(line, raw=True, metadata=MARK, display_id=True)
