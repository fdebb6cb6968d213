"""`expect:` of a scenario: a metric of the result tables against a bound.  An unknown metric is an error, never a pass.

A metric is ``<table>.<column>.<statistic>``, e.g.  ``checkpoints.end_to_end_duration.p99``; the statistics are p0 to
p100, mean, min, max, sum and count.  ``checkpoints.completed`` and ``checkpoints.failed`` count.  Rows before the
warm-up, checkpoints that did not complete and times that are -1 (did not happen) are left out; a statistic over nothing
meets no bound, but their number is 0.

A percentile of fewer rows than its smallest sample (`sim.model.quantities`) is unknown: it meets no bound either, and
that is said. Percentiles and means of `checkpoints` are of those after a first upload, as in the table of strategies;
min, max, sum and count are of all.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import pandas as pd

from sim.model.frozen import frozen
from sim.model.quantities import Condition, parse_condition, smallest_sample
from sim.model.schema.text import Reading
from sim.model.text import did_you_mean
from sim.model.units import UnitError
from sim.results.columns import TABLES, UNITS, unit_of
from sim.results.tables import first_uploads, is_periodic

if TYPE_CHECKING:
    from sim.runtime.result import Result

_PARSERS = {unit.symbol: unit.parse for unit in UNITS if unit.symbol} | {"share": unit_of("_share").parse}
"""Unit of a column of a table -> parser of a bound."""
_COUNTS = {"checkpoints.completed": "COMPLETED", "checkpoints.failed": "FAILED"}
_AGGREGATES = ("mean", "min", "max", "sum", "count")
_OF_ALL = ("min", "max", "sum", "count")
"""Statistics over all checkpoints, including first uploads."""


class ExpectationError(ValueError):
    """Raised for a metric or condition that cannot be evaluated."""


class Value(NamedTuple):
    """A measured value, and the number of rows behind it."""

    number: float  # NaN: unknown
    sample: int  # number of rows


@frozen
class Expectation:
    """One line of `expect:`: a metric and its bound."""

    metric: str
    condition: Condition
    table: str
    column: str  # "": count rows with a status
    statistic: str
    bound: float  # in the column's unit
    unit: str = ""

    @property
    def smallest_sample(self) -> int:
        return 1 if self.statistic in _AGGREGATES else smallest_sample(float(self.statistic[1:]) / 100)

    def value(self, results: Sequence[Result]) -> Value:
        """Return the value of one strategy over all its replications."""
        from sim.results.summary import warm_up

        warmup_ns = warm_up(results).ns
        rows = pd.concat([_rows(result, self.table, warmup_ns) for result in results])
        if self.table == "checkpoints":
            rows = rows[is_periodic(rows)]
        if self.metric in _COUNTS:
            return Value(float((rows["status"] == _COUNTS[self.metric]).sum()), len(rows))
        if self.table == "checkpoints":
            rows = rows[rows["status"] == "COMPLETED"]
            if self.statistic not in _OF_ALL:
                rows = rows[~rows["is_first_upload"]]
        values = rows[self.column].astype(float)
        values = values[values >= 0]
        if len(values) < self.smallest_sample and self.statistic != "count":
            return Value(math.nan, len(values))
        return Value(_statistic(values, self.statistic), len(values))

    def holds(self, value: Value) -> bool:
        return not math.isnan(value.number) and self.condition.holds(value.number, self.bound)

    def reached(self, value: Value) -> str:
        """Return ``it is 5.7 ms``, or why the value is unknown and what to do."""
        if not math.isnan(value.number):
            text = f"it is {value.number:.6g}{f' {self.unit}' if self.unit else ''}"
            flags = (flag for flag in TABLES.get(self.table, ()) if flag.name == self.column and flag.unit == "bool")
            return text + "".join(f" ({flag.name}: {flag.meaning})" for flag in flags)
        if not value.sample:
            return "it is unknown: nothing was measured"
        needed = f"{self.statistic} needs {self.smallest_sample} rows, there are {value.sample}"
        return f"it is unknown: {needed}; run longer, raise run.replications, or expect something of max"


def expectation(metric: str, condition: str) -> Expectation:
    """Read one line of `expect:`."""
    if (parsed := parse_condition(condition)) is None:
        raise ExpectationError(f"'{condition}' is not a condition: write '< 60 s'")
    if metric in _COUNTS:
        return Expectation(metric, parsed, "checkpoints", "", "count", _bound(parsed.bound, ""))
    for count in _COUNTS:
        if metric.startswith(f"{count}."):
            raise ExpectationError(f"{count} is a number already: write {count}: '{condition}'")
    table, _, rest = metric.partition(".")
    column, _, statistic = rest.rpartition(".")
    if table not in TABLES:
        raise _unknown("table", table, TABLES)
    units = {
        row.name: "" if row.unit == "bool" else row.unit
        for row in TABLES[table]
        if row.name not in {"vertex", "status", "failure_message", "checkpoint_type"}
    }
    if column not in units:
        raise _unknown("column", column or rest, units)
    if statistic not in _AGGREGATES and not re.fullmatch(r"p(100|\d\d?(\.\d+)?)", statistic):
        raise _unknown("statistic", statistic, (*_AGGREGATES, "p50", "p99", "p99.9"))
    unit = "" if statistic == "count" else units[column]
    return Expectation(metric, parsed, table, column, statistic, _bound(parsed.bound, unit), unit)


def check(expect: Sequence[tuple[str, str]], reading: Reading) -> list[Expectation]:
    """Return all expectations of a scenario.  Mistakes are added to `reading`, which knows their lines."""
    found = []
    for metric, condition in expect:
        try:
            found.append(expectation(metric, condition))
        except ExpectationError as error:
            reading.wrong(("expect", metric), str(error))
    return found


def _bound(text: str, unit: str) -> float:
    """Return the quantity in the unit of the column."""
    try:
        return _PARSERS.get(unit, unit_of(unit).parse)(text)
    except UnitError as error:
        raise ExpectationError(str(error)) from None


def _rows(result: Result, table: str, warmup_ns: int) -> pd.DataFrame:
    """Return the rows after the warm-up; for checkpoints, with a column that marks first uploads."""
    warmup_ms, rows = warmup_ns / 1e6, result.tables[table]
    if table == "checkpoints":
        marked = rows.assign(is_first_upload=first_uploads(rows))
        return marked[rows["trigger_timestamp"] >= warmup_ms]
    if table == "series":
        return rows[rows["time"] > warmup_ms / 1e3]
    if table == "commits":
        return rows[rows["commit_timestamp"] >= warmup_ms]
    if table == "subtasks":
        counted = result.checkpoints.loc[result.checkpoints["trigger_timestamp"] >= warmup_ms, "id"]
        return rows[rows["id"].isin(counted)]
    return rows


def _statistic(values: pd.Series[float], statistic: str) -> float:
    if statistic == "count":
        return float(len(values))
    if values.empty:
        return math.nan
    return float(values.quantile(float(statistic[1:]) / 100) if statistic not in _AGGREGATES else values.agg(statistic))


def _unknown(part: str, word: str, words: Iterable[str]) -> ExpectationError:
    hint = did_you_mean(word, words) or f" (known: {', '.join(words)})"
    return ExpectationError(f"unknown {part} '{word}'{hint}")
