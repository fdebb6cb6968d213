"""The figures of a sweep: values with their intervals, two values against each other, and a value over two settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sim.analysis.sweeps.answers import means
from sim.analysis.sweeps.axis_ticks import set_ticks
from sim.analysis.sweeps.effects import effects
from sim.analysis.sweeps.measure import text
from sim.quantities.results import in_words
from sim.report.figures import SMALL, style
from sim.report.svg import COLOURS, GRID, INK, figure, label

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter

_MOST = 30
"""Settings that are drawn; more would stand on each other."""
_ACROSS = 5
"""Ticks below an axis: values with units are long, and more would touch."""


def intervals(results: pd.DataFrame, settings: Sequence[str], columns: Sequence[str]) -> Figure | None:
    """A row per setting: mean and 95 % confidence interval; durations, sizes and counts never reach below zero.  None: no value."""
    table = means(results, list(settings), list(columns))[:_MOST]
    columns = [column for column in columns if table[column].notna().any()]
    if table.empty or not columns:
        return None
    drawn = figure(0.6 + len(columns) * (0.7 + 0.22 * len(table)))
    panels = drawn.subplots(len(columns), squeeze=False)[:, 0]
    labels, places = [_label(index) for index in table.index], np.arange(len(table))[::-1]
    for i, (axes, column) in enumerate(zip(panels, columns, strict=True)):
        middle, half = table[column].to_numpy(float), table[f"{column} ±"].replace(np.inf, np.nan).fillna(0.0).to_numpy(float)
        lower = middle - half if column.endswith("_change") else np.maximum(middle - half, 0.0)
        axes.errorbar(middle, places, xerr=[middle - lower, half], fmt="o", ms=4, capsize=3, lw=1.2, color=COLOURS[i % len(COLOURS)])
        axes.set_yticks(places, labels)
        style(axes, "")
        axes.set_title(in_words(column), loc="left", fontsize=SMALL, color=INK)
        axes.yaxis.set_major_formatter(_ticks(dict(zip(places.tolist(), labels, strict=True))))
        set_ticks(axes.xaxis, column, _ACROSS)
        axes.grid(visible=True, axis="x", color=GRID, lw=0.6)
    return drawn


def trade_off(results: pd.DataFrame, settings: Sequence[str], columns: Sequence[str]) -> Figure | None:
    """The first two quantities against each other, a point per setting.  None: there are fewer than two of either."""
    table = means(results, list(settings), list(columns[:2]))[:_MOST].dropna(subset=list(columns[:2]))
    if len(columns) < 2 or len(table) < 2:
        return None
    drawn = figure(3.2)
    axes = drawn.subplots()
    for i, (index, row) in enumerate(table.iterrows()):
        axes.plot(
            row[columns[0]],
            row[columns[1]],
            "os^Dv<>P"[i % 8],
            color=COLOURS[i % len(COLOURS)],
            ms=12 - i % 8,
            mfc="none",
            mew=1.6,
            label=_label(index),
        )
    style(axes, in_words(columns[1]))
    axes.set_xlabel(in_words(columns[0]), fontsize=SMALL, color=INK)
    set_ticks(axes.xaxis, columns[0], _ACROSS)
    set_ticks(axes.yaxis, columns[1])
    drawn.legend(loc="outside lower left", ncols=2, frameon=False, fontsize=SMALL, labelcolor=INK)
    return drawn


def heat_map(results: pd.DataFrame, settings: Sequence[str], column: str) -> Figure | None:
    """The mean over the first two settings.  None: fewer than two are varied."""
    varied = [name for name in settings if len(results[name].unique()) > 1]
    if len(varied) < 2:
        return None
    across, down = varied[1], varied[0]
    table = means(results, [down, across], [column])[column].unstack(across)  # noqa: PD010 - a pivot sorts
    if table.isna().to_numpy().all() or max(table.shape) > _MOST:
        return None
    drawn = figure(0.9 + 0.35 * len(table))
    axes = drawn.subplots()
    image = axes.imshow(table.to_numpy(float), cmap="cividis", aspect="auto")
    axes.set_xticks(range(len(table.columns)), [label(name, 20) for name in table.columns], fontsize=SMALL, color=INK)
    axes.set_yticks(range(len(table)), [label(name, 20) for name in table.index], fontsize=SMALL, color=INK)
    axes.set_xlabel(_key(across), fontsize=SMALL, color=INK)
    axes.set_ylabel(_key(down), fontsize=SMALL, color=INK)
    low, high = np.nanmin(table), np.nanmax(table)
    for (row, place), value in np.ndenumerate(table.to_numpy(float)):
        dark = np.isnan(value) or value < (low + high) / 2
        axes.text(place, row, text(column, value), ha="center", va="center", fontsize=SMALL, color="#ffffff" if dark else "#000000")
    axes.spines[:].set_visible(False)
    image.set_label(in_words(column))
    axes.set_title(in_words(column), loc="left", fontsize=SMALL, color=INK)
    return drawn


def sensitivity(results: pd.DataFrame, axes: Sequence[str], column: str) -> Figure | None:
    """How much of a quantity's variance each key explains, alone and with others.  None: fewer than two keys change it."""
    shares = effects(results, list(axes), column)
    if len(shares) < 2:
        return None
    drawn = figure(1.1 + 0.45 * len(shares))
    plot = drawn.subplots()
    places = np.arange(len(shares))[::-1]
    plot.barh(places + 0.18, 100 * shares["first"], 0.34, color=COLOURS[0], label="alone")
    if shares["total"].notna().any():
        plot.barh(places - 0.18, 100 * shares["total"].fillna(0.0), 0.34, color=COLOURS[4], label="with others")
    style(plot, "")
    plot.set_yticks(places, [_key(str(axis)) for axis in shares["axis"]])
    plot.set_xlim(0, 100)
    plot.set_xlabel("share of the variance [%]", fontsize=SMALL, color=INK)
    plot.grid(visible=True, axis="x", color=GRID, lw=0.6)
    drawn.legend(loc="outside lower left", ncols=2, frameon=False, fontsize=SMALL, labelcolor=INK)
    return drawn


def _label(index: object) -> str:
    return label(", ".join(map(str, index if isinstance(index, tuple) else (index,))), 40)


def _key(name: str) -> str:
    """``checkpoint.interval`` as words."""
    return label(name.rpartition(".")[2].replace("-", " "), 40)


def _ticks(labels: Mapping[int, str]) -> FuncFormatter:
    from matplotlib.ticker import FuncFormatter

    return FuncFormatter(lambda value, _: labels.get(round(value), ""))
