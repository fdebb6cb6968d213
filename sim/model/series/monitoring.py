"""Samples as monitoring exports them (Prometheus, Grafana, offsets of Kafka), as tables of rates."""

from __future__ import annotations

import itertools
import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

from sim.model.series.tables import (
    EXPECTED,
    QUERIES,
    TIMES,
    Kind,
    Metric,
    cell_number,
    clock_of,
    first_of,
    is_known,
    metric_of,
    taken_as,
)
from sim.model.text import PrintableError
from sim.model.units import UnitError, format_duration, format_number, parse_number

# ---- Samples of metrics through time, and the table that they make: a column of rates per source.

TIME = "time"
COUNTED, TAKEN = "counters are turned into rates", "taken as records per second"
"""Notes about what the values are."""
SOURCE = re.compile("Source:[ _]+")
"""The beginning of what Flink calls a task whose first operator is a source; its reporter for Prometheus writes ``_`` for a space."""


class MonitoringError(PrintableError, ValueError):
    """The answer holds no rates.  One line."""


class NotRecordsError(MonitoringError):
    """What the answer holds is not a number of records, by its names.  A user may know better."""

    def __init__(self, metric: Metric, name: str) -> None:
        super().__init__(metric.refusal(name))
        self.metric, self.name = metric, name


class MetricSamples(NamedTuple):
    """One time series."""

    labels: Mapping[str, str]
    points: Sequence[tuple[Fraction, Fraction | None]]  # (time [s], value), by time; None: not a number
    metric: Metric | None = None  # what its values are; None: its name and its samples tell


class MonitoringTable(NamedTuple):
    """A table of rates, one column per source."""

    columns: list[str]  # `time` [epoch s], then one per source
    rows: list[list[str]]  # texts as in a CSV file; a blank is a missing observation
    notes: tuple[str, ...]  # how it was made

    @property
    def assumed(self) -> str:
        """What was decided about the values, as counts that became rates; empty: nothing."""
        return "; ".join(note for note in self.notes if note.startswith(COUNTED) or note.endswith(TAKEN))


def table(series: Sequence[MetricSamples], *, as_written: bool = False) -> MonitoringTable:
    """Rates by source: series of one source are summed, counters are differentiated.  MonitoringError: there are none.

    `as_written`: the user says what the values are.
    """
    single = [member._replace(points=list(dict(member.points).items())) for member in series if member.points]
    chosen, notes = _sources([_known(member, as_written=as_written) for member in single])
    if not chosen:
        raise MonitoringError("holds no samples: is the time range of the query right?")
    if repeated := sum(len(member.points) for member in series) - sum(len(member.points) for member in single):
        notes.append(f"{repeated} more samples have a time of another one: the last of each counts")
    rates, resets = dict[str, list[MetricSamples]](), 0
    for name, members in chosen.items():
        rates[name] = []
        for member in members:
            points, falls = _rates(member)
            rates[name].append(member._replace(points=points))
            resets += falls
    grid, step, apart = _grid([member for members in rates.values() for member in members])
    columns = {name: _summed(members, grid, step) for name, members in rates.items()}
    if any(_kind(member) is Kind.COUNTER for members in chosen.values() for member in members):
        notes.append(COUNTED + (f"; {resets} fell back to 0 and went on from there" if resets else ""))
    if apart:
        notes.append(f"samples are up to {_duration(apart)} apart in time and are put together")
    if gaps := [later - earlier for earlier, later in itertools.pairwise(grid) if later - earlier > step * 3 / 2]:
        notes.append(f"{len(gaps)} gaps, {_duration(sum(gaps, Fraction()))} in all: the rate before each goes on")
    rows = [[_text(at), *(_text(column[i]) for column in columns.values())] for i, at in enumerate(grid)]
    return MonitoringTable([TIME, *columns], rows, tuple(notes))


class _Metric(NamedTuple):
    """Series that may be summed: of one metric and one operator or consumer group."""

    name: str  # empty: a query without a name
    operator: str  # of the chain, or a group that reads the topic; empty: it is of the whole task or topic


