"""Columns of results: one record each, next to the field that holds the value.

Derived from the records: types of Parquet and CSV, printed tables, rows and comparisons of sweeps, reports, and the
documentation of `ckptsim schema --results`.

    Summary.sync_ms: float = result_column("synchronous part, ...", Population.COMPLETED, lambda run: ..., heading="sync")
        name, type                   meaning                 rows that count       value                printed as
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any, Literal, NamedTuple, get_type_hints

from sim.model import units
from sim.model.quantities import cost_text, smallest_sample
from sim.results.estimates import Duration
from sim.results.formats import MISSING, apart_text, bytes_text, change_text, count_text, ms_text, per_second_text

# ---- Units: the end of a column's name is its unit, which decides how values are read and written.


class Unit(NamedTuple):
    """A unit of result columns, with its parser and its texts."""

    ending: str  # of a column's name
    symbol: str  # empty: a number, a share or a word
    parse: Callable[[object], float]
    text: Callable[[float], str]
    # ending of a number and size, for each unit that an axis may have, small ones first
    scales: tuple[tuple[str, float], ...]


def _share(text: object) -> float:
    """A share, also a negative one: a change may be a loss."""
    plain = str(text).strip()
    return -float(units.parse_share(plain[1:])) if plain.startswith("-") else float(units.parse_share(plain))


_TIMES = ((" ms", 1.0), (" s", 1e3), (" min", 6e4), (" h", 3.6e6))
_SIZES = ((" B", 1.0), (" kB", 1e3), (" MB", 1e6), (" GB", 1e9), (" TB", 1e12))
_RATES = (("/s", 1.0), ("k/s", 1e3), ("M/s", 1e6), ("G/s", 1e9))
_ROUNDING_ERROR = 5e-7
"""Smaller shares are rounding errors of sums."""
UNITS = (
    Unit("_ms", "ms", lambda text: units.parse_duration(text) / 1e6, ms_text, _TIMES),
    Unit("_per_second", "records/s", lambda text: float(units.parse_rate(text) or math.inf), per_second_text, _RATES),
    Unit(
        "_s",
        "s",
        lambda text: units.parse_duration(text) / 1e9,
        lambda value: ms_text(1e3 * value),
        tuple((ending, ms / 1e3) for ending, ms in _TIMES),
    ),
    Unit(
        "_bytes_per_hour",
        "bytes/h",
        lambda text: float(units.parse_size(text)),
        lambda value: f"{bytes_text(value)}/h",
        tuple((f"{ending}/h", size) for ending, size in _SIZES),
    ),
    Unit(
        "_per_hour",
        "per hour",
        lambda text: float(units.parse_number(text)),
        lambda value: f"{count_text(value)}/h",
        (("/h", 1.0), ("k/h", 1e3), ("M/h", 1e6)),
    ),
    Unit("_per_month", "per month", lambda text: float(units.parse_number(text)), cost_text, ((" a month", 1.0),)),
    Unit("_bytes", "bytes", lambda text: float(units.parse_size(text)), bytes_text, _SIZES),
    Unit(
        "_share",
        "",
        _share,
        lambda value: f"{100 * value:.3g} %" if value >= _ROUNDING_ERROR else "0 %",
        ((" %", 0.01),),
    ),
    Unit("_change", "", _share, change_text, ((" %", 0.01),)),
)
_NUMBER = Unit("", "", lambda text: float(units.parse_number(text)), count_text, (("", 1.0), ("k", 1e3), ("M", 1e6)))


def text(column: str, value: float) -> str:
    """A value as text; a difference keeps its sign."""
    if math.isnan(value) or math.isinf(value):
        return "-"
    own = unit_of(column)
    if value >= 0 or own.ending == "_change":
        return own.text(value)
    return magnitude if (magnitude := own.text(-value)) == own.text(0.0) else f"-{magnitude}"  # zero has no sign


def spread_text(column: str, half_width: float) -> str:
    """`` ± 400 ms``; empty: there is no interval."""
    return f" ± {text(column, half_width).lstrip('+±')}" if math.isfinite(half_width) else ""


def text_beside(column: str, value: float, bound: float) -> str:
    """A duration with as many digits as tell it from a bound: ``text_beside("downtime_ms", 1041, 1000) == "1.04 s"``."""
    scale = {"ms": 1.0, "s": 1e3}.get(unit_of(column).symbol)
    return text(column, value) if scale is None else apart_text(scale * value, scale * bound, ms_text)


def unit_of_ticks(column: str, most: float) -> tuple[str, float]:
    """Ending and size of the unit for an axis that ends at `most`: ``unit_of_ticks("downtime_ms", 90_000) == (" s", 1000.0)``."""
    scales = unit_of(column).scales
    return next(((ending, size) for ending, size in reversed(scales) if most >= 2 * size), scales[0])


def unit_of(column: str) -> Unit:
    """The unit of a column, from the end of its name."""
    return next((unit for unit in UNITS if column.endswith(unit.ending)), _NUMBER)


# ---- Populations that statistics of a run are computed over.
#
# Each column of numbers names its population, so a planned rescale never changes what a failure is said to cost, and a
# savepoint never changes the percentiles of checkpoints.  `tests/results/analysis/strategies/test_populations.py` holds
# every column to its population.


class Population(StrEnum):
    """The rows that a statistic is computed over, in words."""

    CHECKPOINTS = "periodic and final checkpoints triggered after the warm-up, without first uploads and savepoints"
    COMPLETED = (
        "completed periodic and final checkpoints triggered after the warm-up, without first uploads and savepoints"
    )
    FIRST_UPLOADS = "first uploads"
    FAILURES = "restarts caused by a failure"
    PLANNED = "planned restarts: rescales, and jobs that begin from a snapshot"
    RESTARTS = "all restarts"
    COMMITS = "commits whose checkpoint was triggered after the warm-up"
    AFTER_WARMUP = "the run after the warm-up"
    RUN = "the whole run"


# ---- A column of results: one record, from which all tables, comparisons and pages are derived.


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column of results of a run, a strategy or a cell."""

    meaning: str
    population: Population | None = None
    # from what the class of its field is computed from; a `Duration` may be a bound
    compute: Callable[[Any], Any] | None = None
    title: str = ""  # in words, for axes and pages; empty: comparisons of two sides leave it out
    heading: str = ""  # in a terminal; empty: it is not printed
    after: str = ""  # the column after which it is printed; empty: the one before it
    cell: Callable[[Any], str] | None = None  # its text in a row of a printed table; None: value and unit
    text: Callable[[float], str] | None = None  # of a value, in a printed table; None: with its unit
    is_optional: bool = False  # it is not printed where it says nothing of any strategy
    printed_with: str = ""  # it is printed where that column is not 0 in some row
    vertices: str = ""  # its heading names these vertices of a `StrategyRow`
    quantile: float | None = None  # None: it is no percentile
    counted_by: str = ""  # the column with the size of its sample
    worse: Literal["more", "less", "neither"] = "more"
    # what must happen for its value to be known; until then it is a bound; empty: it is of the run as it was
    ends: str = ""
    follows: str = ""  # measured on completed checkpoints: a bound whenever that column is one
    # where there was none of these there was nothing to measure
    of: Literal["restarts", "failures", "planned_restarts", "commits", "first_uploads", ""] = ""
    name: str = ""
    type: type = float

    @property
    def unit(self) -> str:
        return unit_of(self.name).symbol

    @property
    def counts(self) -> str:
        """The unit of its sample, in words."""
        return "checkpoints" if self.counted_by == "completed" else self.counted_by

    @property
    def smallest_sample(self) -> int:
        return 1 if self.quantile is None else smallest_sample(self.quantile)

    @property
    def may_be_bound(self) -> bool:
        return bool(self.ends or self.follows)

    @property
    def description(self) -> str:
        """Meaning and population."""
        return "; of ".join(filter(None, (self.meaning, self.population)))

    def has_sample(self, row: Mapping[str, Any]) -> bool:
        """Whether its value in this row is computed over its smallest sample."""
        return not self.counted_by or row[self.counted_by] >= self.smallest_sample

    def value_text(self, row: Mapping[str, Any]) -> str:
        """Its value in a row of a printed table; hidden without its sample."""
        if not self.has_sample(row):
            return MISSING
        text = self.text or (unit_of(self.name).text if self.type is float else str)
        return text(row[self.name])

    def says_nothing(self, text: str) -> bool:
        return self.is_optional and text in (MISSING, unit_of(self.name).text(0.0))


