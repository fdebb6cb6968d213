"""Classify metrics of Flink and other systems by their names and samples.  Only records per second can be used as a load.

    sum(rate(kafka_topic_partition_current_offset{topic="orders"}[1m]))
    ^^^^^^^^ functions    ^^^^^ name, looked up in `metrics.csv` by its longest listed suffix     ^^^^ window

`metrics.csv` has the names of Flink's reporters and of common exporters.  The lookup ignores case, punctuation and prefixes that
reporters add: `flink_taskmanager_job_task_numRecordsIn`, `flink.task.numRecordsIn` and `numRecordsIn` are one metric.  Other
names are classified by their words, and series with such names by their samples as well.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from fractions import Fraction
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

# ---- Metrics, and the queries that return a rate of records.

METRICS_FILE = Path(__file__).with_name("metrics.csv")
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
"""System -> the query that returns the rate of records.  Other systems have the query of Flink."""
COUNT_PER_MINUTE = "a count of records per minute"
"""Description in `metrics.csv` of a metric that a query turns into a rate by dividing it by 60."""
NEVER_RECORDS = (
    *("per cent", "a size in bytes", "a count of bytes", "a rate of bytes", "bits"),
    *("a time", "a point in time", "a share", "a temperature"),
)
"""Beginnings of descriptions of metrics that are never numbers of records.  Users cannot override their rejection."""


class Metric(NamedTuple):
    """What the values of a metric are."""

    kind: Kind
    description: str = ""  # what the values are, if the kind is OTHER: "a size in bytes"
    query: str = QUERIES[FLINK]  # a query that returns a rate of records, of the same system if that is known
    is_listed: bool = False  # whether the kind is from metrics.csv, and not guessed from words

    def refusal(self, name: str, override: str = "") -> str:
        """Return the message that rejects the metric as a load and names a query to use instead.

        `override` tells the user how to accept the metric anyway.  It is left out for metrics that are never records.
        """
        hint = "" if self.description.startswith(NEVER_RECORDS) else override
        return f"'{name}' is {self.description}, not a rate of records: query {self.query}{hint}"


# ---- Classification by the name, which may be a whole query.

_RATE_FUNCTIONS = r"rate|irate|per_second|deriv|derivative|non_negative_derivative"
_PERIOD_FUNCTIONS = "increase|delta|idelta|difference|non_negative_difference|diff|monotonic_diff"
# rate(x[1m]), per_second(x), x.as_rate()
_RATE_CALL = re.compile(rf"\b(?:{_RATE_FUNCTIONS})\s*\(|\.as_rate\(\)", re.IGNORECASE)
# increase(x[5m]), x.as_count()
_PERIOD_CALL = re.compile(rf"\b(?:{_PERIOD_FUNCTIONS})\s*\(|\.as_count\(\)", re.IGNORECASE)
_PER_SECOND_SIGN = re.compile(r"/ ?s(ec(onds?)?)?(?!\w)")  # requests/s
_DIVISION_BY_60 = re.compile(r"\)?\s*/\s*60(?:\.0*)?\s*\)?\s*$")  # sum(x) / 60
_NAME_LABEL = re.compile(r"""__name__\s*=\s*["']([^"']+)["']""")  # {__name__="x"}
# {topic="orders"}, [1m], by (topic)
_LABELS = re.compile(r"\{[^{}]*\}|\[[^\[\]]*\]|\b(?:by|without|on|ignoring)\s*\([^()]*\)")
# names of metrics, also with spaces, dots and slashes: Source: Orders.numRecordsIn
_IDENTIFIER = re.compile(r"[A-Za-z_][\w.:/ %-]*[\w%]|[A-Za-z%]")


@lru_cache(maxsize=4096)
def classify_name(name: str) -> Metric:
    """Return the metric of a column or series, classified by its name, which may be a whole query.

    The kind is UNKNOWN if the name does not tell.  The first rule that applies decides:

    1. "%" outside of labels: OTHER, unless the name is listed in `metrics.csv`.
    2. The name means OTHER: OTHER, except that a listed count per minute is a RATE if the query divides it by 60.
    3. The name is unknown, but the text contains "/s": RATE.
    4. The text applies a rate function: RATE, but OTHER for a listed rate, because that would be its change.
    5. The text applies a function of periods, such as `increase`: OTHER.
    6. The name decides.
    """
    query = _LABELS.sub(" ", name)
    metric = _metric_in_query(name, query)
    if "%" in query and not metric.is_listed:  # "load %"
        return Metric(Kind.OTHER, "per cent")
    if metric.kind is Kind.OTHER:  # kafka_consumergroup_lag, also in rate(...): how fast the backlog grows
        is_per_second = metric.description == COUNT_PER_MINUTE and _DIVISION_BY_60.search(query)
        return metric._replace(kind=Kind.RATE) if is_per_second else metric
    if metric.kind is Kind.UNKNOWN and _PER_SECOND_SIGN.search(query):  # "events/s"
        return Metric(Kind.RATE)
    if _RATE_CALL.search(name):
        if metric.kind is Kind.RATE and metric.is_listed:  # rate(numRecordsInPerSecond[1m])
            return metric._replace(kind=Kind.OTHER, description="the change of a rate")
        return metric._replace(kind=Kind.RATE)  # rate(numRecordsIn[1m])
    if _PERIOD_CALL.search(name):  # increase(numRecordsIn[5m])
        return metric._replace(kind=Kind.OTHER, description="a count of records in periods")
    return metric  # numRecordsInPerSecond, or UNKNOWN for "orders"


def _metric_in_query(name: str, query: str) -> Metric:
    """Return the metric of the names in a query: the first listed one, otherwise the first whose words tell.

    The kind is UNKNOWN if there is none.  `name` is the query with its labels, of which ``__name__`` takes precedence.
    """
    label = _NAME_LABEL.search(name)
    names = [label[1]] if label else _IDENTIFIER.findall(_without_functions(query))
    metrics = [_metric_of_identifier(text.strip()) for text in names]
    classified = (metric for metric in metrics if metric.kind is not Kind.UNKNOWN)
    return next((metric for metric in metrics if metric.is_listed), next(classified, Metric(Kind.UNKNOWN)))


def _without_functions(query: str) -> str:
    """Return a query without the names of its functions and without Datadog's aggregation, such as ``sum:``."""
    return re.sub(r"\b[A-Za-z_]\w*\(", "(", re.sub(r"^\s*(?:avg|sum|max|min|count):", "", query))


