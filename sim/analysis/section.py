"""A table as a terminal, a notebook or a file shows it: a title, names of columns, and cells that are texts already."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Section"]


class Section(NamedTuple):
    title: str
    header: list[str]
    rows: list[list[str]]
