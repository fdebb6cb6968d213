"""One table in the terminal: boxes for people, aligned plain text when piped."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from textwrap import fill

from sim.foreign import one_line, printable

__all__ = ["plain", "put", "show"]

LONGEST_CELL = 200  # characters


def show(header: Sequence[str], rows: Sequence[Sequence[str]], *, text_cells: bool = False) -> None:
    """On stdout.  A terminal too narrow for a row per strategy gets a column per strategy.  `text_cells`: no cell is a number."""
    header, *rows = [[one_line(text, LONGEST_CELL) for text in row] for row in (header, *rows)]
    if not sys.stdout.isatty():
        print(plain(header, rows, text_cells=text_cells))
        return
    from rich.console import Console

    console = Console()
    if not text_cells and len(plain(header, rows).partition("\n")[0]) + len(header) > console.width:
        header, *rows = [list(column) for column in zip(header, *rows, strict=True)]
    console.print(_boxed(header, rows, text_cells=text_cells))


def put(text: str) -> None:
    """Prose on stdout, which may hold what others wrote.  On a terminal no word is broken."""
    text = printable(text)
    if not sys.stdout.isatty():
        print(text)
        return
    width = max(40, shutil.get_terminal_size().columns)
    for line in text.split("\n"):
        print(fill(line, width, break_long_words=False, break_on_hyphens=False) if len(line) > width else line)


def plain(header: Sequence[str], rows: Sequence[Sequence[str]], *, text_cells: bool = False) -> str:
    """Columns two spaces apart; numbers, which follow the first column, to the right, words to the left."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    to = [str.ljust, *[str.ljust if text_cells else str.rjust] * (len(widths) - 1)]
    lines = [(align(text, width) for align, text, width in zip(to, row, widths, strict=True)) for row in (header, *rows)]
    return "\n".join("  ".join(line).rstrip() for line in lines)


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
