"""Descriptions of result columns.  Each is declared next to the field that holds its value.

Everything else is derived from them: column types in Parquet and CSV, printed tables, rows and comparisons of sweeps,
reports, and the output of `ckptsim schema --results`.

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

# ---- Units. The suffix of a column's name is its unit, which determines how values are parsed and printed.


class Unit(NamedTuple):
    """A unit of result columns."""

    ending: str  # suffix of column names
    symbol: str  # "" for numbers, shares and texts
    parse: Callable[[object], float]  # text of the user -> number in this unit
    text: Callable[[float], str]  # number in this unit -> rounded text
    scales: tuple[tuple[str, float], ...]  # (suffix, size) of units for axis labels, in ascending order


def _share(text: object) -> float:
    """Parse a share, which may be negative."""
    plain = str(text).strip()
    return -float(units.parse_share(plain[1:])) if plain.startswith("-") else float(units.parse_share(plain))


_TIMES = ((" ms", 1.0), (" s", 1e3), (" min", 6e4), (" h", 3.6e6))
_SIZES = ((" B", 1.0), (" kB", 1e3), (" MB", 1e6), (" GB", 1e9), (" TB", 1e12))
_RATES = (("/s", 1.0), ("k/s", 1e3), ("M/s", 1e6), ("G/s", 1e9))
_ROUNDING_ERROR = 5e-7
"""Shares below this are rounding errors and printed as 0 %."""
UNITS = (
    Unit("_ms", "ms", lambda text: units.parse_duration(text) / 1e6, ms_text, _TIMES),
    Unit(
        "_bytes_per_second",
        "bytes/s",
        lambda text: float(units.parse_byte_rate(text)),
        lambda value: f"{bytes_text(value)}/s",
        tuple((f"{ending}/s", size) for ending, size in _SIZES),
    ),
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
    """Format a value of a column, with a sign if it is negative.  NaN and infinity are "-"."""
    if math.isnan(value) or math.isinf(value):
        return "-"
    unit = unit_of(column)
    if value >= 0 or unit.ending == "_change":
        return unit.text(value)
    return magnitude if (magnitude := unit.text(-value)) == unit.text(0.0) else f"-{magnitude}"  # zero has no sign


def spread_text(column: str, half_width: float) -> str:
    """Return `` ± 400 ms``, or "" for an infinite half width."""
    return f" ± {text(column, half_width).lstrip('+±')}" if math.isfinite(half_width) else ""


def text_beside(column: str, value: float, bound: float) -> str:
    """Format a value with enough digits to differ from a bound: ``text_beside("downtime_ms", 1041, 1000) == "1.04 s"``."""
    scale = {"ms": 1.0, "s": 1e3}.get(unit_of(column).symbol)
    return text(column, value) if scale is None else apart_text(scale * value, scale * bound, ms_text)


def unit_of_ticks(column: str, most: float) -> tuple[str, float]:
    """Return (suffix, size) of the unit for an axis up to `most`: ``unit_of_ticks("downtime_ms", 90_000) == (" s", 1000.0)``."""
    scales = unit_of(column).scales
    return next(((ending, size) for ending, size in reversed(scales) if most >= 2 * size), scales[0])


def unit_of(column: str) -> Unit:
    """Return the unit of a column by the suffix of its name."""
    return next((unit for unit in UNITS if column.endswith(unit.ending)), _NUMBER)


def units_of(columns: Iterable[str]) -> dict[str, str]:
    """Return {column: symbol of its unit} for columns with a unit."""
    return {column: symbol for column in columns if (symbol := unit_of(column).symbol)}


_ENDINGS = {"duration": ("_ms", 1e6), "size": ("_bytes", 1.0), "rate": ("_per_second", 1.0), "share": ("_share", 1.0)}
_ENDINGS |= {"byte rate": ("_bytes_per_second", 1.0), "number": ("", 1.0)}


def numbers_of(key: str, values: Iterable[str]) -> tuple[str, dict[str, float]] | None:
    """Return (column, {text: number}) of a key's values: ``("checkpoint.interval_ms", {"16 s": 16000.0})``.

    Returns None if they are not quantities of one kind.  Without a unit the column is the key.
    """
    numbers, endings = {}, set()
    for value in values:
        try:
            kind, number = units.parse_quantity(value)
        except units.UnitError:
            return None
        ending, scale = _ENDINGS[kind]
        endings.add(ending)
        numbers[value] = math.inf if number is None else float(number) / scale
    return (key + endings.pop(), numbers) if len(endings) == 1 else None


# ---- Populations: the rows that a statistic is computed from.
#
# Each numeric column has a population. Therefore a planned rescale never affects the cost of failures, and a savepoint
# never affects the percentiles of checkpoints. `tests/results/analysis/strategies/test_populations.py` checks every column.


class Population(StrEnum):
    """The rows that a statistic is computed from.  The values are shown to users."""

    CHECKPOINTS = "periodic and final checkpoints triggered after the warm-up, without first uploads and savepoints"
    COMPLETED = (
        "completed periodic and final checkpoints triggered after the warm-up, without first uploads and savepoints"
    )
    FIRST_UPLOADS = "first uploads"
    FAILURES = "restarts caused by a failure"
    PLANNED = "planned restarts: rescales, and jobs that start from a snapshot"
    RESTARTS = "all restarts"
    COMMITS = "commits whose checkpoint was triggered after the warm-up"
    AFTER_WARMUP = "the run after the warm-up"
    RUN = "the whole run"


# ---- Result columns.


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column in the results of a run, a strategy or a cell of a sweep."""

    meaning: str
    population: Population | None = None
    # Returns the value. Its argument, the source, depends on the dataclass of the field. A `Duration` may be a lower bound.
    compute: Callable[[Any], Any] | None = None
    title: str = ""  # text on axes and pages; if "", comparisons of two sides leave the column out
    heading: str = ""  # heading in printed tables; if "", the column is not printed
    after: str = ""  # column after which it is printed; if "", it is printed after the previous field
    # row of a printed table -> text; None for the value with its unit
    cell: Callable[[Any], str] | None = None
    text: Callable[[float], str] | None = None  # value -> text in printed tables; None for the text of the unit
    is_optional: bool = False  # not printed if it is missing or 0 for all strategies
    printed_with: str = ""  # if not "", it is printed only if this other column is not 0 in some row
    vertices: str = ""  # attribute of `StrategyRow` with the vertices that the heading contains
    quantile: float | None = None  # None if it is not a percentile
    counted_by: str = ""  # column with its sample size
    worse: Literal["more", "less", "neither"] = "more"  # direction in which a value is worse
    # the value is a lower bound until this has happened ("... within the run"); "" if it is always final
    ends: str = ""
    follows: str = ""  # other column: if that is a lower bound, this one is one, too
    # column with the number of measured events; if that is 0, there is nothing to measure
    of: Literal["restarts", "failures", "planned_restarts", "commits", "first_uploads", ""] = ""
    name: str = ""
    type: type = float

    @property
    def unit(self) -> str:
        """Return the symbol of its unit, or ""."""
        return unit_of(self.name).symbol

    @property
    def counts(self) -> str:
        """Return the noun for its sample, e.g. "checkpoints"."""
        return "checkpoints" if self.counted_by == "completed" else self.counted_by

    @property
    def smallest_sample(self) -> int:
        """Return the minimum sample size of a percentile, or 1 for other columns."""
        return 1 if self.quantile is None else smallest_sample(self.quantile)

    @property
    def description(self) -> str:
        """Return meaning and population."""
        return "; of ".join(filter(None, (self.meaning, self.population)))

    def has_sample(self, row: Mapping[str, Any]) -> bool:
        """Return True if its sample in this row is large enough."""
        return not self.counted_by or row[self.counted_by] >= self.smallest_sample

    def value_text(self, row: Mapping[str, Any]) -> str:
        """Return the value in a row as text with its unit, or MISSING if the sample is too small."""
        if not self.has_sample(row):
            return MISSING
        text = self.text or (unit_of(self.name).text if self.type is float else str)
        return text(row[self.name])

    def says_nothing(self, text: str) -> bool:
        """Return True if an optional column has no value, or 0, in a cell with this text."""
        return self.is_optional and text in (MISSING, unit_of(self.name).text(0.0))


