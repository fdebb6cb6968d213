"""The figure of a sweep over several windows: a panel per window on one scale, a row per setting, its seeds as a span."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sim.analysis.sweeps.axis_ticks import set_ticks
from sim.analysis.sweeps.observed import dead, ended
from sim.quantities.results import in_words
from sim.report.figures import SMALL, style
from sim.report.svg import COLOURS, GRID, INK, figure, label

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter

WINDOW = "window"
MOST_WINDOWS, MOST_SETTINGS = 12, 12
_FAILS, _IS_BOUND = "its job fails", "it did not end"
"""Columns beside those of results, whose names have no spaces."""


def per_window(rows: pd.DataFrame, settings: Sequence[str], column: str) -> Figure | None:
    """`rows`: of runs with checkpoints.  None: fewer than two windows, or no value.

    A run without a value is no zero, and one whose job failed has none: the row of its setting says so.  A bound is an open triangle.
    """
    if WINDOW not in rows:
        return None
    fails = dead(rows)
    rows = rows.assign(**{column: rows[column].astype(float).mask(fails)}).assign(**{_FAILS: fails})
    if not rows[column].notna().any():
        return None
    rows[_IS_BOUND] = rows[column].notna() & ended(rows, column).isna()
    windows = list(dict.fromkeys(rows[WINDOW].dropna()))[:MOST_WINDOWS]
    if len(windows) < 2:
        return None
    names = rows[list(settings)].astype(str).agg(", ".join, axis=1)
    names_drawn = list(dict.fromkeys(names))[:MOST_SETTINGS]
    drawn = figure(0.7 + len(windows) * (0.4 + 0.2 * len(names_drawn)))
    panels = drawn.subplots(len(windows), sharex=True, squeeze=False)[:, 0]
    for axes, window in zip(panels, windows, strict=True):
        own = rows[rows[WINDOW] == window]
        _panel(axes, str(window), column, {name: own[names[own.index] == name] for name in names_drawn})
    high = float(rows[column].max())
    panels[0].set_xlim(0 if float(rows[column].min()) >= 0 else None, 1.05 * high if high > 0 else None)
    set_ticks(panels[-1].xaxis, column, 5)
    panels[-1].set_xlabel(in_words(column), fontsize=SMALL, color=INK)
    return drawn


def _panel(axes: Axes, title: str, column: str, rows: dict[str, pd.DataFrame]) -> None:
    """`rows`: by setting."""
    names, places = list(rows), np.arange(len(rows))[::-1]
    for i, (own, place) in enumerate(zip(rows.values(), places, strict=True)):
        known = own[column].dropna()
        missing, failed = len(own) - len(known), int(own[_FAILS].sum())
        colour = COLOURS[i % len(COLOURS)]
        if len(known):
            axes.plot([known.min(), known.max()], [place, place], "-", color=colour, lw=1.6)
            marker, fill = (">", "none") if own[_IS_BOUND].any() else ("o", colour)
            axes.plot(known.mean(), place, marker, color=colour, mfc=fill, ms=5)
        if missing:
            text = f"{'fails' if failed else 'no value'} in {failed or missing} of {len(own)} runs"
            axes.text(0.99, place, text, transform=axes.get_yaxis_transform(), ha="right", va="center", fontsize=SMALL, color=INK)
    style(axes, "")
    axes.set_yticks(places, [label(name) for name in names])
    axes.yaxis.set_major_formatter(_names(dict(zip(places.tolist(), names, strict=True))))
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.set_title(label(title, 60), loc="left", fontsize=SMALL, color=INK)
    axes.grid(visible=True, axis="x", color=GRID, lw=0.6)


def _names(labels: dict[int, str]) -> FuncFormatter:
    from matplotlib.ticker import FuncFormatter

    return FuncFormatter(lambda value, _: label(labels.get(round(value), "")))
