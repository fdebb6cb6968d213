"""What commands share: listener, options, stored command lines, display."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from html import escape
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sim.model.text import one_line, printable
from sim.model.units import UnitError
from sim.studies.progress import Watch, no_watch

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sim.results.formats import TextTable


# ---- The events of a verb at work.  The command prints them, a notebook shows the progress, and a program may ignore them.


class Stopped(KeyboardInterrupt):
    """The work was interrupted, by Ctrl-C or a signal.  The message says what is kept."""


class Listener:
    """A listener that ignores all events of a verb.  Others override the events that they show."""

    def message(self, text: str) -> None:
        """A line about the job, the work or the folder."""

    def warning(self, text: str) -> None:
        """A line that questions the results."""
        self.message(f"warning: {text}")

    def result(self, result: Any) -> None:
        """The result of a verb, before it is kept: keeping and drawing may take longer than finding."""

    def progress(
        self,
        what: str,
        total_ns: int,
        count: int | None,
        *,
        what_each: str = "cells",
        details: Callable[[], str] = str,
    ) -> AbstractContextManager[Watch]:
        """Around long work: a receiver of (finished items, time of all [ns]), out of `count` items and `total_ns`.

        `count` None: their number is not known.  `details` says more about the work at any time.
        """
        del what, total_ns, count, what_each, details
        return nullcontext(no_watch)


# ---- Values that a verb refuses, and quantities given as text.  An option has its name in Python; the command writes it with hyphens.

T = TypeVar("T")


class OptionError(UnitError):
    """An option does not take this value; one line, which begins with the option's name."""

    def __init__(self, option: str, reason: object) -> None:
        super().__init__(f"{option}: {reason}")
        self.option, self.reason = option, str(reason)


def parsed(option: str, text: str, parse: Callable[[object], T]) -> T:
    """A quantity as `parse` of `sim.model.units` reads it.  OptionError: it is none."""
    try:
        return parse(text)
    except UnitError as error:
        raise OptionError(option, error) from None


def writable_folder(path: Path) -> Path:
    """Make the folder of the results before anything runs.  OptionError: it cannot be written."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        probe = path / f".writable.{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise OptionError("folder", f"{path} {_why_not_written(path, error)}") from None
    return path


def _why_not_written(path: Path, error: OSError) -> str:
    """Why a path cannot be written, with the folder that is the reason."""
    there = next((folder for folder in (path, *path.parents) if folder.exists()), Path("/"))
    if not there.is_dir():
        return f"cannot be made: {there} is a file"
    if there == path:
        return f"cannot be written: {error.strerror}"
    why = error.strerror if error.errno in (errno.EACCES, errno.EROFS, errno.ENOSPC) else "it takes no folders"
    return f"cannot be made in {there}: {why}"


# ---- Display in notebooks and consoles: tables of bounded size, and pictures without `%matplotlib`.

MAX_ROWS = 30
"""Longer tables are shown up to here; they are whole in the attributes."""
_MAX_CELL = 120
_DPI = 120


class Picture:
    """A figure that a notebook shows by itself.  `figure` is matplotlib's."""

    def __init__(self, figure: Figure, caption: str = "") -> None:
        self.figure = figure
        self.caption = caption
        figure.set_dpi(_DPI)

    def save(self, file: str | Path) -> Path:
        """Write what the ending of the file says (PNG, SVG, PDF); returns the path."""
        self.figure.savefig(file)
        return Path(file)

    def __repr__(self) -> str:
        return f"Picture({self.caption})"

    def _repr_png_(self) -> bytes:
        data = BytesIO()
        self.figure.savefig(data, format="png")
        return data.getvalue()


def table_html(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """An HTML table; a long one ends with how many rows are left out."""
    head = "".join(f"<th>{_cell(text)}</th>" for text in header)
    body = "".join(f"<tr>{''.join(f'<td>{_cell(text)}</td>' for text in row)}</tr>" for row in rows[:MAX_ROWS])
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{paragraph(_left_out(rows))}"


def table_text(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns two spaces apart."""
    cells = [[one_line(text, _MAX_CELL) for text in row] for row in (header, *rows[:MAX_ROWS])]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    return "\n".join(filter(None, [*lines, _left_out(rows)]))


def section_html(section: TextTable) -> str:
    return paragraph(section.title) + table_html(section.header, section.rows)


def section_text(section: TextTable) -> str:
    return "\n".join(filter(None, [section.title, table_text(section.header, section.rows)]))


def parts_text(parts: Sequence[str | TextTable]) -> str:
    """Texts and tables, an empty line between."""
    return "\n\n".join(part if isinstance(part, str) else section_text(part) for part in parts)


def parts_html(parts: Sequence[str | TextTable]) -> str:
    """Texts and tables; a text of several lines keeps them."""
    return "".join(
        section_html(part) if not isinstance(part, str) else preformatted(part) if "\n" in part else paragraph(part)
        for part in parts
    )


def paragraph(text: str) -> str:
    """A paragraph of HTML; empty for no text."""
    return f"<p>{escape(printable(text))}</p>" if text else ""


def preformatted(text: str) -> str:
    return f"<pre>{escape(printable(text))}</pre>"


def _cell(text: str) -> str:
    return escape(one_line(text, _MAX_CELL))


def _left_out(rows: Sequence[object]) -> str:
    return f"... and {len(rows) - MAX_ROWS} more rows" if len(rows) > MAX_ROWS else ""
