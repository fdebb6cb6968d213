"""Metrics in the columns of a table, as Grafana exports a panel: a time, and a column per series.

"Time","{__name__=""flink_taskmanager_job_task_numRecordsIn"", subtask_index=""0""}","{... subtask_index=""1""}"
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from sim.series.headers import TIMES, cell_number, first_of
from sim.series.metrics import Kind, Metric, metric_of
from sim.series.monitoring.samples import MetricSamples, MonitoringError, MonitoringTable, table
from sim.series.times import EXPECTED, clock_of
from sim.units import UnitError, parse_number

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

    MonitoringError: a cell is no time or no number, and the line; or the columns are no loads.
    """
    time, *series = columns
    lines = list(rows)
    clock = clock_of(time, (row[time] or "" for _, row in lines), unit_s, zone)
    points: list[list[tuple[Fraction, Fraction | None]]] = [[] for _ in series]
    at: Fraction | None = None
    for line, row in lines:
        if (at := clock.seconds(row[time] or "", at)) is None:
            raise MonitoringError(f"line {line}: '{row[time]}' is no time: expected {EXPECTED}")
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
        raise MonitoringError(f"line {line}: '{text}' is no number") from None
    return cell_number(text)
