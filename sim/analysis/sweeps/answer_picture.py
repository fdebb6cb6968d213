"""The picture of a sweep's answer: measured values over settings, with confidence and limits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from sim import units
from sim.analysis.strategies.picture import COLOURS
from sim.analysis.sweeps.answers import Limit, means
from sim.analysis.sweeps.axis_ticks import set_ticks
from sim.quantities.results import in_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARKERS = "os^Dv<>P"
_LABEL = 28  # characters of a label's line
_DODGE = 0.02  # of the axis; lines are shifted so that bars of confidence don't hide each other


class _Scale(NamedTuple):
    """The horizontal axis: a setting."""

    name: str
    at: int  # index of the setting
    places: dict[str, float]  # value as written -> position on the axis
    is_log: bool
    is_quantity: bool

    def place(self, key: Sequence[str]) -> float:
        return self.places[key[self.at]]

    def without(self, key: Sequence[str]) -> tuple[str, ...]:
        """The values of the other settings."""
        return (*key[: self.at], *key[self.at + 1 :])

    def moved(self, place: float, i: int, count: int) -> float:
        share = _DODGE * (i - (count - 1) / 2)
        low, high = min(self.places.values()), max(self.places.values())
        return place * (high / low) ** share if self.is_log else place + share * ((high - low) or 1)


def answer_picture(
    groups: Mapping[str, pd.DataFrame], settings: Sequence[str], columns: Sequence[str], limits: Sequence[Limit] = (), title: str = ""
) -> Figure:
    """Panels: a row per column, a column per group of rows.

    The setting with most quantities (``10 s``, ``1 min``) is the horizontal axis; every combination of the others is a line.
    `groups`: name -> rows of a sweep, as for `answers.means`.  Bars are 95 % confidence intervals, dashed lines limits; an arrow
    upwards means more than this: not everything had ended.
    """
    from matplotlib.figure import Figure

    tables = {name: means(rows, settings, columns) for name, rows in groups.items()}
    keys = list(dict.fromkeys(key for table in tables.values() for key in _keys(table)))
    scale = _scale(settings, keys)
    lines = list(dict.fromkeys(scale.without(key) for key in keys))
    size = (4.5 + 4.5 * len(tables), 1.2 + 2.6 * len(columns))
    figure = Figure(figsize=size, dpi=120, layout="constrained")
    panels = figure.subplots(len(columns), len(tables), sharex=True, sharey="row", squeeze=False)
    for column, row in zip(columns, panels, strict=True):
        bounds = [limit for limit in limits if limit.column == column]
        for (name, table), axes in zip(tables.items(), row, strict=True):
            for i in range(len(lines)):
                _line(axes, table, column, scale, i, lines)
            _dressed(axes, column if axes is row[0] else "", bounds)
            axes.set_title(name if column == columns[0] else "", fontsize="medium")
        set_ticks(row[0].yaxis, column)  # the panels of a row share it
    for axes in panels[-1]:
        _ticks(axes, scale)
    if len(lines) > 1:
        names = ", ".join(scale.without(settings))
        panels[0, -1].legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize="small", title=names)
    figure.suptitle(title, x=0.01, ha="left", fontsize="medium", wrap=True)
    return figure


def _keys(table: pd.DataFrame) -> list[tuple[str, ...]]:
    """The values of the settings, row by row."""
    return [tuple(map(str, index if isinstance(index, tuple) else (index,))) for index in table.index]


def _line(axes: Axes, table: pd.DataFrame, column: str, scale: _Scale, i: int, lines: Sequence[tuple[str, ...]]) -> None:
    """Draw a line: the i-th combination of the settings that are not on the axis."""
    keys = _keys(table)
    chosen = sorted((k for k, key in enumerate(keys) if scale.without(key) == lines[i]), key=lambda k: scale.place(keys[k]))
    places = [scale.moved(scale.place(keys[k]), i, len(lines)) for k in chosen]
    colour, values = COLOURS[i % len(COLOURS)], table[column].iloc[chosen]
    spread = table[f"{column} ±"].iloc[chosen].replace(np.inf, np.nan).fillna(0.0)
    axes.errorbar(
        places, values, yerr=spread, label=", ".join(lines[i]), capsize=3,
        ms=5, lw=1.2, color=colour, marker=_MARKERS[(i + i // len(COLOURS)) % len(_MARKERS)],
        ls="-" if scale.is_quantity else "",
    )  # fmt: skip
    for place, value, unfinished in zip(places, values, table[f"{column} unfinished"].iloc[chosen], strict=True):
        if unfinished:  # the mean is more than this
            axes.annotate("", (place, value), (0, 14), textcoords="offset points", arrowprops={"arrowstyle": "<-", "color": colour})


def _scale(settings: Sequence[str], rows: Sequence[tuple[str, ...]]) -> _Scale:
    """The axis: the setting with most values that are quantities of a kind; else the first setting, value by value."""
    values = {name: list(dict.fromkeys(row[i] for row in rows)) for i, name in enumerate(settings)}
    quantities = {name: places for name in settings if (places := _places(values[name]))}
    if not quantities:
        places = {value: float(i) for i, value in enumerate(values[settings[0]])}
        return _Scale(settings[0], 0, places, is_log=False, is_quantity=False)
    name = max(quantities, key=lambda name: len(quantities[name]))
    places = quantities[name]
    is_log = min(places.values()) > 0 and max(places.values()) > 5 * min(places.values())
    return _Scale(name, settings.index(name), places, is_log, is_quantity=True)


def _places(values: Sequence[str]) -> dict[str, float]:
    """Value -> position; empty: fewer than two quantities of a kind."""
    try:
        read = {value: units.parse_quantity(value) for value in values}
    except units.UnitError:
        return {}
    if len({kind for kind, _ in read.values()}) > 1 or len(values) < 2 or any(number is None for _, number in read.values()):
        return {}
    return {value: float(number) for value, (_, number) in read.items() if number is not None}


def _dressed(axes: Axes, column: str, limits: Sequence[Limit]) -> None:
    for limit in limits:
        bound = limit.at_most if math.isfinite(limit.at_most) else limit.at_least
        axes.axhline(bound, color="#555555", ls="--", lw=1)
    axes.set_ylabel("\n".join(wrap(in_words(column), _LABEL)) if column else "")
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
