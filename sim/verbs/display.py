"""Display in notebooks and consoles: tables of bounded size, and pictures without `%matplotlib`."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from sim.foreign import one_line, printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sim.analysis.section import TextTable

MOST_ROWS = 30
"""Longer tables are shown up to here; they are whole in the attributes."""
_LONGEST_CELL = 120
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
    body = "".join(f"<tr>{''.join(f'<td>{_cell(text)}</td>' for text in row)}</tr>" for row in rows[:MOST_ROWS])
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{paragraph(_left_out(rows))}"


def table_text(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns two spaces apart."""
    cells = [[one_line(text, _LONGEST_CELL) for text in row] for row in (header, *rows[:MOST_ROWS])]
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
        section_html(part) if not isinstance(part, str) else preformatted(part) if "\n" in part else paragraph(part) for part in parts
    )


def paragraph(text: str) -> str:
    """A paragraph of HTML; empty for no text."""
    return f"<p>{escape(printable(text))}</p>" if text else ""


def preformatted(text: str) -> str:
    return f"<pre>{escape(printable(text))}</pre>"


def _cell(text: str) -> str:
    return escape(one_line(text, _LONGEST_CELL))


def _left_out(rows: Sequence[object]) -> str:
    return f"... and {len(rows) - MOST_ROWS} more rows" if len(rows) > MOST_ROWS else ""
