"""Offsets of a topic through time, as a cron job writes them: how far each partition is.  Their growth is what producers send."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from sim.series.headers import TIMES, first_of
from sim.series.metrics import Kind, Metric
from sim.series.monitoring.samples import MetricSamples, MonitoringError, MonitoringTable, table
from sim.series.times import EXPECTED, clock_of
from sim.stand_ins import is_known
from sim.units import UnitError, parse_number

TOPICS, PARTITIONS = ("topic",), ("partition",)
OFFSETS = ("log_end_offset", "end_offset", "latest_offset", "offset")
"""The names of the columns, the surest first: those of kafka-consumer-groups and kafka-get-offsets."""


def are_offsets(columns: Sequence[str]) -> bool:
    """Whether a table has offsets of partitions through time."""
    return all(first_of(names, columns) for names in (TIMES, PARTITIONS, OFFSETS))


def table_of_offsets(columns: Sequence[str], rows: Iterable[tuple[int, Mapping[str, str | None]]]) -> MonitoringTable:
    """Records per second by topic.  MonitoringError: a cell is no time or no offset; it names the line."""
    time, partition, offset, topic = (first_of(names, columns) or "" for names in (TIMES, PARTITIONS, OFFSETS, TOPICS))
    lines = list(rows)
    clock = clock_of(time, (row[time] or "" for _, row in lines))
    points = dict[tuple[str, str], list[tuple[Fraction, Fraction | None]]]()
    for line, row in lines:
        if (at := clock.seconds(row[time] or "")) is None:
            raise MonitoringError(f"line {line}: '{row[time]}' is no time: expected {EXPECTED}")
        try:
            value = None if not (row[offset] or "").strip("- ") else parse_number(row[offset] or "")
        except UnitError:
            raise MonitoringError(f"line {line}: '{row[offset]}' is no offset") from None
        value = value if is_known(value) else None  # -1: nothing was committed yet
        points.setdefault(((row.get(topic) or "") if topic else "", row[partition] or ""), []).append((at, value))
    named, counter = {"__name__": offset}, Metric(Kind.COUNTER, is_listed=True)
    return table([MetricSamples(named | {"topic": name}, sorted(found), counter) for (name, _), found in points.items()])
