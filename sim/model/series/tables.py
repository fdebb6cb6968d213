"""Interpretation of columns and time series from outside: CSV and Parquet files, Prometheus, exporters.

The main functions:

    is_known              recognizes values that mean "unknown", such as -1 or NaN
    metric_of, taken_as   decide whether values are rates, counters or something else
    first_of, rate_of     find the columns of the times and of the rates
    clock_of              detects the format and the unit of a column of times
"""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from fractions import Fraction
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path
from statistics import median
from typing import NamedTuple
from zoneinfo import ZoneInfo, available_timezones

from sim.model.units import UnitError, billionths, format_duration, parse_number

# ---- Values that mean "unknown" in the reports of Flink and its exporters.  `is_known` distinguishes them from numbers.
#
#     -1                      not acknowledged, not ended (REST API), no committed offset (kafka-exporter), no metric yet
#     Long.MIN_VALUE          no watermark yet
#     Long.MAX_VALUE          never: an interval that is not set; the watermark at the end of the input
#     NaN, +Inf, -Inf, ""     a metric that cannot be computed, such as busyTimeMsPerSecond of a legacy source
#
# A 0 is a known number.  Only as a time since 1970 it means "unknown", because no job ran in 1970.

_FARTHEST = 2**62
"""Values of half of a long's range and beyond: Flink divides Long.MAX_VALUE, and doubles round it."""


