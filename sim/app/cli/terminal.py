"""Tables and text on stdout, fitted to the width of a terminal; in a pipe, tables have a limited width."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, TextIO

from sim.app.verbs.common import format_table
from sim.model.text import one_line, printable

if TYPE_CHECKING:
    from sim.results.formats import TextTable

Lines = Sequence[Sequence[str]]

MAX_CELL = 200
"""Characters: longer cells are cut."""
PIPE_WIDTH = 120
"""Characters: wider tables of numbers are split where stdout is not a terminal."""


def show(header: Sequence[str], rows: Sequence[Sequence[str]], *, text_cells: bool = False) -> None:
    """Print a table on stdout.  `text_cells`: cells are text, aligned left, and wrapped on a terminal; otherwise numbers.

    A table of numbers that is too wide is split between columns, and each piece begins with the columns that identify its
    rows.  On a terminal it is transposed if it has fewer rows than columns, and that takes fewer lines.
    """
    table = [[one_line(text, MAX_CELL) for text in row] for row in (header, *rows)]
    is_terminal = sys.stdout.isatty()
    if text_cells:
        _print_wrapped(table) if is_terminal else print(format_table(table[0], table[1:], text_cells=True))
        return
    layouts = [_pieces(table, _columns(sys.stdout) if is_terminal else PIPE_WIDTH)]
    if is_terminal and len(layouts[0]) > 1 and len(rows) <= len(header):
        layouts.append(_pieces([list(column) for column in zip(*table, strict=True)], _columns(sys.stdout)))
    pieces = min(layouts, key=lambda pieces: sum(len(piece) + 1 for piece in pieces))
    print("\n\n".join(format_table(piece[0], piece[1:]) for piece in pieces))


def put_parts(parts: Iterable[str | TextTable]) -> None:
    """Print texts and tables on stdout, separated by empty lines."""
    for i, part in enumerate(parts):
        if i:
            print()
        if isinstance(part, str):
            put(part)
        else:
            put(part.title)
            show(part.header, part.rows)


def put(text: str, *, is_red: bool = False) -> None:
    """Print text on stdout, with control characters escaped.  On a terminal, wrap it between words, and colour it if `is_red`."""
    lines = fitted(printable(text), sys.stdout)
    is_red = is_red and sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    print(f"\x1b[31m{lines}\x1b[0m" if is_red else lines)


def _pieces(table: Lines, width: int) -> list[Lines]:
    """Split a table into tables of at most `width` characters.  Each repeats the first columns, which identify its rows."""
    columns = [list(column) for column in zip(*table, strict=True)]
    several = next((n for n in range(1, len(columns)) if len(set(zip(*columns[:n], strict=True))) == len(table)), 1)
    names = [column for column in columns[:several] if len(set(column[1:])) > 1] or columns[:1]
    if _width(names) > width // 2:
        several, names = 1, columns[:1]
    pieces = [columns[:several]]
    for column in columns[several:]:
        if _width([*pieces[-1], column]) > width and pieces[-1] != names:
            pieces.append(list(names))
        pieces[-1].append(column)
    return [[list(row) for row in zip(*piece, strict=True)] for piece in pieces]


def _width(columns: Lines) -> int:
    """Return the width of a plain table."""
    return sum(max(map(len, column)) + 2 for column in columns) - 2


def _print_wrapped(table: Lines) -> None:
    """Print a table of texts, with cells wrapped between words."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    wrapped = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for i, name in enumerate(table[0]):
        wrapped.add_column(Text(name), no_wrap=i == 0, vertical="bottom")
    for row in table[1:]:
        wrapped.add_row(*map(Text, row))  # Text, because a str with brackets would be read as markup
    Console().print(wrapped)


NARROWEST = 40
"""Minimum width, in characters, that text is wrapped to."""


def fitted(text: str, stream: TextIO) -> str:
    """Wrap lines at the width of the terminal, between words.  If the stream is not a terminal, return text unchanged."""
    if not stream.isatty():
        return text
    width = max(NARROWEST, _columns(stream))
    lines = text.split("\n")
    return "\n".join(
        fill(line, width, break_long_words=False, break_on_hyphens=False) if len(line) > width else line
        for line in lines
    )


def _columns(stream: TextIO) -> int:
    """Return the width of the terminal that this stream writes to."""
    if os.environ.get("COLUMNS", "").isdigit():
        return int(os.environ["COLUMNS"])
    try:
        return os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        return shutil.get_terminal_size().columns
