"""Formatting of numbers and tables as text, and conversion to JSON and CSV."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sim.model.files import replace_file

if TYPE_CHECKING:
    import pandas as pd

    from sim.model.quantities import Kind


# ---- JSON, which has neither NaN nor infinity.


def json_ready(value: Any) -> Any:
    """Return the value with None for NaN and infinity, lists for tuples, and text keys."""
    if isinstance(value, dict):
        return {str(key): json_ready(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_ready(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


# ---- Tables for terminals, notebooks and files.


class TextTable(NamedTuple):
    """A table of texts with a title."""

    title: str
    header: list[str]
    rows: list[list[str]]
    spare: Sequence[str] = ()  # columns that a narrow terminal need not show, the least important first


# ---- Numbers as short texts: rounded, with a unit. `sim.model.units` has exact texts that can be parsed again.

MISSING = "-"
"""Text of a missing number."""
NOT_ENDED = "not ended"
"""Text of an infinite duration: one that had not ended at the end of the run."""

_MAX_DIGITS = 7


def apart_text(value: float, bound: float, text: Callable[[float, int], str]) -> str:
    """Return a value with enough digits to differ from a bound: ``1.04 s`` for 1,041 ms and a bound of 1 s.

    `text`: (number, digits) -> text.
    """
    if value == bound:
        return text(value, 2)
    texts = (text(value, digits) for digits in range(2, _MAX_DIGITS) if text(value, digits) != text(bound, 2))
    return next(texts, text(value, _MAX_DIGITS))


def ms_text(ms: float, digits: int = 2) -> str:
    """Format a duration: ``ms_text(5743.2) == "5.7 s"``.  Two digits, since repeated real runs differ in the third."""
    if math.isnan(ms):
        return MISSING
    if math.isinf(ms):
        return NOT_ENDED
    if ms < 0.95:
        return "0 ms" if ms < 0.05 else f"{ms:.{digits - 1}f} ms"
    if ms < 995:
        return f"{_rounded(ms, digits)} ms"
    if ms < 119_500:
        return f"{_rounded(ms / 1e3, digits)} s"
    return f"{_rounded(ms / 6e4, digits)} min" if ms < 7.15e6 else f"{_rounded(ms / 3.6e6, digits)} h"


def bytes_text(count: float) -> str:
    """Format a size in decimal units: ``bytes_text(7_612_000) == "7.6 MB"``."""
    if math.isnan(count):
        return MISSING
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= 0.995 * scale:
            return f"{_rounded(count / scale)} {unit}"
    return f"{count:.0f} B"


ROUNDING_PER_SECOND = 1e-9
"""Rates up to this value are rounding errors and printed as 0/s."""


def per_second_text(rate: float) -> str:
    """Format a rate: ``per_second_text(19_834) == "19.8k/s"``.  Three digits, since throughputs differ by little."""
    if math.isnan(rate):
        return MISSING
    for unit, scale in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if rate >= 0.9995 * scale:
            return f"{rate / scale:.3g}{unit}/s"
    return f"{rate:.3g}/s" if abs(rate) > ROUNDING_PER_SECOND else "0/s"


def count_text(count: float) -> str:
    """Format a count: ``count_text(52_340) == "52.3k"``.

    Numbers below 10,000 have all digits before the decimal point, and those below 100 one decimal if they are not whole.
    """
    if math.isnan(count):
        return MISSING
    if count < 9_999.5:
        return f"{count:.1f}".removesuffix(".0") if count < 99.95 else f"{count:.0f}"
    for unit, scale in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if count >= 0.9995 * scale:
            return f"{count / scale:.3g}{unit}"
    return f"{count:.0f}"


def bare_text(number: float) -> str:
    """Format a number without a unit: ``bare_text(1234.5) == "1,234"``; two digits below 10."""
    if not math.isfinite(number):
        return MISSING
    return f"{number:,.0f}" if abs(number) >= 10 or number == int(number) else f"{number:.2g}"


def share_text(share: float) -> str:
    """Format a share as a percentage: ``share_text(0.987) == "99 %"``."""
    return MISSING if math.isnan(share) else f"{100 * share:.0f} %"


def more_text(count: int) -> str:
    """Return `` (and 3 more)`` after the first of several, or ""."""
    return f" (and {count} more)" if count else ""


def amount_text(value: float, kind: Kind) -> str:
    """Format ms, bytes or records/s by kind of quantity: ``amount_text(1500, "duration") == "1.5 s"``."""
    texts: dict[Kind, Callable[[float], str]] = {"duration": ms_text, "size": bytes_text, "rate": per_second_text}
    return texts[kind](value)


def change_text(change: float) -> str:
    """Format a relative change with its sign: ``change_text(-0.003) == "-0.3 %"``."""
    if math.isnan(change):
        return MISSING
    text = f"{100 * change:+.1f}" if abs(change) < 0.0995 else f"{100 * change:+.0f}"
    return "±0 %" if float(text) == 0 else f"{text} %"


def _rounded(number: float, digits: int = 2) -> str:
    """Return a number with `digits` significant digits, but all digits before the decimal point."""
    decimals = max(digits - max(math.floor(math.log10(number)) + 1, 1), 0) if number > 0 else 0
    text = f"{number:.{decimals}f}"
    return text.rstrip("0").removesuffix(".") if decimals else text


# ---- CSV files whose text cells cannot be executed as formulas by spreadsheets.
# OWASP ("CSV Injection") recommends a single quote before such a cell.  Two cases need more: a spreadsheet that uses
# semicolons as separators splits a cell at each semicolon, so the text after it needs a quote too; and text that already
# starts with a quote and a formula gets another quote, so that `unescaped` can restore it.

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
