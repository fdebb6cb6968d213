"""The names of columns: which one has the times, which one the rates, what unit a name tells, and the texts of their cells."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

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
_OTHERS = (
    ("per cent", r"percent(age)?|pct|cpu|utili[sz]ation|ratio|share"),
    ("bytes", r"bytes?|octets|[kmgt]i?b|b"),
    ("bits", r"bits?|[kmgt]?bps|[kmg]?bits?"),
    ("a time", r"ms|millis|milliseconds|latency|duration|delay"),
    ("a temperature", r"temperature|celsius"),
    ("a count from the start on, no rate", r"total|counter|numrecordsin|numrecordsout"),
    ("per minute", r"min|mins|minutes?|[0-9]+m(in)?|rpm"),
    ("per hour", r"hours?|hourly"),
    ("per day", r"days?|daily"),
)
"""What a word in the name of a column tells about its values, if they are no records per second."""


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


def other_than_records(column: str) -> str | None:
    """What the values are by the name of their column, if they are no records per second; None: they may be."""
    parts = _parts(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", column)) + _parts(column)
    if "%" in column:
        return "per cent"
    return next((what for what, word in _OTHERS if any(re.fullmatch(word, spoken) for spoken in parts)), None)


def _parts(column: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", column.lower())


def cell_text(value: object) -> str:
    """The text of a cell; empty: it has no value, or is not a number."""
    return "" if value is None or value != value else str(value)  # noqa: PLR0124 - not a number is no value