def result_column(
    meaning: str, population: Population | None = None, compute: Callable[[Any], Any] | None = None, **options: Any
) -> Any:
    """A field of a dataclass of results with its `ResultColumn`."""
    return field(metadata={"column": ResultColumn(meaning, population, compute, **options)})


def columns_of(kind: type, prefix: str = "", meaning: str = "", **changes: Any) -> dict[str, ResultColumn]:
    """Name -> column of a dataclass of results, in the order of its fields.  `prefix`: of names, `meaning`: of meanings."""
    hints, found = get_type_hints(kind), {}
    for own in fields(kind):
        if (record := own.metadata.get("column")) is not None:
            own_changes = {"name": prefix + own.name, "type": hints[own.name], "meaning": meaning + record.meaning}
            found[prefix + own.name] = replace(record, **own_changes, **changes)
    return found


def compute_columns(kind: type, source: Any) -> tuple[dict[str, Any], list[str]]:
    """(name -> value, names whose value is a bound) of the columns that are computed from `source`."""
    values = {name: own.compute(source) for name, own in columns_of(kind).items() if own.compute is not None}
    bounds = [name for name, value in values.items() if isinstance(value, Duration) and value.is_bound]
    return {name: value.value if isinstance(value, Duration) else value for name, value in values.items()}, bounds


def in_printing_order(columns: Iterable[ResultColumn]) -> list[ResultColumn]:
    """Those that have a heading, each after the column that it names."""
    own = [column for column in columns if column.heading]
    found = [column for column in own if not column.after]
    for column in (column for column in own if column.after):
        found.insert(1 + [before.name for before in found].index(column.after), column)
    return found
