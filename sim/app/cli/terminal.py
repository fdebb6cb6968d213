"""Tables and text on stdout: boxes fitted to the width of a terminal, aligned plain text of limited width in a pipe."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from textwrap import fill, wrap
from typing import Literal, TextIO

from sim.app.verbs.common import format_table
from sim.model.text import one_line, printable
from sim.results.formats import TextTable

Lines = Sequence[Sequence[str]]

MAX_CELL = 200
"""Characters: longer cells are cut."""
PIPE_WIDTH = 120
"""Characters: wider tables of numbers are split where stdout is not a terminal."""
MAX_LINE_LENGTH = 24
"""Characters: longer cells of a split table are wrapped, so that more columns fit next to each other."""


def show(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    text_cells: bool = False,
    spare: Sequence[str] = (),
    more: str = "--json",
) -> None:
    """Print a table on stdout.  `text_cells`: cells are text, aligned left and wrapped; otherwise numbers.

    On a terminal that is too narrow, the table is transposed.  If that does not fit either, it has no `spare` columns (the
    least important first), and a line says which they are and that `more` shows them.  If even that is too wide, the table
    or its transpose is split into several tables with wrapped headers, whichever takes fewer lines.  In a pipe, a table of
    more than PIPE_WIDTH characters is split between columns.
    """
    header, *rows = [[one_line(text, MAX_CELL) for text in row] for row in (header, *rows)]
    if not sys.stdout.isatty():
        pieces = [[header, *rows]] if text_cells else _pieces([header, *rows], PIPE_WIDTH, _plain_width)
        print("\n\n".join(format_table(piece[0], piece[1:], text_cells=text_cells) for piece in pieces))
        return
    from rich.console import Console

    console = Console()
    if text_cells:
        console.print(_boxed(header, rows, text_cells=True))
        return
    table = [header, *rows]
    turned = [list(column) for column in zip(*table, strict=True)]
    layouts = (table, turned)
    fitting = next((layout for layout in layouts if _width(layout) <= console.width), None)
    if fitting:
        console.print(_boxed(fitting[0], fitting[1:]))
        return
    narrow, left_out = _without(table, [name for name in spare if name in header], console.width)
    if left_out and len(rows) > 1:
        console.print(_boxed(narrow[0], narrow[1:], _column_widths(narrow)))
        put(f"{left_out} ({more} shows all).")
        return
    for piece in min(
        (_pieces(layout, console.width, _wrapped_width) for layout in layouts[: 1 + (len(rows) <= len(header))]),
        key=_lines,
    ):
        console.print(_boxed(piece[0], piece[1:], _column_widths(piece)))


def put_parts(parts: Iterable[str | TextTable]) -> None:
    """Print texts and tables on stdout, separated by empty lines."""
    for i, part in enumerate(parts):
        if i:
            print()
        if isinstance(part, str):
            put(part)
        else:
            put(part.title)
            show(part.header, part.rows, spare=part.spare)


def put(text: str, *, is_red: bool = False) -> None:
    """Print text on stdout, with control characters escaped.  On a terminal, wrap it between words, and colour it if `is_red`."""
    lines = fitted(printable(text), sys.stdout)
    is_red = is_red and sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    print(f"\x1b[31m{lines}\x1b[0m" if is_red else lines)


def _width(table: Lines) -> int:
    """Return the width of the boxed table without wrapped cells: a character at each side, three between columns."""
    return sum(max(map(len, column)) + 3 for column in zip(*table, strict=True)) - 1


def _without(table: Lines, spare: Sequence[str], width: int) -> tuple[Lines, str]:
    """Return a table of at most `width` without some `spare` columns, and a text about these; "" if it is wider without all of them.

    Columns with equal cells go first, and the text has their values.
    """
    columns = {column[0]: column for column in zip(*table, strict=True)}
    alike = [name for name in spare if len(set(columns[name][1:])) == 1]
    hidden, shared = list[str](), list[str]()
    for name in [*alike, *(name for name in spare if name not in alike)]:
        if _wrapped_width(list(columns.values())) <= width:
            break
        cells = columns.pop(name)
        shared += [f"{name} {cells[1]}"] * (name in alike)
        hidden += [name] * (name not in alike)
    if _wrapped_width(list(columns.values())) > width:
        return table, ""
    texts = [
        f"{begin}: {', '.join(names)}"
        for begin, names in (("Not shown", hidden), ("Alike in all rows", shared))
        if names
    ]
    return [list(row) for row in zip(*columns.values(), strict=True)], "; ".join(texts)


def _pieces(table: Lines, width: int, width_of: Callable[[Lines], int]) -> list[Lines]:
    """Split a table into tables of at most `width`, as `width_of` measures columns.  Each repeats the first columns, which identify its rows."""
    columns = [list(column) for column in zip(*table, strict=True)]
    several = next((n for n in range(1, len(columns)) if len(set(zip(*columns[:n], strict=True))) == len(table)), 1)
    names = [column for column in columns[:several] if len(set(column[1:])) > 1] or columns[:1]
    if width_of(names) > width // 2:
        several, names = 1, columns[:1]
    pieces = [columns[:several]]
    for column in columns[several:]:
        if width_of([*pieces[-1], column]) > width and pieces[-1] != names:
            pieces.append(list(names))
        pieces[-1].append(column)
    return [[list(row) for row in zip(*piece, strict=True)] for piece in pieces]


def _plain_width(columns: Lines) -> int:
    return sum(max(map(len, column)) + 2 for column in columns) - 2


def _wrapped_width(columns: Lines) -> int:
    return sum(_column_width(column, is_first=not i) + 3 for i, column in enumerate(columns)) - 1


def _column_width(column: Sequence[str], *, is_first: bool) -> int:
    """Return the width of a column whose header and long cells are wrapped between words; the first is never wrapped."""
    if is_first:
        return max(map(len, column))
    lengths = [len(word) for cell in column for word in cell.split()]
    return max(
        1, *lengths, *(len(cell) if len(cell) <= MAX_LINE_LENGTH else MAX_LINE_LENGTH // 2 for cell in column[1:])
    )


def _column_widths(piece: Lines) -> list[int]:
    return [_column_width(column, is_first=not i) for i, column in enumerate(zip(*piece, strict=True))]


def _lines(pieces: Sequence[Lines]) -> int:
    """Return the number of terminal lines of boxed tables: wrapped rows, and three lines of frame for each table."""
    return sum(
        3
        + sum(
            max(len(wrap(cell, width)) for cell, width in zip(row, _column_widths(piece), strict=True)) for row in piece
        )
        for piece in pieces
    )


def _boxed(
    header: Sequence[str], rows: Lines, widths: Sequence[int | None] | None = None, *, text_cells: bool = False
) -> object:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for i, (name, width) in enumerate(zip(header, widths or [None] * len(header), strict=True)):
        justify: Literal["left", "right"] = "right" if i and not text_cells else "left"
        table.add_column(Text(name), justify=justify, no_wrap=i == 0, width=width, vertical="bottom")
    for row in rows:
        table.add_row(*map(Text, row))  # Text, because a str with brackets would be read as markup
    return table


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
