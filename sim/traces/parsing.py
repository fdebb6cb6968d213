"""Columns of texts -> columns of numbers and times, with the mistakes in their cells; shared by all formats of tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pandas as pd

from sim.foreign import printable
from sim.series.times import DATE, EXPECTED, Clock, clock_of

Rule = tuple[str, pd.Series]
"""(reason, rows that break it)"""


@dataclass(frozen=True, slots=True)
class Parsed:
    """A parsed block of rows, indexed by line."""

    tables: Mapping[str, pd.DataFrame]  # kind -> its rows, wrong and skipped ones included
    wrong: pd.Series[str]  # reason why a row is wrong; empty: it is right
    passed: pd.Series[str]  # reason why a right row belongs to no table; empty: it belongs to one


@dataclass(frozen=True, slots=True)
class Format:
    """A format of text tables."""

    name: str
    fits: Callable[[Sequence[str]], bool]  # columns, as in the first line
    parse: Callable[[pd.DataFrame, ColumnReader], Parsed]
    ordered: str = ""  # the kind of table whose time never goes back


class ColumnReader:
    """The reader of a file's columns.  The first rows settle its units, so that no later block is read in another one."""

    def __init__(self, zone: str | None = None) -> None:
        self._zone = zone  # of dates that name none
        self._clocks = dict[str, Clock]()
        self._meanings = dict[str, str]()

    def clock(self, texts: pd.Series[str], unit_s: float | None = None) -> Clock:
        """The clock of a column of times."""
        column = str(texts.name)
        if column not in self._clocks:
            clock = clock_of(column, texts, None if unit_s is None else Fraction(unit_s).limit_denominator(10**9), self._zone)
            if clock.unread:
                return clock  # a later block may tell
            self._clocks[column] = clock
        return self._clocks[column]

    def take(self, column: str, as_what: str) -> None:
        """Remember what a column of values is taken as."""
        self._meanings[column] = as_what

    def __str__(self) -> str:
        """Units of times and meanings of values, in words.  Empty: no column needed either."""
        times = [f"times of '{column}' are {clock}" for column, clock in self._clocks.items()]
        return ", ".join(times + [f"'{column}' is taken as {what}" for column, what in self._meanings.items()])


def seconds(texts: pd.Series[str], clock: Clock) -> pd.Series[float]:
    """A column of times as seconds; NaN: no time.  The same as `Clock.seconds` of each cell, to the precision of a double."""
    if clock.unit_s is None:
        return dates(texts) if clock.zone == "UTC" else _local_dates(texts, clock)
    numbers = number(texts)
    return numbers * float(clock.unit_s) if clock.unit_s >= 1 else numbers / round(1 / clock.unit_s)  # 0.001 is not exact, 1000 is


def dates(texts: pd.Series[str]) -> pd.Series[float]:
    """ISO 8601 dates, of UTC where they name no zone, as epoch seconds; NaN: no date."""
    stripped = texts.str.strip()
    plain = stripped.where(stripped.str.fullmatch(DATE), "").str.replace(",", ".", regex=False).str.replace(r" ?UTC$", "Z", regex=True)
    moments = pd.to_datetime(plain, errors="coerce", utc=True, format="ISO8601").astype("datetime64[ns, UTC]")
    nanoseconds = moments.astype("int64").astype(float)  # and not a pd.Timedelta: with NumPy 2.5 pandas 2.3 warns of each
    return (nanoseconds / 1e9).where(moments.notna())


def _local_dates(texts: pd.Series[str], clock: Clock) -> pd.Series[float]:
    """Row after row: an hour that comes twice is told by the row before."""
    found, before = list[float](), None
    for text in texts:
        at = clock.seconds(text, before)
        before = before if at is None else at
        found.append(np.nan if at is None else float(at))
    return pd.Series(found, index=texts.index, dtype=float)


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


def time_of(texts: pd.DataFrame, column: str, reader: ColumnReader, unit_s: float | None = None) -> tuple[pd.Series[float], list[Rule]]:
    clock = reader.clock(texts[column], unit_s)
    time = seconds(texts[column], clock)
    why = f"{column} is no time: expected {EXPECTED}, not '{printable(clock.unread[:40])}'" if clock.unread else f"{column} is no time"
    return time, [(why, _not_finite(time))]


def _not_finite(values: pd.Series[float]) -> pd.Series[bool]:
    return values.isna() | values.isin([np.inf, -np.inf])
