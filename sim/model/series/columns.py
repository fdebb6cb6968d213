"""Find the columns of times and rates in a table, by the names of the columns, and read its cells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from fractions import Fraction
from itertools import islice
from statistics import median
from zoneinfo import ZoneInfo

from sim.model.frozen import frozen
from sim.model.units import UnitError, billionths, format_duration, parse_number

# ---- Values that mean "unknown" in the reports of Flink and its exporters.
#     -1                      not acknowledged, not ended (REST API), no committed offset (kafka-exporter), no metric yet
#     Long.MIN_VALUE          no watermark yet
#     Long.MAX_VALUE          never: an interval that is not set; the watermark at the end of the input
#     NaN, +Inf, -Inf, ""     a metric that cannot be computed, such as busyTimeMsPerSecond of a legacy source
# A 0 is a known number.  Only as a time since 1970 it means "unknown", because no job ran in 1970.

_MAX_KNOWN = 2**62
"""Larger values mean "never".  They are half of Long.MAX_VALUE or more, because Flink divides it, and doubles round it."""


def is_known(value: object) -> bool:
    """Return whether a value from outside is a number that does not mean "unknown".

    The result is False for -1, NaN, infinities, values near Long.MIN_VALUE or Long.MAX_VALUE, texts and booleans.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, Fraction)):
        return False
    return -_MAX_KNOWN < value < _MAX_KNOWN and value != -1  # comparisons with NaN are False


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
UNIT_SUFFIXES = {
    Fraction(1): ("s", "sec", "secs", "second", "seconds"),
    Fraction(1, 10**3): ("ms", "msec", "msecs", "milli", "millis", "millisecond", "milliseconds"),
    Fraction(1, 10**6): ("us", "usec", "micro", "micros", "microsecond", "microseconds"),
    Fraction(1, 10**9): ("ns", "nsec", "nano", "nanos", "nanosecond", "nanoseconds"),
}
"""Unit [s] -> last words of the names of columns with times in this unit: its symbol first, its name last."""
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
    return next((unit for unit, suffixes in UNIT_SUFFIXES.items() if len(words) > 1 and words[-1] in suffixes), None)


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


# ---- Detect the format of a column of times, and parse its cells: ISO 8601 dates, or numbers with a unit.
# The unit is given, in the name of the column, or inferred from the size of the numbers.  The format is detected from the first
# cells and applies to all.

MAX_INSPECTED_CELLS = 1000
"""Maximum number of cells, without blank ones, from which the format of a column is detected."""
DATE = re.compile(
    r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ](?P<hour>[0-9]{2})(?::(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:[.,](?P<digits>[0-9]{1,9})[0-9]*)?)?)?"
    r" ?(?P<zone>Z|UTC|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)
"""Accepted dates: ISO 8601 with the date first, decimals after a point or a comma, and a zone or none."""
EXPECTED_TIMES = "seconds, milliseconds since 1970, or ISO 8601, with the year first, such as 2023-11-14T12:00:00Z"

_MIN_EPOCHS = ((1e17, Fraction(1, 10**9)), (1e14, Fraction(1, 10**6)), (1e11, Fraction(1, 10**3)))
"""(minimum number, unit [s]) of times since 1970, in descending order.  Smaller numbers are seconds.

From 1973, in which milliseconds reach 1e11, to 5138, in which seconds do, a time has only one possible unit.
"""
_MIN_EPOCH_S = 1e8
"""Minimum seconds of a time since 1970, which is 1973.  Smaller times count from another start."""