def is_known(value: object) -> bool:
    """Return whether a value from outside is a number that does not mean "unknown".

    The result is False for -1, NaN, infinities, values near Long.MIN_VALUE or Long.MAX_VALUE, texts and booleans.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, Fraction)):
        return False
    return -_FARTHEST < value < _FARTHEST and value != -1  # comparisons with NaN are False


# ---- Classification of metrics, by the name, the query around it and the samples.  Only records per second can be used as a load.
#
#     sum(rate(kafka_topic_partition_current_offset{topic="orders"}[1m]))
#     ^^^^^^^^ functions    ^^^^^ name, looked up in `metrics.csv` by its longest listed suffix     ^^^^ window
#
# `metrics.csv` has the names of Flink's reporters and of common exporters.  The lookup ignores case, punctuation and prefixes that
# reporters add: `flink_taskmanager_job_task_numRecordsIn`, `flink.task.numRecordsIn` and `numRecordsIn` are one metric.

TABLE = Path(__file__).with_name("metrics.csv")
FLINK = "flink"


class Kind(Enum):
    """How the values of a metric relate to a rate of records."""

    RATE = "rate"  # records per second
    COUNTER = "counter"  # records since the counter started
    OTHER = "other"  # not a number of arriving records: bytes, times, backlogs, errors
    UNKNOWN = "unknown"


QUERIES = {
    FLINK: "numRecordsInPerSecond or numRecordsOutPerSecond of the source",
    "kafka-exporter": 'sum(rate(kafka_topic_partition_current_offset{topic="..."}[1m]))',
    "kafka-lag-exporter": 'sum(rate(kafka_partition_latest_offset{topic="..."}[1m]))',
    "burrow": 'sum(rate(kafka_burrow_topic_partition_offset{topic="..."}[1m]))',
    "kminion": 'sum(rate(kminion_kafka_topic_high_water_mark_sum{topic_name="..."}[1m]))',
    "strimzi": 'sum(rate(kafka_server_brokertopicmetrics_messagesin_total{topic="..."}[1m]))',
    "cloudwatch": "MessagesInPerSec (Kafka) or the Sum of IncomingRecords (Kinesis)",
    "datadog": "per_second(sum:kafka.broker_offset{topic:...})",
    "confluent": 'sum(confluent_kafka_server_received_records{topic="..."}) / 60',
    "pulsar": 'sum(pulsar_rate_in{topic="..."})',
}
"""System -> the query that gives the rate of records; others have that of Flink."""


NEVER_RECORDS = (
    "per cent",
    "a size in bytes",
    "a count of bytes",
    "a rate of bytes",
    "bits",
    "a time",
    "a point in time",
    "a share",
    "a temperature",
)


PER_MINUTE = "a count of records per minute"


class Metric(NamedTuple):
    """What the values of a metric are."""

    kind: Kind
    what: str = ""  # what the values are, if the kind is OTHER: "a size in bytes"
    query: str = QUERIES[FLINK]  # a query that returns a rate of records, of the same system if that is known
    is_listed: bool = False  # whether the kind is from metrics.csv, and not guessed from words

    def refusal(self, name: str, override: str = "") -> str:
        """Return the message that rejects the metric as a load and names a query to use instead.

        `override` tells the user how to accept the metric anyway.  It is left out for metrics that are never records.
        """
        more = "" if self.what.startswith(NEVER_RECORDS) else override
        return f"'{name}' is {self.what}, not a rate of records: query {self.query}{more}"


_RATES = r"rate|irate|per_second|deriv|derivative|non_negative_derivative"
# rate(x[1m]), per_second(x), x.as_rate()
_RATE_FUNCTION = re.compile(rf"\b(?:{_RATES})\s*\(|\.as_rate\(\)", re.IGNORECASE)
# increase(x[5m]), x.as_count()
_PERIOD_FUNCTION = re.compile(
    r"\b(?:increase|delta|idelta|difference|non_negative_difference|diff|monotonic_diff)\s*\(|\.as_count\(\)",
    re.IGNORECASE,
)
_PER_SECOND_SIGN = re.compile(r"/ ?s(ec(onds?)?)?(?!\w)")  # requests/s
_BY_60 = re.compile(r"\)?\s*/\s*60(?:\.0*)?\s*\)?\s*$")  # sum(x) / 60
_METRIC_NAME = re.compile(r"""__name__\s*=\s*["']([^"']+)["']""")  # {__name__="x"}
# {topic="orders"}, [1m], by (topic)
_LABELS = re.compile(r"\{[^{}]*\}|\[[^\[\]]*\]|\b(?:by|without|on|ignoring)\s*\([^()]*\)")
# names of metrics, also with spaces, dots and slashes: Source: Orders.numRecordsIn
_IDENTIFIER = re.compile(r"[A-Za-z_][\w.:/ %-]*[\w%]|[A-Za-z%]")
_STATISTICS = {
    "average",
    "avg",
    "mean",
    "maximum",
    "max",
    "minimum",
    "min",
    "sum",
    "samplecount",
    "value",
    "last",
    "median",
    "current",
}
"""What CloudWatch exporters, Datadog, InfluxDB and JMX write after the name of a metric."""

_PER_SECOND = re.compile(r"rates?|rps|tps|qps|eps|throughput|\w*per_?s(ec(onds?)?)?")
_UNITS = (
    ("per cent", r"percent(age)?|pct|cpu|utili[sz]ation|ratio|share|usage|load1|idle|saturation|cfus?|kpus?"),
    ("a size in bytes", r"bytes?|octets|[kmgt]i?b|b|memory|heap|disk|sizes?"),
    ("bits", r"bits?|[kmgt]?bps|[kmg]?bits?"),
    (
        "a time",
        r"ms|millis|milliseconds|nanos|latency|latencies|duration|delay|age|uptime|downtime|timestamps?|watermarks?|lagtime|timelag",
    ),
    ("a temperature", r"temperature|celsius"),
    ("a count of errors", r"errors?|failures?|failed|fails|exceptions?|dropped|rejected|retries|timeouts?"),
    ("a count of restarts", r"restarts?"),
    ("per minute", r"min|mins|minutes?|[0-9]+m(in)?|rpm"),
    ("per hour", r"hours?|hourly"),
    ("per day", r"days?|daily"),
)
"""What a word in a name tells about its values, if they are no records; in a rate as well."""
_LEVELS = (
    ("a backlog", r"lags?|backlog|pending|behind|unconsumed|unacked|lagging"),
    ("the length of a queue", r"queues?|depth|queued|inflight"),
    (
        "a count of things, not of records",
        r"connections?|threads?|partitions?|replicas?|consumers?|producers?|members?|brokers?|pods?|slots?|parallelism|checkpoints?|keys|files",
    ),
)
"""What a word tells if no other one says that it is a rate."""
_COUNTERS = re.compile(r"total|counter|offsets?|numrecords(in|out|send)|watermark_sum")


class _Row(NamedTuple):
    system: str  # the system that reports the metric: a key of QUERIES, "flink-autoscaler" or "host"
    kind: Kind
    what: str  # what the values are, if the kind is OTHER


@cache
def rows() -> Mapping[str, _Row]:
    """Return {joined name: row} of `metrics.csv`.  If several systems have a name, the first row wins."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        written = [
            (_joined(row["metric"])[0], _Row(row["system"], Kind(row["kind"]), row["what"]))
            for row in csv.DictReader(file)
        ]
    return dict(reversed(written))