def _sources(series: Sequence[MetricSamples]) -> tuple[dict[str, list[MetricSamples]], list[str]]:
    """(name of a source -> its series, remarks).  Where labels tell sources from other tasks, the others are left out."""
    usable = [member for member in series if _kind(member) is not Kind.OTHER]
    if series and not usable:
        refused = series[0]
        raise NotRecordsError(refused.metric or Metric(Kind.OTHER), _name(refused.labels) or "a query without a name")
    tasks = {_task(member.labels) for member in usable}
    sources = {task for task in tasks if SOURCE.match(task)}
    notes = (
        [f"left out, no sources: {', '.join(sorted(filter(None, tasks - sources)))}"]
        if sources and tasks - sources
        else []
    )
    found = dict[str, list[MetricSamples]]()
    for task in sorted(sources or tasks):
        metrics = dict[_Metric, list[MetricSamples]]()
        for member in usable:
            if _task(member.labels) == task:
                metrics.setdefault(_Metric(_name(member.labels), _part(member.labels)), []).append(member)
        best = min(metrics, key=lambda metric: (not _moves(metrics[metric]), *_preference(metric)))
        name = SOURCE.sub("", task) or best.name or "rate"
        found[name] = metrics[best]
        of = f" of {best.operator}" if best.operator else ""
        several = f", {len(metrics[best])} series summed" if len(metrics[best]) > 1 else ""
        metric = metrics[best][0].metric
        taken = f", {TAKEN}" if metric is not None and metric.kind is Kind.RATE and not metric.is_listed else ""
        notes.append(f"'{name}' is {best.name or 'a query without a name'}{of}{several}{taken}")
    return found, notes


def _task(labels: Mapping[str, str]) -> str:
    """What a series belongs to: a task of Flink, a topic of Kafka; empty: its labels do not tell."""
    return next(
        (labels[name] for name in ("task_name", "task", "operator_name", "topic", "topic_name") if labels.get(name)), ""
    )


def _name(labels: Mapping[str, str]) -> str:
    return labels.get("__name__", "")


def _preference(metric: _Metric) -> tuple[bool, int, str, str]:
    """The source operator before the rest of its chain, rates before counters, what is read before what is written."""
    order = ("numRecordsInPerSecond", "numRecordsOutPerSecond", "numRecordsIn", "numRecordsOut")
    place = next((place for place, name in enumerate(order) if metric.name.endswith(name)), len(order))
    return not SOURCE.match(metric.operator), place, metric.name, metric.operator


def _moves(members: Iterable[MetricSamples]) -> bool:
    """Whether any value is not 0.  Flink counts no records into a source: such a metric is taken last."""
    return any(value for member in members for _, value in member.points)


def _part(labels: Mapping[str, str]) -> str:
    return next(
        (labels[name] for name in ("operator_name", "consumergroup", "group", "group_id") if labels.get(name)), ""
    )


def _known(series: MetricSamples, *, as_written: bool) -> MetricSamples:
    """The series with what its values are."""
    if as_written:
        return series._replace(metric=Metric(Kind.RATE, is_listed=True))
    return (
        series
        if series.metric
        else series._replace(metric=taken_as(_name(series.labels), (value for _, value in series.points)))
    )


def _kind(series: MetricSamples) -> Kind:
    return Kind.UNKNOWN if series.metric is None else series.metric.kind


def _rates(series: MetricSamples) -> tuple[list[tuple[Fraction, Fraction | None]], int]:
    """(records per second, how often a counter fell)."""
    if _kind(series) is Kind.COUNTER:
        return per_second(series.points)
    window_s = None if series.metric is None else series.metric.window_s
    if window_s is None:
        return list(series.points), 0
    return [(at, None if value is None else value / window_s) for at, value in series.points], 0


def per_second(
    points: Sequence[tuple[Fraction, Fraction | None]],
) -> tuple[list[tuple[Fraction, Fraction | None]], int]:
    """(rates, each from its sample to the next one; how often the counter fell).  After a fall it has counted from 0."""
    known = [(at, value) for at, value in points if value is not None]
    rates, falls = list[tuple[Fraction, Fraction | None]](), 0
    for (at, value), (later, after) in itertools.pairwise(known):
        falls += after < value
        rates.append((at, (after if after < value else after - value) / (later - at)))
    return rates, falls


