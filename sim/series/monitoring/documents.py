"""JSON of monitoring systems: which kind it is, and the samples in it.

Sources: Prometheus' HTTP API (range vectors of /api/v1/query_range and /api/v1/query); Grafana's data frames, as its query API
(/api/ds/query) and "Panel JSON" write them; Datadog's /api/v1/query and /api/v2/query/timeseries; `aws cloudwatch get-metric-data` and
`get-metric-statistics`; InfluxDB's /query.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from statistics import median
from typing import Any

from sim.series.metrics import QUERIES, Kind, Metric, metric_of
from sim.series.monitoring.samples import MetricSamples, MonitoringError, MonitoringTable, NotRecordsError, table
from sim.series.times import clock_of
from sim.stand_ins import is_known
from sim.units import format_number

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
        if isinstance(document.get("series"), list) and any(isinstance(one, dict) and "pointlist" in one for one in document["series"]):
            return _datadog(document)
        if isinstance(results := document.get("results"), list) and any(isinstance(one, dict) and "series" in one for one in results):
            return _influxdb(results)
        if isinstance(data := document.get("data"), dict) and data.get("type") in ("timeseries_response", "scalar_response"):
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
            raise MonitoringError("is an answer of Prometheus with a series that has no values: histograms are no rates")
        try:
            points = [(Fraction(str(at)), _number(value)) for at, value in result["values"]]
        except (TypeError, ValueError):
            raise MonitoringError("is an answer of Prometheus with samples that are no pairs of time and value") from None
        yield MetricSamples({str(name): str(value) for name, value in (result.get("metric") or {}).items()}, points)


def _of_one_moment(results: list[Any]) -> MonitoringError:
    """What an instant query tells."""
    found = [(metric_of(str((result.get("metric") or {}).get("__name__", ""))), result) for result in results if isinstance(result, dict)]
    refused = [(metric, result["metric"]["__name__"]) for metric, result in found if metric.kind is Kind.OTHER]
    if found and len(refused) == len(found):
        return NotRecordsError(*refused[0])
    values = [number for metric, result in found if metric.kind is Kind.RATE for number in [_number((result.get("value") or [0, None])[1])]]
    known = [value for value in values if value is not None]
    total = f"their sum is {format_number(sum(known, Fraction()).limit_denominator(1000))}, write that as the rate or " if known else ""
    return MonitoringError(f"is an answer of Prometheus with a vector of one moment: {total}ask {RANGE_QUERY}")


def _datadog(document: dict[str, Any]) -> Iterator[MetricSamples]:
    """Of /api/v1/query; the expression has the functions around the metric."""
    for one in document["series"]:
        tags = (tag.partition(":") for tag in one.get("tag_set") or str(one.get("scope") or "").split(","))
        labels = {key: value for key, colon, value in tags if colon}
        points = [(Fraction(str(at)) * _MS, _number(value)) for at, value in one["pointlist"]]
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
        points = [(Fraction(str(at)) * _MS, _number(value)) for at, value in zip(found["times"], values, strict=True)]
        yield MetricSamples({key: value for key, colon, value in tags if colon}, points, metric)


def _cloudwatch(document: dict[str, Any]) -> Iterator[MetricSamples]:
    """A count is of the records of a period, which is as long as samples are apart."""
    if "Datapoints" in document:
        rows = document["Datapoints"]
        statistic = next((name for name in ("Sum", "Average", "Maximum", "Minimum", "SampleCount") if rows and name in rows[0]), "")
        given = [(f"{document.get('Label', '')} {statistic}", [row["Timestamp"] for row in rows], [row.get(statistic) for row in rows])]
    else:
        found = document["MetricDataResults"]
        given = [(str(one.get("Label") or one.get("Id") or ""), one["Timestamps"], one["Values"]) for one in found]
    for name, times, values in given:
        texts = list(map(str, times))
        clock = clock_of("Timestamp", texts)
        points = sorted((at, _number(value)) for text, value in zip(texts, values, strict=True) if (at := clock.seconds(text)) is not None)
        metric = metric_of(name)
        if metric.kind is Kind.PERIOD and len(points) > 1:
            metric = metric._replace(window_s=Fraction(median(after - before for (before, _), (after, _) in pairwise(points))))
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
            pairs = [(clock.seconds(str(row[place])), _number(row[field])) for row in one["values"]]
            labels = {**(one.get("tags") or {}), "__name__": f"{one.get('name', '')}.{column}"}
            yield MetricSamples(labels, [(at, value) for at, value in pairs if at is not None])


def _frames(document: Any) -> Iterator[dict[str, Any]]:
    """Every data frame of Grafana, at any depth of the document."""
    if isinstance(document, list):
        for part in document:
            yield from _frames(part)
    elif isinstance(document, dict):
        if isinstance(document.get("schema"), dict) and isinstance(document.get("data"), dict) and "fields" in document["schema"]:
            yield document
        else:
            for key in ("results", "frames", "series"):
                inner = document.get(key)
                yield from _frames(list(inner.values()) if isinstance(inner, dict) and key == "results" else inner or [])


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
            yield MetricSamples(labels, [(Fraction(str(at)) * _MS, _number(value)) for at, value in zip(time, column, strict=True)])
        except (TypeError, ValueError):
            raise MonitoringError("has a frame of Grafana whose columns are no times and numbers of one length") from None


def _number(value: Any) -> Fraction | None:
    """A number.  None: it stands for an unknown one, as NaN, which Prometheus writes as text, or the offset -1."""
    if value is None or str(value) in ("NaN", "+Inf", "-Inf"):
        return None
    number = Fraction(str(value))
    return number if is_known(number) else None
