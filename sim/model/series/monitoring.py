"""Conversion of monitoring data to tables of rates: range queries of Prometheus, and columns of counters.

There is one function for each kind of input:

    JSON of /api/v1/query_range   -> table_of_document -> MonitoringTable, one column per source
    CSV or Parquet with a counter -> table_of_counter  -> MonitoringTable, one column
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from fractions import Fraction
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from sim.model.series.columns import EXPECTED_TIMES, TIME_COLUMNS, detect_time_format, find_column, is_known
from sim.model.text import PrintableError
from sim.model.units import UnitError, parse_number

# ---- Classify metrics of Flink and other systems by their names and samples.  Only records per second can be used as a load.
#     sum(rate(kafka_topic_partition_current_offset{topic="orders"}[1m]))
#     ^^^^^^^^ functions    ^^^^^ name, looked up in `metrics.csv` by its longest listed suffix     ^^^^ window
# `metrics.csv` has the names of Flink's reporters and of common exporters.  The lookup ignores case, punctuation and prefixes that
# reporters add: `flink_taskmanager_job_task_numRecordsIn`, `flink.task.numRecordsIn` and `numRecordsIn` are one metric.  Other
# names are classified by their words, and series with such names by their samples as well.

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


TIME = "time"
COUNTED, TAKEN = "counters are turned into rates", "taken as records per second"
"""Notes about what the values are."""
SOURCE = re.compile("Source:[ _]+")
"""The beginning of what Flink calls a task whose first operator is a source; its reporter for Prometheus writes ``_`` for a space."""
RECIPE = "export the records per second as CSV with the columns time and rate (docs/traces.md, 'Loads from monitoring')"

Points = list[tuple[Fraction, Fraction | None]]
"""(time [s], value), by time; None: not a number."""


class MonitoringError(PrintableError, ValueError):
    """The answer holds no rates.  One line."""


class NotRecordsError(MonitoringError):
    """What the answer holds is not a number of records, by its names.  A user may know better."""

    def __init__(self, metric: Metric, name: str) -> None:
        super().__init__(metric.refusal(name))
        self.metric, self.name = metric, name


class MonitoringTable(NamedTuple):
    """A table of rates, one column per source."""

    columns: list[str]  # `time` [epoch s], then one column of rates [records/s] per source
    rows: list[list[str]]  # cells as in a CSV file; "" is a missing sample
    notes: tuple[str, ...]  # how the rates were derived

    @property
    def assumed(self) -> str:
        """Return the notes about how values were interpreted, such as counters turned into rates, or "" if there are none."""
        return "; ".join(note for note in self.notes if note.startswith(COUNTED) or note.endswith(TAKEN))


# ---- Responses of Prometheus to /api/v1/query_range.  Samples of all series have the same times: the start of the query, and every
# step after it.

_OTHER_SYSTEMS = re.compile(
    r'"(?:MetricDataResults|Datapoints|pointlist|timeseries_response|scalar_response)"'  # CloudWatch, Datadog
    r'|"schema"\s*:\s*\{.*?"fields"'  # data frames of Grafana
    r'|"results"\s*:\s*\[.*?"series"',  # InfluxDB
    re.DOTALL,
)


class _Series(NamedTuple):
    """One time series."""

    task: str  # task of Flink or topic of Kafka; "" if no label names one
    operator: str  # an operator of the task's chain, or a consumer group of the topic; "" for the whole task or topic
    name: str  # name of the metric; "" if the query removed it
    metric: Metric
    points: Points

    @property
    def preference(self) -> tuple[bool, bool, int, str, str]:
        """Return the sort key among the series of a task; the smallest is used.

        Source operators come before the rest of the chain, and rates before counters.  A series that is 0 throughout comes
        last, because Flink does not count the records that a source reads as its input.
        """
        order = ("numRecordsInPerSecond", "numRecordsOutPerSecond", "numRecordsIn", "numRecordsOut")
        place = next((place for place, name in enumerate(order) if self.name.endswith(name)), len(order))
        is_silent = not any(value for _, value in self.points)
        return is_silent, not SOURCE.match(self.operator), place, self.name, self.operator


def table_of_document(text: str, *, as_written: bool = False) -> MonitoringTable | None:
    """Return the table of the rates in a JSON document, or None if it is not from a monitoring system.

    `as_written` accepts all values as rates, whatever their names are.  Raises `MonitoringError` if the document is from
    a monitoring system that is not supported, reports an error, or has no rates.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or document.get("status") not in ("success", "error"):
        if _OTHER_SYSTEMS.search(text):
            raise MonitoringError(f"is of a monitoring system whose answers are not read: {RECIPE}")
        return None
    if document["status"] == "error":
        raise MonitoringError(f"is a refusal of Prometheus: {document.get('error')}")
    try:
        if document["data"]["resultType"] != "matrix":
            raise MonitoringError(
                "is an answer of Prometheus with values of one moment: ask /api/v1/query_range?query=...&start=...&end=...&step=..."
            )
        series = [_parse_series(result, as_written=as_written) for result in document["data"]["result"]]
    except (TypeError, KeyError, AttributeError):
        raise MonitoringError(
            "is an answer of Prometheus with a series without values: histograms are not rates"
        ) from None
    return _table_of_series([one for one in series if one.points])


