"""Columns of texts -> columns of numbers and times, with the mistakes in their cells; shared by all formats of tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

__all__ = ["Format", "Parsed", "Rule", "blank", "dates", "first_of", "first_wrong", "never", "number", "seconds", "time_of", "unusable"]

Rule = tuple[str, pd.Series]
"""(reason, rows that break it)"""

_DIGITS_OF_UNIT = ((1e17, 1e-9), (1e14, 1e-6), (1e11, 1e-3))
"""Epoch times from the year 1973 (in ms) to 5138 (in s) can only be of one unit."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """A parsed block of rows, indexed by line."""

    tables: Mapping[str, pd.DataFrame]  # kind -> its rows, wrong and skipped ones included
    wrong: pd.Series[str]  # reason why a row is wrong; empty: it is right
    passed: pd.Series[str]  # reason why a right row belongs to no table; empty: it belongs to one


@dataclass(frozen=True, slots=True)
class Format:
    name: str
    fits: Callable[[Sequence[str]], bool]  # columns, as in the first line
    parse: Callable[[pd.DataFrame], Parsed]
    ordered: str = ""  # the kind of table whose time never goes back


def first_of(names: Sequence[str], columns: Sequence[str]) -> str | None:
    """The first of the names that is a column, in any spelling."""
    written = {column.lower(): column for column in reversed(columns)}
    return next((written[name] for name in names if name in written), None)


def seconds(texts: pd.Series[str], unit_s: float | None = None) -> pd.Series[float]:
    """Numbers or dates as seconds; NaN: neither.  Without a unit, the size of the numbers decides."""
    numbers = number(texts)
    if numbers.notna().sum() * 2 <= len(texts):
        dated = dates(texts)
        if dated.notna().sum() > numbers.notna().sum():
            return dated
    if unit_s is None:
        usual = numbers.median()
        unit_s = next((unit for least, unit in _DIGITS_OF_UNIT if usual >= least), 1.0)
    return numbers * unit_s if unit_s >= 1 else numbers / round(1 / unit_s)  # 0.001 is not exact, 1000 is


def dates(texts: pd.Series[str]) -> pd.Series[float]:
    """ISO 8601 dates, of UTC where they name no zone, as epoch seconds; NaN: no date."""
    moments = pd.to_datetime(texts.str.strip(), errors="coerce", utc=True, format="ISO8601").astype("datetime64[ns, UTC]")
    nanoseconds = moments.astype("int64").astype(float)  # and not a pd.Timedelta: with NumPy 2.5 pandas 2.3 warns of each
    return (nanoseconds / 1e9).where(moments.notna())


def number(texts: pd.Series[str]) -> pd.Series[float]:
    return pd.to_numeric(texts, errors="coerce").astype(float)


def blank(texts: pd.Series[str]) -> pd.Series[bool]:
    return texts.str.strip() == ""


def never(index: pd.Index) -> pd.Series[str]:
    return pd.Series("", index=index, dtype=object)


def first_wrong(*rules: Rule) -> pd.Series[str]:
    """The first rule that each row breaks."""
    reasons = never(rules[0][1].index)
    for reason, broken in rules:
        reasons = reasons.mask((reasons == "") & broken, reason)
    return reasons


def unusable(name: str, texts: pd.Series[str], values: pd.Series[float]) -> list[Rule]:
    """Rules for texts that are no finite number from 0 on; blank ones are allowed."""
    filled = ~blank(texts)
    return [
        (f"{name} is no number", filled & values.isna()),
        (f"{name} is not finite", filled & _not_finite(values)),
        (f"{name} is negative", filled & (values < 0)),
    ]


def time_of(texts: pd.DataFrame, column: str, unit_s: float | None = None) -> tuple[pd.Series[float], list[Rule]]:
    time = seconds(texts[column], unit_s)
    return time, [(f"{column} is no time", _not_finite(time))]


def _not_finite(values: pd.Series[float]) -> pd.Series[bool]:
    return values.isna() | values.isin([np.inf, -np.inf])
