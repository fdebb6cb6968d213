"""JSON of Prometheus and Grafana: which kind it is, and the samples in it.

Sources: Prometheus' HTTP API (range vectors of /api/v1/query_range and /api/v1/query); Grafana's data frames, as its query API
(/api/ds/query) and "Panel JSON" write them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from sim.series.monitoring.samples import MetricSamples, MonitoringError, MonitoringTable, table

RANGE_QUERY = "/api/v1/query_range?query=...&start=...&end=...&step=..."
_MS = Fraction(1, 1000)


def table_of_document(text: str) -> MonitoringTable | None:
    """The rates in a document.  None: neither Prometheus nor Grafana wrote it.  MonitoringError: one of them did, and it holds no rates."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(document, dict) and document.get("status") in ("success", "error") and ("data" in document or "error" in document):
        return table(list(_prometheus(document)))
    if (frames := list(_frames(document))) != []:
        return table([series for frame in frames for series in _of_frame(frame)])
    return None


def _prometheus(document: dict[str, Any]) -> Iterator[MetricSamples]:
    if document["status"] == "error":
        raise MonitoringError(f"is a refusal of Prometheus: {document.get('error')}")
    data = document["data"]
    kind = data.get("resultType") if isinstance(data, dict) else None
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
    """A number.  None: NaN and infinities, which Prometheus writes as texts, and null."""
    if value is None or str(value) in ("NaN", "+Inf", "-Inf"):
        return None
    return Fraction(str(value))
