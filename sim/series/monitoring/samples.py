"""Samples of metrics through time, and the table that they make: a column of rates per source."""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from statistics import median
from typing import NamedTuple

from sim.foreign import Readable
from sim.series.headers import other_than_records
from sim.units import format_duration

TIME = "time"
SOURCE = re.compile("Source:[ _]+")
"""The beginning of what Flink calls a task whose first operator is a source; its reporter for Prometheus writes ``_`` for a space."""


class MonitoringError(Readable, ValueError):
    """The answer holds no rates.  One line."""


class MetricSamples(NamedTuple):
    """One time series."""

    labels: Mapping[str, str]
    points: Sequence[tuple[Fraction, Fraction | None]]  # (time [s], value), by time; None: not a number
    is_counter: bool = False  # it grows from the start on: its rate is what matters


class MonitoringTable(NamedTuple):
    """A table of rates, one column per source."""

    columns: list[str]  # `time` [epoch s], then one per source
    rows: list[list[str]]  # texts as in a CSV file; a blank is a missing observation
    notes: tuple[str, ...]  # how it was made


def table(series: Sequence[MetricSamples]) -> MonitoringTable:
    """Rates by source: series of one source are summed, counters are differentiated.  MonitoringError: there are none."""
    single = [member._replace(points=list(dict(member.points).items())) for member in series if member.points]
    chosen, notes = _sources(single)
    if not chosen:
        raise MonitoringError("holds no samples: is the time range of the query right?")
    if repeated := sum(len(member.points) for member in series) - sum(len(member.points) for member in single):
        notes.append(f"{repeated} more samples have a time of another one: the last of each counts")
    rates, resets = dict[str, list[MetricSamples]](), 0
    for name, members in chosen.items():
        rates[name] = []
        for member in members:
            points, falls = _per_second(member.points) if member.is_counter else (list(member.points), 0)
            rates[name].append(member._replace(points=points))
            resets += falls
    grid, step, apart = _grid([member for members in rates.values() for member in members])
    columns = {name: _summed(members, grid, step) for name, members in rates.items()}
    if any(member.is_counter for members in chosen.values() for member in members):
        notes.append("counters are turned into rates" + (f"; {resets} fell back to 0 and went on from there" if resets else ""))
    if apart:
        notes.append(f"samples are up to {_duration(apart)} apart in time and are put together")
    if gaps := [later - earlier for earlier, later in itertools.pairwise(grid) if later - earlier > step * 3 / 2]:
        notes.append(f"{len(gaps)} gaps, {_duration(sum(gaps, Fraction()))} in all: the rate before each goes on")
    rows = [[_text(at), *(_text(column[i]) for column in columns.values())] for i, at in enumerate(grid)]
    return MonitoringTable([TIME, *columns], rows, tuple(notes))


class _Metric(NamedTuple):
    """Series that may be summed: of one metric and one operator."""

    name: str  # empty: a query without a name
    operator: str  # of the chain; empty: it is of the whole task


def _sources(series: Sequence[MetricSamples]) -> tuple[dict[str, list[MetricSamples]], list[str]]:
    """(name of a source -> its series, remarks).  Where labels tell sources from other tasks, the others are left out."""
    usable = [_typed(member) for member in series if not _why_not_records(member)]
    if series and not usable:
        raise MonitoringError(f"{_why_not_records(series[0])}: query numRecordsInPerSecond or numRecordsIn of a source")
    tasks = {_task(member.labels) for member in usable}
    sources = {task for task in tasks if SOURCE.match(task)}
    notes = [f"left out, no sources: {', '.join(sorted(filter(None, tasks - sources)))}"] if sources and tasks - sources else []
    found = dict[str, list[MetricSamples]]()
    for task in sorted(sources or tasks):
        metrics = dict[_Metric, list[MetricSamples]]()
        for member in usable:
            if _task(member.labels) == task:
                metrics.setdefault(_Metric(_name(member.labels), member.labels.get("operator_name", "")), []).append(member)
        best = min(metrics, key=lambda metric: (not _moves(metrics[metric]), *_preference(metric)))
        name = SOURCE.sub("", task) or best.name or "rate"
        found[name] = metrics[best]
        of = f" of {best.operator}" if best.operator else ""
        several = f", {len(metrics[best])} series summed" if len(metrics[best]) > 1 else ""
        notes.append(f"'{name}' is {best.name or 'a query without a name'}{of}{several}")
    return found, notes


def _task(labels: Mapping[str, str]) -> str:
    """What a series belongs to: a task of Flink, a topic of Kafka; empty: its labels do not tell."""
    return next((labels[name] for name in ("task_name", "task", "operator_name", "topic") if labels.get(name)), "")


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


def _typed(series: MetricSamples) -> MetricSamples:
    """The series, as a counter if it is one by its name."""
    return series._replace(is_counter=True) if _is_counter(series) else series


def _is_counter(series: MetricSamples) -> bool:
    return series.is_counter or _name(series.labels).endswith(("numRecordsIn", "numRecordsOut", "_total", "_offset", "_count"))


def _why_not_records(series: MetricSamples) -> str:
    """What it is by its name, if it is no number of records; empty: it may be."""
    name = _name(series.labels)
    if _is_counter(series):
        return f"'{name}' counts no records" if any(word in name.lower() for word in ("bytes", "seconds")) else ""
    return f"'{name}' is {other} by its name" if (other := other_than_records(name)) else ""


def _per_second(points: Sequence[tuple[Fraction, Fraction | None]]) -> tuple[list[tuple[Fraction, Fraction | None]], int]:
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
