"""Tables for spreadsheets, which run a cell that begins like a formula.

OWASP ("CSV Injection") advises a quote before such a cell.  Two cases need more.  A spreadsheet that separates cells by
semicolons splits a cell at its own.  A cell that begins with a quote and a formula gets another quote: else `unescaped`
could not restore it.
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
    """Write the table.  Numbers stay numbers, also in a column of text; text that looks like a formula gets a quote in front."""
    safe = table.rename(columns=escaped)
    # pandas has several types for text
    for column in safe.select_dtypes(exclude=["number", "bool", "datetime"]).columns:
        safe[column] = safe[column].astype(object).map(escaped)
    replace_file(path, lambda partial: safe.to_csv(partial, index=False, **options))


def unescaped(text: str) -> str:
    """The text before `write_csv` escaped it."""
    return text if _NUMBER.fullmatch(text) else _QUOTED.sub("", text)


def escaped(value: object) -> Any:
    """The value with a quote in front if it is text that looks like a formula."""
    return value if not isinstance(value, str) or _NUMBER.fullmatch(value) else _PLAIN.sub("'", value)