@lru_cache(maxsize=4096)
def metric_of(name: str) -> Metric:
    """Return the metric of a column or series, classified by its name, which may be a whole query.

    The kind is UNKNOWN if the name does not tell.  The first rule that applies decides:

    1. "%" outside of labels: OTHER, unless the name is listed in `metrics.csv`.
    2. The name means OTHER: OTHER, except that a listed count per minute is a RATE if the query divides it by 60.
    3. The name is unknown, but the text contains "/s": RATE.
    4. The text applies a rate function: RATE, but OTHER for a listed rate, because that would be its change.
    5. The text applies a function of periods, such as `increase`: OTHER.
    6. The name decides.

    A query may contain several names.  A listed one comes before one that is classified by its words.
    """
    selected = _METRIC_NAME.search(name)
    bare = _LABELS.sub(" ", name)
    metrics = [
        _by_name(text.strip())
        for text in ([selected[1]] if selected else _IDENTIFIER.findall(_without_functions(bare)))
    ]
    metric = next(
        (metric for metric in metrics if metric.is_listed),
        next((m for m in metrics if m.kind is not Kind.UNKNOWN), None),
    )
    metric = metric or Metric(Kind.UNKNOWN)
    if "%" in bare and not metric.is_listed:
        return Metric(Kind.OTHER, "per cent")
    if metric.kind is Kind.OTHER:
        return metric._replace(kind=Kind.RATE) if metric.what == PER_MINUTE and _BY_60.search(bare) else metric
    if metric.kind is Kind.UNKNOWN and _PER_SECOND_SIGN.search(bare):
        return Metric(Kind.RATE)
    if _RATE_FUNCTION.search(name):
        is_slope = metric.kind is Kind.RATE and metric.is_listed
        return (
            metric._replace(kind=Kind.OTHER, what="the change of a rate")
            if is_slope
            else metric._replace(kind=Kind.RATE)
        )
    if _PERIOD_FUNCTION.search(name):
        return metric._replace(kind=Kind.OTHER, what="a count of records in periods")
    return metric


def taken_as(name: str, values: Iterable[Fraction | None]) -> Metric:
    """Return the metric of a series, classified by its name and, if the name does not suffice, by its first values.

    Values decide if the name is unknown, and check names that only look like counters.  None in `values` is a missing
    sample.  Callers reject a series of kind OTHER.
    """
    metric, samples = metric_of(name), [value for value in values if value is not None]
    if metric.is_listed or metric.kind not in (Kind.UNKNOWN, Kind.COUNTER):
        return metric
    falls = [(before, after) for before, after in itertools.pairwise(samples) if after < before]
    grown = [after - before for before, after in itertools.pairwise(samples) if after > before]
    # a counter falls only when it restarts near 0: a series with a smaller fall is not a counter
    if any(after > before * _RESET for before, after in falls):
        is_rate = metric.kind is Kind.UNKNOWN
        return (
            metric._replace(kind=Kind.RATE)
            if is_rate
            else metric._replace(kind=Kind.OTHER, what="a counter by its name, but falls")
        )
    if metric.kind is Kind.COUNTER:
        return metric
    # not a counter: it has few increases, all increases are equal, or it falls more often than a counter restarts
    if len(grown) < MIN_GROWN or len(set(grown)) == 1 or len(falls) * MIN_GROWN > len(grown):
        return metric._replace(kind=Kind.RATE)
    # a counter that restarted, or that started long before its first sample, which is larger than the whole increase
    if falls or samples[0] > sum(grown):
        return metric._replace(kind=Kind.COUNTER)
    # either a counter or a rising load: the user has to decide
    return metric._replace(
        kind=Kind.OTHER, what="a series that only grows, as counters do", query=f"rate({name}[1m]) if it is a counter"
    )


MIN_GROWN = 15
"""Samples that are larger than the one before: after fewer nobody can say that a series counts.

A counter falls only when it starts again.  One that began long ago is far above what it grows by, which a load that
rises is not.  A load may rise for as long as well, so without a fall or a high beginning it stays open.
"""
_RESET = Fraction(1, 10)
"""A counter that was reset falls below this part of its value."""


def _without_functions(text: str) -> str:
    """Return a query without the names of its functions and without Datadog's aggregation, such as ``sum:``."""
    return re.sub(r"\b[A-Za-z_]\w*\(", "(", re.sub(r"^\s*(?:avg|sum|max|min|count):", "", text))


def _by_name(name: str) -> Metric:
    """Return the metric of a name: from `metrics.csv`, with or without a statistic at its end, otherwise from its words.

    The statistic is the last word or the last two: ``numRecordsIn_count``, ``numRecordsInPerSecond.meanRate``.
    """
    joined, starts = _joined(name)
    if (metric := _of_table(joined, starts, "")) is not None:
        return metric
    words = _words(name)
    for cut in (1, 2):
        statistic = "".join(words[-cut:])
        if len(words) > cut and statistic in _STATISTICS | {"rate", "count", "samplecount", "meanrate"}:
            head = joined[: len(joined) - len(statistic)]
            if (metric := _of_table(head, starts, statistic)) is not None:
                return metric
    return _by_words(words)