def _parse_series(result: dict[str, Any], *, as_written: bool) -> _Series:
    """Parse one element of `data.result`.

    Raises `MonitoringError` if a sample is malformed, and KeyError if there are no `values`, as in a histogram.
    """
    labels: Mapping[str, str] = result.get("metric") or {}
    try:
        points: Points = [(Fraction(str(at)), _parse_value(value)) for at, value in result["values"]]
    except (TypeError, ValueError):
        raise MonitoringError("is an answer of Prometheus with samples that are not pairs of time and value") from None
    name = labels.get("__name__", "")
    metric = Metric(Kind.RATE, is_listed=True) if as_written else classify_series(name, (value for _, value in points))
    task = _first_label(labels, "task_name", "task", "operator_name", "topic", "topic_name")
    operator = _first_label(labels, "operator_name", "consumergroup", "group", "group_id")
    return _Series(task, operator, name, metric, points)


def _first_label(labels: Mapping[str, str], *names: str) -> str:
    """Return the value of the first label that is present and not empty, or ""."""
    return next((labels[name] for name in names if labels.get(name)), "")


def _parse_value(value: object) -> Fraction | None:
    """Return the value of a sample, or None if it means "unknown": NaN, which Prometheus writes as a text, or an offset of -1."""
    if value in (None, "NaN", "+Inf", "-Inf"):
        return None
    number = Fraction(str(value))
    return number if is_known(number) else None


def _table_of_series(series: Sequence[_Series]) -> MonitoringTable:
    """Return the table of the rates of all sources.

    Each source has the series with the smallest `preference`, summed over subtasks.  If some tasks are named as sources,
    the other tasks are left out.  Raises `MonitoringError` if there are no samples, `NotRecordsError` if no series can be
    a rate or a counter.
    """
    usable = [one for one in series if one.metric.kind is not Kind.OTHER]
    if not series:
        raise MonitoringError("holds no samples: is the time range of the query right?")
    if not usable:
        raise NotRecordsError(series[0].metric, series[0].name or "a query without a name")
    tasks = {one.task for one in usable}
    sources = {task for task in tasks if SOURCE.match(task)} or tasks
    notes = [f"left out, no sources: {', '.join(sorted(tasks - sources))}"] if tasks - sources else []
    chosen = dict[str, list[Points]]()
    resets = list[int]()
    for task in sorted(sources):
        best = min((one for one in usable if one.task == task), key=lambda one: one.preference)
        members = [one for one in usable if (one.task, one.operator, one.name) == (task, best.operator, best.name)]
        name = SOURCE.sub("", task) or best.name or "rate"
        of = f" of {best.operator}" if best.operator else ""
        several = f", {len(members)} series summed" if len(members) > 1 else ""
        taken = f", {TAKEN}" if best.metric.kind is Kind.RATE and not best.metric.is_listed else ""
        notes.append(f"'{name}' is {best.name or 'a query without a name'}{of}{several}{taken}")
        chosen[name] = [one.points for one in members]
        if best.metric.kind is Kind.COUNTER:
            chosen[name], falls = zip(*map(_rates_of_counter, chosen[name]), strict=True)  # type: ignore[assignment]
            resets += falls
    return _table(chosen, notes, resets)


# ---- Counters: each rate is the increase from a sample to the next, divided by the time between them.