def _grid(series: Sequence[MetricSamples]) -> tuple[list[Fraction], Fraction, Fraction]:
    """(times of all rows, the usual step, how far samples are from them): those of the longest series, unless all have the same."""
    longest = max(series, key=lambda member: len(member.points))
    times = sorted({at for member in series for at, _ in member.points})
    if not times:
        raise MonitoringError("holds one sample of a counter only: a rate needs two")
    own = [at for at, _ in longest.points]
    step = median(later - earlier for earlier, later in itertools.pairwise(own)) if len(own) > 1 else Fraction(1)
    steps = [later - earlier for earlier, later in itertools.pairwise(times)]
    if not steps or min(steps) >= step * 3 / 4:
        return times, step, Fraction(0)
    own = [times[0], *own] if own[0] - times[0] > step else own
    apart = max(abs(own[_nearest(own, at)] - at) for at in times)
    return own, step, min(apart, step)


def _nearest(times: Sequence[Fraction], at: Fraction) -> int:
    """The place of the time that is nearest; of two the earlier one."""
    place = bisect_left(times, at)
    return min(range(max(0, place - 1), min(len(times), place + 1)), key=lambda i: abs(times[i] - at))


def _summed(members: Sequence[MetricSamples], grid: Sequence[Fraction], step: Fraction) -> list[Fraction | None]:
    """The sum at each time; None: a series that has begun and not ended has no sample there."""
    sums: list[Fraction | None] = [Fraction(0)] * len(grid)
    is_covered = [False] * len(grid)
    for member in members:
        if not member.points:
            continue
        times = [at for at, _ in member.points]
        for i, at in enumerate(grid):
            if not times[0] - step / 2 <= at <= times[-1] + step / 2:
                continue
            near = _nearest(times, at)
            value = member.points[near][1] if abs(times[near] - at) <= step * 3 / 4 else None
            before, is_covered[i] = sums[i], True
            sums[i] = None if value is None or before is None else before + value
    return [value if covered else None for value, covered in zip(sums, is_covered, strict=True)]


def _duration(seconds: Fraction) -> str:
    return format_duration(round(seconds * 1000) * 10**6)


def _text(value: Fraction | None) -> str:
    if value is None:
        return ""
    return str(value.numerator) if value.denominator == 1 else repr(float(value))


# ---- Metrics in the columns of a table, as Grafana exports a panel: a time, and a column per series.
#
# "Time","{__name__=""flink_taskmanager_job_task_numRecordsIn"", subtask_index=""0""}","{... subtask_index=""1""}"

_LABEL = re.compile(r"""([A-Za-z_]\w*)\s*[=:]\s*["']((?:[^"'\\]|\\.)*)["']""")


def are_metrics(columns: Sequence[str]) -> bool:
    """Whether a table has several series of metrics, one of which is a number of records."""
    if len(columns) < 3 or first_of(TIMES, columns[:1]) is None:
        return False
    known = [metric_of(column) for column in columns[1:]]
    named = [metric.is_listed or "{" in column for column, metric in zip(columns[1:], known, strict=True)]
    return all(named) and any(metric.kind is not Kind.OTHER for metric in known)


def table_of_columns(
    columns: Sequence[str],
    rows: Iterable[tuple[int, Mapping[str, str | None]]],
    *,
    metric: Metric | None = None,
    unit_s: Fraction | None = None,
    zone: str | None = None,
) -> MonitoringTable:
    """Records per second by source.  `metric`: of all columns; None: their names and samples tell.

    MonitoringError: a cell is not a time or no number, and the line; or the columns are no loads.
    """
    time, *series = columns
    lines = list(rows)
    clock = clock_of(time, (row[time] or "" for _, row in lines), unit_s, zone)
    points: list[list[tuple[Fraction, Fraction | None]]] = [[] for _ in series]
    at: Fraction | None = None
    for line, row in lines:
        if (at := clock.seconds(row[time] or "", at)) is None:
            raise MonitoringError(f"line {line}: '{row[time]}' is not a time: expected {EXPECTED}")
        for name, found in zip(series, points, strict=True):
            found.append((at, _number(row[name] or "", line)))
    return table([MetricSamples(_labels(name), found, metric) for name, found in zip(series, points, strict=True)])


