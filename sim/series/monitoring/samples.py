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
from sim.series.metrics import Kind, Metric, taken_as
from sim.units import format_duration

TIME = "time"
COUNTED, TAKEN = "counters are turned into rates", "taken as records per second"
"""Notes about what the values are."""
SOURCE = re.compile("Source:[ _]+")
"""The beginning of what Flink calls a task whose first operator is a source; its reporter for Prometheus writes ``_`` for a space."""


class MonitoringError(Readable, ValueError):
    """The answer holds no rates.  One line."""


class NotRecordsError(MonitoringError):
    """What the answer holds is no number of records, by its names.  A user may know better."""

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
    notes = [f"left out, no sources: {', '.join(sorted(filter(None, tasks - sources)))}"] if sources and tasks - sources else []
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
    return next((labels[name] for name in ("task_name", "task", "operator_name", "topic", "topic_name") if labels.get(name)), "")


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
    return next((labels[name] for name in ("operator_name", "consumergroup", "group", "group_id") if labels.get(name)), "")


def _known(series: MetricSamples, *, as_written: bool) -> MetricSamples:
    """The series with what its values are."""
    if as_written:
        return series._replace(metric=Metric(Kind.RATE, is_listed=True))
    return series if series.metric else series._replace(metric=taken_as(_name(series.labels), (value for _, value in series.points)))


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


def per_second(points: Sequence[tuple[Fraction, Fraction | None]]) -> tuple[list[tuple[Fraction, Fraction | None]], int]:
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