@frozen
class TimeFormat:
    """The format of a column of times."""

    unit_s: Fraction | None = Fraction(1)  # seconds per unit of the numbers; None if the cells are dates
    is_epoch: bool = False  # whether numbers count from 1970
    is_zoneless: bool = False  # whether some dates have no zone of their own, so that `zone` applies to them
    unreadable: str = ""  # the first cell, if no inspected cell is a time
    zone: str = "UTC"  # for dates without a zone, such as Europe/Berlin

    def seconds(self, text: str, previous_s: Fraction | None = None) -> Fraction | None:
        """Return the exact time in a cell [s], or None if the cell does not have this format.

        `previous_s` is the time of the row before [s].  It resolves local times that occur twice because clocks were set back.
        """
        if self.unit_s is None:
            return _parse_date(text, self.zone, previous_s)
        number = _parse_number(text)
        return None if number is None else number * self.unit_s

    def nanoseconds(self, text: str) -> int | None:
        """Return the time in a cell [ns] if it is a plain decimal and a whole number of nanoseconds, otherwise None.

        This is ten times as fast as `seconds`, which must be used if the result is None.
        """
        if self.unit_s is None or (number := billionths(text)) is None:
            return None
        ns, rest = divmod(number * self.unit_s.numerator, self.unit_s.denominator)
        return None if rest else ns

    def __str__(self) -> str:
        if self.unit_s is None:
            return f"ISO 8601 without a zone, taken as {self.zone}" if self.is_zoneless else "ISO 8601"
        unit = UNIT_SUFFIXES.get(self.unit_s, (f"units of {format_duration(round(self.unit_s * 10**9))}",))[-1]
        return f"epoch {unit}" if self.is_epoch else unit


def detect_time_format(
    column: str, cells: Iterable[str], unit_s: Fraction | None = None, zone: str | None = None
) -> TimeFormat:
    """Detect the format of the times in a column from its first `MAX_INSPECTED_CELLS` cells that are not blank.

    The unit of numbers is `unit_s` [s], otherwise that in the column's name, otherwise it is inferred from the median.
    A name that ends in seconds is not trusted: its numbers may be milliseconds, so the median decides.  `zone` applies to
    dates without a zone (None: UTC).
    """
    inspected = list(islice((stripped for cell in cells if (stripped := cell.strip())), MAX_INSPECTED_CELLS))
    numbers = [float(number) for cell in inspected if (number := _parse_number(cell)) is not None]
    dates = [match for cell in inspected if (match := DATE.fullmatch(cell)) is not None]
    if len(dates) > len(numbers):
        is_zoneless = any(match["zone"] is None for match in dates)
        return TimeFormat(None, is_zoneless=is_zoneless, zone=zone or "UTC")
    known_unit_s = unit_s or time_unit_in_name(column)
    if not numbers:
        return TimeFormat(known_unit_s or Fraction(1), unreadable=inspected[0] if inspected else "")
    middle = median(numbers)
    if known_unit_s is None or (unit_s is None and known_unit_s == 1):
        known_unit_s = next((unit for minimum, unit in _MIN_EPOCHS if middle >= minimum), Fraction(1))
    return TimeFormat(known_unit_s, is_epoch=middle * known_unit_s >= _MIN_EPOCH_S)


def _parse_number(text: str) -> Fraction | None:
    """Return the exact non-negative number in a text, or None."""
    try:
        return parse_number(text)
    except UnitError:
        return None


def _parse_date(text: str, zone: str, previous_s: Fraction | None) -> Fraction | None:
    """Return a date as seconds since 1970, or None if it is not a valid date.

    Local times occur twice when clocks are set back.  The result is the first occurrence, or the second if the first is
    not later than `previous_s`, the time of the row before [s].
    """
    match = DATE.fullmatch(text.strip())
    if match is None:
        return None
    time = ":".join(match[part] or "00" for part in ("hour", "minute", "second"))
    try:
        moment = datetime.fromisoformat(f"{match['date']}T{time}{(match['zone'] or '').replace('UTC', 'Z')}")
    except ValueError:  # the 30th of February, 25 o'clock
        return None
    digits = match["digits"] or "0"
    fraction_s = Fraction(int(digits), 10 ** len(digits))
    if moment.tzinfo is not None:
        return int(moment.timestamp()) + fraction_s
    local = moment.replace(tzinfo=ZoneInfo(zone))
    first, second = (int(local.replace(fold=fold).timestamp()) + fraction_s for fold in (0, 1))
    return second if previous_s is not None and first <= previous_s < second else first