def _labels(header: str) -> dict[str, str]:
    """Its labels; what stands before them is the name of the metric."""
    labels = dict(_LABEL.findall(header)) if "{" in header and "(" not in header else {}
    name = header.partition("{")[0].strip() if labels else header
    return labels if "__name__" in labels else {"__name__": name} | labels


def _number(text: str, line: int) -> Fraction | None:
    if text.strip().lower() in ("", "-", "nan", "null", "undefined", "+inf", "-inf", "inf"):
        return None
    try:
        parse_number(text[:100])
    except UnitError:
        raise MonitoringError(f"line {line}: '{text}' is not a number") from None
    return cell_number(text)


# ---- Offsets of a topic through time, as a cron job writes them: how far each partition is.  Their growth is what producers send.

TOPICS, PARTITIONS = ("topic",), ("partition",)
OFFSETS = ("log_end_offset", "end_offset", "latest_offset", "offset")
"""The names of the columns, the surest first: those of kafka-consumer-groups and kafka-get-offsets."""


def are_offsets(columns: Sequence[str]) -> bool:
    """Whether a table has offsets of partitions through time."""
    return all(first_of(names, columns) for names in (TIMES, PARTITIONS, OFFSETS))


def table_of_offsets(columns: Sequence[str], rows: Iterable[tuple[int, Mapping[str, str | None]]]) -> MonitoringTable:
    """Records per second by topic.  MonitoringError: a cell is not a time or no offset; it names the line."""
    time, partition, offset, topic = (first_of(names, columns) or "" for names in (TIMES, PARTITIONS, OFFSETS, TOPICS))
    lines = list(rows)
    clock = clock_of(time, (row[time] or "" for _, row in lines))
    points = dict[tuple[str, str], list[tuple[Fraction, Fraction | None]]]()
    for line, row in lines:
        if (at := clock.seconds(row[time] or "")) is None:
            raise MonitoringError(f"line {line}: '{row[time]}' is not a time: expected {EXPECTED}")
        try:
            value = None if not (row[offset] or "").strip("- ") else parse_number(row[offset] or "")
        except UnitError:
            raise MonitoringError(f"line {line}: '{row[offset]}' is not an offset") from None
        value = value if is_known(value) else None  # -1: nothing was committed yet
        points.setdefault(((row.get(topic) or "") if topic else "", row[partition] or ""), []).append((at, value))
    named, counter = {"__name__": offset}, Metric(Kind.COUNTER, is_listed=True)
    return table(
        [MetricSamples(named | {"topic": name}, sorted(found), counter) for (name, _), found in points.items()]
    )


# ---- JSON of monitoring systems: which kind it is, and the samples in it.
#
# Sources: Prometheus' HTTP API (range vectors of /api/v1/query_range and /api/v1/query); Grafana's data frames, as its
# query API (/api/ds/query) and "Panel JSON" write them; Datadog's /api/v1/query and /api/v2/query/timeseries; `aws
# cloudwatch get-metric-data` and
# `get-metric-statistics`; InfluxDB's /query.

TIMESERIES_QUERY = "/api/v2/query/timeseries"
RANGE_QUERY = "/api/v1/query_range?query=...&start=...&end=...&step=..."
_MS = Fraction(1, 1000)
_NO_RECORDS = ("bytes", "time", "percentage", "frequency", "temperature", "cpu", "memory", "network", "money")
"""Families of Datadog's units that count no records."""


