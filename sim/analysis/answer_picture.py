"""The answer of a sweep in a picture: what was measured against what can be set, with confidence and limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import pandas as pd

from sim import units
from sim.analysis.answers import Limit, means
from sim.analysis.measure import text
from sim.analysis.picture import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["answer_picture"]

_MARKERS = "os^Dv<>P"
_DODGE = 0.02  # of the axis, between lines, so that bars of confidence do not hide each other


class _Scale(NamedTuple):
    """The horizontal axis: one of the settings."""

    name: str
    places: dict[str, float]  # value as written -> where it stands
    is_log: bool
    is_quantity: bool

    def moved(self, place: float, i: int, count: int) -> float:
        share = _DODGE * (i - (count - 1) / 2)
        low, high = min(self.places.values()), max(self.places.values())
        return place * (high / low) ** share if self.is_log else place + share * ((high - low) or 1)


def answer_picture(
    results: pd.DataFrame, settings: Sequence[str], columns: Sequence[str], limits: Sequence[Limit] = (), title: str = ""
) -> Figure:
    """One panel per column, the setting with most quantities (``10 s``, ``1 min``) on the horizontal axis, a line per value of the others.

    `results`: rows of a sweep as `answers.means` takes them.  Bars are 95 % confidence intervals, dashed lines limits.
    """
    from matplotlib.figure import Figure

    table = means(results, settings, columns)
    rows = [tuple(map(str, index if isinstance(index, tuple) else (index,))) for index in table.index]
    scale = _scale(settings, rows)
    at = settings.index(scale.name)
    lines = list(dict.fromkeys(_without(row, at) for row in rows))
    figure = Figure(figsize=(9, 1.2 + 2.6 * len(columns)), dpi=120, layout="constrained")
    panels = figure.subplots(len(columns), 1, sharex=True, squeeze=False)[:, 0]
    for panel, column in zip(panels, columns, strict=True):
        for i, line in enumerate(lines):
            chosen = [k for k, row in enumerate(rows) if _without(row, at) == line]
            chosen.sort(key=lambda k: scale.places[rows[k][at]])
            places = [scale.moved(scale.places[rows[k][at]], i, len(lines)) for k in chosen]
            style = {"color": COLOURS[i % len(COLOURS)], "marker": _MARKERS[i % len(_MARKERS)], "ls": "-" if scale.is_quantity else ""}
            values, spreads = table[column].iloc[chosen], table[f"{column} ±"].iloc[chosen].fillna(0.0)
            panel.errorbar(places, values, yerr=spreads, capsize=3, ms=5, lw=1.2, label=", ".join(line), **style)
        _dressed(panel, column, [limit for limit in limits if limit.column == column])
    _ticks(panels[-1], scale)
    if len(lines) > 1:
        panels[0].legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize="small", title=", ".join(_without(settings, at)))
    panels[0].set_title(title, loc="left", fontsize="medium", wrap=True)
    return figure


def _scale(settings: Sequence[str], rows: Sequence[tuple[str, ...]]) -> _Scale:
    """Of the settings whose values are all quantities of one kind the one with most of them; else the first, value by value."""
    values = {name: list(dict.fromkeys(row[i] for row in rows)) for i, name in enumerate(settings)}
    quantities = {name: places for name in settings if (places := _places(values[name]))}
    if not quantities:
        return _Scale(settings[0], {value: float(i) for i, value in enumerate(values[settings[0]])}, is_log=False, is_quantity=False)
    name = max(quantities, key=lambda name: len(quantities[name]))
    places = quantities[name]
    is_log = min(places.values()) > 0 and max(places.values()) > 5 * min(places.values())
    return _Scale(name, places, is_log, is_quantity=True)


def _places(values: Sequence[str]) -> dict[str, float]:
    """Empty: these are no quantities of one kind, or only one."""
    try:
        read = {value: units.parse_quantity(value) for value in values}
    except units.UnitError:
        return {}
    if len({kind for kind, _ in read.values()}) > 1 or len(values) < 2 or any(number is None for _, number in read.values()):
        return {}
    return {value: float(number) for value, (_, number) in read.items() if number is not None}


def _without(row: Sequence[str], at: int) -> tuple[str, ...]:
    return (*row[:at], *row[at + 1 :])


def _dressed(axes: Axes, column: str, limits: Sequence[Limit]) -> None:
    for limit in limits:
        bound = limit.at_most if math.isfinite(limit.at_most) else limit.at_least
        axes.axhline(bound, color="#555555", ls="--", lw=1)
    axes.set_ylabel(column)
    axes.yaxis.set_major_formatter(lambda value, _: text(column, value))
    axes.grid(visible=True, alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def _ticks(axes: Axes, scale: _Scale) -> None:
    from matplotlib.ticker import NullLocator

    if scale.is_log:
        axes.set_xscale("log")
        axes.xaxis.set_minor_locator(NullLocator())
    turned = sum(map(len, scale.places)) > 90
    axes.set_xticks(list(scale.places.values()), list(scale.places), rotation=30 if turned else 0, ha="right" if turned else "center")
    axes.set_xlabel(scale.name)