def _of_table(joined: str, starts: Sequence[int], statistic: str) -> Metric | None:
    """Return the metric whose listed name is the longest suffix of a name that begins at a word, or None.

    `starts` are the positions in `joined` where words begin.  `statistic` was cut from the end of the name: the count of
    a rate is a counter, and the rate of a counter is a rate.
    """
    # metrics of hosts have names as short as `up`, so they must match the whole name
    found = next(
        (row for start in starts if (row := rows().get(joined[start:])) and (start == 0 or row.system != "host")), None
    )
    if found is None:
        return None
    metric = Metric(found.kind, found.what, QUERIES.get(found.system, QUERIES[FLINK]), is_listed=True)
    if statistic == "count" and found.kind is Kind.RATE:  # Flink's Meter has a rate and a count
        return metric._replace(kind=Kind.COUNTER)
    if statistic == "rate" and found.kind is Kind.COUNTER:
        return metric._replace(kind=Kind.RATE)
    return metric


def _by_words(words: Sequence[str]) -> Metric:
    """Return the metric that single words and pairs of words suggest.  The kind is UNKNOWN if none is known.

    Units that are not records decide first, so that bytes per second are not a rate of records.
    """
    spoken = [*words, *("_".join(pair) for pair in itertools.pairwise(words))]

    def told(table: tuple[tuple[str, str], ...]) -> str | None:
        return next((what for what, word in table if any(re.fullmatch(word, text) for text in spoken)), None)

    if (what := told(_UNITS)) is not None:
        return Metric(Kind.OTHER, f"{what} by its name")
    if any(_PER_SECOND.fullmatch(text) for text in spoken):
        return Metric(Kind.RATE)
    if (what := told(_LEVELS)) is not None:
        return Metric(Kind.OTHER, f"{what} by its name")
    return Metric(
        Kind.COUNTER if any(_COUNTERS.fullmatch(text) for text in [*spoken, "".join(words)]) else Kind.UNKNOWN
    )


def _words(name: str) -> list[str]:
    """Return the words of a name in lower case: ``numRecordsIn`` -> ``["num", "records", "in"]``."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+", name)]


def _joined(name: str) -> tuple[str, list[int]]:
    """Return a name as lower-case letters and digits, and the positions where its words begin.

    ``num_records`` -> ``("numrecords", [0, 3])``.
    """
    starts, at = list[int](), 0
    for word in _words(name):
        starts.append(at)
        at += len(word)
    return "".join(_words(name)), starts


# ---- Columns: names of the columns of times and rates, units in names, and cells.

TIMES = (
    *("epoch_s", "timestamp", "datetime", "date", "time", "t", "t_s", "epoch", "ts"),
    *(f"{name}_{unit}" for name in ("epoch", "ts", "timestamp", "time", "t") for unit in ("s", "ms", "us", "ns")),
    *("date_time", "time_utc", "timestamp_utc", "unix_time"),
)
"""The names of columns of times, the surest first; as `first_of` writes them."""
RATES = (
    *("offered_rec_s", "rate", "throughput_rec_s", "throughput", "messages", "requests", "value"),
    *(f"{what}_per_{unit}" for what in ("records", "events", "messages", "requests") for unit in ("second", "s")),
    *("rps", "tps", "qps", "numrecordsinpersecond", "numrecordsoutpersecond"),
)
"""The names of columns of rates, the surest first."""

GRAFANA_TIME = "Time"
"""The column of times in a CSV file that Grafana exports from a panel; each other one has the name of a series."""

_UNITS_IN_HEADERS = {
    Fraction(1): ("s", "sec", "secs", "second", "seconds"),
    Fraction(1, 10**3): ("ms", "msec", "msecs", "milli", "millis", "millisecond", "milliseconds"),
    Fraction(1, 10**6): ("us", "usec", "micro", "micros", "microsecond", "microseconds"),
    Fraction(1, 10**9): ("ns", "nsec", "nano", "nanos", "nanosecond", "nanoseconds"),
}


def first_of(names: Sequence[str], columns: Sequence[str]) -> str | None:
    """Return the column that matches the earliest possible of `names`, or None if no column matches.

    The comparison ignores case and punctuation: the column ``Time (ms)`` has the name ``time_ms``.
    """
    written = {"_".join(_parts(column)): column for column in reversed(columns)}
    return next((written[name] for name in names if name in written), None)


def rate_of(columns: Sequence[str]) -> str | None:
    """Return the column of rates: one with a name in `RATES`, otherwise the second of two columns, otherwise None."""
    return first_of(RATES, columns) or (columns[1] if len(columns) == 2 else None)


def unit_of_times(column: str) -> Fraction | None:
    """Return the unit [s] at the end of the name of a column of times, or None: ``t_ms`` -> 1/1000."""
    parts = _parts(column)
    return next((unit for unit, endings in _UNITS_IN_HEADERS.items() if len(parts) > 1 and parts[-1] in endings), None)


def _parts(column: str) -> list[str]:
    """Return the parts of a column's name, in lower case and without punctuation."""
    return re.findall(r"[a-z0-9]+", column.lower())


