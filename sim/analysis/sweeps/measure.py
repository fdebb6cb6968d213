"""Values of result columns as texts: the end of a column's name is its unit, which decides how they are read and written."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from sim import units
from sim.analysis.number_texts import apart_text, bytes_text, change_text, count_text, ms_text, per_second_text
from sim.analysis.sweeps.answers import Limit
from sim.condition import parse_condition
from sim.foreign import Readable
from sim.quantities.prices import cost_text
from sim.quantities.results import unit


class MeasureError(Readable, ValueError):
    """A bound that does not fit its column; one line."""


class _Unit(NamedTuple):
    """A unit of result columns, with its parser and its texts."""

    ending: str
    parse: Callable[[object], float]
    text: Callable[[float], str]
    scales: tuple[tuple[str, float], ...]  # ending of a number and size, for each unit that an axis may have, small ones first


def _share(text: object) -> float:
    """A share, also a negative one: a change may be a loss."""
    plain = str(text).strip()
    return -float(units.parse_share(plain[1:])) if plain.startswith("-") else float(units.parse_share(plain))


_TIMES = ((" ms", 1.0), (" s", 1e3), (" min", 6e4), (" h", 3.6e6))
_SIZES = ((" B", 1.0), (" kB", 1e3), (" MB", 1e6), (" GB", 1e9), (" TB", 1e12))
_RATES = (("/s", 1.0), ("k/s", 1e3), ("M/s", 1e6), ("G/s", 1e9))
_NOTHING = 5e-7
"""Smaller shares are rounding errors of sums."""
_UNITS = (
    _Unit("_ms", lambda text: units.parse_duration(text) / 1e6, ms_text, _TIMES),
    _Unit("_per_second", lambda text: float(units.parse_rate(text) or math.inf), per_second_text, _RATES),
    _Unit(
        "_s",
        lambda text: units.parse_duration(text) / 1e9,
        lambda value: ms_text(1e3 * value),
        tuple((ending, ms / 1e3) for ending, ms in _TIMES),
    ),
    _Unit(
        "_bytes_per_hour", lambda text: float(units.parse_size(text)), lambda value: f"{bytes_text(value)}/h",
        tuple((f"{ending}/h", size) for ending, size in _SIZES),
    ),
    _Unit(
        "_per_hour", lambda text: float(units.parse_number(text)), lambda value: f"{count_text(value)}/h",
        (("/h", 1.0), ("k/h", 1e3), ("M/h", 1e6)),
    ),
    _Unit("_per_month", lambda text: float(units.parse_number(text)), cost_text, ((" a month", 1.0),)),
    _Unit("_bytes", lambda text: float(units.parse_size(text)), bytes_text, _SIZES),
    _Unit("_share", _share, lambda value: f"{100 * value:.3g} %" if value >= _NOTHING else "0 %", ((" %", 0.01),)),
    _Unit("_change", _share, change_text, ((" %", 0.01),)),
)  # fmt: skip
_NUMBER = _Unit("", lambda text: float(units.parse_number(text)), count_text, (("", 1.0), ("k", 1e3), ("M", 1e6)))


def text(column: str, value: float) -> str:
    """A value as text; a difference keeps its sign."""
    if math.isnan(value) or math.isinf(value):
        return "-"
    unit = _of(column)
    if value >= 0 or unit.ending == "_change":
        return unit.text(value)
    return magnitude if (magnitude := unit.text(-value)) == unit.text(0.0) else f"-{magnitude}"  # zero has no sign


def spread_text(column: str, half_width: float) -> str:
    """`` ± 400 ms``; empty: there is no interval."""
    return f" ± {text(column, half_width).lstrip('+±')}" if math.isfinite(half_width) else ""


def text_beside(column: str, value: float, bound: float) -> str:
    """A duration with as many digits as tell it from a bound: ``text_beside("downtime_ms", 1041, 1000) == "1.04 s"``."""
    scale = {"ms": 1.0, "s": 1e3}.get(unit(column))
    return text(column, value) if scale is None else apart_text(scale * value, scale * bound, ms_text)


def unit_of_ticks(column: str, most: float) -> tuple[str, float]:
    """Ending and size of the unit for an axis that ends at `most`: ``unit_of_ticks("downtime_ms", 90_000) == (" s", 1000.0)``."""
    scales = _of(column).scales
    return next(((ending, size) for ending, size in reversed(scales) if most >= 2 * size), scales[0])


def limit(column: str, condition: str) -> Limit:
    """``limit("end_to_end_p99_ms", "< 60 s")``; for a mean, < and <= are the same."""
    parsed = parse_condition(condition)
    if parsed is None or parsed.comparison in ("==", "!="):
        raise MeasureError(f"'{condition}' is no condition: write '< 60 s' or '> 10'")
    try:
        bound = _of(column).parse(parsed.bound)
    except units.UnitError as error:
        raise MeasureError(str(error)) from None
    return Limit(column, at_most=bound) if parsed.comparison.startswith("<") else Limit(column, at_least=bound)


def limit_text(limit: Limit) -> str:
    """``end_to_end_p99_ms at most 60 s``."""
    upper = math.isfinite(limit.at_most)
    return f"{limit.column} {'at most' if upper else 'at least'} {text(limit.column, limit.at_most if upper else limit.at_least)}"


def _of(column: str) -> _Unit:
    return next((unit for unit in _UNITS if column.endswith(unit.ending)), _NUMBER)