# ---- Classification by samples, for names that do not suffice.

MIN_INCREASES = 15
"""Minimum number of increases from which a series may be taken for a counter.

It is also the minimum number of increases per fall: a counter falls only when it restarts, a load falls about as often as it rises.
"""
_MAX_RESET_SHARE = Fraction(1, 10)
"""Maximum value after the restart of a counter / value before it."""


def classify_series(name: str, values: Iterable[Fraction | None]) -> Metric:
    """Return the metric of a series, classified by its name and, if the name does not suffice, by its first values.

    Values decide if the name is unknown, and check names that only look like counters.  None in `values` is a missing
    sample.  Callers reject a series of kind OTHER.
    """
    metric, samples = classify_name(name), [value for value in values if value is not None]
    if metric.is_listed or metric.kind not in (Kind.UNKNOWN, Kind.COUNTER):
        return metric
    falls = [(before, after) for before, after in pairwise(samples) if after < before]
    increases = [after - before for before, after in pairwise(samples) if after > before]
    # 500, 400: a counter would restart near 0
    if any(after > before * _MAX_RESET_SHARE for before, after in falls):
        if metric.kind is Kind.UNKNOWN:
            return metric._replace(kind=Kind.RATE)
        return metric._replace(kind=Kind.OTHER, description="a counter by its name, but falls")
    if metric.kind is Kind.COUNTER:  # orders_total
        return metric
    # 100, 200, 300: counters do not increase by the same number each time; 80, 3, 90, 5: nor do they restart so often
    if len(increases) < MIN_INCREASES or len(set(increases)) == 1 or len(falls) * MIN_INCREASES > len(increases):
        return metric._replace(kind=Kind.RATE)
    # 7000, 7012, 0, 9: a restart; 7000, 7012, 7031: the counter started long before the first sample
    if falls or samples[0] > sum(increases):
        return metric._replace(kind=Kind.COUNTER)
    # 0, 12, 31: a counter that has just started, or a load that rises, so the user has to decide
    query = f"rate({name}[1m]) if it is a counter"
    return metric._replace(kind=Kind.OTHER, description="a series that only grows, as counters do", query=query)


# ---- The metric of a single identifier: from `metrics.csv`, otherwise from its words.

_STATISTICS = {
    *("average", "avg", "mean", "maximum", "max", "minimum", "min", "sum"),
    *("samplecount", "value", "last", "median", "current"),
}
"""Statistics that CloudWatch exporters, Datadog, InfluxDB and JMX write after the name of a metric."""


class _ListedMetric(NamedTuple):
    """A row of `metrics.csv`."""

    system: str  # the system that reports the metric: a key of QUERIES, "flink-autoscaler" or "host"
    kind: Kind
    description: str  # what the values are, if the kind is OTHER


