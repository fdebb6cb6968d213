"""Rates of records from monitoring: what the name of a metric says that it counts, and answers of Prometheus to range queries."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

from sim.model.series.columns import is_known
from sim.model.text import PrintableError

# ---- What a metric counts, by its name or query.  Only records per second can be used as a load.
#     sum(rate(kafka_topic_partition_current_offset{topic="orders"}[1m]))
#     ^^^^^^^^ functions    ^^^^^ words of the name                 ^^^^ window

RATE, COUNTER = "records per second", "a counter"
_NEVER_RECORDS = ("per cent", "a size in bytes", "bits", "a time", "a temperature")
"""Quantities that are never numbers of records.  Users cannot override their refusal."""
_UNNAMED = "a query without a name"
_FLINK = "numRecordsInPerSecond or numRecordsOutPerSecond of the source"
_RATE_FUNCTIONS = re.compile(
    r"\b(?:rate|irate|per_second|deriv|derivative|non_negative_derivative)\s*\(|\.as_rate\(\)", re.IGNORECASE
)
_PERIOD_FUNCTIONS = re.compile(
    r"\b(?:increase|delta|idelta|difference|non_negative_difference|diff|monotonic_diff)\s*\(|\.as_count\(\)",
    re.IGNORECASE,
)
_NAME_LABEL = re.compile(r"""__name__\s*=\s*["']([^"']+)["']""")  # {__name__="x"}
_PER_SECOND_SIGN = re.compile(r"/ ?s(ec(onds?)?)?(?!\w)")  # requests/s
# {topic="orders"}, [1m], by (topic), the name of a function
_NO_NAMES = re.compile(r"\{[^{}]*\}|\[[^\[\]]*\]|\b(?:by|without|on|ignoring)\s*\([^()]*\)|\b[A-Za-z_]\w*(?=\()")
_QUANTITIES = {
    re.compile(rf"(?<![a-z0-9])(?:{words})(?![a-z0-9])"): quantity
    for quantity, words in (
        (RATE, r"num_?records_?(in|out)_?per_?second(_rate|_mean)?$"),  # of Flink, whatever its operator is called
        # units and things that are no records exclude a rate of records, too
        ("per cent", r"%|percent(age)?|pct|cpu|utili[sz]ation|ratio|share|usage|load_(1|5|15)|idle|saturation|success"),
        (
            "a size in bytes",
            r"bytes?([a-z]*persec)?|octets|[kmgt]i?b|b|memory|heap|disk|sizes?|pulsar(_[a-z]+)*_throughput|msg_throughput|write_rate",
        ),
        ("bits", r"bits?|[kmgt]?bps|[kmg]?bits?"),
        (
            "a time",
            r"ms|millis(econds)?|nanos|(?<!per_)seconds|latency|latencies|duration|delay|age|[a-z]*time(ms)?|timestamps?|watermarks?|time_lag",
        ),
        ("a temperature", r"temperature|celsius"),
        (
            "a count of errors",
            r"errors?|failures?|failed|fails|exceptions?|dropped|rejected|retr(y|ies)|timeouts?|throttled|exceeded|expired|redeliver",
        ),
        ("a count of restarts", r"restarts?|rescales"),
        (
            "a count in periods",
            r"mins?|minutes?|rpm|hours?|hourly|days?|daily|aws(?!.*per_sec)|confluent|incoming_records|(get|put)_records|number_of_messages",
        ),
        ("a backlog", r"(max)?lags?|back_?log|pending|behind|unconsumed|unacked|lagging|visible"),
        ("a count of things, not of records", r"buffers|timers|mails|splits|requestmetrics"),
        ("a rate that could be processed, not what arrives", r"processing_rate|catch_up_data_rate|threshold"),
        (COUNTER, r"count$"),  # of a Meter of Flink: numRecordsInPerSecond.count
        (RATE, r"rates?|rps|tps|qps|eps|throughput|[a-z]*per_?s(ec(onds?)?)?"),
        (COUNTER, r"total|counter|[a-z]*offsets?|water_mark|num_?records_?(in|out|send)"),
        ("the length of a queue", r"queues?|depth|queued|inflight"),
        (
            "a count of things, not of records",
            r"(connection|thread|[a-z]*partition|replica|consumer|producer|member|broker|pod|slot|checkpoint|job|commit)s|parallelism|keys|files|state|status",
        ),
    )
}
"""Words of a name, in lower case and joined by ``_``, -> the quantity; the first that match decide."""


def quantity_in_name(name: str) -> str:
    """Return what a metric counts by its name, which may be a query: `RATE`, `COUNTER` or another; "" if the name does not tell."""
    label = _NAME_LABEL.search(name)
    query = label[1] if label else _NO_NAMES.sub(" ", name)
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|%", _PER_SECOND_SIGN.sub(" per s", query))
    text = "_".join(words).lower()
    quantity = next((quantity for pattern, quantity in _QUANTITIES.items() if pattern.search(text)), "")
    if _RATE_FUNCTIONS.search(name) and quantity in ("", RATE, COUNTER):
        return "the change of a rate" if quantity == RATE else RATE
    if _PERIOD_FUNCTIONS.search(name) and quantity in ("", COUNTER):
        return "a count in periods"
    return quantity


_MIN_INCREASES = 15
"""Minimum number of increases from which a series may be taken for a counter.

