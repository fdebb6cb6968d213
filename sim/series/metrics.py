"""What the values of a metric are, by its name, by the query around it and by its samples: only records per second are a load.

    sum(rate(kafka_topic_partition_current_offset{topic="orders"}[1m]))
    ^^^^^^^^ functions    ^^^^^ the row of `metrics.csv` with the longest matching end     ^^^^ window

`metrics.csv` has the names of Flink's reporters and of common exporters.  Case and signs do not count, and what a reporter writes before
a name does not either: `flink_taskmanager_job_task_numRecordsIn`, `flink.task.numRecordsIn` and `numRecordsIn` are one metric.
"""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from fractions import Fraction
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

TABLE = Path(__file__).with_name("metrics.csv")
FLINK = "flink"


class Kind(Enum):
    """How the values of a metric relate to a rate of records."""

    RATE = "rate"  # records per second
    COUNTER = "counter"  # records since the start
    PERIOD = "period"  # records since the sample before
    OTHER = "other"  # no number of records, or not of those that arrive
    UNKNOWN = "unknown"


QUERIES = {
    FLINK: "numRecordsInPerSecond or numRecordsOutPerSecond of the source",
    "flink-autoscaler": "numRecordsInPerSecond or numRecordsOutPerSecond of the source",
    "kafka-exporter": 'sum(rate(kafka_topic_partition_current_offset{topic="..."}[1m]))',
    "kafka-lag-exporter": 'sum(rate(kafka_partition_latest_offset{topic="..."}[1m]))',
    "burrow": 'sum(rate(kafka_burrow_topic_partition_offset{topic="..."}[1m]))',
    "kminion": 'sum(rate(kminion_kafka_topic_high_water_mark_sum{topic_name="..."}[1m]))',
    "strimzi": 'sum(rate(kafka_server_brokertopicmetrics_messagesin_total{topic="..."}[1m]))',
    "cloudwatch": "MessagesInPerSec (Kafka) or the Sum of IncomingRecords (Kinesis)",
    "datadog": "per_second(sum:kafka.broker_offset{topic:...})",
    "confluent": 'sum(confluent_kafka_server_received_records{topic="..."}) / 60',
    "pulsar": 'sum(pulsar_rate_in{topic="..."})',
    "host": "numRecordsInPerSecond or numRecordsOutPerSecond of the source",
}
"""System -> the query that gives the rate of records."""


NEVER_RECORDS = (
    "per cent", "a size in bytes", "a count of bytes", "a rate of bytes", "bits", "a time", "a point in time", "a share", "a temperature",
)  # fmt: skip


class Metric(NamedTuple):
    """What the values of a metric are."""

    kind: Kind
    what: str = ""  # of OTHER: what its values are instead
    query: str = QUERIES[FLINK]  # that gives the rate instead
    window_s: Fraction | None = None  # of PERIOD; None: from sample to sample
    is_listed: bool = False  # a row of the table has it

    def refusal(self, name: str, override: str = "") -> str:
        """Why it is no load, and what to query.  `override`: how to take it as one, which is said unless it surely is none."""
        more = "" if self.what.startswith(NEVER_RECORDS) else override
        return f"'{name}' is {self.what}, not a rate of records: query {self.query}{more}"


_RATES = r"rate|irate|per_second|deriv|derivative|non_negative_derivative"
_RATE_FUNCTION = re.compile(rf"\b(?:{_RATES})\s*\(|\.as_rate\(\)", re.IGNORECASE)
_PERIOD_FUNCTION = re.compile(
    r"\b(?:increase|delta|idelta|difference|non_negative_difference|diff|monotonic_diff)\s*\(|\.as_count\(\)", re.IGNORECASE
)
_WINDOW = re.compile(r"\[(\d+)(s|m|h|d)(?::[^\]]*)?\]")
_PER_SECOND_SIGN = re.compile(r"/ ?s(ec(onds?)?)?(?!\w)")
_PER_MINUTE = re.compile(r"\)?\s*/\s*60(?:\.0*)?\s*\)?\s*$")
_NAMED = re.compile(r"""__name__\s*=\s*["']([^"']+)["']""")
_LABELS = re.compile(r"\{[^{}]*\}|\[[^\[\]]*\]|\b(?:by|without|on|ignoring)\s*\([^()]*\)")
_IDENTIFIER = re.compile(r"[A-Za-z_][\w.:/ %-]*[\w%]|[A-Za-z%]")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_STATISTICS = {
    "average", "avg", "mean", "maximum", "max", "minimum", "min", "sum", "samplecount", "value", "last", "median", "current",
}  # fmt: skip
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
    system: str
    kind: Kind
    what: str


