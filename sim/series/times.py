"""How a column of times is read: numbers whose unit is told or seen by their size, or ISO 8601.  Its first rows settle it for all."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import islice
from statistics import median
from zoneinfo import ZoneInfo, available_timezones

from sim.series.headers import unit_of_times
from sim.units import UnitError, billionths, format_duration, parse_number

SAMPLE = 1000
"""So many cells that are not blank settle how a column is read."""
DATE = re.compile(
    r"(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ](?P<hour>[0-9]{2})(?::(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:[.,](?P<digits>[0-9]{1,9})[0-9]*)?)?)?"
    r" ?(?P<zone>Z|UTC|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)
"""ISO 8601 as it is accepted: the day first, year-month-day; decimals after a point or a comma; a zone or none."""
EXPECTED = "seconds, milliseconds since 1970, or ISO 8601 such as 2023-11-14T12:00:00Z"

_BY_SIZE = ((1e17, Fraction(1, 10**9)), (1e14, Fraction(1, 10**6)), (1e11, Fraction(1, 10**3)))
"""(least number, unit): times since 1970, from the year 1973 (in ms) to 5138 (in s), can be of one unit only."""
_SINCE_1970 = 1e8
"""Seconds: fewer are three years at most, and count from a beginning of their own."""
_UNIT_NAMES = {
    Fraction(1): "seconds",
    Fraction(1, 10**3): "milliseconds",
    Fraction(1, 10**6): "microseconds",
    Fraction(1, 10**9): "nanoseconds",
}


@dataclass(frozen=True, slots=True)
class Clock:
    """The reader of one column of times."""

    unit_s: Fraction | None = Fraction(1)  # of numbers; None: the cells are dates
    epoch: bool = False  # numbers count from 1970
    zoneless: bool = False  # some dates name no zone, and are taken as those of `zone`
    unread: str = ""  # a cell, if none was a time
    zone: str = "UTC"  # of dates that name none, such as Europe/Berlin

    def seconds(self, text: str, after: Fraction | None = None) -> Fraction | None:
        """A cell as seconds, exact; None: it is no time of this clock.

        `after`: the time of the row before.  It tells the two passes of an hour apart in which clocks were set back.
        """
        if self.unit_s is None:
            return _date(text, self.zone, after)
        number = _number(text)
        return None if number is None else number * self.unit_s

    def nanoseconds(self, text: str) -> int | None:
        """A cell as nanoseconds, if it is a plain decimal and they are whole.  None: `seconds` says what it is, in ten times as long."""
        if self.unit_s is None or (number := billionths(text)) is None:
            return None
        ns, rest = divmod(number * self.unit_s.numerator, self.unit_s.denominator)
        return None if rest else ns

    def __str__(self) -> str:
        if self.unit_s is None:
            return f"ISO 8601 without a zone, taken as {self.zone}" if self.zoneless else "ISO 8601"
        return ("epoch " if self.epoch else "") + _UNIT_NAMES.get(self.unit_s, f"units of {format_duration(round(self.unit_s * 10**9))}")


def clock_of(column: str, cells: Iterable[str], unit_s: Fraction | None = None, zone: str | None = None) -> Clock:
    """The clock of a column by its first cells.  The unit of numbers is the one given, else told by the column's name, else by their size.

    `zone`: of dates that name none; None: UTC.

    A name that says seconds is no promise: numbers of 10^11 and more are no seconds.
    """
    sample = list(islice((stripped for cell in cells if (stripped := cell.strip())), SAMPLE))
    numbers = [float(number) for cell in sample if (number := _number(cell)) is not None]
    dates = [found for cell in sample if (found := DATE.fullmatch(cell)) is not None]
    if len(dates) > len(numbers):
        return Clock(None, zoneless=any(found["zone"] is None for found in dates), zone=zone or "UTC")
    if not numbers:
        return Clock(unit_s or unit_of_times(column) or Fraction(1), unread=sample[0] if sample else "")
    usual, known = median(numbers), unit_s or unit_of_times(column)
    unit = known if known is not None and (unit_s is not None or known != 1) else _unit_by_size(usual)
    return Clock(unit, epoch=usual * unit >= _SINCE_1970)


def is_zone(name: str) -> bool:
    """Whether it is the name of a time zone, such as Europe/Berlin."""
    return name in available_timezones()


def _unit_by_size(usual: float) -> Fraction:
    return next((unit for least, unit in _BY_SIZE if usual >= least), Fraction(1))


def _number(text: str) -> Fraction | None:
    try:
        return parse_number(text)
    except UnitError:
        return None


def _date(text: str, zone: str, after: Fraction | None) -> Fraction | None:
    found = DATE.fullmatch(text.strip())
    if found is None:
        return None
    try:
        day = datetime.fromisoformat(found["day"]).replace(tzinfo=UTC)
    except ValueError:  # the 30th of February
        return None
    hour, minute, second = (int(found[part] or 0) for part in ("hour", "minute", "second"))
    if hour > 23 or minute > 59 or second > 59:
        return None
    digits = found["digits"] or "0"
    within = second + Fraction(int(digits), 10 ** len(digits))
    if found["zone"] is None and zone != "UTC":
        return _in_zone(day + timedelta(hours=hour, minutes=minute), zone, within, after)
    return int(day.timestamp()) + hour * 3600 + minute * 60 + within - _offset_s(found["zone"])


def _in_zone(minute: datetime, zone: str, within: Fraction, after: Fraction | None) -> Fraction:
    """A local minute as seconds since 1970: in an hour that comes twice the first one that is not before `after`."""
    local = minute.replace(tzinfo=ZoneInfo(zone))
    first, second = (int(local.replace(fold=fold).timestamp()) + within for fold in (0, 1))
    return second if after is not None and first <= after < second else first


def _offset_s(zone: str | None) -> int:
    """Seconds by which the clocks of a zone are ahead of UTC."""
    if zone in (None, "Z", "UTC"):
        return 0
    assert zone is not None  # noqa: S101 - mypy
    digits = zone[1:].replace(":", "").ljust(4, "0")
    return (int(digits[:2]) * 3600 + int(digits[2:]) * 60) * (-1 if zone[0] == "-" else 1)