It is also the minimum number of increases per fall: a counter falls only when it restarts, a load falls about as often as it rises.
"""
_MAX_RESET_SHARE = Fraction(1, 10)
"""Maximum value after the restart of a counter / value before it."""


def _only_grows(values: Iterable[Fraction | None]) -> bool:
    """Return whether samples are like those of a counter, which falls only when it restarts; None is a missing sample."""
    steps = list(pairwise(value for value in values if value is not None))
    falls = [(before, after) for before, after in steps if after < before]
    increases = [after - before for before, after in steps if after > before]
    return (
        len(increases) >= _MIN_INCREASES * max(1, len(falls))
        and len(set(increases)) > 1  # 100, 200, 300: counters do not increase by the same number each time
        and all(after <= before * _MAX_RESET_SHARE for before, after in falls)
    )


def why_refused(name: str, values: Iterable[Fraction | None] = (), override: str = "") -> str:
    """Return why a metric is no rate of records, and what to query instead; "" if it may be one.

    Its first `values` are looked at if the name does not tell.  `override` says how the metric is taken all the same; it
    is left out for metrics that are never records.
    """
    quantity = quantity_in_name(name)
    if not quantity and _only_grows(values):
        quantity = "a series that only grows, as counters do"
    if quantity in ("", RATE):
        return ""
    query = "rate(...[1m]) of it" if "counter" in quantity else _FLINK
    hint = "" if quantity.startswith(_NEVER_RECORDS) else override
    return f"'{name}' is {quantity}, not a rate of records: query {query}{hint}"


TIME = "time"
TAKEN = "taken as records per second"
"""Note about a metric whose name does not tell what it counts."""
SOURCE = re.compile("Source:[ _]+")
"""The beginning of what Flink calls a task whose first operator is a source; its reporter for Prometheus writes ``_`` for a space."""
RECIPE = "export the records per second as CSV with the columns time and rate (docs/traces.md, 'Loads from monitoring')"

Points = list[tuple[Fraction, Fraction | None]]
"""(time [s], value), by time; None: not a number."""


class MonitoringError(PrintableError, ValueError):
    """The answer holds no rates.  One line."""


class MonitoringTable(NamedTuple):
    """A table of rates, one column per source."""

    columns: list[str]  # `time` [epoch s], then one column of rates [records/s] per source
    rows: list[list[str]]  # cells as in a CSV file; "" is a missing sample
    notes: tuple[str, ...]  # where the rates are from

    @property
    def assumed(self) -> str:
        """Return the notes about metrics that are taken as records per second, or "" if there are none."""
        return "; ".join(note for note in self.notes if note.endswith(TAKEN))


# ---- Responses of Prometheus to /api/v1/query_range.  Samples of all series have the same times: the start of the query, and every
# step after it.


class _Series(NamedTuple):
    """One time series."""

    task: str  # task of Flink or topic of Kafka; "" if no label names one
    operator: str  # an operator of the task's chain, or a consumer group of the topic; "" for the whole task or topic
    name: str  # name of the metric; "" if the query removed it
    points: Points

    @property
    def preference(self) -> tuple[bool, bool, bool, str, str]:
        """Return the sort key among the series of a task; the smallest is used.

        Source operators come before the rest of the chain.  A series that is 0 throughout comes last, because Flink does not
        count the records that a source reads as its input.
        """
        is_silent = not any(value for _, value in self.points)
        is_output = not self.name.endswith("numRecordsInPerSecond")
        return is_silent, not SOURCE.match(self.operator), is_output, self.name, self.operator


def table_of_document(text: str, *, as_written: bool = False, override: str = "") -> MonitoringTable | None:
    """Return the table of the rates in a JSON document, or None if it is no answer of Prometheus.

    `as_written` accepts all values as rates, whatever their names are; `override` is as in `why_refused`.  Raises
    `MonitoringError` if the answer has no rates.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or document.get("status") not in ("success", "error"):
        return None
    if document["status"] == "error":
        raise MonitoringError(f"is a refusal of Prometheus: {document.get('error')}")
    try:
        if document["data"]["resultType"] != "matrix":
            raise MonitoringError(
                "is an answer of Prometheus with values of one moment: ask /api/v1/query_range?query=...&start=...&end=...&step=..."
            )
        series = [_parse_series(result) for result in document["data"]["result"]]
    except (TypeError, KeyError, AttributeError):
        raise MonitoringError(
            "is an answer of Prometheus with a series without values: histograms are not rates"
        ) from None
    series = [one for one in series if one.points]
    if not series:
        raise MonitoringError("holds no samples: is the time range of the query right?")
    refused = [
        "" if as_written else why_refused(one.name or _UNNAMED, (value for _, value in one.points), override)
        for one in series
    ]
    if all(refused):
        raise MonitoringError(refused[0])
    return _table_of_series([one for one, why in zip(series, refused, strict=True) if not why])