def result_column(
    meaning: str, population: Population | None = None, compute: Callable[[Any], Any] | None = None, **options: Any
) -> Any:
    """Return a dataclass field that has a `ResultColumn` as metadata.  `options`: other fields of the column."""
    return field(metadata={"column": ResultColumn(meaning, population, compute, **options)})


def columns_of(kind: type, prefix: str = "", meaning: str = "", **changes: Any) -> dict[str, ResultColumn]:
    """Return {name: column} of a dataclass of results, in the order of its fields.

    `prefix`: prepended to names.  `meaning`: prepended to meanings.  `changes`: fields of the columns to replace.
    """
    hints, found = get_type_hints(kind), {}
    for item in fields(kind):
        if (column := item.metadata.get("column")) is not None:
            name = prefix + item.name
            described = {"name": name, "type": hints[item.name], "meaning": meaning + column.meaning}
            found[name] = replace(column, **described, **changes)
    return found


def compute_columns(kind: type, source: Any) -> tuple[dict[str, Any], list[str]]:
    """Compute the columns of a dataclass from `source`.

    Returns ({name: value}, names of the columns whose value is a lower bound).
    """
    values = {name: column.compute(source) for name, column in columns_of(kind).items() if column.compute is not None}
    bounds = [name for name, value in values.items() if isinstance(value, Duration) and value.is_bound]
    return {name: value.value if isinstance(value, Duration) else value for name, value in values.items()}, bounds


def in_printing_order(columns: Iterable[ResultColumn]) -> list[ResultColumn]:
    """Return the columns with a heading, in the order in which they are printed."""
    printed = [column for column in columns if column.heading]
    found = [column for column in printed if not column.after]
    for column in (column for column in printed if column.after):
        found.insert(1 + [before.name for before in found].index(column.after), column)
    return found
