"""Typed cells as the texts that a CSV file has, so that one reader reads both."""

from __future__ import annotations


def cell_text(value: object) -> str:
    """The text of a cell; empty: it has no value, or is not a number."""
    return "" if value is None or value != value else str(value)  # noqa: PLR0124 - not a number is no value
