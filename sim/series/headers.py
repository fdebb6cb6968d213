"""The names of columns: which one has the times, which one the rates, what unit a name tells, and the texts of their cells."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

from sim.stand_ins import is_known
from sim.units import UnitError, parse_number

TIMES = (
    "epoch_s", "timestamp", "datetime", "date", "time", "t", "t_s",
    "epoch", "epoch_ms", "epoch_us", "epoch_ns", "ts", "ts_ms", "timestamp_s", "timestamp_ms", "timestamp_us", "timestamp_ns",
    "time_s", "time_ms", "time_us", "time_ns", "t_ms", "t_us", "t_ns", "date_time", "time_utc", "timestamp_utc", "unix_time",
)  # fmt: skip
"""The names of columns of times, the surest first; as `first_of` writes them."""
RATES = (
    "offered_rec_s", "rate", "throughput_rec_s", "throughput", "messages", "requests", "value",
    "records_per_second", "records_per_s", "events_per_second", "events_per_s", "messages_per_second", "messages_per_s",
    "requests_per_second", "requests_per_s", "rps", "tps", "qps", "numrecordsinpersecond", "numrecordsoutpersecond",
)  # fmt: skip
"""The names of columns of rates, the surest first."""

GRAFANA_TIME = "Time"
"""The column of times in a CSV file that Grafana exports from a panel; each other one has the name of a series."""

_UNITS = {
    Fraction(1): ("s", "sec", "secs", "second", "seconds"),
    Fraction(1, 10**3): ("ms", "msec", "msecs", "milli", "millis", "millisecond", "milliseconds"),
    Fraction(1, 10**6): ("us", "usec", "micro", "micros", "microsecond", "microseconds"),
    Fraction(1, 10**9): ("ns", "nsec", "nano", "nanos", "nanosecond", "nanoseconds"),
}


def first_of(names: Sequence[str], columns: Sequence[str]) -> str | None:
    """The first of the names that is a column.  Case and signs do not count: ``Time (ms)`` is ``time_ms``."""
    written = {"_".join(_parts(column)): column for column in reversed(columns)}
    return next((written[name] for name in names if name in written), None)


def rate_of(columns: Sequence[str]) -> str | None:
    """The column of rates: one with such a name, else the other one of two.  None: there are several."""
    return first_of(RATES, columns) or (columns[1] if len(columns) == 2 else None)


def unit_of_times(column: str) -> Fraction | None:
    """The unit [s] that the name of a column of times tells: ``t_ms`` is of milliseconds.  None: it tells none."""
    parts = _parts(column)
    return next((unit for unit, endings in _UNITS.items() if len(parts) > 1 and parts[-1] in endings), None)


def _parts(column: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", column.lower())


def cell_number(cell: str | None) -> Fraction | None:
    """The number in a cell.  None: there is none, or it stands for an unknown one."""
    try:
        number = parse_number((cell or "")[:_LONGEST_NUMBER])
    except UnitError:
        return None
    return number if is_known(number) else None


_LONGEST_NUMBER = 60  # characters


def cell_text(value: object) -> str:
    """The text of a cell; empty: it has no value, or is not a number."""
    return "" if value is None or value != value else str(value)  # noqa: PLR0124 - not a number is no value
