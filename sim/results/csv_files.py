"""CSV files whose text cells cannot be executed as formulas by spreadsheets.

OWASP ("CSV Injection") recommends a single quote before such a cell.  Two cases need more: a spreadsheet that uses
semicolons as separators splits a cell at each semicolon, so the text after it needs a quote too; and text that already
starts with a quote and a formula gets another quote, so that `unescaped` can restore it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.model.files import replace_file

if TYPE_CHECKING:
    import pandas as pd

_FORMULA = "'*[^\\S;\t\r\n]*[-=+@\uff1d\uff0b\uff0d\uff20]"  # some spreadsheets accept full-width signs
_BEGINNING = rf"(?:\A(?=QUOTE{_FORMULA}|QUOTE'*[\t\r\n\0])|(?<=[;\t\r\n])(?=QUOTE{_FORMULA}))"
_PLAIN = re.compile(_BEGINNING.replace("QUOTE", ""))
_QUOTED = re.compile(_BEGINNING.replace("QUOTE", "'") + "'")
_NUMBER = re.compile(r"'*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


def write_csv(table: pd.DataFrame, path: Path, **options: Any) -> None:
    """Write a table as CSV, with text escaped by `escaped`.  `options`: passed to `DataFrame.to_csv`."""
    safe = table.rename(columns=escaped)
    for column in safe.select_dtypes(exclude=["number", "bool", "datetime"]).columns:
        safe[column] = safe[column].astype(object).map(escaped)
    replace_file(path, lambda partial: safe.to_csv(partial, index=False, **options))


def unescaped(text: str) -> str:
    """Return the text as it was before `escaped`."""
    return text if _NUMBER.fullmatch(text) else _QUOTED.sub("", text)


def escaped(value: object) -> Any:
    """Return text that looks like a formula with a quote in front, and any other value, also a number as text, unchanged."""
    return value if not isinstance(value, str) or _NUMBER.fullmatch(value) else _PLAIN.sub("'", value)
