"""A table for a terminal, a notebook or a file: a title, names of columns, and cells as text."""

from __future__ import annotations

from typing import NamedTuple


class TextTable(NamedTuple):
    title: str
    header: list[str]
    rows: list[list[str]]
