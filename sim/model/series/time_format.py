"""Detect the format of a column of times, and parse its cells: ISO 8601 dates, or numbers with a unit.

The unit is given, in the name of the column, or inferred from the size of the numbers.  The format is detected from the first
cells and applies to all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from itertools import islice
from statistics import median
from zoneinfo import ZoneInfo, available_timezones

from sim.model.series.columns import time_unit_in_name
from sim.model.units import UnitError, billionths, format_duration, parse_number

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
_UNIT_NAMES = {
    Fraction(1): "seconds",
    Fraction(1, 10**3): "milliseconds",
    Fraction(1, 10**6): "microseconds",
    Fraction(1, 10**9): "nanoseconds",
}


@dataclass(frozen=True, slots=True)
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
        unit = _UNIT_NAMES.get(self.unit_s, f"units of {format_duration(round(self.unit_s * 10**9))}")
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
        known_unit_s = _unit_of_epoch(middle)
    return TimeFormat(known_unit_s, is_epoch=middle * known_unit_s >= _MIN_EPOCH_S)


def is_zone(name: str) -> bool:
    """Return whether a name is that of a time zone, such as Europe/Berlin."""
    return name in available_timezones()


def _unit_of_epoch(number: float) -> Fraction:
    """Return the unit [s] of a time since 1970, inferred from its size; seconds for small numbers."""
    return next((unit for minimum, unit in _MIN_EPOCHS if number >= minimum), Fraction(1))


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
