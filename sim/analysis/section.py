"""A table for a terminal, a notebook or a file: a title, names of columns, and cells as text."""

from __future__ import annotations

from typing import NamedTuple


class TextTable(NamedTuple):
    """A table of texts with a title."""

    title: str
    header: list[str]
    rows: list[list[str]]
