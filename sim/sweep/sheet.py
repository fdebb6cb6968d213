"""Tables for spreadsheets, which take a cell that begins like a formula for one, and run it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.whole_file import replace_file

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["unescaped", "write_csv"]

_BEGINNINGS = ("=", "+", "-", "@", "\t", "\r")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


def write_csv(table: pd.DataFrame, path: Path, **options: Any) -> None:
    """Numbers stay numbers, also those in a column of text; a quote stands before text that would be a formula."""
    safe = table.rename(columns=_escaped)
    for column in safe.select_dtypes(exclude=["number", "bool", "datetime"]).columns:  # text has several kinds
        safe[column] = safe[column].astype(object).map(_escaped)
    replace_file(path, lambda partial: safe.to_csv(partial, index=False, **options))


def unescaped(text: str) -> str:
    """As it was before `write_csv`."""
    return text[1:] if text.startswith("'") and _escaped(text[1:]) == text else text


def _escaped(value: object) -> Any:
    if isinstance(value, str) and value.startswith(_BEGINNINGS) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value