def cell_number(cell: str | None) -> Fraction | None:
    """Return the number in a cell, or None if the cell has no number or one that means "unknown"."""
    try:
        number = parse_number((cell or "")[:_MAX_NUMBER])
    except UnitError:
        return None
    return number if is_known(number) else None


_MAX_NUMBER = 60  # characters of a cell that are parsed as a number


def cell_text(value: object) -> str:
    """Return the value of a cell as text, or "" for None and NaN."""
    return "" if value is None or value != value else str(value)


# ---- The format of a column of times: ISO 8601, or numbers with a unit.  The unit is given, in the name, or inferred from the size of
# the numbers.  The format is detected from the first rows and applies to all.

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

    unit_s: Fraction | None = Fraction(1)  # seconds per unit of the numbers; None if the cells are dates
    epoch: bool = False  # whether numbers count from 1970
    zoneless: bool = False  # whether some dates have no zone of their own: `zone` applies
    unread: str = ""  # the first cell, if no cell is a time
    zone: str = "UTC"  # for dates without a zone, such as Europe/Berlin

    def seconds(self, text: str, after: Fraction | None = None) -> Fraction | None:
        """Return the exact time in a cell [s], or None if the cell does not have this format.

        `after` is the time of the previous row [s].  It resolves local times that occur twice because clocks were set back.
        """
        if self.unit_s is None:
            return _date(text, self.zone, after)
        number = _number(text)
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
            return f"ISO 8601 without a zone, taken as {self.zone}" if self.zoneless else "ISO 8601"
        return ("epoch " if self.epoch else "") + _UNIT_NAMES.get(
            self.unit_s, f"units of {format_duration(round(self.unit_s * 10**9))}"
        )


def clock_of(column: str, cells: Iterable[str], unit_s: Fraction | None = None, zone: str | None = None) -> Clock:
    """Detect the format of the times in a column from its first `SAMPLE` cells that are not blank.

    The unit of numbers is `unit_s` [s], otherwise that in the column's name, otherwise it is inferred from the median.
    A name that ends in seconds is not trusted: its numbers may be milliseconds, so the median decides.  `zone` applies to
    dates without a zone (None: UTC).  If no cell is a time, `unread` of the result has the first cell.
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
    """Return whether a name is that of a time zone, such as Europe/Berlin."""
    return name in available_timezones()


def _unit_by_size(usual: float) -> Fraction:
    """Return the unit [s] of times since 1970, inferred from their median; seconds for small numbers."""
    return next((unit for least, unit in _BY_SIZE if usual >= least), Fraction(1))


def _number(text: str) -> Fraction | None:
    """Return the exact non-negative number in a text, or None."""
    try:
        return parse_number(text)
    except UnitError:
        return None


def _date(text: str, zone: str, after: Fraction | None) -> Fraction | None:
    """Return a date as seconds since 1970, or None if it is not a valid date.

    Local times occur twice when clocks are set back.  The result is the first occurrence, or the second if the first is
    not later than `after`, the time of the previous row [s].
    """
    match = DATE.fullmatch(text.strip())
    if match is None:
        return None
    clock = ":".join(match[part] or "00" for part in ("hour", "minute", "second"))
    try:
        moment = datetime.fromisoformat(f"{match['day']}T{clock}{(match['zone'] or '').replace('UTC', 'Z')}")
    except ValueError:  # the 30th of February, 25 o'clock
        return None
    digits = match["digits"] or "0"
    within = Fraction(int(digits), 10 ** len(digits))
    if moment.tzinfo is not None:
        return int(moment.timestamp()) + within
    local = moment.replace(tzinfo=ZoneInfo(zone))
    first, second = (int(local.replace(fold=fold).timestamp()) + within for fold in (0, 1))
    return second if after is not None and first <= after < second else first
