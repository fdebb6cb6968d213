"""Conversion of monitoring data to tables of rates: range queries of Prometheus, and columns of counters.

There is one function for each kind of input:

    JSON of /api/v1/query_range   -> table_of_document -> MonitoringTable, one column per source
    CSV or Parquet with a counter -> table_of_counter  -> MonitoringTable, one column
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

from sim.model.series.columns import EXPECTED_TIMES, TIME_COLUMNS, detect_time_format, find_column, is_known
from sim.model.series.metrics import Kind, Metric, classify_series
from sim.model.text import PrintableError
from sim.model.units import UnitError, parse_number

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