def table_of_counter(
    time: str,
    column: str,
    rows: Iterable[tuple[int, Mapping[str, str | None]]],
    unit_s: Fraction | None = None,
    zone: str | None = None,
) -> MonitoringTable:
    """Return the rates of a column of counts, as a table with one column.

    `rows` are pairs of a line number and the cells by column.  `unit_s` [s] and `zone` are as in `detect_time_format`.  Raises
    `MonitoringError` with the line if a cell is not a time or not a number.
    """
    lines = list(rows)
    time_format = detect_time_format(time, (row[time] or "" for _, row in lines), unit_s, zone)
    points: Points = []
    at: Fraction | None = None
    for line, row in lines:
        if (at := time_format.seconds(row[time] or "", at)) is None:
            raise MonitoringError(f"line {line}: '{row[time]}' is not a time: expected {EXPECTED_TIMES}")
        points.append((at, _parse_count(row[column] or "", line)))
    rates, falls = _rates_of_counter(points)
    return _table({column: [rates]}, [], [falls])


def refuse_offsets(columns: Sequence[str]) -> None:
    """Raise `MonitoringError` if a table has columns for time, partition and offset: offsets of Kafka's partitions."""
    if all(
        find_column(names, columns)
        for names in (TIME_COLUMNS, ("partition",), ("offset", "log_end_offset", "end_offset", "latest_offset"))
    ):
        raise MonitoringError(f"has offsets of partitions, which are not read: {RECIPE}")


def _parse_count(text: str, line: int) -> Fraction | None:
    """Return the count in a cell, or None if it is missing or unknown.  Raises `MonitoringError` for other texts."""
    if text.strip().lower() in ("", "-", "nan", "null", "undefined", "+inf", "-inf", "inf", "-1"):
        return None
    try:
        number = parse_number(text)
    except UnitError:
        raise MonitoringError(f"line {line}: '{text}' is not a number") from None
    return number if is_known(number) else None


def _rates_of_counter(points: Points) -> tuple[Points, int]:
    """Return the rates of a counter, each at the earlier of two samples, and the number of times that it fell.

    A counter that fell was restarted at 0, so its increase is the value after the fall.  Missing samples are skipped.
    """
    known = [(at, value) for at, value in points if value is not None]
    rates, falls = Points(), 0
    for (at, value), (later, after) in pairwise(known):
        if later <= at:
            raise MonitoringError("holds a counter whose samples are not in order of time")
        falls += after < value
        rates.append((at, (after if after < value else after - value) / (later - at)))
    return rates, falls


# ---- The table has one row per time and one column per source, which is the sum of its series.


def _table(columns: Mapping[str, Sequence[Points]], notes: list[str], resets: Sequence[int]) -> MonitoringTable:
    """Return the table of the series of each column, and add a note on counters to `notes`.

    `resets` has the number of falls of each counter; it is empty if no series is a counter.  Raises `MonitoringError` if
    there is no time, or if series have their samples at different times.
    """
    times = sorted({at for members in columns.values() for points in members for at, _ in points})
    if not times:
        raise MonitoringError("holds one sample of a counter only: a rate needs two")
    steps = [later - earlier for earlier, later in pairwise(times)]
    longest = max((points for members in columns.values() for points in members), key=len)
    step = median([later - earlier for (earlier, _), (later, _) in pairwise(longest)] or [Fraction(1)])
    if steps and min(steps) < step * 3 / 4:
        raise MonitoringError(
            "has series with samples at different times: ask a range query, whose step puts them together"
        )
    if resets:
        fell = sum(resets)
        notes.append(COUNTED + (f"; {fell} fell back to 0 and went on from there" if fell else ""))
    sums = [_sum_series(members, times) for members in columns.values()]
    rows = [[_text(at), *map(_text, values)] for at, *values in zip(times, *sums, strict=True)]
    return MonitoringTable([TIME, *columns], rows, tuple(notes))


def _sum_series(members: Sequence[Points], times: Sequence[Fraction]) -> list[Fraction | None]:
    """Return the sum of several series at each time.

    A series counts from its first to its last sample.  The sum is None where one of those lacks a sample, or where no
    series counts.
    """
    values = [(points[0][0], points[-1][0], dict(points)) for points in members if points]
    sums = list[Fraction | None]()
    for at in times:
        found = [points.get(at) for begin, end, points in values if begin <= at <= end]
        known = [value for value in found if value is not None]
        sums.append(sum(known, Fraction()) if found and len(known) == len(found) else None)
    return sums


def _text(value: Fraction | None) -> str:
    """Return a number as the text of a cell, or "" for None."""
    if value is None:
        return ""
    return str(value.numerator) if value.denominator == 1 else repr(float(value))