@cache
def rows() -> Mapping[str, _Row]:
    """Joined name -> row of the table.  A name of several systems is that of the first."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        written = [(_joined(row["metric"])[0], _Row(row["system"], Kind(row["kind"]), row["what"])) for row in csv.DictReader(file)]
    return dict(reversed(written))


@lru_cache(maxsize=4096)
def metric_of(name: str) -> Metric:
    """What the values of a column or a series are by its name, which may be a query around it."""
    selected = _NAMED.search(name)
    bare = _LABELS.sub(" ", name)
    found = [_by_name(text.strip()) for text in ([selected[1]] if selected else _IDENTIFIER.findall(_without_functions(bare)))]
    metric = next((metric for metric in found if metric.is_listed), next((m for m in found if m.kind is not Kind.UNKNOWN), None))
    metric = metric or Metric(Kind.UNKNOWN)
    if "%" in bare and not metric.is_listed:
        return Metric(Kind.OTHER, "per cent")
    if metric.kind is Kind.OTHER:
        return metric
    if metric.kind is Kind.UNKNOWN and _PER_SECOND_SIGN.search(bare):
        return Metric(Kind.RATE)
    if _RATE_FUNCTION.search(name):
        is_slope = metric.kind is Kind.RATE and metric.is_listed
        return metric._replace(kind=Kind.OTHER, what="the change of a rate") if is_slope else metric._replace(kind=Kind.RATE)
    if _PERIOD_FUNCTION.search(name):
        window = _WINDOW.search(name)
        return metric._replace(kind=Kind.PERIOD, window_s=Fraction(int(window[1]) * _SECONDS[window[2]]) if window else None)
    if metric.window_s is not None and _PER_MINUTE.search(bare):
        return metric._replace(kind=Kind.RATE, window_s=None)
    return metric


def taken_as(name: str, values: Iterable[Fraction | None]) -> Metric:
    """What a series is taken as: by its name or, where that leaves it open, by its first values.  OTHER is refused."""
    metric, known = metric_of(name), [value for value in values if value is not None]
    if metric.kind is Kind.PERIOD and metric.window_s is None:
        return metric._replace(kind=Kind.OTHER, what="a count of records in periods whose length is not known")
    if metric.is_listed or metric.kind not in (Kind.UNKNOWN, Kind.COUNTER):
        return metric
    falls = [(before, after) for before, after in itertools.pairwise(known) if after < before]
    grown = [after - before for before, after in itertools.pairwise(known) if after > before]
    if any(after > before * _RESET for before, after in falls):
        is_rate = metric.kind is Kind.UNKNOWN
        return metric._replace(kind=Kind.RATE) if is_rate else metric._replace(kind=Kind.OTHER, what="a counter by its name, but falls")
    if metric.kind is Kind.COUNTER:
        return metric
    if len(grown) < LEAST_GROWN or len(set(grown)) == 1 or len(falls) * LEAST_GROWN > len(grown):
        return metric._replace(kind=Kind.RATE)
    if falls or known[0] > sum(grown):
        return metric._replace(kind=Kind.COUNTER)
    return metric._replace(kind=Kind.OTHER, what="a series that only grows, as counters do", query=f"rate({name}[1m]) if it is a counter")


LEAST_GROWN = 15
"""Samples that are larger than the one before: after fewer nobody can say that a series counts.

A counter falls only when it starts again.  One that began long ago is far above what it grows by, which a load that rises is not.
A load may rise for as long as well, so without a fall or a high beginning it stays open.
"""
_RESET = Fraction(1, 10)
"""A counter that was reset falls below this part of its value."""


def _without_functions(text: str) -> str:
    return re.sub(r"\b[A-Za-z_]\w*\(", "(", re.sub(r"^\s*(?:avg|sum|max|min|count):", "", text))


def _by_name(name: str) -> Metric:
    """Of the table, else by its words."""
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
    """The row with the longest end of the name that begins with a word."""
    found = next((row for start in starts if (row := rows().get(joined[start:])) and (start == 0 or row.system != "host")), None)
    if found is None:
        return None
    minute = Fraction(60) if found.kind is Kind.PERIOD and found.system == "confluent" else None
    metric = Metric(found.kind, found.what, QUERIES[found.system], minute, is_listed=True)
    if statistic == "count" and found.kind is Kind.RATE:  # of a meter
        return metric._replace(kind=Kind.COUNTER)
    if statistic == "rate" and found.kind is Kind.COUNTER:
        return metric._replace(kind=Kind.RATE)
    if found.kind is Kind.PERIOD and statistic in ("average", "avg", "mean", "maximum", "max", "minimum", "min"):
        return metric._replace(kind=Kind.OTHER, what="a statistic of single requests")
    return metric


def _by_words(words: Sequence[str]) -> Metric:
    spoken = [*words, *("_".join(pair) for pair in itertools.pairwise(words))]

    def told(table: tuple[tuple[str, str], ...]) -> str | None:
        return next((what for what, word in table if any(re.fullmatch(word, text) for text in spoken)), None)

    if (what := told(_UNITS)) is not None:
        return Metric(Kind.OTHER, f"{what} by its name")
    if any(_PER_SECOND.fullmatch(text) for text in spoken):
        return Metric(Kind.RATE)
    if (what := told(_LEVELS)) is not None:
        return Metric(Kind.OTHER, f"{what} by its name")
    return Metric(Kind.COUNTER if any(_COUNTERS.fullmatch(text) for text in [*spoken, "".join(words)]) else Kind.UNKNOWN)


def _words(name: str) -> list[str]:
    """Its words in lower case: ``numRecordsIn`` has three."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+", name)]


def _joined(name: str) -> tuple[str, list[int]]:
    """(letters and digits in lower case, where its words begin)."""
    starts, at = list[int](), 0
    for word in _words(name):
        starts.append(at)
        at += len(word)
    return "".join(_words(name)), starts
