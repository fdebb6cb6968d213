"""The figures of a sweep: values with their intervals, two values against each other, and a value over two settings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sim.analysis.sweeps.answers import means
from sim.analysis.sweeps.effects import effects
from sim.analysis.sweeps.measure import text, unit_of_ticks
from sim.foreign import one_line
from sim.quantities.results import in_words
from sim.report.charts.chart import Chart, ChartAxis, Panel, chart

if TYPE_CHECKING:
    import pandas as pd

_MOST = 30
"""Settings that are drawn; more would stand on each other."""


def intervals(results: pd.DataFrame, settings: Sequence[str], columns: Sequence[str]) -> Chart | None:
    """A row per setting: mean and 95 % confidence interval; durations, sizes and counts never reach below zero.  None: no value."""
    table = means(results, list(settings), list(columns))[:_MOST]
    columns = [column for column in columns if table[column].notna().any()]
    if table.empty or not columns:
        return None
    names = [_label(index) for index in table.index]
    marks: list[dict[str, Any]] = []
    panels = []
    for number, column in enumerate(columns):
        middle, half = table[column].to_numpy(float), table[f"{column} ±"].replace(np.inf, np.nan).fillna(0.0).to_numpy(float)
        lower = middle - half if column.endswith("_change") else np.maximum(middle - half, 0.0)
        ending, size = unit_of_ticks(column, float(np.nanmax(np.abs(middle))))
        title = in_words(column)
        for place, (low, value, high) in enumerate(zip(lower, middle, middle + half, strict=True)):
            if np.isnan(value):
                continue
            at = {
                "panel": number,
                "series": title,
                "y": place,
                "text": f"{names[place]}: {text(column, value)} ± {text(column, high - value)}",
            }
            marks += [at | {"shape": "span", "x": low / size, "x2": high / size}, at | {"shape": "point", "x": value / size}]
        panels.append(Panel(title, ChartAxis("", ending, *_ends(lower / size, (middle + half) / size)), ChartAxis(names=tuple(names))))
    return chart(marks, panels)


def trade_off(results: pd.DataFrame, settings: Sequence[str], columns: Sequence[str]) -> Chart | None:
    """The first two quantities against each other, a point per setting.  None: there are fewer than two of either."""
    table = means(results, list(settings), list(columns[:2]))[:_MOST].dropna(subset=list(columns[:2]))
    if len(columns) < 2 or len(table) < 2:
        return None
    units = [unit_of_ticks(column, float(table[column].abs().max())) for column in columns[:2]]
    marks = [
        {
            "series": _label(index), "x": row[columns[0]] / units[0][1], "y": row[columns[1]] / units[1][1],
            "text": f"{_label(index)}: {', '.join(f'{in_words(column)} {text(column, row[column])}' for column in columns[:2])}",
        }
        for index, row in table.iterrows()
    ]  # fmt: skip
    ends = [_ends(values := table[column].to_numpy(float) / unit[1], values) for column, unit in zip(columns[:2], units, strict=True)]
    x, y = (ChartAxis(in_words(column), unit[0], *end) for column, unit, end in zip(columns[:2], units, ends, strict=True))
    return chart(marks, [Panel("", x, y, height=220.0)])


def heat_map(results: pd.DataFrame, settings: Sequence[str], column: str) -> Chart | None:
    """The mean over the first two settings.  None: fewer than two are varied."""
    varied = [name for name in settings if len(results[name].unique()) > 1]
    if len(varied) < 2:
        return None
    across, down = varied[1], varied[0]
    found = means(results, [down, across], [column])[column]
    orders = [list(dict.fromkeys(found.index.get_level_values(name))) for name in (down, across)]  # as the sweep file has them
    table = found.unstack(across).reindex(index=orders[0], columns=orders[1])  # noqa: PD010 - both sort names as texts
    if table.isna().to_numpy().all() or max(table.shape) > _MOST:
        return None
    low, high = float(np.nanmin(table)), float(np.nanmax(table))
    marks = [
        {
            "series": in_words(column), "shape": "cell", "x": place - 0.5, "x2": place + 0.5, "y": row - 0.5, "y2": row + 0.5,
            "shade": 0.0 if high == low else (value - low) / (high - low), "words": text(column, value),
            "text": f"{_key(down)} {table.index[row]}, {_key(across)} {table.columns[place]}: {text(column, value)}",
        }
        for (row, place), value in np.ndenumerate(table.to_numpy(float))
    ]  # fmt: skip
    rows, places = (tuple(map(str, names)) for names in (table.index, table.columns))
    title = f"{in_words(column)}, by {_key(down)}"
    return chart(marks, [Panel(title, ChartAxis(_key(across), names=places), ChartAxis(names=rows), height=34.0 * len(rows))])


def sensitivity(results: pd.DataFrame, axes: Sequence[str], column: str) -> Chart | None:
    """How much of a quantity's variance each key explains, alone and with others.  None: fewer than two keys change it."""
    shares = effects(results, list(axes), column)
    if len(shares) < 2:
        return None
    names = tuple(_key(str(axis)) for axis in shares["axis"])
    marks = [
        {
            "series": series, "shape": "box", "x": 0.0, "x2": 100 * share, "y": place + begin, "y2": place + begin + 0.34,
            "text": f"{names[place]}, {series}: {100 * share:.0f} %",
        }
        for series, name, begin in (("alone", "first", -0.36), ("with others", "total", 0.0))
        for place, share in enumerate(shares[name])
        if np.isfinite(share)
    ]  # fmt: skip
    axis = ChartAxis("share of the variance [%]", low=0.0, high=100.0)
    return chart(marks, [Panel("", axis, ChartAxis(names=names))], colours={"alone": 0, "with others": 4})


def _ends(least: np.ndarray, most: np.ndarray) -> tuple[float | None, float | None]:
    """Where an axis begins and ends: around values that are close together, else at zero; None: where they do."""
    low, high = float(np.nanmin(least)), float(np.nanmax(most))
    if high <= 0 or low < 0:
        return None, None
    if low < high / 2 or low == high:
        return 0.0, 1.1 * high
    margin = (high - low) / 5
    step = 10.0 ** math.floor(math.log10(high - low))
    return step * math.floor((low - margin) / step), high + margin


def _label(index: object) -> str:
    return one_line(", ".join(map(str, index if isinstance(index, tuple) else (index,))), 60)


def _key(name: str) -> str:
    """``checkpoint.interval`` as words."""
    return one_line(name.rpartition(".")[2].replace("-", " "), 40)