def _parse_series(result: dict[str, Any]) -> _Series:
    """Parse one element of `data.result`.

    Raises `MonitoringError` if a sample is malformed, and KeyError if there are no `values`, as in a histogram.
    """
    labels: Mapping[str, str] = result.get("metric") or {}
    try:
        points: Points = [(Fraction(str(at)), _parse_value(value)) for at, value in result["values"]]
    except (TypeError, ValueError):
        raise MonitoringError("is an answer of Prometheus with samples that are not pairs of time and value") from None
    task = _first_label(labels, "task_name", "task", "operator_name", "topic", "topic_name")
    operator = _first_label(labels, "operator_name", "consumergroup", "group", "group_id")
    return _Series(task, operator, labels.get("__name__", ""), points)


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
    """Return the table of the rates of all sources: a row per time, and a column per source.

    Each source has the series with the smallest `preference`, summed over subtasks.  If some tasks are named as sources,
    the other tasks are left out.  Raises `MonitoringError` if series have their samples at different times.
    """
    tasks = {one.task for one in series}
    sources = {task for task in tasks if SOURCE.match(task)} or tasks
    notes = [f"left out, no sources: {', '.join(sorted(tasks - sources))}"] if tasks - sources else []
    chosen = dict[str, list[Points]]()
    for task in sorted(sources):
        best = min((one for one in series if one.task == task), key=lambda one: one.preference)
        members = [one.points for one in series if (one.task, one.operator, one.name) == (task, *best[1:3])]
        name = SOURCE.sub("", task) or best.name or "rate"
        of = f" of {best.operator}" if best.operator else ""
        several = f", {len(members)} series summed" if len(members) > 1 else ""
        taken = "" if quantity_in_name(best.name) == RATE else f", {TAKEN}"
        notes.append(f"'{name}' is {best.name or _UNNAMED}{of}{several}{taken}")
        chosen[name] = members
    times = sorted({at for members in chosen.values() for points in members for at, _ in points})
    steps = [later - earlier for earlier, later in pairwise(times)]
    longest = max((points for members in chosen.values() for points in members), key=len)
    step = median([later - earlier for (earlier, _), (later, _) in pairwise(longest)] or [Fraction(1)])
    if steps and min(steps) < step * 3 / 4:
        raise MonitoringError(
            "has series with samples at different times: ask a range query, whose step puts them together"
        )
    sums = [_sum_series(members, times) for members in chosen.values()]
    rows = [[_text(at), *map(_text, values)] for at, *values in zip(times, *sums, strict=True)]
    return MonitoringTable([TIME, *chosen], rows, tuple(notes))


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