def table_of_document(text: str, *, as_written: bool = False) -> MonitoringTable | None:
    """The rates in a document.  None: no monitoring system wrote it.  MonitoringError: one of them did, and it holds no rates.

    `as_written`: the values are what the user says they are, whatever their names are.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if (series := _series(document)) is None:
        return None
    try:
        return table(list(series), as_written=as_written)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        if isinstance(error, MonitoringError):
            raise
        raise MonitoringError("has samples that are no pairs of time and value") from None


def _series(document: Any) -> Iterator[MetricSamples] | None:
    if isinstance(document, dict):
        if document.get("status") in ("success", "error") and ("data" in document or "error" in document):
            return _prometheus(document)
        if isinstance(document.get("MetricDataResults"), list) or isinstance(document.get("Datapoints"), list):
            return _cloudwatch(document)
        if isinstance(document.get("series"), list) and any(
            isinstance(one, dict) and "pointlist" in one for one in document["series"]
        ):
            return _datadog(document)
        if isinstance(results := document.get("results"), list) and any(
            isinstance(one, dict) and "series" in one for one in results
        ):
            return _influxdb(results)
        if isinstance(data := document.get("data"), dict) and data.get("type") in (
            "timeseries_response",
            "scalar_response",
        ):
            return _datadog_v2(data)
    frames = list(_frames(document))
    return (series for frame in frames for series in _of_frame(frame)) if frames else None


def _prometheus(document: dict[str, Any]) -> Iterator[MetricSamples]:
    if document["status"] == "error":
        raise MonitoringError(f"is a refusal of Prometheus: {document.get('error')}")
    data = document["data"]
    kind = data.get("resultType") if isinstance(data, dict) else None
    if kind == "vector" and isinstance(data.get("result"), list):
        raise _of_one_moment(data["result"])
    if kind != "matrix" or not isinstance(data.get("result"), list):
        raise MonitoringError(f"is an answer of Prometheus with a {kind or 'result'} of one moment: ask {RANGE_QUERY}")
    for result in data["result"]:
        if not isinstance(result, dict) or not isinstance(result.get("values"), list):
            raise MonitoringError(
                "is an answer of Prometheus with a series that has no values: histograms are no rates"
            )
        try:
            points = [(Fraction(str(at)), _number_of_document(value)) for at, value in result["values"]]
        except (TypeError, ValueError):
            raise MonitoringError(
                "is an answer of Prometheus with samples that are no pairs of time and value"
            ) from None
        yield MetricSamples({str(name): str(value) for name, value in (result.get("metric") or {}).items()}, points)


def _of_one_moment(results: list[Any]) -> MonitoringError:
    """What an instant query tells."""
    found = [
        (metric_of(str((result.get("metric") or {}).get("__name__", ""))), result)
        for result in results
        if isinstance(result, dict)
    ]
    refused = [(metric, result["metric"]["__name__"]) for metric, result in found if metric.kind is Kind.OTHER]
    if found and len(refused) == len(found):
        return NotRecordsError(*refused[0])
    values = [
        number
        for metric, result in found
        if metric.kind is Kind.RATE
        for number in [_number_of_document((result.get("value") or [0, None])[1])]
    ]
    known = [value for value in values if value is not None]
    total = (
        f"their sum is {format_number(sum(known, Fraction()).limit_denominator(1000))}, write that as the rate or "
        if known
        else ""
    )
    return MonitoringError(f"is an answer of Prometheus with a vector of one moment: {total}ask {RANGE_QUERY}")


def _datadog(document: dict[str, Any]) -> Iterator[MetricSamples]:
    """Of /api/v1/query; the expression has the functions around the metric."""
    for one in document["series"]:
        tags = (tag.partition(":") for tag in one.get("tag_set") or str(one.get("scope") or "").split(","))
        labels = {key: value for key, colon, value in tags if colon}
        points = [(Fraction(str(at)) * _MS, _number_of_document(value)) for at, value in one["pointlist"]]
        yield MetricSamples(labels | {"__name__": str(one.get("expression") or one.get("metric") or "")}, points)


def _datadog_v2(data: dict[str, Any]) -> Iterator[MetricSamples]:
    """Of /api/v2/query/timeseries, which repeats no query: units are all that says what the values are."""
    if data["type"] == "scalar_response":
        raise MonitoringError(f"is an answer of Datadog with scalars, one for the whole time: ask {TIMESERIES_QUERY}")
    found = data["attributes"]
    for one, values in zip(found["series"], found["values"], strict=True):
        tags = (tag.partition(":") for tag in one.get("group_tags") or ())
        units: list[dict[str, Any]] = [*(part or {} for part in one.get("unit") or ()), {}, {}]
        unit, per = units[:2]
        metric = Metric(Kind.RATE, is_listed=True) if per.get("name") == "second" else None
        if unit.get("family") in _NO_RECORDS or per.get("name", "second") != "second":
            per_text = f" per {per['name']}" if per else ""
            metric = Metric(Kind.OTHER, f"in {unit.get('plural') or unit.get('name')}{per_text}", QUERIES["datadog"])
        points = [
            (Fraction(str(at)) * _MS, _number_of_document(value))
            for at, value in zip(found["times"], values, strict=True)
        ]
        yield MetricSamples({key: value for key, colon, value in tags if colon}, points, metric)


def _cloudwatch(document: dict[str, Any]) -> Iterator[MetricSamples]:
    """A count is of the records of a period, which is as long as samples are apart."""
    if "Datapoints" in document:
        rows = document["Datapoints"]
        statistic = next(
            (name for name in ("Sum", "Average", "Maximum", "Minimum", "SampleCount") if rows and name in rows[0]), ""
        )
        given = [
            (
                f"{document.get('Label', '')} {statistic}",
                [row["Timestamp"] for row in rows],
                [row.get(statistic) for row in rows],
            )
        ]
    else:
        found = document["MetricDataResults"]
        given = [(str(one.get("Label") or one.get("Id") or ""), one["Timestamps"], one["Values"]) for one in found]
    for name, times, values in given:
        texts = list(map(str, times))
        clock = clock_of("Timestamp", texts)
        points = sorted(
            (at, _number_of_document(value))
            for text, value in zip(texts, values, strict=True)
            if (at := clock.seconds(text)) is not None
        )
        metric = metric_of(name)
        if metric.kind is Kind.PERIOD and len(points) > 1:
            metric = metric._replace(
                window_s=Fraction(median(after - before for (before, _), (after, _) in pairwise(points)))
            )
            yield MetricSamples({"__name__": name}, points, metric)
        else:
            yield MetricSamples({"__name__": name}, points)


def _influxdb(results: list[dict[str, Any]]) -> Iterator[MetricSamples]:
    """A series per field of a measurement."""
    for one in (series for result in results for series in result.get("series") or []):
        place = one["columns"].index("time")
        clock = clock_of("time", [str(row[place]) for row in one["values"]])
        for field, column in enumerate(one["columns"]):
            if field == place:
                continue
            pairs = [(clock.seconds(str(row[place])), _number_of_document(row[field])) for row in one["values"]]
            labels = {**(one.get("tags") or {}), "__name__": f"{one.get('name', '')}.{column}"}
            yield MetricSamples(labels, [(at, value) for at, value in pairs if at is not None])


def _frames(document: Any) -> Iterator[dict[str, Any]]:
    """Every data frame of Grafana, at any depth of the document."""
    if isinstance(document, list):
        for part in document:
            yield from _frames(part)
    elif isinstance(document, dict):
        if (
            isinstance(document.get("schema"), dict)
            and isinstance(document.get("data"), dict)
            and "fields" in document["schema"]
        ):
            yield document
        else:
            for key in ("results", "frames", "series"):
                inner = document.get(key)
                yield from _frames(
                    list(inner.values()) if isinstance(inner, dict) and key == "results" else inner or []
                )


def _of_frame(frame: dict[str, Any]) -> Iterator[MetricSamples]:
    """A series per column of numbers; times are milliseconds since 1970."""
    fields, columns = frame["schema"]["fields"], frame["data"].get("values") or []
    time = next((column for field, column in zip(fields, columns, strict=False) if field.get("type") == "time"), None)
    if time is None:
        raise MonitoringError("has a frame of Grafana without a field of type time")
    for field, column in zip(fields, columns, strict=False):
        if field.get("type") != "number":
            continue
        labels = {str(name): str(value) for name, value in (field.get("labels") or {}).items()}
        name = (field.get("config") or {}).get("displayNameFromDS") or field.get("name") or ""
        if "__name__" not in labels and name not in ("Value", "value"):
            labels["__name__"] = str(name)
        try:
            yield MetricSamples(
                labels,
                [(Fraction(str(at)) * _MS, _number_of_document(value)) for at, value in zip(time, column, strict=True)],
            )
        except (TypeError, ValueError):
            raise MonitoringError(
                "has a frame of Grafana whose columns are no times and numbers of one length"
            ) from None


def _number_of_document(value: Any) -> Fraction | None:
    """A number.  None: it stands for an unknown one, as NaN, which Prometheus writes as text, or the offset -1."""
    if value is None or str(value) in ("NaN", "+Inf", "-Inf"):
        return None
    number = Fraction(str(value))
    return number if is_known(number) else None
