"""One table in the terminal: boxes for people, aligned plain text when piped."""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["plain", "show"]


def show(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """On stdout.  A terminal too narrow for a row per strategy gets a column per strategy."""
    if not sys.stdout.isatty():
        print(plain(header, rows))
        return
    from rich.console import Console

    console = Console()
    if len(plain(header, rows).partition("\n")[0]) + len(header) > console.width:
        header, *rows = [list(column) for column in zip(header, *rows, strict=True)]
    console.print(_boxed(header, rows))


def plain(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns two spaces apart; numbers, which follow the first column, to the right."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = []
    for row in (header, *rows):
        first, *others = (text.rjust(width) if i else text.ljust(width) for i, (text, width) in enumerate(zip(row, widths, strict=True)))
        lines.append("  ".join((first, *others)))
    return "\n".join(lines)


def _boxed(header: Sequence[str], rows: Sequence[Sequence[str]]) -> object:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for i, name in enumerate(header):
        table.add_column(name, justify="right" if i else "left", no_wrap=i == 0)
    for row in rows:
        table.add_row(*row)
    return table
