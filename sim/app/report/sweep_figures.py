"""The chart of a sweep: means of settings with confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sim.model.text import one_line
from sim.results.charts import INK, Chart, ChartAxis, Panel, chart
from sim.results.columns import text, unit_of_ticks
from sim.results.summary import in_words
from sim.results.sweep_answers import Limit, means

if TYPE_CHECKING:
    import pandas as pd


_MAX_SETTINGS = 30
"""Maximum number of settings drawn; more would overlap."""


def intervals(
    results: pd.DataFrame, settings: Sequence[str], columns: Sequence[str], limits: Sequence[Limit] = ()
) -> Chart | None:
    """Chart the mean and 95 % confidence interval of each setting, a panel per column.  Returns None without values.

    Intervals of durations, sizes and counts are cut at zero.  A ring is a lower bound, and a shaded area beyond a limit.
    """
    table = means(results, list(settings), list(columns))[:_MAX_SETTINGS]
    columns = [column for column in columns if table[column].notna().any()]
    if table.empty or not columns:
        return None
    names = [_label(index) for index in table.index]
    marks: list[dict[str, Any]] = []
    panels = []
    for number, column in enumerate(columns):
        middle, half = (
            table[column].to_numpy(float),
            table[f"{column} ±"].replace(np.inf, np.nan).fillna(0.0).to_numpy(float),
        )
        lower = middle - half if column.endswith("_change") else np.maximum(middle - half, 0.0)
        bounds = table[f"{column} unfinished"].to_numpy(bool)
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
            marks += [
                at | {"shape": "span", "x": low / size, "x2": high / size},
                at | {"shape": "ring" if bounds[place] else "point", "x": value / size},
            ]
        for limit in limits:
            if limit.column == column:
                beyond = {"x": limit.at_most / size} if math.isfinite(limit.at_most) else {"x2": limit.at_least / size}
                marks.append({"panel": number, "series": "beyond a limit", "shape": "band", "x": 0.0} | beyond)
        panels.append(
            Panel(
                title,
                ChartAxis("", ending, *_ends(lower / size, (middle + half) / size)),
                ChartAxis(names=tuple(names)),
            )
        )
    return chart(marks, panels, colours={"beyond a limit": INK})


def _ends(least: np.ndarray, most: np.ndarray) -> tuple[float | None, float | None]:
    """Return the limits of an axis: padded around close values, otherwise from zero; None: chosen by the chart."""
    low, high = float(np.nanmin(least)), float(np.nanmax(most))
    if high <= 0 or low < 0:
        return None, None
    if low < high / 2 or low == high:
        return 0.0, 1.1 * high
    margin = (high - low) / 5
    step = 10.0 ** math.floor(math.log10(high - low))
    return step * math.floor((low - margin) / step), high + margin


def _label(index: object) -> str:
    values = index if isinstance(index, (tuple, list)) else (index,)
    return one_line(", ".join(map(str, values)), 60)
