"""Find the columns of times and rates in a table, by the names of the columns, and read its cells."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

from sim.model.series.unknown import is_known
from sim.model.units import UnitError, parse_number

TIME_COLUMNS = (
    *("epoch_s", "timestamp", "datetime", "date", "time", "t", "t_s", "epoch", "ts"),
    *(f"{name}_{unit}" for name in ("epoch", "ts", "timestamp", "time", "t") for unit in ("s", "ms", "us", "ns")),
    *("date_time", "time_utc", "timestamp_utc", "unix_time"),
)
"""Names of columns of times, in the form in which `find_column` compares them, the most specific first."""
RATE_COLUMNS = (
    *("offered_rec_s", "rate", "throughput_rec_s", "throughput", "messages", "requests", "value"),
    *(f"{what}_per_{unit}" for what in ("records", "events", "messages", "requests") for unit in ("second", "s")),
    *("rps", "tps", "qps", "numrecordsinpersecond", "numrecordsoutpersecond"),
)
"""Names of columns of rates, likewise."""
GRAFANA_TIME_COLUMN = "Time"
"""The column of times in a CSV file that Grafana exports from a panel.  Each other column has the name of a series."""
_UNIT_SUFFIXES = {
    Fraction(1): ("s", "sec", "secs", "second", "seconds"),
    Fraction(1, 10**3): ("ms", "msec", "msecs", "milli", "millis", "millisecond", "milliseconds"),
    Fraction(1, 10**6): ("us", "usec", "micro", "micros", "microsecond", "microseconds"),
    Fraction(1, 10**9): ("ns", "nsec", "nano", "nanos", "nanosecond", "nanoseconds"),
}
"""Unit [s] -> last words of the names of columns with times in this unit."""
_MAX_NUMBER_CHARS = 60
"""Maximum characters of a cell that are parsed as a number."""


def find_column(names: Sequence[str], columns: Sequence[str]) -> str | None:
    """Return the column that matches the earliest possible of `names`, or None if no column matches.

    The comparison ignores case and punctuation: the column ``Time (ms)`` has the name ``time_ms``.
    """
    column_of = {"_".join(_words(column)): column for column in reversed(columns)}
    return next((column_of[name] for name in names if name in column_of), None)


def find_rate_column(columns: Sequence[str]) -> str | None:
    """Return the column of rates: one with a name in `RATE_COLUMNS`, otherwise the second of two columns, otherwise None."""
    return find_column(RATE_COLUMNS, columns) or (columns[1] if len(columns) == 2 else None)


def time_unit_in_name(column: str) -> Fraction | None:
    """Return the unit [s] at the end of the name of a column of times, or None: ``t_ms`` -> 1/1000."""
    words = _words(column)
    return next((unit for unit, suffixes in _UNIT_SUFFIXES.items() if len(words) > 1 and words[-1] in suffixes), None)


def _words(column: str) -> list[str]:
    """Return the words of a column's name, in lower case and without punctuation."""
    return re.findall(r"[a-z0-9]+", column.lower())


def cell_number(cell: str | None) -> Fraction | None:
    """Return the number in a cell, or None if the cell has no number or one that means "unknown"."""
    try:
        number = parse_number((cell or "")[:_MAX_NUMBER_CHARS])
    except UnitError:
        return None
    return number if is_known(number) else None


def cell_text(value: object) -> str:
    """Return the value of a cell as text, or "" for None and NaN."""
    return "" if value is None or value != value else str(value)