@cache
def listed_metrics() -> Mapping[str, _ListedMetric]:
    """Return {joined name: row} of `metrics.csv`.  If several systems have a name, the first row wins."""
    with METRICS_FILE.open(encoding="utf-8", newline="") as file:
        rows = [
            (_joined(row["metric"])[0], _ListedMetric(row["system"], Kind(row["kind"]), row["what"]))
            for row in csv.DictReader(file)
        ]
    return dict(reversed(rows))


def _metric_of_identifier(name: str) -> Metric:
    """Return the metric of a name: from `metrics.csv`, with or without a statistic at its end, otherwise from its words.

    The statistic is the last word or the last two: ``numRecordsIn_count``, ``numRecordsInPerSecond.meanRate``.
    """
    joined, starts = _joined(name)
    if (metric := _listed_metric(joined, starts, "")) is not None:
        return metric
    words = _words(name)
    for count in (1, 2):
        statistic = "".join(words[-count:])
        if len(words) > count and statistic in _STATISTICS | {"rate", "count", "samplecount", "meanrate"}:
            without_statistic = joined[: len(joined) - len(statistic)]
            if (metric := _listed_metric(without_statistic, starts, statistic)) is not None:
                return metric
    return _metric_of_words(words)


def _listed_metric(joined: str, starts: Sequence[int], statistic: str) -> Metric | None:
    """Return the metric whose listed name is the longest suffix of a name that begins at a word, or None.

    `starts` are the positions in `joined` where words begin.  `statistic` was cut from the end of the name: the count of
    a rate is a counter, and the rate of a counter is a rate.
    """
    # metrics of hosts have names as short as `up`, so they must match the whole name
    row = next(
        (
            row
            for start in starts
            if (row := listed_metrics().get(joined[start:])) and (start == 0 or row.system != "host")
        ),
        None,
    )
    if row is None:
        return None
    metric = Metric(row.kind, row.description, QUERIES.get(row.system, QUERIES[FLINK]), is_listed=True)
    if statistic == "count" and row.kind is Kind.RATE:  # Flink's Meter has a rate and a count
        return metric._replace(kind=Kind.COUNTER)
    if statistic == "rate" and row.kind is Kind.COUNTER:
        return metric._replace(kind=Kind.RATE)
    return metric


_PER_SECOND_WORDS = re.compile(r"rates?|rps|tps|qps|eps|throughput|\w*per_?s(ec(onds?)?)?")
_COUNTER_WORDS = re.compile(r"total|counter|offsets?|numrecords(in|out|send)|watermark_sum")
_UNIT_WORDS = (
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
"""(description, words): words that exclude a number of records per second, even in a rate, such as ``bytes_per_second``."""
_GAUGE_WORDS = (
    ("a backlog", r"lags?|backlog|pending|behind|unconsumed|unacked|lagging"),
    ("the length of a queue", r"queues?|depth|queued|inflight"),
    (
        "a count of things, not of records",
        r"connections?|threads?|partitions?|replicas?|consumers?|producers?|members?|brokers?|pods?|slots?|parallelism|checkpoints?|keys|files",
    ),
)
"""(description, words): words that exclude a number of records, except in a rate, such as ``queue_throughput``."""


def _metric_of_words(words: Sequence[str]) -> Metric:
    """Return the metric that single words and pairs of words suggest.  The kind is UNKNOWN if no word is known.

    Units that are not records decide first, so that bytes per second are not a rate of records.
    """
    texts = [*words, *("_".join(pair) for pair in pairwise(words))]

    def description_in(table: tuple[tuple[str, str], ...]) -> str | None:
        return next(
            (description for description, word in table if any(re.fullmatch(word, text) for text in texts)), None
        )

    if (description := description_in(_UNIT_WORDS)) is not None:
        return Metric(Kind.OTHER, f"{description} by its name")
    if any(_PER_SECOND_WORDS.fullmatch(text) for text in texts):
        return Metric(Kind.RATE)
    if (description := description_in(_GAUGE_WORDS)) is not None:
        return Metric(Kind.OTHER, f"{description} by its name")
    is_counter = any(_COUNTER_WORDS.fullmatch(text) for text in [*texts, "".join(words)])
    return Metric(Kind.COUNTER if is_counter else Kind.UNKNOWN)


def _words(name: str) -> list[str]:
    """Return the words of a name in lower case: ``numRecordsIn`` -> ``["num", "records", "in"]``."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+", name)]


def _joined(name: str) -> tuple[str, list[int]]:
    """Return the words of a name without separators, and the positions where they begin.

    ``num_records`` -> ``("numrecords", [0, 3])``.
    """
    starts, position = list[int](), 0
    for word in _words(name):
        starts.append(position)
        position += len(word)
    return "".join(_words(name)), starts
