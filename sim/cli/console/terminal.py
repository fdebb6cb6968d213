"""One table in the terminal: boxes for people, aligned plain text when piped."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from sim.cli.console.prose import fitted
from sim.foreign import one_line, printable

LONGEST_CELL = 200  # characters


def show(header: Sequence[str], rows: Sequence[Sequence[str]], *, text_cells: bool = False) -> None:
    """Print a table on stdout.  `text_cells`: no cell is a number, and long ones may be wrapped.

    A terminal too narrow for a row per strategy gets a column per strategy.  One too narrow for both gets the table in pieces.
    """
    header, *rows = [[one_line(text, LONGEST_CELL) for text in row] for row in (header, *rows)]
    if not sys.stdout.isatty():
        print(plain(header, rows, text_cells=text_cells))
        return
    from rich.console import Console

    console = Console()
    if text_cells:
        console.print(_boxed(header, rows, text_cells=True))
        return
    turned = [list(column) for column in zip(header, *rows, strict=True)]
    table = [header, *rows]
    if _width(table) > console.width and (_width(turned) <= console.width or len(rows) <= len(header)):
        table = turned
    for piece in _pieces(table, console.width):
        console.print(_boxed(piece[0], piece[1:], text_cells=False))


def put(text: str) -> None:
    """Print prose on stdout, also text of users.  On a terminal no word is broken."""
    print(fitted(printable(text), sys.stdout))


def plain(header: Sequence[str], rows: Sequence[Sequence[str]], *, text_cells: bool = False) -> str:
    """Columns two spaces apart; numbers, which follow the first column, to the right, words to the left."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    to = [str.ljust, *[str.ljust if text_cells else str.rjust] * (len(widths) - 1)]
    lines = [(align(text, width) for align, text, width in zip(to, row, widths, strict=True)) for row in (header, *rows)]
    return "\n".join("  ".join(line).rstrip() for line in lines)


def _width(table: Sequence[Sequence[str]]) -> int:
    """Characters of a line of the table in its box: three beside each column."""
    return sum(max(map(len, column)) + 3 for column in zip(*table, strict=True))


def _pieces(table: Sequence[Sequence[str]], width: int) -> list[list[list[str]]]:
    """Tables that fit: each has the columns that tell its rows apart, and as many of the others as there is room for."""
    columns = [list(column) for column in zip(*table, strict=True)]
    several = next((n for n in range(1, len(columns)) if len(set(zip(*columns[:n], strict=True))) == len(table)), 1)
    names = [column for column in columns[:several] if len(set(column[1:])) > 1] or columns[:1]
    if _width(list(zip(*names, strict=True))) > width // 2:
        several, names = 1, columns[:1]
    pieces = [columns[:several]]
    for column in columns[several:]:
        if _width(list(zip(*pieces[-1], column, strict=True))) > width and pieces[-1] != names:
            pieces.append(list(names))
        pieces[-1].append(column)
    return [[list(row) for row in zip(*piece, strict=True)] for piece in pieces]


def _boxed(header: Sequence[str], rows: Sequence[Sequence[str]], *, text_cells: bool) -> object:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for i, name in enumerate(header):
        table.add_column(Text(name), justify="right" if i and not text_cells else "left", no_wrap=i == 0)
    for row in rows:
        table.add_row(*map(Text, row))  # not markup: a name may have brackets
    return table
